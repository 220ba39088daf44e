// The nearest objects among candidates, or among all objects (kernels/reference_sets.cu).
#include "runtime/parallel.h"
#include "similarity/nearest_list.h"
#include "similarity/primitives.h"

namespace gpuens {

namespace {

constexpr f64 FEATURE_NS = 1.0;

}  // namespace

void nearest_candidates(Matrix<const f64> points, i64 first, Matrix<const i64> candidates, Vector<const f64> beyond,
                        Matrix<i64> ids, Matrix<f64> squares) {
    i64 n_features = points.columns;
    over_ranges(ids.rows, (f64)(candidates.columns * (n_features + 4)) * FEATURE_NS, [&](i64 start, i64 stop) {
        for (i64 i = start; i < stop; ++i) {
            if (i % 16 == 0) look();
            auto offer = [&](NearestList& list, i64 j) {
                if (j != first + i) list.offer(j, squared_distance(points[first + i], points[j], 1, n_features));
            };
            NearestList list{ids[i], squares[i], ids.columns};
            for (i64 t = 0; t < candidates.columns; ++t) offer(list, candidates[i][t]);
            if (list.full() && list.farthest() < beyond[i]) continue;
            list = {ids[i], squares[i], ids.columns};  // another object may be as near: all are compared
            for (i64 j = 0; j < points.rows; ++j) {
                if (j % 256 == 0) look();
                offer(list, j);
            }
        }
    });
}

}  // namespace gpuens

// Mapping coefficients of objects from their reference sets (kernels/mapping.cu).
#include "runtime/parallel.h"
#include "similarity/primitives.h"

#include <algorithm>

namespace gpuens {

namespace {

constexpr i64 AT_ONCE = 256;  // objects whose references are looked up in one clustering, which a cache then holds
constexpr f64 REFERENCE_NS = 3;

// The weights of the references of object i.
void weigh(const ReferenceSets& of, i64 i, f64* weights) {
    i64 n = of.ids.columns;
    const f64* distances = of.distances[i];
    f64 total_distance = 0.0;
    for (i64 t = 0; t < n; ++t) total_distance += distances[t];
    for (i64 t = 0; t < n; ++t) weights[t] = reference_weight(distances[t], total_distance, n);
}

}  // namespace

void mapping_coefficients(ReferenceSets of, Codes<Matrix> codes, Vector<const i64> offsets, Vector<const i64> firsts,
                          Coefficients coefficients) {
    i64 n = of.ids.columns;
    std::visit([&]<typename Code>(Matrix<const Code> labels) {
        in_threads(of.ids.rows, (f64)(labels.rows * n) * REFERENCE_NS, [&](Ranges& ranges) {
            std::vector<f64> weights(AT_ONCE * n);
            while (Range range = ranges.next())
                for (i64 start = range.start; start < range.stop; start += AT_ONCE) {
                    i64 stop = std::min(start + AT_ONCE, range.stop);
                    for (i64 i = start; i < stop; ++i) weigh(of, i, weights.data() + (i - start) * n);
                    for (i64 m = 0; m < labels.rows; ++m) {
                        look();
                        for (i64 i = start; i < stop; ++i) {
                            Shares shares{coefficients.clusters[i] + firsts[m], coefficients.values[i] + firsts[m], 0};
                            const f64* object_weights = weights.data() + (i - start) * n;
                            for (i64 t = 0; t < n; ++t) {
                                Code label = labels[m][of.ids[i][t]];
                                if (label != MISSING(Code) && object_weights[t] > 0.0) shares.add((i32)(offsets[m] + label), object_weights[t]);
                            }
                            shares.scale();
                            coefficients.counts[i][m] = (i32)shares.listed;
                        }
                    }
                }
        });
    }, codes);
}

}  // namespace gpuens

// What k-means in label space adds up (kernels/label_space.cu).
#include "parallel.h"
#include "primitives.h"

namespace gpuens {

// The cells of one clustering, a row of them for each of its clusters.
template <typename Code>
static void count_labels(const Code* own, const i64* weights, const i64* labels, i64 n, i64 n_labels, i64* cells) {
    for (i64 g = 0; g < n; ++g)
        if (own[g] != MISSING(Code)) cells[own[g] * n_labels + labels[g]] += weights[g];
}

void label_histograms(Codes<Matrix> codes, Vector<const i64> offsets, Vector<const i64> weights,
                      Vector<const i64> labels, Matrix<i64> counted) {
    std::visit([&](auto of) {
        over_ranges(of.rows, (f64)of.columns, [&](i64 start, i64 stop) {
            for (i64 m = start; m < stop; ++m)
                count_labels(of[m], weights.data, labels.data, of.columns, counted.columns, counted[offsets[m]]);
        });
    }, codes);
}

}  // namespace gpuens

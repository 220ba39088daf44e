// A tile of the total weights of common clusters of label rows (kernels/coassociation.cu).
#include "lanes.h"
#include "parallel.h"
#include "similarity/primitives.h"

namespace gpuens {

namespace {

constexpr f64 COMPARISON_NS = 0.15;

template <typename Code>
struct Row {
    const Code* labels;
    i64 n_clusterings;
    const i64* offsets;
    const f64* weights;
};

// Write the similarities of a row and N columns from `first` on, whose sums stay in registers; a zero changes no sum.
template <i64 N, typename Code>
void add_common(const Row<Code>& row, Matrix<const Code> cols, i64 first, f64* found) {
    using Sums = Lanes<f64, N>;
    Sums sums = Sums::zeros();
    for (i64 m = 0; m < row.n_clusterings; ++m) {
        Code label = row.labels[m];
        if (label == MISSING(Code)) continue;
        sums.plus_real_where(cols[m] + first, label, row.weights[row.offsets[m] + label]);
    }
    sums.over((f64)row.n_clusterings);
    sums.store(found + first);
}

// The similarities of a row and all columns, N at a time: the last N overlap with those before them.
template <i64 N, typename Code>
void add_all(const Row<Code>& row, Matrix<const Code> cols, f64* found) {
    i64 last = cols.columns - N;
    if (last < 0) {
        if constexpr (N > 1) add_all<N / 2>(row, cols, found);
        return;
    }
    for (i64 first = 0; first < last; first += N) add_common<N>(row, cols, first, found);
    add_common<N>(row, cols, last, found);
}

}  // namespace

void coassociation_tile(Codes<Matrix> rows, Codes<Matrix> cols, Vector<const i64> offsets, Vector<const f64> weights,
                        Matrix<f64> tile) {
    std::visit([&]<typename Code>(Matrix<const Code> of) {
        auto others = std::get<Matrix<const Code>>(cols);
        over_ranges(tile.rows, (f64)(tile.columns * of.columns) * COMPARISON_NS, [&](i64 start, i64 stop) {
            for (i64 i = start; i < stop; ++i) {
                Row<Code> row{of[i], of.columns, offsets.data, weights.data};
                look();
                add_all<64>(row, others, tile[i]);
            }
        });
    }, rows);
}

}  // namespace gpuens

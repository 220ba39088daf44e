// A tile of the total weights of common clusters of label rows (kernels/coassociation.cu).
#include "runtime/parallel.h"
#include "similarity/primitives.h"

#include <algorithm>

namespace gpuens {

namespace {

constexpr i64 AT_ONCE = 64;  // columns whose sums stay in registers
constexpr f64 COMPARISON_NS = 0.15;

template <typename Code>
struct Row {
    const Code* labels;
    i64 n_clusterings;
    const i64* offsets;
    const f64* weights;
};

// Write n <= AT_ONCE similarities of a row and columns, whose labels of one clustering are `step` after those of the one
// before; there are AT_ONCE of each. A zero that is added changes no sum.
template <typename Code>
void add_common(const Row<Code>& row, const Code* cols, i64 step, i64 n, f64* out) {
    f64 sums[AT_ONCE] = {};
    for (i64 m = 0; m < row.n_clusterings; ++m) {
        Code label = row.labels[m];
        if (label == MISSING(Code)) continue;
        f64 weight = row.weights[row.offsets[m] + label];
        const Code* column_labels = cols + m * step;
        for (i64 j = 0; j < AT_ONCE; ++j) sums[j] += column_labels[j] == label ? weight : 0.0;
    }
    for (i64 j = 0; j < AT_ONCE; ++j) sums[j] /= (f64)row.n_clusterings;
    std::copy_n(sums, n, out);
}

// The last columns, fewer than AT_ONCE, with missing labels after them.
template <typename Code>
std::vector<Code> padded(Matrix<const Code> cols, i64 first) {
    std::vector<Code> labels(cols.rows * AT_ONCE, MISSING(Code));
    for (i64 m = 0; m < cols.rows; ++m) std::copy_n(cols[m] + first, cols.columns - first, labels.data() + m * AT_ONCE);
    return labels;
}

}  // namespace

void coassociation_tile(Codes<Matrix> rows, Codes<Matrix> cols, Vector<const i64> offsets, Vector<const f64> weights,
                        Matrix<f64> tile) {
    std::visit([&]<typename Code>(Matrix<const Code> of) {
        auto column_codes = std::get<Matrix<const Code>>(cols);
        i64 n_padded = tile.columns / AT_ONCE * AT_ONCE, left = tile.columns - n_padded;
        std::vector<Code> last = padded(column_codes, n_padded);
        over_ranges(tile.rows, (f64)(tile.columns * of.columns) * COMPARISON_NS, [&](i64 start, i64 stop) {
            for (i64 i = start; i < stop; ++i) {
                if (i % 16 == 0) look();
                Row<Code> row{of[i], of.columns, offsets.data, weights.data};
                for (i64 first = 0; first < n_padded; first += AT_ONCE)
                    add_common(row, column_codes.data + first, column_codes.columns, AT_ONCE, tile[i] + first);
                if (left) add_common(row, last.data(), AT_ONCE, left, tile[i] + n_padded);
            }
        });
    }, rows);
}

}  // namespace gpuens

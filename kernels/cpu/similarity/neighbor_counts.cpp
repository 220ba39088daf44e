// Sums over the neighbours of each row (kernels/neighbor_counts.cu, kernels/neighbor_sums.cu).
#include "lanes.h"
#include "parallel.h"
#include "similarity/primitives.h"

namespace gpuens {

namespace {

constexpr f64 MARKED_NS = 1, ADDED_NS = 0.5, SHARE = 0.25;  // of rows that are neighbours, as foreseen

// Call `work(neighbour)` for each neighbour of row i.
template <typename Work>
void each_neighbor(Matrix<const u64> bits, i64 i, Work&& work) {
    for (i64 w = 0; w < bits.columns; ++w) {
        if (w % 16 == 0) look();
        each_bit(bits[i][w], [&](i64 bit) { work(w * 64 + bit); });
    }
}

}  // namespace

void mark_members(Codes<Matrix> codes, Vector<const i64> offsets, Matrix<u64> members) {
    std::visit([&]<typename Code>(Matrix<const Code> of) {
        over_ranges(of.rows, (f64)of.columns * MARKED_NS, [&](i64 start, i64 stop) {
            for (i64 m = start; m < stop; ++m)
                for (i64 q = 0; q < of.columns; ++q)
                    if (Code label = of[m][q]; label != MISSING(Code)) members[offsets[m] + label][q / 64] |= 1ull << q % 64;
        });
    }, codes);
}

void neighbor_counts(Matrix<const u64> bits, Codes<Matrix> rows, Vector<const i64> offsets, Vector<const i64> counts,
                     Matrix<i64> found) {
    std::visit([&]<typename Code>(Matrix<const Code> of) {
        over_ranges(bits.rows, (f64)(of.rows * of.columns) * SHARE * ADDED_NS, [&](i64 start, i64 stop) {
            for (i64 i = start; i < stop; ++i)
                each_neighbor(bits, i, [&](i64 q) {
                    for (i64 m = 0; m < of.columns; ++m)
                        if (Code label = of[q][m]; label != MISSING(Code)) found[i][offsets[m] + label] += counts[q];
                });
        });
    }, rows);
}

void neighbor_sums(Matrix<const u64> bits, Matrix<const i64> values, Matrix<i64> found) {
    over_ranges(bits.rows, (f64)(values.rows * (values.columns + 4)) * SHARE * ADDED_NS, [&](i64 start, i64 stop) {
        for (i64 i = start; i < stop; ++i) {
            i64* sums = found[i];
            each_neighbor(bits, i, [&](i64 q) {
                const i64* own = values[q];
#pragma GCC ivdep
                for (i64 d = 0; d < values.columns; ++d) sums[d] += own[d];
            });
        }
    });
}

}  // namespace gpuens

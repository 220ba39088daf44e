// Sums over the neighbours of each row (kernels/neighbor_counts.cu, kernels/neighbor_sums.cu).
#include "runtime/lanes.h"
#include "runtime/parallel.h"
#include "similarity/primitives.h"

namespace gpuens {

namespace {

constexpr f64 MARKED_NS = 1, ADDED_NS = 0.5;
constexpr f64 SHARE = 0.25;  // foreseen share of rows that are neighbours

// The neighbours of row i, ascending.
void list_neighbors(Matrix<const u64> bits, i64 i, std::vector<i64>& neighbors) {
    neighbors.clear();
    for (i64 w = 0; w < bits.columns; ++w) each_bit(bits[i][w], [&](i64 bit) { neighbors.push_back(w * 64 + bit); });
}

template <typename Code>
void count_labels(Matrix<const Code> rows, const i64* offsets, i64 q, i64 count, i64* sums) {
    const Code* labels = rows[q];
    for (i64 m = 0, n = rows.columns; m < n; ++m)
        if (Code label = labels[m]; label != MISSING(Code)) sums[offsets[m] + label] += count;
}

// Write the sums of N columns, which stay in registers.
template <i64 N>
void add_columns(const std::vector<i64>& neighbors, const i64* values, i64 width, i64* out) {
    i64 sums[N] = {};
    for (i64 q : neighbors) {
        const i64* row = values + q * width;
        for (i64 d = 0; d < N; ++d) sums[d] += row[d];
    }
    std::copy(sums, sums + N, out);
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
                     Matrix<i64> sums) {
    std::visit([&]<typename Code>(Matrix<const Code> of) {
        in_threads(bits.rows, (f64)(of.rows * of.columns) * SHARE * ADDED_NS, [&](Ranges& ranges) {
            std::vector<i64> neighbors;
            while (Range range = ranges.next())
                for (i64 i = range.start; i < range.stop; ++i) {
                    list_neighbors(bits, i, neighbors);
                    for (size_t at = 0; at < neighbors.size(); ++at) {
                        if (at % 256 == 0) look();
                        count_labels(of, offsets.data, neighbors[at], counts[neighbors[at]], sums[i]);
                    }
                }
        });
    }, rows);
}

void neighbor_sums(Matrix<const u64> bits, Matrix<const i64> values, Matrix<i64> sums) {
    i64 width = values.columns;
    in_threads(bits.rows, (f64)(values.rows * (width + 4)) * SHARE * ADDED_NS, [&](Ranges& ranges) {
        std::vector<i64> neighbors;
        while (Range range = ranges.next())
            for (i64 i = range.start; i < range.stop; ++i) {
                list_neighbors(bits, i, neighbors);
                i64 d = 0;
                for (; d + 32 <= width; d += 32, look()) add_columns<32>(neighbors, values.data + d, width, sums[i] + d);
                for (; d + 8 <= width; d += 8) add_columns<8>(neighbors, values.data + d, width, sums[i] + d);
                for (; d < width; ++d) add_columns<1>(neighbors, values.data + d, width, sums[i] + d);
                look();
            }
    });
}

}  // namespace gpuens

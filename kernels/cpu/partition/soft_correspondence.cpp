// Memberships from correspondences and sums of memberships over clusters (kernels/soft_correspondence.cu): a look-up
// per label, in the order of the clusterings; a missing label looks up a row of its own.
#include "runtime/parallel.h"
#include "partition/primitives.h"
#include "partition/tail.h"

namespace gpuens {

namespace {

constexpr i64 WIDE = 4;              // vectors of columns that are added up at once, in registers
constexpr i64 BETWEEN_LOOKS = 1024;  // rows

// The table row of each label.
template <typename Code>
struct LookUps {
    Matrix<const Code> codes;
    Vector<const i64> offsets;
    Matrix<const f64> known, unknown;

    const f64* row(i64 m, i64 g) const {
        Code label = codes[m][g];
        return label == MISSING(Code) ? unknown[m] : known[offsets[m] + label];
    }
};

// Write n columns of the sums of table rows from `first` on, at most V vectors.
template <i64 V, typename Code>
void add_rows(const LookUps<Code>& in, i64 g, i64 first, f64* into, i64 n) {
    constexpr i64 L = IN_REGISTER<f64>;
    Register<f64> sums[V] = {};
    for (i64 m = 0; m < in.codes.rows; ++m) {
        const f64* row = in.row(m, g) + first;
        for (i64 v = 0; v < V; ++v) sums[v] += load(row + v * L);
    }
    std::memcpy(into, sums, n * sizeof(f64));
}

// Add up the values of each of k clusters, and of missing labels, in a table of whole vectors.
template <typename Code>
void add_clustering(const Code* labels, i64 k, Matrix<const i64> values, const Tail<i64>& tail, Matrix<i64> known,
                    i64* unknown) {
    constexpr i64 L = IN_REGISTER<i64>;
    i64 width = tail.first + (tail.n ? L : 0);
    std::vector<i64> sums((k + 1) * width);
    for (i64 g = 0; g < values.rows; ++g) {
        if (g % BETWEEN_LOOKS == 0) look();
        i64 *sums_of_cluster = sums.data() + std::min((i64)labels[g], k) * width, d = 0;
        for (; d < tail.first; d += L) store(load(sums_of_cluster + d) + load(values[g] + d), sums_of_cluster + d);
        if (tail.n) store(load(sums_of_cluster + d) + load(tail.table()[g]), sums_of_cluster + d);
    }
    for (i64 c = 0; c <= k; ++c)
        std::copy_n(sums.data() + c * width, values.columns, c < k ? known[c] : unknown);
}

}  // namespace

void label_memberships(Codes<Matrix> codes, Vector<const i64> offsets, Matrix<const f64> table,
                       Matrix<const f64> of_missing, Matrix<f64> sums) {
    std::visit([&]<typename Code>(Matrix<const Code> of) {
        constexpr i64 L = IN_REGISTER<f64>;
        Tail<f64> tail(table), tail_of_missing(of_missing);
        LookUps<Code> in{of, offsets, table, of_missing};
        LookUps<Code> in_tail{of, offsets, tail.table(), tail_of_missing.table()};
        over_ranges(sums.rows, (f64)(of.rows * (2 + table.columns / 4)), [&](i64 start, i64 stop) {
            for (i64 g = start; g < stop; ++g) {
                i64 d = 0;
                for (; d + WIDE * L <= tail.first; d += WIDE * L) add_rows<WIDE>(in, g, d, sums[g] + d, WIDE * L);
                for (; d < tail.first; d += L) add_rows<1>(in, g, d, sums[g] + d, L);
                if (tail.n) add_rows<1>(in_tail, g, 0, sums[g] + d, tail.n);
            }
        });
    }, codes);
}

void label_correspondences(Codes<Matrix> codes, Vector<const i64> offsets, Matrix<const i64> values, Matrix<i64> known,
                           Matrix<i64> unknown) {
    Tail<i64> tail(values);
    std::visit([&](auto of) {
        over_ranges(of.rows, (f64)(values.rows * (2 + values.columns / 4)), [&](i64 start, i64 stop) {
            for (i64 m = start; m < stop; ++m) {
                i64 k = offsets[m + 1] - offsets[m];
                add_clustering(of[m], k, values, tail, {known[offsets[m]], k, known.columns}, unknown[m]);
            }
        });
    }, codes);
}

}  // namespace gpuens

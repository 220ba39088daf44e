// Products of matrices whose terms are added in a given order, as on every device (kernels/soft_clusterings.cu); a
// BLAS would add them in its own.
#include "partition/ordered_products.h"

#include "runtime/parallel.h"
#include "partition/primitives.h"
#include "partition/tail.h"

namespace gpuens {

namespace {

constexpr i64 MANY = 12, FEW = 4;  // rows that are multiplied at once: one vector of sums each stays in a register

// Add the products of N rows and V vectors of columns of the table, from `first` on; sums beyond column `n` are not
// needed.
template <i64 N, i64 V>
void add_tile(Factors of, i64 row, Matrix<const f64> table, i64 first, Matrix<f64> into, i64 n) {
    constexpr i64 WIDTH = V * IN_REGISTER<f64>;
    f64 before[N][WIDTH] = {};
    Register<f64> sums[N][V];
    for (i64 r = 0; r < N; ++r) {
        std::copy(into[row + r], into[row + r] + n, before[r]);
        for (i64 v = 0; v < V; ++v) sums[r][v] = load(before[r] + v * IN_REGISTER<f64>);
    }
    const f64* factors = of.data + row * of.row_step;
    for (i64 t = 0; t < of.terms; ++t) {
        Register<f64> entries[V];
        for (i64 v = 0; v < V; ++v) entries[v] = load(table[t] + first + v * IN_REGISTER<f64>);
        for (i64 r = 0; r < N; ++r) {
            f64 factor = factors[r * of.row_step + t * of.term_step];
            for (i64 v = 0; v < V; ++v) sums[r][v] += factor * entries[v];
        }
    }
    for (i64 r = 0; r < N; ++r) {
        for (i64 v = 0; v < V; ++v) store(sums[r][v], before[r] + v * IN_REGISTER<f64>);
        std::copy(before[r], before[r] + n, into[row + r]);
    }
}

// Add the products of N rows: two vectors of columns at a time for one half of the rows and then the other, the rest singly.
template <i64 N>
void add_rows(Factors of, i64 row, Matrix<const f64> table, const Tail<f64>& tail, Matrix<f64> into) {
    constexpr i64 L = IN_REGISTER<f64>, HALF = (N + 1) / 2;
    auto from = [&](i64 column) { return Matrix<f64>{into.data + column, into.rows, into.columns}; };
    i64 d = 0;
    for (; d + 2 * L <= tail.first; d += 2 * L)
        for (i64 r = 0; r < N; r += HALF) add_tile<HALF, 2>(of, row + r, table, d, from(d), 2 * L);
    if (d < tail.first) add_tile<N, 1>(of, row, table, d, from(d), L);
    if (tail.n) add_tile<N, 1>(of, row, tail.table(), 0, from(tail.first), tail.n);
}

void add(Factors of, Matrix<const f64> table, const Tail<f64>& tail, Matrix<f64> into) {
    i64 row = 0;
    for (; row + MANY <= of.rows; row += MANY) add_rows<MANY>(of, row, table, tail, into);
    for (; row + FEW <= of.rows; row += FEW) add_rows<FEW>(of, row, table, tail, into);
    for (; row < of.rows; ++row) add_rows<1>(of, row, table, tail, into);
}

}  // namespace

void add_in_order(Factors of, Matrix<const f64> table, Matrix<f64> sums) { add(of, table, Tail<f64>(table), sums); }

void add_products(Matrix<const f64> pairs, Matrix<const f64> table, Matrix<f64> sums) {
    Tail<f64> tail(table);
    over_ranges(sums.rows, (f64)(table.rows * table.columns) / 4, [&](i64 start, i64 stop) {
        Factors factors{pairs[start], stop - start, pairs.columns, pairs.columns, 1};
        add(factors, table, tail, {sums[start], stop - start, sums.columns});
    });
}

void add_products_of_blocks(Matrix<const f64> soft, Matrix<const f64> values, i64 block_rows, Matrix<f64> sums) {
    i64 n_clusters = soft.columns, n_blocks = n_clusters ? sums.rows / n_clusters : 0;
    over_ranges(n_blocks, (f64)(block_rows * n_clusters * values.columns) / 4, [&](i64 start, i64 stop) {
        for (i64 block = start; block < stop; ++block) {
            i64 first = block * block_rows, n = std::min(block_rows, soft.rows - first);
            Matrix<const f64> block_values{values[first], n, values.columns};
            Factors transposed{soft[first], n_clusters, n, 1, n_clusters};
            add_in_order(transposed, block_values, {sums[block * n_clusters], n_clusters, sums.columns});
            look();
        }
    });
}

}  // namespace gpuens

// The similarity of two clusters of one clustering, by how they spread over the clusters of the other clusterings
// (kernels/coupled_clusters.cu).
//
// A spread with few entries is walked along its entries, any other one row by row; both add the same numbers in the same
// order, but for zeros.
#include "runtime/parallel.h"
#include "similarity/primitives.h"

#include <algorithm>

namespace gpuens {

namespace {

constexpr f64 FILLED = 0.2;  // largest share of entries other than 0 for which their lists are faster
constexpr f64 SMALLER_NS = 0.15, ENTRY_NS = 1.0;

struct Spread {
    Matrix<const f64> shares;  // (N_c, k)
    Vector<const i64> offsets;
    Vector<const f64> weights;
};

// Write the similarities of cluster v and N clusters from `first` on, whose sums stay in registers.
template <i64 N>
void add_smaller(const Spread& spread, i64 v, i64 first, f64* similarities) {
    f64 total[N] = {};
    for (i64 m = 0; m < spread.weights.size; ++m) {
        f64 weight = spread.weights[m];
        if (weight == 0.0) continue;
        f64 of_one[N] = {};
        for (i64 u = spread.offsets[m]; u < spread.offsets[m + 1]; ++u) {
            const f64 *row = spread.shares[u], *others = row + first, share = row[v];
            if (share == 0.0) continue;
            for (i64 i = 0; i < N; ++i) of_one[i] += std::min(share, others[i]);
        }
        for (i64 i = 0; i < N; ++i) total[i] += weight * of_one[i];
    }
    std::copy(total, total + N, similarities + first);
}

// The similarities of cluster v and all from itself on, N at a time: the last N overlap with those before them.
template <i64 N>
void relative_row(const Spread& spread, i64 v, f64* similarities) {
    i64 last = spread.shares.columns - N;
    if (last < 0) {
        if constexpr (N > 1) relative_row<N / 2>(spread, v, similarities);
        return;
    }
    for (i64 first = v; first < last; first += N) {
        look();
        add_smaller<N>(spread, v, first, similarities);
    }
    add_smaller<N>(spread, v, last, similarities);
}

// The entries of a matrix that are not 0, row by row or column by column.
struct Entries {
    struct Entry {
        i32 place;
        f64 value;
    };
    std::vector<i64> starts;
    std::vector<Entry> entries;

    Entries(Matrix<const f64> of, i64 n, bool by_columns) : starts((by_columns ? of.columns : of.rows) + 1), entries(n) {
        auto each = [&](auto&& work) {
            for (i64 row = 0; row < of.rows; ++row)
                for (i64 column = 0; column < of.columns; ++column)
                    if (f64 value = of[row][column]; value != 0.0)
                        by_columns ? work(column, row, value) : work(row, column, value);
        };
        each([&](i64 line, i64, f64) { ++starts[line + 1]; });
        for (size_t line = 1; line < starts.size(); ++line) starts[line] += starts[line - 1];
        std::vector<i64> ends(starts);
        each([&](i64 line, i64 place, f64 value) { entries[ends[line]++] = {(i32)place, value}; });
    }

    const Entry* begin(i64 line) const { return entries.data() + starts[line]; }
    const Entry* end(i64 line) const { return entries.data() + starts[line + 1]; }
};

void relative_rows_of_few(const Spread& spread, const Entries& rows, const Entries& columns, Range range,
                          Matrix<f64> similarities) {
    i64 k = similarities.rows;
    std::vector<f64> of_one(k);
    for (i64 v = range.start; v < range.stop; ++v) {
        const Entries::Entry *entry = columns.begin(v), *last = columns.end(v);
        f64* total = similarities[v];
        std::fill(total + v, total + k, 0.0);
        for (i64 m = 0; entry < last; ++m) {
            i64 end = spread.offsets[m + 1];
            if (entry->place >= end) continue;
            if (spread.weights[m] == 0.0) {
                while (entry < last && entry->place < end) ++entry;
                continue;
            }
            look();
            for (; entry < last && entry->place < end; ++entry)
                for (auto* other = rows.begin(entry->place); other < rows.end(entry->place); ++other)
                    of_one[other->place] += std::min(entry->value, other->value);  // entries before v are not read
            for (i64 other = v; other < k; ++other) total[other] += spread.weights[m] * of_one[other];
            std::fill(of_one.begin(), of_one.end(), 0.0);
        }
    }
}

}  // namespace

void relative_similarities(Matrix<const f64> shares, Vector<const i64> offsets, Vector<const f64> weights,
                           Matrix<f64> similarities) {
    Spread spread{shares, offsets, weights};
    i64 k = shares.columns, all = shares.rows * k;
    i64 n = all - std::count(shares.data, shares.data + all, 0.0);
    if ((f64)n < FILLED * (f64)all) {
        Entries rows(shares, n, false), columns(shares, n, true);
        over_ranges(k, (f64)n * ((f64)n / (f64)all) * ENTRY_NS, [&](i64 start, i64 stop) {
            relative_rows_of_few(spread, rows, columns, {start, stop}, similarities);
        });
    } else {
        over_ranges(k, (f64)all / 2 * SMALLER_NS, [&](i64 start, i64 stop) {
            for (i64 v = start; v < stop; ++v) relative_row<32>(spread, v, similarities[v]);
        });
    }
    for (i64 v = 0; v < k; ++v)
        for (i64 other = 0; other < v; ++other) similarities[v][other] = similarities[other][v];
}

}  // namespace gpuens

// Comparisons of label rows and regions with many queries at a time.
//
// A table has a row for each cluster and 64 columns (lanes), one for each query. An entry is the weight of the cluster
// for the query; with unit weights, it is 1 if the query has that label and 0 otherwise. Adding a label's table row to
// a vector of 64 sums makes 64 comparisons, so a row of M labels takes M vector additions, whatever the weights. A
// missing label is a cluster of its own with weight 0.
//
// For label rows, the sums are integers of 8 or 16 bits in 64 lanes; they are upper bounds of the scores (with unit
// weights, they are the scores). Regions are histograms; each entry multiplies a row of a table of real numbers of 16
// or 64 lanes. The clusterings are divided into chunks, so that a chunk's part of the table fits the smallest cache,
// and rows are compared chunk by chunk. A table that is only a little larger than that cache is not divided, so that
// sums stay in registers. If a table of all clusters would be large, several smaller tables are filled one after
// another.
#pragma once

#include <algorithm>
#include <vector>

#include "runtime/arrays.h"
#include "runtime/lanes.h"
#include "runtime/records.h"

namespace gpuens {

constexpr i64 SEGMENT = 64;      // tiles in a segment; the bounds of these tiles are checked together
constexpr i64 CANDIDATES = 256;  // rows or regions that are collected for a query before they are scored exactly
constexpr i64 BYTE = 255;        // largest sum in 8 bits
constexpr i64 UNITS = 65'535;    // largest sum in 16 bits
constexpr i64 BATCH = 64;        // rows compared before their sums are read, with a single table
constexpr i64 LONG_BATCH = 1 << 14;  // rows of a batch with several tables, each filled once a batch
constexpr int MANY = 4;          // vectors of 16 queries that are compared with a histogram together, if there are many

// Clusterings begin ... end - 1 of label rows; the first row of their table is cluster `base`.
struct Chunk {
    i64 begin, end, base;
};

// Chunks of all clusterings, with one table each (chunks_of in gpuens/partition/linkage/comparisons.py).
struct Chunks {
    RECORD(Chunks,
           // (M + 1,): the first cluster of each clustering, one more each for missing labels
           (Vector<const i64>, starts),
           (Vector<const i64>, chunks),   // the first clustering of each chunk, and the end
           (Vector<const i64>, tables));  // the first chunk of each table, and the end

    i64 n_clusterings() const { return starts.size - 1; }
    i64 n_tables() const { return tables.size - 1; }

    // The clusterings of a table as one chunk.
    Chunk table(i64 t) const { return {chunks[tables[t]], chunks[tables[t + 1]], starts[chunks[tables[t]]]}; }

    // The number of rows that are compared before their sums are read.
    i64 rows_in_batch(i64 n_rows) const {
        return std::clamp(n_rows, (i64)1, n_tables() == 1 ? BATCH : LONG_BATCH);
    }

    // Call `work(chunk)` for each chunk of a table.
    template <typename Work>
    void each(i64 t, Work&& work) const {
        for (i64 c = tables[t]; c < tables[t + 1]; ++c) work(Chunk{chunks[c], chunks[c + 1], table(t).base});
    }

    // Clusters of the largest table.
    i64 rows_of_tables() const {
        i64 largest = 0;
        for (i64 t = 0; t < n_tables(); ++t) largest = std::max(largest, starts[table(t).end] - table(t).base);
        return largest;
    }
};

namespace comparing {

// Rows whose sums stay in registers together, so that consecutive additions are independent.
template <typename Unit>
constexpr int AT_ONCE = std::clamp(VECTORS / Lanes<Unit, LANES>::N_VECTORS, 1, 4);

template <typename Unit, typename Sum>
[[gnu::always_inline]] inline void keep(const Lanes<Unit, LANES>& total, bool add, Sum* sums) {
    auto wide = Lanes<Sum, LANES>::widened(total);
    if (add) wide.plus(sums);
    wide.store(sums);
}

template <int N, typename Code, typename Unit, typename Sum>
[[gnu::always_inline]] inline void score(const Code* const rows[N], const i64* starts, Chunk chunk, const Unit* table,
                                         Sum* sums) {
    Lanes<Unit, LANES> totals[N] = {};
    for (i64 m = chunk.begin; m < chunk.end; ++m) {
        const Unit* rows_of_table = table + (starts[m] - chunk.base) * LANES;
        for (int i = 0; i < N; ++i) totals[i].plus(rows_of_table + (i64)rows[i][m] * LANES);
    }
    for (int i = 0; i < N; ++i) keep(totals[i], chunk.begin > 0, sums + i * LANES);
}

}  // namespace comparing

// Write the scores of `count` rows to sums (count, LANES), of the table's type or a wider one; row_of(i) is the row's
// labels. The labels of clusterings after the first are added to the sums of the chunks before.
template <typename RowOf, typename Unit, typename Sum>
void label_scores(i64 count, RowOf&& row_of, const i64* starts, Chunk chunk, const Unit* table, Sum* sums) {
    constexpr int N = comparing::AT_ONCE<Unit>;
    using Code = std::remove_cvref_t<decltype(*row_of(0))>;
    i64 i = 0;
    for (; i + N <= count; i += N) {
        const Code* rows[N];
        for (int r = 0; r < N; ++r) rows[r] = row_of(i + r);
        comparing::score<N>(rows, starts, chunk, table, sums + i * LANES);
    }
    for (; i < count; ++i) {
        const Code* row = row_of(i);
        comparing::score<1>(&row, starts, chunk, table, sums + i * LANES);
    }
}

// True if 16 bits hold the sums of a region of `size` objects exactly.
inline bool are_exact(i64 size, i64 n_clusterings, bool unit_weights) {
    return unit_weights && size * n_clusterings <= UNITS;
}

// A factor by which a float32 total of n sums becomes an upper bound, despite rounding.
inline f64 above_rounding(i64 n) { return 1.0 + 1e-6 + 1.2e-7 * (f64)n; }

// Write a region's mean score for each lane to sums (FLOAT_LANES,), a bound: `length` entries, table (N_c,
// FLOAT_LANES).
inline void histogram_scores(const i32* clusters, const i32* counts, i64 length, i64 size, const f32* table,
                             f32* sums) {
    Lanes<f32, FLOAT_LANES> even = {}, odd = {};  // two sums, so that consecutive additions are independent
    i64 e = 0;
    for (; e + 1 < length; e += 2) {
        even.plus_times(table + (i64)clusters[e] * FLOAT_LANES, (f32)counts[e]);
        odd.plus_times(table + (i64)clusters[e + 1] * FLOAT_LANES, (f32)counts[e + 1]);
    }
    if (e < length) even.plus_times(table + (i64)clusters[e] * FLOAT_LANES, (f32)counts[e]);
    even.plus(odd);
    even.times((f32)(1.0 / (f64)size));
    even.store(sums);
}

// Write a region's mean scores in MANY vectors of lanes; table (N_c, MANY, FLOAT_LANES), sums (MANY, FLOAT_LANES).
inline void scores_of_vectors(const i32* clusters, const i32* counts, i64 length, i64 size, const f32* table,
                              f32* sums) {
    Lanes<f32, FLOAT_LANES> totals[MANY] = {};
    for (i64 e = 0; e < length; ++e)
        for (int v = 0; v < MANY; ++v)
            totals[v].plus_times(table + ((i64)clusters[e] * MANY + v) * FLOAT_LANES, (f32)counts[e]);
    for (int v = 0; v < MANY; ++v) {
        totals[v].times((f32)(1.0 / (f64)size));
        totals[v].store(sums + v * FLOAT_LANES);
    }
}

// The best scores of a query so far, as many as its list has entries: highest first, zeros before.
template <typename Score>
class BestScores {
public:
    explicit BestScores(i64 n_listed_ = 1)
        : n_listed(n_listed_), scores((n_listed_ + TAKEN - 1) / TAKEN * TAKEN) {}

    void forget() { std::fill(scores.begin(), scores.end(), (Score)0); }
    Score last() const { return scores[n_listed - 1]; }

    void take(Score score) {
        i64 at = (i64)scores.size() - TAKEN;
        for (; at > 0; at -= TAKEN) take_among(&scores[at], scores[at - 1], score);
        take_among(&scores[0], score, score);
    }

private:
    i64 n_listed;
    std::vector<Score> scores;
};

}  // namespace gpuens

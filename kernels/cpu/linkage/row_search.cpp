#include "linkage/row_search.h"

#include <atomic>
#include <cmath>
#include <limits>

#include "runtime/parallel.h"

namespace gpuens {

namespace {

constexpr u32 NEVER = ~0u;         // a floor that no score reaches
constexpr i64 LARGEST_SUM = std::numeric_limits<i32>::max();
constexpr i64 EXACT = 256;         // number of objects up to which 16-bit sums add up exactly in float32
constexpr f64 LOWERED = 1.0 - 1e-9;  // factor that keeps a rounded floor at or below the scores that tie with it

// The regions with which all queries are compared.
template <typename Weight>
struct Compared {
    RowsOfRegions rows;      // rows of small regions
    DenseHistograms laid;               // large regions
    std::vector<f32> per_object;  // 1 / size of each small region, raised by the rounding of a total of its rows
    const RowIndex& index;
    Similarities<Weight> exact;

    Compared(Apart apart, const Members& members, const RowIndex& index_, const Similarities<Weight>& exact_,
             i64 n_clusters)
        : rows(std::move(apart.small), members, index_), laid(exact_.of, std::move(apart.large), n_clusters),
          index(index_), exact(exact_) {
        for (i64 i = 0; i < rows.n_regions(); ++i)
            per_object.push_back((f32)(above_rounding(rows.ends[i] - rows.begin(i)) /
                                       (f64)exact.of.size[rows.regions[i]]));
    }
};

// Bytes hold the sums of queries of very few objects; other sums are added up from 16-bit sums of chunks.
template <typename Unit>
using SumOf = std::conditional_t<std::is_same_v<Unit, u8>, u8, u32>;

template <typename Unit, typename Weight>
class RowSearch {
    using Sum = SumOf<Unit>;
    static constexpr bool WHOLE_WEIGHTS = std::is_same_v<Weight, i64>;

public:
    RowSearch(const Compared<Weight>& with_, const Shortlists& lists, i64 n_clusters)
        : with(with_), of(with.exact.of), weights(with.exact.weights), n_clusterings(with.index.n_clusterings()),
          chunks(std::is_same_v<Unit, u8> ? with.index.of_bytes : with.index.of_words),
          n_batch(chunks.rows_in_batch(with.rows.n_rows())),
          table(chunks.rows_of_tables() * LANES), sums(n_batch * LANES), dense(n_clusters) {
        for (i64 j = 0; j < LANES; ++j) queries.emplace_back(lists);
    }

    // Rebuild the lists of up to 64 regions; return the number of comparisons. K regions surely have the score of the
    // query's floor, so that the search skips
    // case 1: a row, or a region by the mean of its rows, whose upper bound is below the floor when it is compared;
    // case 2: a candidate whose upper bound is below the floor later.
    i64 rebuild(const i64* regions, i64 width_) {
        width = width_;
        compared = 0;
        for (i64 j = 0; j < LANES; ++j) floor[j] = NEVER, smallest_sum[j] = (Sum)NEVER;
        for (i64 j = 0; j < width; ++j) begin(j, regions[j]);
        compare_rows();
        for (i64 j = 0; j < width; ++j) {
            score_candidates(j);
            queries[j].list.end();
        }
        return compared;
    }

private:
    struct Candidate {
        i64 region;
        u32 score;
        f32 total;
    };

    struct Query {
        explicit Query(const Shortlists& lists) : list(lists), best(lists.n_listed()) {
            candidates.reserve(CANDIDATES);
        }

        i64 region = -1;
        f64 to_score = 0;  // factor from a similarity to its smallest score
        f64 units = 0;     // units of all objects together
        u32 per_unit = 1;  // score of one unit
        Shortlist list;
        BestScores<u32> best;
        std::vector<Candidate> candidates;
    };

    void begin(i64 j, i64 a) {
        Query& query = queries[j];
        query.region = a;
        f64 scale = scale_of(a);
        query.units = scale;
        query.per_unit = 1;
        if (std::is_same_v<Unit, u8>) {  // an object has one unit
            query.units = (f64)of.size[a];
            query.per_unit = (u32)(scale / (f64)of.size[a]);
        }
        query.to_score = (f64)n_clusterings * scale * LOWERED;
        query.best.forget();
        query.candidates.clear();
        floor[j] = 0;
        raise(j, std::max((i64)1, (i64)(query.list.begin(a) * query.to_score)));
        if (!with.laid.n()) return;
        dense.lay(of, a);
        for (i64 i = 0; i < with.laid.n(); ++i) {
            i64 r = with.laid.region(i);
            if (r == a) continue;
            compared += std::min(of.length[a], of.length[r]);
            query.list.add_similar(r, with.exact.of_laid(dense, a, with.laid[i], r));
        }
        raise_to_list(j);
        dense.clear(of, a);
    }

    // Raise the smallest score for which an exact similarity is computed, and the smallest sum of a row that reaches
    // it.
    void raise(i64 j, i64 to) {
        if (to <= (i64)floor[j]) return;
        i64 per_unit = queries[j].per_unit;
        floor[j] = (u32)to;
        smallest_sum[j] = (Sum)((to + per_unit - 1) / per_unit);
    }

    void raise_to_list(i64 j) {
        if (queries[j].list.full()) raise(j, (i64)(queries[j].list.last() * queries[j].to_score));
    }

    void compare_rows() {
        const RowsOfRegions& rows = with.rows;
        i64 region = 0, begin = 0;
        for (i64 at = 0; at < rows.n_rows(); at += n_batch) {
            i64 n = std::min(n_batch, rows.n_rows() - at);
            score_rows(at, n);
            look();
            compared += n * n_clusterings * width;
            for (i64 i = 0; i < n; ++i) {
                f32 weight = (f32)rows.sizes[at + i];
                const Sum* row = &sums[i * LANES];
                if (at + i + 1 < rows.ends[region]) {
                    add(row, weight, at + i > begin);
                    continue;
                }
                if (at + i > begin) {
                    add(row, weight, true);
                    offer_region(region, at + i + 1 - begin);
                } else {
                    offer_row(region, row, weight);
                }
                ++region;
                begin = at + i + 1;
            }
        }
    }

    // Write the sums of n rows with all queries.
    void score_rows(i64 at, i64 n) {
        for (i64 t = 0; t < chunks.n_tables(); ++t) {
            if (chunks.n_tables() > 1 || at == 0) fill(chunks.table(t));
            std::visit([&](auto labels) {
                auto row = [&](i64 i) { return (decltype(&labels[0][0]))labels[with.rows.places[at + i]]; };
                chunks.each(t, [&](Chunk chunk) {
                    label_scores(n, row, chunks.starts.data, chunk, table.data(), sums.data());
                });
            }, with.index.rows);
        }
    }

    void add(const Sum* row, f32 weight, bool is_later) {
        f32 before = is_later;
        for (i64 j = 0; j < LANES; ++j) total[j] = before * total[j] + weight * (f32)(i32)row[j];
    }

    void offer_region(i64 region, i64 n_rows) {
        f32 share = with.per_object[region];
        for (i64 j = 0; j < LANES; ++j) {
            f32 score = total[j] * (share * (f32)(i32)queries_per_unit[j]);
            scores[j] = (u32)(i32)(score + 1.0f);
        }
        each_bit(reaching<LANES>(scores, floor),  // the remaining lanes: case 1
                 [&](i64 j) { offer(j, {with.rows.regions[region], scores[j], total[j]}, n_rows <= LANES); });
    }

    void offer_row(i64 region, const Sum* row, f32 weight) {
        each_bit(reaching<LANES>(row, smallest_sum), [&](i64 j) {  // the remaining lanes: case 1
            offer(j, {with.rows.regions[region], (u32)row[j] * queries[j].per_unit, weight * (f32)row[j]}, true);
        });
    }

    void offer(i64 j, const Candidate& candidate, bool few_rows) {
        Query& query = queries[j];
        if (candidate.region == query.region) return;
        query.candidates.push_back(candidate);
        if (few_rows && candidate.score > query.best.last()) {
            query.best.take(candidate.score);
            // lowered by 1 per label, because units are rounded up, and by the relative error of sums
            raise(j, (i64)(query.best.last() * (1.0 - 4e-5) - (f64)n_clusterings - 2.0));
        }
        if ((i64)query.candidates.size() < CANDIDATES) return;
        score_candidates(j);
        raise_to_list(j);
    }

    // Insert the candidates of a lane whose score reaches the floor.
    void score_candidates(i64 j) {
        Query& query = queries[j];
        i64 a = query.region;
        bool exact = are_exact(of.size[a], n_clusterings, WHOLE_WEIGHTS), laid = false;
        f64 per_unit = (f64)of.size[a] / query.units;
        for (const Candidate& candidate : query.candidates) {
            if (candidate.score < floor[j]) continue;  // case 2
            i64 r = candidate.region;
            Weight product;
            if (exact && of.size[r] <= EXACT) {
                product = (Weight)(i64)((f64)candidate.total * per_unit + 0.5);
            } else {
                if (!laid) dense.lay(of, a);
                laid = true;
                product = shared_with(of, r, dense.data(), weights);
            }
            query.list.add_similar(r, with.exact.mean(product, a, r));
        }
        query.candidates.clear();
        if (laid) dense.clear(of, a);
    }

    // Fill the table of some clusterings.
    void fill(Chunk part) {
        RegionTables<Weight> tables{of, weights, with.index.offsets, chunks};
        std::fill(&table[0], &table[0] + (chunks.starts[part.end] - part.base) * LANES, (Unit)0);
        for (i64 j = 0; j < width; ++j) tables.lay(queries[j].region, queries[j].units, part, &table[j]);
        for (i64 j = 0; j < LANES; ++j) queries_per_unit[j] = queries[j].per_unit;
    }

    // The number of units in a similarity of 1 / M: as large as possible, but a chunk's sums must fit 16 bits, and the
    // sums of all chunks 31 bits. If sums are exact, an object has a whole number of units.
    f64 scale_of(i64 a) const {
        i64 size = of.size[a];
        if (are_exact(size, n_clusterings, WHOLE_WEIGHTS)) return (f64)(size * (UNITS / (size * n_clusterings)));
        const Vector<const i64>& offsets = with.index.offsets;
        i64 e = of.start[a], last = e + of.length[a];
        f64 units = __builtin_inf(), room = (f64)std::min(UNITS, LARGEST_SUM / (chunks.chunks.size - 1));
        for (i64 c = 0; c + 1 < chunks.chunks.size; ++c) {
            f64 largest = 0.0;
            for (i64 m = chunks.chunks[c]; m < chunks.chunks[c + 1]; ++m) {
                f64 best = 0.0;
                for (; e < last && of.clusters[e] < offsets[m + 1]; ++e)
                    best = std::max(best, (f64)weights[of.clusters[e]] * ((f64)of.counts[e] / (f64)size));
                largest += best;
            }
            if (largest > 0.0)
                units = std::min(units, (room - (f64)(chunks.chunks[c + 1] - chunks.chunks[c])) / largest);
        }
        return units < __builtin_inf() ? units * LOWERED : 1.0;
    }

    const Compared<Weight>& with;
    Histograms of;
    const Weight* weights;
    i64 n_clusterings, width = 0, compared = 0;
    Chunks chunks;
    i64 n_batch;
    Aligned<Unit> table;
    Aligned<Sum> sums;  // (n_batch, LANES)
    DenseHistogram dense;
    std::vector<Query> queries;
    u32 queries_per_unit[LANES];
    f32 total[LANES] = {};  // sums over the rows of a region
    alignas(LINE) u32 floor[LANES], scores[LANES];
    alignas(LINE) Sum smallest_sum[LANES];
};

template <typename Unit, typename Weight>
i64 search_part(const std::vector<i64>& queries, const Compared<Weight>& with, const Shortlists& lists,
                i64 n_clusters) {
    std::atomic<i64> compared{0};
    i64 n = (i64)queries.size(), n_blocks = (n + LANES - 1) / LANES;
    in_threads(n_blocks, (f64)(with.rows.n_rows() * with.index.n_clusterings() + 1), [&](Ranges& ranges) {
        RowSearch<Unit, Weight> search(with, lists, n_clusters);
        while (Range range = ranges.next())
            for (i64 block = range.start; block < range.stop; ++block) {
                i64 first = block * LANES;
                compared += search.rebuild(&queries[first], std::min((i64)LANES, n - first));
            }
    });
    return compared;
}

}  // namespace

i64 search_rows(Vector<const i64> queries, Vector<const i64> active, const Members& members, const RowIndex& index,
                const Regions& regions, const AnyDiagonal& diagonal, const Shortlists& lists) {
    return std::visit([&]<typename Weight>(const Diagonal<Weight>& by) {
        i64 n_clusters = by.n_clusters();
        Similarities<Weight> exact{regions, by.weights.data, by.n_clusterings};
        Compared<Weight> with(Apart(active, members, n_clusters), members, index, exact, n_clusters);
        std::vector<i64> small_queries, large_queries;  // queries of few objects, whose sums fit bytes
        for (i64 a : queries)
            (by.unit_weights() && exact.of.size[a] * by.n_clusterings <= BYTE
             ? small_queries : large_queries).push_back(a);
        i64 compared = search_part<u16>(large_queries, with, lists, n_clusters);
        if constexpr (std::is_same_v<Weight, i64>) compared += search_part<u8>(small_queries, with, lists, n_clusters);
        return compared;
    }, diagonal);
}

}  // namespace gpuens

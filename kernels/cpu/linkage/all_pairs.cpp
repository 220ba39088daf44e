#include "linkage/all_pairs.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>

#include "linkage/comparisons.h"

namespace gpuens {

namespace {

constexpr f64 ENTRY_NS = 0.5;  // an entry of a region compared with a vector of queries
constexpr i64 FOR_MANY = 4;    // groups of 64 queries; of fewer, threads would be left without work
constexpr f64 INFINITE = std::numeric_limits<f64>::infinity();

// Any S: sums of the terms n_R[c] V_A[c], scaled so that the largest affinity of the query is 1.
struct General {
    Histograms of;
    Weighting<f64> by;
    f64 margin;  // rounding tolerance of a similarity
    f64 slack;   // rounding tolerance of a float32 score

    static constexpr f64 NOTHING = -INFINITE;  // bound of a list that holds all other active regions
    f64 largest_similarity() const { return INFINITE; }      // largest similarity
    i64 n_columns() const { return by.n_columns; }

    struct Query {
        f64 to_score = 0;  // factor from a similarity to its score
    };

    // Call `put(cluster, value)` for the table of region a.
    template <typename Put>
    void lay(Query& query, i64 a, Put&& put) const {
        const f64* row = by.weights + a * by.n_columns;
        f64 largest = 0.0;
        for (i64 c = 0; c < by.n_columns; ++c) largest = std::max(largest, std::abs(row[c]));
        f64 scale = largest > 1e-300 ? 1.0 / largest : 1.0;  // a smaller number would make the quotient infinite
        for (i64 c = 0; c < by.n_columns; ++c) put(c, (f32)(row[c] * scale));
        query.to_score = scale * (f64)(of.size[a] * by.n_clusterings);
    }
    template <typename Put>
    void clear(Query&, i64, Put&&) const {}

    f32 floor(const Query& query, f64 similarity) const {
        return (f32)((similarity - margin) * query.to_score - slack);
    }
    f64 similarity(const Query&, i64 a, i64 r, i64) const { return similarity_of(of, by, a, r); }

    template <i64 WIDTH, typename Score>
    void score(i64 r, i64, Score&& score_entries, f32* sums, const f32* floors, f32* needed, f32*) const {
        score_entries(of.start[r], of.start[r] + of.length[r], sums);
        std::copy(floors, floors + WIDTH, needed);
    }
    bool open(f32) const { return false; }
};

// Similarities over the clusterings that label both: bounds of the numerator, against the floor times bounds of the
// denominator.
template <typename Weight>
struct Observed {
    Histograms of;
    const Weight* weights;      // (2, n_columns): of the numerator, then of the denominator
    std::vector<f32> bounding;  // (n_columns,): no smaller in the numerator, no larger in the denominator
    std::vector<i64> first_of;  // per active region: its first entry that counts labelled objects

    static constexpr f64 NOTHING = 0.0;
    f64 largest_similarity() const { return std::is_same_v<Weight, i64> ? 1.0 : INFINITE; }
    i64 n_columns() const { return (i64)bounding.size(); }

    struct Query {
        f64 to_score = 0;
        std::vector<i32> dense;  // the dense histogram of the query
    };

    template <typename Put>
    void lay(Query& query, i64 a, Put&& put) const {
        query.dense.resize(bounding.size());
        for (i64 e = of.start[a]; e < of.start[a] + of.length[a]; ++e) {
            i64 c = of.clusters[e];
            put(c, (f32)((f64)bounding[c] * ((f64)of.counts[e] / (f64)of.size[a])));
            query.dense[c] = of.counts[e];
        }
        // 1 minus the rounding of float32 sums
        query.to_score = std::max(0.0, 1.0 - 4e-6 - 2.4e-7 * (f64)of.length[a]);
    }
    template <typename Put>
    void clear(Query& query, i64 a, Put&& put) const {
        for (i64 e = of.start[a]; e < of.start[a] + of.length[a]; ++e) {
            put(of.clusters[e], 0.0f);
            query.dense[of.clusters[e]] = 0;
        }
    }

    f32 floor(const Query& query, f64 similarity) const { return (f32)(similarity * query.to_score); }

    f64 similarity(const Query& query, i64, i64 r, i64 place) const {
        i64 begin = of.start[r], middle = first_of[place], end = begin + of.length[r];
        Weight together = plus_shared((Weight)0, of, begin, middle, query.dense.data(), weights);
        Weight denominator = plus_shared((Weight)0, of, middle, end, query.dense.data(), weights + n_columns());
        return (f64)together / (f64)denominator;
    }

    template <i64 WIDTH, typename Score>
    void score(i64 r, i64 place, Score&& score_entries, f32* sums, const f32* floors, f32* needed,
               f32* smallest) const {
        f32 denominators[WIDTH];
        score_entries(of.start[r], first_of[place], sums);
        score_entries(first_of[place], of.start[r] + of.length[r], denominators);
        for (i64 j = 0; j < WIDTH; ++j) {
            needed[j] = std::max(std::numeric_limits<f32>::min(), floors[j] * denominators[j]);
            smallest[j] = std::min(smallest[j], denominators[j]);
        }
    }

    // True if a list excludes no ties with its bound: a region that no clustering labels together with the query has
    // unions of the bound's similarity under another name.
    bool open(f32 smallest) const { return smallest <= 0.0f; }
};

// `V` vectors of queries at once.
template <int V, typename Scorer>
class PairSearch {
    static constexpr i64 WIDTH = V * FLOAT_LANES;

public:
    PairSearch(const Histograms& of_, Vector<const i64> active_, const Scorer& by_, const Shortlists& lists)
        : of(of_), active(active_), by(by_), table(by.n_columns() * WIDTH), queries(WIDTH) {
        for (i64 j = 0; j < WIDTH; ++j) lists_of_queries.emplace_back(lists);
    }

    // Rebuild the lists of up to WIDTH regions, beginning with the active regions from `begin` on; return the number of
    // comparisons.
    i64 rebuild(const i64* regions, i64 width, i64 begin) {
        for (i64 j = 0; j < WIDTH; ++j) {
            floors[j] = (f32)(j < width ? Scorer::NOTHING : INFINITE);
            smallest[j] = (f32)INFINITE;
        }
        for (i64 j = 0; j < width; ++j) {
            lists_of_queries[j].begin(regions[j]);
            by.lay(queries[j], regions[j], put(j));
        }
        i64 compared = 0;
        for (i64 step = 0; step < active.size; ++step) {
            if (step % 256 == 0) look();
            i64 place = begin + step < active.size ? begin + step : begin + step - active.size, r = active[place];
            compared += of.length[r] * width;
            auto score_entries = [&](i64 first, i64 end, f32* to) {
                const i32* clusters = of.clusters + first;
                const i32* counts = of.counts + first;
                if constexpr (V == 1) histogram_scores(clusters, counts, end - first, of.size[r], table.data(), to);
                else scores_of_vectors(clusters, counts, end - first, of.size[r], table.data(), to);
            };
            by.template score<WIDTH>(r, place, score_entries, sums, floors, needed, smallest);
            for (int v = 0; v < V; ++v)
                each_bit(reaching<FLOAT_LANES>(sums + v * FLOAT_LANES, needed + v * FLOAT_LANES), [&](i64 lane) {
                    i64 j = v * FLOAT_LANES + lane;
                    if (j < width && regions[j] != r) offer(j, regions[j], r, place);
                });
        }
        for (i64 j = 0; j < width; ++j) {
            lists_of_queries[j].end(Scorer::NOTHING);
            if (by.open(smallest[j])) lists_of_queries[j].leave_ties_open();
            by.clear(queries[j], regions[j], put(j));
        }
        return compared;
    }

private:
    // The writer of query j's column of the table.
    auto put(i64 j) {
        return [this, j](i64 cluster, f32 value) { table[cluster * WIDTH + j] = value; };
    }

    void offer(i64 j, i64 a, i64 r, i64 place) {
        u64 tie = pair_hash(a, r);
        // the largest similarity there is would come too late
        if (!lists_of_queries[j].admits(by.largest_similarity(), tie)) return;
        lists_of_queries[j].add(r, by.similarity(queries[j], a, r, place), tie);
        if (lists_of_queries[j].full()) floors[j] = by.floor(queries[j], lists_of_queries[j].last());
    }

    Histograms of;
    Vector<const i64> active;
    const Scorer& by;
    Aligned<f32> table;  // (n_columns, WIDTH)
    std::vector<typename Scorer::Query> queries;
    std::vector<Shortlist> lists_of_queries;
    alignas(LINE) f32 sums[WIDTH] = {};
    alignas(LINE) f32 floors[WIDTH], needed[WIDTH];  // smallest score of a region to be listed
    f32 smallest[WIDTH];                                // smallest denominator
};

template <int V, typename Scorer>
i64 search_by(const Histograms& of, Vector<const i64> queries, Vector<const i64> active, const Scorer& by,
              const Shortlists& lists) {
    constexpr i64 WIDTH = V * FLOAT_LANES;
    i64 entries = 0;
    for (i64 r : active) entries += of.length[r];
    std::atomic<i64> compared = 0;
    in_threads((queries.size + WIDTH - 1) / WIDTH, ENTRY_NS * (f64)V * (f64)entries, [&](Ranges& ranges) {
        PairSearch<V, Scorer> search(of, active, by, lists);
        while (Range range = ranges.next())
            for (i64 first = range.start * WIDTH; first < std::min(range.stop * WIDTH, queries.size); first += WIDTH) {
                // regions nearby are similar to the query: lists that are good early save exact similarities
                i64 begin = std::lower_bound(active.begin(), active.end(), queries[first]) - active.begin();
                compared += search.rebuild(&queries[first], std::min(WIDTH, queries.size - first), begin);
            }
    });
    return compared;
}

template <typename Scorer>
i64 search_pairs(const Histograms& of, Vector<const i64> queries, Vector<const i64> active, const Scorer& by,
                 const Shortlists& lists) {
    if (queries.size >= FOR_MANY * MANY * FLOAT_LANES) return search_by<MANY>(of, queries, active, by, lists);
    return search_by<1>(of, queries, active, by, lists);
}

}  // namespace

GeneralScorer::GeneralScorer(const Regions& regions_, Matrix<f64> affinities_, i64 n_clusterings, f64 margin,
                             const Shortlists& lists_, const Report& searched_)
    : AllPairs(lists_, searched_), tolerance{0.0, margin, -INFINITE}, regions(regions_), affinities(affinities_),
      weighting{affinities.data, affinities.columns, n_clusterings} {}

void GeneralScorer::unite(const State& state) {
    Vector<const i64> kept = state.last_kept(), absorbed = state.last_absorbed();
    over_ranges(kept.size, (f64)affinities.columns, [&](i64 begin, i64 end) {
        for (i64 p = begin; p < end; ++p) {
            f64 *union_row = affinities[kept[p]], *absorbed_row = affinities[absorbed[p]];
            for (i64 c = 0; c < affinities.columns; ++c) union_row[c] += absorbed_row[c];
        }
    });
}

i64 GeneralScorer::search(Vector<const i64> queries, State& state) {
    Vector<const i64> active = span(state.left());
    i64 longest = 0;
    for (i64 r : active) longest = std::max(longest, Histograms(regions).length[r]);
    f64 slack = (f64)(longest + 8) * (f64)std::numeric_limits<f32>::epsilon() * (f64)weighting.n_clusterings;
    General by{regions, weighting, tolerance.margin, slack};
    return in_runs(queries, [&](Vector<const i64> run) { return search_pairs(regions, run, active, by, lists); });
}

template <typename Weight>
ObservedScorer<Weight>::ObservedScorer(const Regions& regions_, Matrix<const Weight> weights_,
                                       Vector<const f32> bounding_,
                                       i64 n_clusterings_, const Shortlists& lists_, const Report& searched_)
    : AllPairs(lists_, searched_), regions(regions_), weights(weights_), bounding(bounding_),
      n_clusterings(n_clusterings_) {
    f64 slack = 4.0 * std::numeric_limits<f64>::epsilon() * (f64)(weights.columns + 8);
    tolerance = {std::is_same_v<Weight, i64> ? 0.0 : slack, 0.0, 0.0};
}

template <typename Weight>
i64 ObservedScorer<Weight>::search(Vector<const i64> queries, State& state) {
    Vector<const i64> active = span(state.left());
    Histograms of = regions;
    Observed<Weight> by{of, weights.data, {bounding.begin(), bounding.end()}, {}};
    for (i64 r : active) {
        i64 e = of.start[r] + of.length[r];
        while (e > of.start[r] && of.clusters[e - 1] >= weights.columns - n_clusterings) --e;
        by.first_of.push_back(e);
    }
    return in_runs(queries, [&](Vector<const i64> run) { return search_pairs(of, run, active, by, lists); });
}

template class ObservedScorer<i64>;
template class ObservedScorer<f64>;

}  // namespace gpuens

// The K nearest other rows of each label row, by weighted label matches (gpuens/partition/linkage/nearest.py).
//
// 64 adjacent rows are searched together, so that they share the computation of bounds (comparisons.h) and find tiles
// already in the cache. 64 adjacent tiles form a segment. Bounds of scores come from the clusters that occur in a
// segment, then from those in a tile; only tiles whose bound reaches a query's floor are compared with it. The bounds
// of 64 tiles are the 64 lanes of a vector, and so are the scores of the 64 rows of a tile, whose labels of a
// clustering are adjacent in memory: one operation compares them with a label of the query.
//
// Scores are sums of units. Candidates, whose score reaches the floor, wait until there are many; those that better
// ones exclude meanwhile are dropped, and the exact similarities of the others are computed, four at a time.
#include "linkage/nearest.h"

#include <algorithm>
#include <atomic>
#include <limits>

#include "runtime/lanes.h"
#include "linkage/comparisons.h"
#include "linkage/primitives.h"
#include "linkage/shortlist.h"
#include "runtime/parallel.h"

namespace gpuens {

namespace {

constexpr i64 BAND = 16;             // number of bands; the width of a band is 1/16 of the query's best bound
constexpr i64 AT_ONCE = 4;           // rows whose exact similarities are computed together
constexpr f64 LABEL_NS = 1.0;        // time to lay out a label
constexpr f64 COMPARISON_NS = 1e-3;  // time per comparison of labels, counting those that bounds save

// The component of each part of `length` components, -1 of a part of several.
std::vector<i64> of_parts(const std::vector<i64>& component, i64 length) {
    std::vector<i64> common;
    for (i64 first = 0; first < (i64)component.size(); first += length) {
        i64 end = std::min(first + length, (i64)component.size()), name = component[first];
        bool alike = std::all_of(&component[first], component.data() + end, [&](i64 other) { return other == name; });
        common.push_back(alike ? name : -1);
    }
    return common;
}

// The components of rows, tiles and segments, none of whose rows is compared with rows of its own component.
struct Components {
    std::vector<i64> of_rows, of_tiles, of_segments;

    Components(Vector<const i64> component, Vector<const i64> order) {
        for (i64 row : order) of_rows.push_back(component[row]);
        of_tiles = of_parts(of_rows, TILE_ROWS);
        of_segments = of_parts(of_tiles, SEGMENT);
    }
};

// A row whose list is to be made, by its place, of rows at least so similar.
struct RowQuery {
    i64 place;
    f64 smallest;
};

// The queries in the order of their places; order (G,): the row at each place.
std::vector<RowQuery> by_place(Vector<const i64> order, Vector<const i64> queries, Vector<const f64> smallest) {
    std::vector<i64> place(order.size);
    for (i64 i = 0; i < order.size; ++i) place[order[i]] = i;
    std::vector<RowQuery> row_queries;
    for (i64 i = 0; i < queries.size; ++i) row_queries.push_back({place[queries[i]], smallest[i]});
    std::sort(row_queries.begin(), row_queries.end(), [](RowQuery a, RowQuery b) { return a.place < b.place; });
    return row_queries;
}

template <typename Code, typename Unit>
class NearestRows {
    using Bound = std::conditional_t<sizeof(Unit) <= 2, u16, u32>;

public:
    NearestRows(const Tiled<Code, Unit>& of_, const Components& components_, const Shortlists& lists)
        : of(of_), components(components_), n_clusterings(of.n_clusterings()),
          // lowered, so that rounding never makes a floor higher than a score that ties with it
          to_score((f64)n_clusterings * of.scale * (of.exact() ? 1.0 : 1.0 - 1e-9)),
          rounding(of.exact() ? 0 : n_clusterings + 1), reach_in(of.n_groups() * LANES * SEGMENT),
          reach(of.n_segments() * LANES * SEGMENT), reached(of.n_segments()) {
        for (i64 j = 0; j < LANES; ++j) queries.emplace_back(lists);
    }

    // Rebuild the lists of up to 64 rows; return the number of comparisons.
    i64 rebuild(const RowQuery* row_queries, i64 width_) {
        width = width_;
        compared = width * n_clusterings * of.n_segments();
        for (i64 j = 0; j < width; ++j) begin(queries[j], row_queries[j]);
        for (i64 g = 0; g < of.n_groups(); ++g) bound(g, of.in_segments, components.of_segments, reach_in);
        for (i64 j = 0; j < width; ++j) queries[j].low = highest(j) - highest(j) / BAND;
        std::fill(reached.begin(), reached.end(), false);
        while (true) {
            for (i64 s : wanted_segments()) visit(s);
            bool is_open = false;
            for (i64 j = 0; j < width; ++j) {
                i64& low = queries[j].low;
                if (low <= queries[j].floor) continue;
                low = std::min(low - 1, low - low / BAND);
                is_open = true;
            }
            if (!is_open) break;
        }
        for (i64 j = 0; j < width; ++j) {
            list_candidates(queries[j]);
            queries[j].list.end(queries[j].smallest);
        }
        return compared;
    }

private:
    struct Candidate {
        i32 place;
        Unit score;
    };

    struct Query {
        explicit Query(const Shortlists& lists) : list(lists), best(lists.n_listed()) {
            candidates.reserve(CANDIDATES);
        }

        i64 place = 0;
        f64 smallest = 0;
        const Code* labels = nullptr;
        std::vector<Unit> worth;  // units of each label
        i64 floor = 0;            // smallest score of a candidate
        i64 low = 0;              // smallest bound of a tile in this band
        std::vector<Candidate> candidates;
        Shortlist list;
        BestScores<Unit> best;

        i64 limit() const { return std::max(low, floor); }
    };

    void begin(Query& query, RowQuery row_query) {
        query.place = row_query.place;
        query.smallest = row_query.smallest;
        query.labels = of.rows[row_query.place];
        query.worth.resize(n_clusterings);
        for (i64 m = 0; m < n_clusterings; ++m) query.worth[m] = of.units[of.starts[m] + query.labels[m]];
        query.floor = std::max((i64)1, floor_of(row_query.smallest));
        query.candidates.clear();
        query.best.forget();
        query.list.begin(of.order[row_query.place]);
    }

    // The smallest score of a row so similar.
    i64 floor_of(f64 similarity) const { return (i64)(similarity * to_score + 1e-9); }

    // Write bounds of each query's scores in 64 parts, tiles or segments; 0 in a part of the query's own component.
    void bound(i64 group, Matrix<Unit> present, const std::vector<i64>& of_parts, const Aligned<Bound>& bounds) {
        Bound* sums = &bounds[group * LANES * SEGMENT];
        for (i64 c = 0; c + 1 < of.chunks.size; ++c)
            label_scores(width, [&](i64 j) { return queries[j].labels; }, of.starts.data,
                         Chunk{of.chunks[c], of.chunks[c + 1], 0}, present[group * of.n_clusters()], sums);
        for (i64 part = group * SEGMENT; part < std::min((group + 1) * SEGMENT, (i64)of_parts.size()); ++part)
            for (i64 j = 0; j < width && of_parts[part] >= 0; ++j)
                if (of_parts[part] == components.of_rows[queries[j].place]) sums[j * SEGMENT + part % SEGMENT] = 0;
    }

    Bound* bounds_of(i64 group, i64 j, const Aligned<Bound>& bounds) const {
        return &bounds[(group * LANES + j) * SEGMENT];
    }

    i64 highest(i64 j) const {
        Bound largest = 0;
        for (i64 g = 0; g < of.n_groups(); ++g)
            for (i64 s = 0; s < std::min(SEGMENT, of.n_segments() - g * SEGMENT); ++s)
                largest = std::max(largest, bounds_of(g, j, reach_in)[s]);
        return largest;
    }

    // Segments whose bound reaches the limit of any query.
    const std::vector<i64>& wanted_segments() {
        segments.clear();
        for (i64 g = 0; g < of.n_groups(); ++g) {
            u64 near = 0;
            for (i64 j = 0; j < width; ++j) near |= reaching_lanes(bounds_of(g, j, reach_in), queries[j].limit());
            each_bit(near, [&](i64 s) { segments.push_back(g * SEGMENT + s); });
        }
        return segments;
    }

    template <typename T>
    static u64 reaching_lanes(const T* row, i64 limit) {
        return limit > std::numeric_limits<T>::max() ? 0 : at_least<LANES>(row, (T)limit);
    }

    void visit(i64 s) {
        look();
        if (!reached[s]) {
            reached[s] = true;
            bound(s, of.in_tiles, components.of_tiles, reach);
            compared += width * n_clusterings * std::min(SEGMENT, of.n_tiles() - s * SEGMENT);
        }
        for (i64 j = 0; j < width; ++j) {
            Query& query = queries[j];
            // case 1: no row of any tile of the segment can score enough
            if (bounds_of(s / SEGMENT, j, reach_in)[s % SEGMENT] < query.limit()) continue;
            Bound* tile_bounds = bounds_of(s, j, reach);
            each_bit(reaching_lanes(tile_bounds, query.limit()), [&](i64 t) {
                // case 2: the query has meanwhile found K better rows than any of the tile
                if (tile_bounds[t] < query.floor) return;
                tile_bounds[t] = 0;  // a tile is compared only once
                compare(query, s * SEGMENT + t);
            });
        }
    }

    void compare(Query& query, i64 tile) {
        alignas(LINE) Unit sums[TILE_ROWS];
        const Code* labels = of.labels[tile * n_clusterings];
        Lanes<Unit, TILE_ROWS> even = {}, odd = {};  // two sums, so that consecutive additions are independent
        i64 m = 0;
        for (; m + 1 < n_clusterings; m += 2) {
            even.plus_where(labels + m * TILE_ROWS, query.labels[m], query.worth[m]);
            odd.plus_where(labels + (m + 1) * TILE_ROWS, query.labels[m + 1], query.worth[m + 1]);
        }
        if (m < n_clusterings) even.plus_where(labels + m * TILE_ROWS, query.labels[m], query.worth[m]);
        even.plus(odd);
        even.store(sums);
        compared += TILE_ROWS * n_clusterings;
        each_bit(reaching_lanes(sums, query.floor), [&](i64 i) { take(query, tile * TILE_ROWS + i, sums[i]); });
    }

    void take(Query& query, i64 place, Unit score) {
        if (components.of_rows[place] == components.of_rows[query.place]) return;
        auto& candidates = query.candidates;
        candidates.push_back({(i32)place, score});
        query.best.take(score);
        query.floor = std::max(query.floor, (i64)query.best.last() - rounding);
        if ((i64)candidates.size() < CANDIDATES) return;
        std::erase_if(candidates, [&](const Candidate& of) { return of.score < query.floor; });
        if ((i64)candidates.size() > CANDIDATES / 2) list_candidates(query);
    }

    // Insert the candidates whose score reaches the floor into the list, and raise the floor.
    void list_candidates(Query& query) {
        Candidate waiting[AT_ONCE];
        i64 n_waiting = 0;
        for (const Candidate& candidate : query.candidates) {
            if (candidate.score < query.floor) continue;
            waiting[n_waiting++] = candidate;
            if (n_waiting < AT_ONCE) continue;
            list(query, waiting, n_waiting);
            n_waiting = 0;
        }
        if (n_waiting) list(query, waiting, n_waiting);
        query.candidates.clear();
        if (query.list.full()) query.floor = std::max(query.floor, floor_of(query.list.last()));
    }

    void list(Query& query, Candidate* waiting, i64 n_waiting) {
        f64 totals[AT_ONCE];
        if (of.exact()) {
            for (i64 k = 0; k < n_waiting; ++k)
                totals[k] = (f64)(of.sizes[query.place] * of.sizes[waiting[k].place] * (i64)waiting[k].score);
        } else {
            for (i64 k = n_waiting; k < AT_ONCE; ++k) waiting[k] = waiting[0];
            add_up(query, waiting, totals);
        }
        i64 row = of.order[query.place];
        for (i64 k = 0; k < n_waiting; ++k) {
            i64 other = of.order[waiting[k].place], pairs = of.sizes[query.place] * of.sizes[waiting[k].place];
            f64 similarity = totals[k] / (f64)(pairs * n_clusterings);
            if (similarity >= query.smallest) query.list.add(other, similarity, pair_hash(row, other));
        }
    }

    // Write the weights of common labels times pairs of objects, added up in the order of the clusterings.
    void add_up(const Query& query, const Candidate* waiting, f64* totals) const {
        const f64* weights = std::get<Vector<const f64>>(of.weights).data;
        using Floats = Native<f64, AT_ONCE>;
        const Code *a = row_of(waiting[0]), *b = row_of(waiting[1]), *c = row_of(waiting[2]), *d = row_of(waiting[3]);
        Floats pairs, sums = {};
        for (i64 k = 0; k < AT_ONCE; ++k) pairs[k] = (f64)(of.sizes[query.place] * of.sizes[waiting[k].place]);
        for (i64 m = 0; m < n_clusterings; ++m) {
            Code label = query.labels[m];
            Native<Code, AT_ONCE> theirs = {a[m], b[m], c[m], d[m]};
            auto equal = __builtin_convertvector(theirs == label, Native<i64, AT_ONCE>);
            f64 weight = weights[of.starts[m] + label];
            sums += (Floats)((Native<i64, AT_ONCE>)(pairs * weight) & equal);
        }
        for (i64 k = 0; k < AT_ONCE; ++k) totals[k] = sums[k];
    }

    const Code* row_of(const Candidate& candidate) const { return of.rows[candidate.place]; }

    const Tiled<Code, Unit>& of;
    const Components& components;
    i64 n_clusterings;
    f64 to_score;  // factor from a similarity to its smallest score
    i64 rounding;  // largest excess of a score over the exact one, in units
    i64 width = 0, compared = 0;
    std::vector<Query> queries;
    Aligned<Bound> reach_in, reach;  // bounds in segments and tiles: (groups or segments, queries, 64)
    std::vector<char> reached;     // per segment: 1 once the bounds of its tiles are computed
    std::vector<i64> segments;
};

}  // namespace

void lay_out_tiles(Codes<Matrix> columns, AnyTiled tiled) {
    std::visit([&]<typename Code, typename Unit>(const Tiled<Code, Unit>& of) {
        auto codes = std::get<Matrix<const Code>>(columns);
        i64 rows_of_segment = SEGMENT * TILE_ROWS, n_rows = of.n_rows(), n_clusterings = of.n_clusterings();
        over_ranges(of.n_segments(), LABEL_NS * (f64)(rows_of_segment * n_clusterings), [&](i64 begin, i64 end) {
            for (i64 segment = begin; segment < end; ++segment) {
                look();
                i64 first = segment * rows_of_segment;
                i64 last = std::min(first + rows_of_segment, of.n_tiles() * TILE_ROWS);
                for (i64 m = 0; m < n_clusterings; ++m) {
                    Code missing = (Code)(of.starts[m + 1] - of.starts[m] - 1);
                    for (i64 i = first; i < last; ++i) {  // the last tile is padded with missing labels
                        Code label = i < n_rows ? std::min(codes[m][of.order[i]], missing) : missing;
                        of.labels[i / TILE_ROWS * n_clusterings + m][i % TILE_ROWS] = label;
                        if (i >= n_rows) continue;
                        i64 cluster = of.starts[m] + label;
                        of.rows[i][m] = label;
                        of.in_tiles[segment * of.n_clusters() + cluster][i / TILE_ROWS % SEGMENT] = of.units[cluster];
                        of.in_segments[segment / SEGMENT * of.n_clusters() + cluster][segment % SEGMENT] =
                            of.units[cluster];
                    }
                }
            }
        });
    }, tiled);
}

i64 nearest_rows(AnyTiled tiled, Vector<const i64> queries, Vector<const f64> smallest, Vector<const i64> component,
                 const Shortlists& lists) {
    std::atomic<i64> compared = 0;
    std::visit([&]<typename Code, typename Unit>(const Tiled<Code, Unit>& of) {
        std::vector<RowQuery> row_queries = by_place(of.order, queries, smallest);
        Components components(component, of.order);
        f64 nanoseconds = COMPARISON_NS * (f64)LANES * (f64)of.n_rows() * (f64)of.n_clusterings();
        in_threads((queries.size + LANES - 1) / LANES, nanoseconds, [&](Ranges& ranges) {
            NearestRows<Code, Unit> search(of, components, lists);
            while (Range range = ranges.next())
                for (i64 first = range.start * LANES, stop = std::min(range.stop * LANES, queries.size); first < stop;
                     first += LANES)
                    compared += search.rebuild(&row_queries[first], std::min((i64)LANES, queries.size - first));
        });
    }, tiled);
    return compared;
}

}  // namespace gpuens

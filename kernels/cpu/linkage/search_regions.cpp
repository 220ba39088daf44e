// Searches for the nearest regions by histograms, 16 queries at a time (kernels/regions.cu has search_regions, a query at a
// time).
#include <atomic>

#include "linkage/ceilings.h"
#include "linkage/comparisons.h"
#include "linkage/primitives.h"
#include "parallel.h"

namespace gpuens {

namespace {

constexpr i64 TILE = 32;  // regions in a tile, which a search skips or visits as a whole

// Tiles of `length` regions each.
struct Tiles {
    Vector<const i64> active;
    i64 length;
    Ceilings ceilings;

    i64 begin(i64 t) const { return t * length; }
    i64 end(i64 t) const { return std::min((t + 1) * length, active.size); }
};

Tiles tiles_of(const Histograms& of, Vector<const i64> active, i64 n_clusters, i64 most) {
    i64 length = std::max(TILE, (active.size * n_clusters + most - 1) / most);
    std::vector<i64> bounds;
    for (i64 at = 0; at < active.size; at += length) bounds.push_back(at);
    bounds.push_back(active.size);
    return {active, length, Ceilings(of, active, {bounds.data(), (i64)bounds.size()}, n_clusters)};
}

template <typename Weight>
class Search {
public:
    Search(const Histograms& of_, const Diagonal<Weight>& by_, const Tiles& tiles_, const Shortlists& lists)
        : of(of_), by(by_), tiles(tiles_), n_tiles(tiles.ceilings.n_tiles),
          exact{of, by.weights.data, by.n_clusterings}, table(by.n_clusters() * FLOAT_LANES),
          reach(FLOAT_LANES * n_tiles), wanted(new bool[n_tiles]), visited(new bool[n_tiles]) {
        for (i64 j = 0; j < FLOAT_LANES; ++j) queries.emplace_back(by.n_clusters(), lists);
    }

    // Rebuild the lists of up to 16 regions; return the number of comparisons.
    i64 rebuild(const i64* regions, i64 width_) {
        width = width_;
        compared = 0;
        for (i64 j = 0; j < width; ++j) begin(j, regions[j]);
        for (i64 j = width; j < FLOAT_LANES; ++j) floor[j] = std::numeric_limits<f32>::infinity();
        std::fill(visited.get(), visited.get() + n_tiles, false);
        for (bool more = true; more; more = lower()) visit_band();
        for (i64 j = 0; j < width; ++j) end(j);
        return compared;
    }

private:
    struct Query {
        Query(i64 n_clusters, const Shortlists& lists) : held(n_clusters), list(lists) {}

        i64 region = -1;
        Held held;
        Shortlist list;
        f64 to_reach = 0;  // from a similarity to the smallest reach and score of it, despite rounding
        f32 low = 0;     // the least reach of a tile in this band
    };

    void begin(i64 j, i64 a) {
        Query& query = queries[j];
        i64 begin = of.start[a], n = of.length[a];
        worth.resize(n);
        query.region = a;
        query.held.lay(of, a);
        for (i64 e = begin; e < begin + n; ++e)
            table[of.clusters[e] * FLOAT_LANES + j] =
                (f32)((f64)by.bounding[of.clusters[e]] * ((f64)of.counts[e] / (f64)of.size[a]));
        be_worth(of, a, by, worth.data());
        f32 best = reach_tiles(of.clusters + begin, worth.data(), n, tiles.ceilings, &reach[j * n_tiles]);
        compared += n * n_tiles;
        query.to_reach = by.unit * (f64)by.n_clusterings * lowered_by_rounding(n);
        query.low = (f32)0.75 * best;
        floor[j] = floor_of(query, query.list.begin(a));
    }

    f32 floor_of(const Query& query, f64 similarity) const {
        return std::max(SMALLEST, (f32)(similarity * query.to_reach));
    }

    // A tile is skipped
    // - in this band, if it promises every query less than the band or the query's floor: no region in it can enter a list
    //   now, and later only if the band is lowered;
    // - for ever, once it was visited.
    void visit_band() {
        for (i64 j = 0; j < width; ++j) limits[j] = std::max(queries[j].low, floor[j]);
        for (i64 t = 0; t < n_tiles; ++t) {
            if (t % SEGMENT == 0) {
                look();
                mark_wanted(wanted.get(), {reach.data(), FLOAT_LANES, n_tiles}, width, limits, t,
                            std::min(t + SEGMENT, n_tiles));
            }
            if (!wanted[t] || visited[t]) continue;
            visited[t] = true;
            visit(t);
        }
    }

    void visit(i64 t) {
        for (i64 place = tiles.begin(t); place < tiles.end(t); ++place) {
            i64 r = tiles.active[place], begin = of.start[r], n = of.length[r];
            histogram_scores(of.clusters + begin, of.counts + begin, n, of.size[r], table.data(), sums);
            compared += n * width;
            each_bit(reaching<FLOAT_LANES>(sums, floor), [&](i64 j) { offer(j, r); });
        }
    }

    void offer(i64 j, i64 r) {
        Query& query = queries[j];
        i64 a = query.region;
        if (r == a) return;
        f64 similarity = exact.mean(shared_with(of, r, query.held.data(), by.weights.data), a, r);
        u64 tie = pair_hash(a, r);
        if (!query.list.admits(similarity, tie)) return;
        query.list.add(r, similarity, tie);
        if (!query.list.full()) return;
        floor[j] = floor_of(query, query.list.last());
        limits[j] = std::max(query.low, floor[j]);
    }

    // Lower the bands; return whether any query has tiles left above its floor.
    bool lower() {
        bool more = false;
        for (i64 j = 0; j < width; ++j) {
            if (queries[j].low <= floor[j]) continue;
            more = true;
            queries[j].low *= (f32)0.75;
        }
        return more;
    }

    void end(i64 j) {
        Query& query = queries[j];
        i64 a = query.region;
        query.list.end();
        query.held.clear(of, a);
        for (i64 e = of.start[a]; e < of.start[a] + of.length[a]; ++e) table[of.clusters[e] * FLOAT_LANES + j] = 0;
    }

    Histograms of;
    Diagonal<Weight> by;
    const Tiles& tiles;
    i64 n_tiles, width = 0, compared = 0;
    Similarities<Weight> exact;
    std::vector<Query> queries;
    Aligned<f32> table;  // (N_c, 16)
    std::vector<f32> reach, worth;
    std::unique_ptr<bool[]> wanted, visited;
    f32 limits[FLOAT_LANES];
    alignas(LINE) f32 floor[FLOAT_LANES], sums[FLOAT_LANES];  // floor: the smallest score that is computed exactly
};

template <typename Weight>
i64 search_all(Vector<const i64> queries, Vector<const i64> active, const Histograms& of,
               const Diagonal<Weight>& by, const Shortlists& lists, i64 most_ceilings) {
    // without ceilings, a search costs so much; computing ceilings must not cost more
    i64 entries = 0;
    for (i64 r : active) entries += of.length[r];
    i64 most = std::max((i64)1, std::min(most_ceilings, queries.size * entries));
    Tiles tiles = tiles_of(of, active, by.n_clusters(), most);
    std::vector<i64> place(lists.ids.rows), sorted(queries.begin(), queries.end());
    for (i64 i = 0; i < active.size; ++i) place[active[i]] = i;
    std::sort(sorted.begin(), sorted.end(), [&](i64 a, i64 b) { return place[a] < place[b]; });  // similar ones together
    std::atomic<i64> compared{0};
    i64 n_blocks = (queries.size + FLOAT_LANES - 1) / FLOAT_LANES;
    in_threads(n_blocks, (f64)(16 * entries / 8), [&](Ranges& ranges) {
        Search<Weight> search(of, by, tiles, lists);
        while (Range range = ranges.next())
            for (i64 block = range.start; block < range.stop; ++block) {
                i64 first = block * FLOAT_LANES;
                compared += search.rebuild(&sorted[first], std::min((i64)FLOAT_LANES, queries.size - first));
            }
    });
    return compared;
}

}  // namespace

i64 search_regions(Vector<const i64> queries, Vector<const i64> active, Regions regions, AnyDiagonal diagonal,
                   Shortlists lists, i64 most_ceilings) {
    return std::visit([&](const auto& by) { return search_all(queries, active, regions, by, lists, most_ceilings); },
                      diagonal);
}

}  // namespace gpuens

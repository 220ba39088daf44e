#include "linkage/searches.h"

#include "linkage/primitives.h"
#include "linkage/row_regions.h"

namespace gpuens {

namespace {

constexpr f64 LAYING = 40.0;    // layout of one label in tiles
constexpr f64 ROW = 12.0;       // comparison of a label of a row with 64 queries
constexpr f64 ENTRY = 5.0;      // comparison of an entry of a histogram with 16 queries
constexpr f64 FAR_ENTRY = 8.0;  // the same, where the histograms of 16 queries are larger than a core's cache
constexpr i64 CACHED = 1 << 13; // clusters of which a core's cache holds 16 queries' histograms
constexpr f64 CEILING = 45.0;   // update of a ceiling by an entry of a histogram
constexpr f64 LARGE = 3.0;      // comparison of an entry of a region of many rows with a query, in a search by rows
constexpr f64 TOGETHER = 4.0;   // tiles needed by any of 16 queries, divided by those needed by one query (no cost)
constexpr i64 MOST = 1 << 12;   // clusterings of a search by tiles; with more, 16-bit sums would be too coarse
constexpr f64 NEVER = __builtin_inf();

i64 rounded_up(i64 n, i64 by) { return (n + by - 1) / by; }

}  // namespace

Costs costs(i64 n_queries, i64 asked, Extent extent, f64 left, i64 rows_in_tiles) {
    f64 of_some = std::min(1.0, TOGETHER * left), n = (f64)n_queries, entry = extent.clusters > CACHED ? FAR_ENTRY : ENTRY;
    return {left * (f64)asked * (f64)rows_in_tiles,
            (f64)rounded_up(n_queries, LANES) * ROW * (f64)extent.labels + n * LARGE * (f64)extent.of_many,
            (CEILING + entry * of_some * (f64)rounded_up(n_queries, FLOAT_LANES)) * (f64)extent.entries};
}

i64 Searches::search(Vector<const i64> queries, const State& state, const Regions& regions, i64 n_entries) {
    const i64* length = regions.length.data;
    Vector<const i64> active = state.current();
    i64 asked = 0;
    for (i64 a : queries) asked += length[a];
    Costs found = choice(queries.size, asked, active, n_entries, length);
    if (pays(found, active)) {
        tiles.reset();
        tiles.emplace(active, of.members, of.index, regions, of.diagonal, sizes);
        missed = 0.0;
        found.tiles = 0.0;
    }
    if (tiles && found.tiles <= found.without_tiles()) {
        ++used[(i64)Kind::TILES];
        i64 compared = search_tiles(*tiles, queries, state, of.index, regions, of.diagonal, of.lists);
        left = std::min(1.0, (f64)compared / (f64)std::max((i64)1, asked * tiles->rows.n_rows()));
        return compared;
    }
    if (found.rows < found.histograms) {
        ++used[(i64)Kind::ROWS];
        return search_rows(queries, active, of.members, of.index, regions, of.diagonal, of.lists);
    }
    ++used[(i64)Kind::HISTOGRAMS];
    i64 compared = search_regions(queries, active, regions, of.diagonal, of.lists, sizes.most_ceilings);
    left = std::min(left, (f64)compared / (f64)std::max((i64)1, queries.size * n_entries));
    return compared;
}

// The predicted cost of each kind of search, infinite for a kind that must not be used.
Costs Searches::choice(i64 n_queries, i64 asked, Vector<const i64> active, i64 n_entries, const i64* length) const {
    f64 by_tiles = of.index.n_clusterings() > MOST ? NEVER : 0.0;
    auto allowed = [&](Kind kind) { return *only == kind ? 0.0 : NEVER; };
    if (only) return {allowed(Kind::TILES) + by_tiles, allowed(Kind::ROWS), allowed(Kind::HISTOGRAMS)};
    i64 n_clusters = of.index.offsets[of.index.n_clusterings()];
    if (tiles) {  // exact costs are not needed if tiles are cheaper even when all regions have one row
        Extent least{active.size * of.index.n_clusterings(), 0, n_entries, n_clusters};
        Costs found = costs(n_queries, asked, least, left, tiles->rows.n_rows());
        if (found.tiles <= found.without_tiles()) return found;
    }
    Extent extent{0, 0, n_entries, n_clusters};
    i64 n_few = 0;
    for (i64 a : active)
        if (of.members.n_rows[a] <= LANES)
            n_few += of.members.n_rows[a];
        else
            extent.of_many += length[a];
    extent.labels = n_few * of.index.n_clusterings();
    Costs found = costs(n_queries, asked, extent, left, tiles ? tiles->rows.n_rows() : n_few);
    found.tiles += by_tiles;
    return found;
}

// Add the savings that new tiles would have given; return whether the sum, since tiles were last built, reaches the cost of
// building tiles.
bool Searches::pays(const Costs& choice, Vector<const i64> active) {
    f64 anew = choice.tiles, without = choice.without_tiles(), n_rows = 0.0;
    if (!tiles) {
        for (i64 a : active) n_rows += (f64)of.members.n_rows[a];
    } else {
        f64 share = (f64)active.size / (f64)tiles->n_parts;
        n_rows = share * (f64)tiles->rows.n_rows();
        without = std::min(anew, without);
        anew *= share;
    }
    missed += std::max(0.0, without - anew);
    return anew < without && missed > LAYING * n_rows * (f64)of.index.n_clusterings();
}

}  // namespace gpuens

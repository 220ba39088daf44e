// Choice of the cheapest search for the nearest regions; all searches give the same lists.
//
// - Tiles of rows (tile_regions.h), one query after the other: cheapest if bounds exclude most tiles, and for few queries. Tiles
//   may be from an earlier round; they are rebuilt when new tiles would have saved more than building them costs.
// - Rows (row_regions.h), 64 queries at a time: cheapest if bounds exclude little and most regions have few rows.
// - Histograms (search_regions.cpp), 16 queries at a time: cheapest if bounds exclude little and regions have many rows.
//
// Costs are predicted from counts, never from the clock, so that every run makes the same choices.
#pragma once

#include <limits>
#include <optional>

#include "linkage/tile_regions.h"

namespace gpuens {

enum class Kind { TILES, ROWS, HISTOGRAMS };

// Predicted costs; the unit is the cost of comparing an entry of a query with a label of a row in a tile.
struct Costs {
    f64 tiles, rows, histograms;

    f64 without_tiles() const { return std::min(rows, histograms); }
};

// Sizes of the active regions: labels of regions of few rows, entries of regions of many rows, and entries of all regions; and
// the number of clusters of all clusterings.
struct Extent {
    i64 labels, of_many, entries, clusters;
};

// The cost of each kind of search for n regions with `asked` entries in total. `left` is the share of a query's comparisons that
// are needed despite bounds.
Costs costs(i64 n_queries, i64 asked, Extent extent, f64 left, i64 rows_in_tiles);

// What searches read in every round.
struct Searched {
    const RowIndex& index;
    const Members& members;
    const AnyDiagonal& diagonal;
    const Shortlists& lists;
};

// Searches for the nearest of all active regions, with what they keep in between: tiles, and how well bounds exclude.
class Searches {
public:
    // `left`: the share of comparisons that the first search needed. `only`: the one kind of search to use.
    Searches(Searched of_, f64 left_, TileSizes sizes_, std::optional<Kind> only_)
        : of(of_), left(left_), sizes(sizes_), only(only_) {}

    // Rebuild the lists of the queries; return the number of comparisons. Active regions have so many entries in total.
    i64 search(Vector<const i64> queries, const State& state, const Regions& regions, i64 n_entries);

    i64 used[3] = {};  // searches of each kind

private:
    Costs choice(i64 n_queries, i64 asked, Vector<const i64> active, i64 n_entries, const i64* length) const;
    bool pays(const Costs& choice, Vector<const i64> active);

    Searched of;
    f64 left;
    TileSizes sizes;
    std::optional<Kind> only;
    std::optional<RegionTiles> tiles;
    f64 missed = 0.0;  // cost that tiles of the current regions would have saved so far
};

}  // namespace gpuens

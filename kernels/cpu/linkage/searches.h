// Choice between two searches for the nearest of all regions, which give the same lists:
//
// - Tiles of rows (tile_search.h), one query after the other. Bounds exclude whole tiles, from similarities with earlier rounds.
// - Rows (row_search.h), 64 queries at a time, with all rows.
//
// Tiles are searched if bounds leave fewer labels to be compared than a search by rows compares. The share that they leave is that
// of the last search by tiles, at first that of the first lists. Tiles are laid out anew once new ones would have saved their cost. Costs are predicted from counts, never
// from the clock, so that every run makes the same choices.
#pragma once

#include <optional>

#include "linkage/tile_search.h"

namespace gpuens {

enum class Kind { TILES, ROWS };

class Searches {
public:
    // `left`: the share of comparisons that bounds leave. `only`: the one kind of search to use.
    Searches(const RowIndex& index_, const AnyDiagonal& diagonal_, const Shortlists& lists_, f64 left_, TileSizes sizes_,
             std::optional<Kind> only_);

    // Rebuild the lists of the queries; return the number of comparisons.
    i64 search(Vector<const i64> queries, State& state, const Regions& regions, const Members& members);

private:
    // Predicted costs; the unit is the cost of comparing an entry of a query with a label of a row in a tile.
    struct Costs {
        f64 tiles, rows;
    };

    Costs costs(Vector<const i64> queries, const std::vector<i64>& active, const i64* length, const Members& members) const;
    bool pays(const Costs& costs, const std::vector<i64>& active, const Members& members);

    const RowIndex& index;
    const AnyDiagonal& diagonal;
    const Shortlists& lists;
    f64 left;
    TileSizes sizes;
    std::optional<Kind> only;
    std::optional<RegionTiles> tiles;
    TileMemory memory;
    f64 missed = 0.0;  // cost that tiles of the current regions would have saved so far
};

}  // namespace gpuens

// Searches over tiles of label rows, one region at a time, for ensembles in which bounds exclude most tiles.
//
// Adjacent regions are similar, so a region is near the regions of a few tiles and far from all other regions. The ceilings of a
// tile (ceilings.h) bound the similarity with the regions of the tile. Groups of 16 tiles have ceilings, too. The ceilings of a
// group's tiles are read only if the bound of the group is high enough.
//
// In a tile, the labels of 64 rows are adjacent for each clustering, so that one operation compares them with an entry of the
// region's histogram. The sums are 16-bit numbers of units; they are upper bounds of sum_c w_c (share of c in the region) for
// each row. The similarity with a region is at most that with its nearest row, so the largest sum is enough to exclude most
// tiles. At the end, exact similarities are computed for the near regions that the K best sums do not exclude.
//
// Tiles are used for many rounds. The similarity with a union is a mean of the similarities with its parts, so a bound on all
// parts is a bound on the union. So tiles stay the same when regions merge; only when a region of a tile is near, the union that
// contains it now takes its place.
//
// Searches for many regions together, as in search_rows, must visit every tile that any of these regions
// needs; this search visits only the tiles that one region needs.
#pragma once

#include <mutex>

#include "linkage/ceilings.h"
#include "linkage/members.h"
#include "linkage/average.h"

namespace gpuens {

// Labels of tiles: for each block of 64 rows and each clustering, the 64 labels are adjacent.
using TileLabels = std::variant<Aligned<u8>, Aligned<u16>, Aligned<u32>>;

// Tiles of the regions that were active when they were built.
struct RegionTiles {
    RegionTiles(Vector<const i64> active, const Members& members, const RowIndex& index, const Regions& regions,
                const AnyDiagonal& diagonal, TileSizes sizes);

    i64 n_tiles() const { return (i64)rows_to.size() - 1; }  // tiles of small regions
    i64 n_groups() const { return over_groups.n_tiles; }

    i64 n_parts;                      // regions
    RowsOfRegions rows;               // rows of small regions
    std::vector<i64> large;           // each a tile of its own, after all others
    std::vector<i64> part_sizes;      // objects of each small region
    std::vector<i64> part_of;         // the small region of each row
    std::vector<i64> rows_to, blocks;  // first row and first block of each tile, and the ends
    i64 n_clusterings;
    TileLabels labels;
    Ceilings ceilings, over_groups;

private:
    RegionTiles(Apart apart, Vector<const i64> active, const Members& members, const RowIndex& index,
                const Regions& regions, i64 n_clusters, TileSizes sizes);
};

// The regions that a search has met. Marks stay between searches: a round searches for few of many regions.
class Marks {
public:
    explicit Marks(i64 n_regions) : met(n_regions) {}

    void begin(i64 a) { met[a] = ++n_searches; }
    bool has(i64 r) const { return met[r] == n_searches; }
    void add(i64 r) { met[r] = n_searches; }

private:
    std::vector<i32> met;  // the number of the search in which each region was last met
    i32 n_searches = 0;
};

// Memory that searches in tiles use again.
struct TileMemory {
    TileMemory(i64 n_regions_, i64 n_clusters) : n_regions(n_regions_), large(n_regions, n_clusters) {}

    // Marks for a thread, until it gives them back.
    std::unique_ptr<Marks> take();
    void give_back(std::unique_ptr<Marks> marks);

    i64 n_regions;
    Longest large;  // the dense histograms of large regions

private:
    std::mutex mutex;
    std::vector<std::unique_ptr<Marks>> unused;
};

// Rebuild the list of nearest regions of each query, from all active regions; return the number of comparisons.
i64 search_tiles(const RegionTiles& tiles, Vector<const i64> queries, const State& state, const RowIndex& index,
                 const Regions& regions, const AnyDiagonal& diagonal, const Shortlists& lists, TileMemory& memory);

}  // namespace gpuens

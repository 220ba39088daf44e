// The label rows of regions.
#pragma once

#include <algorithm>
#include <numeric>
#include <vector>

#include "linkage/comparisons.h"
#include "linkage/regions.h"

namespace gpuens {

// Label rows in an order in which similar rows are adjacent (gpuens.partition.linkage.nearest.NearestIndex); row i of a linkage
// is at place[i].
struct RowIndex {
    RECORD(RowIndex,
           (Codes<Matrix>, rows),        // (G, M): labels; a missing label is a cluster more
           (Vector<const i64>, place),   // (G,)
           (Vector<const i64>, sizes),   // (G,): the number of objects of each row
           (Vector<const i64>, offsets),  // (M + 1,)
           (Chunks, of_bytes),           // chunks for tables of 8-bit units
           (Chunks, of_words));          // chunks for tables of 16-bit units

    i64 n_clusterings() const { return offsets.size - 1; }
};

// The rows of each region as a linked chain, which begins with the row of the region's id.
struct Members {
    std::vector<i64> follows;       // (G,): the next row in the chain of each row, or -1
    std::vector<i64> last, n_rows;  // (G,): last row and number of rows of each region

    explicit Members(i64 n) : follows(n, -1), last(n), n_rows(n, 1) { std::iota(last.begin(), last.end(), (i64)0); }

    void unite(Vector<const i64> kept, Vector<const i64> absorbed) {
        for (i64 p = 0; p < kept.size; ++p) {
            i64 a = kept[p], b = absorbed[p];
            follows[last[a]] = b;
            last[a] = last[b];
            n_rows[a] += n_rows[b];
        }
    }
};

// The rows of some regions, one region after the other.
struct RowsOfRegions {
    std::vector<i64> regions, places, sizes;
    std::vector<i64> ends;  // last row of each region's chain

    RowsOfRegions(std::vector<i64> regions_, const Members& members, const RowIndex& index) : regions(std::move(regions_)) {
        for (i64 row : regions) {
            for (; row >= 0; row = members.follows[row]) {
                places.push_back(index.place[row]);
                sizes.push_back(index.sizes[row]);
            }
            ends.push_back((i64)places.size());
        }
    }
    i64 n_regions() const { return (i64)regions.size(); }
    i64 n_rows() const { return (i64)places.size(); }
    i64 begin(i64 i) const { return i ? ends[i - 1] : 0; }
};

// Regions to compare by rows, and large regions (of more than 64 rows), which are compared faster by histograms: those with
// most rows, as many as there is room for in dense histograms.
struct Apart {
    static constexpr i64 LAID = 1 << 20;  // largest number of counts in dense histograms
    std::vector<i64> small, large;

    Apart(Vector<const i64> active, const Members& members, i64 n_clusters) {
        for (i64 a : active)
            if (members.n_rows[a] > LANES) large.push_back(a);
        std::stable_sort(large.begin(), large.end(), [&](i64 a, i64 b) { return members.n_rows[a] > members.n_rows[b]; });
        large.resize(std::min((i64)large.size(), LAID / n_clusters));
        std::vector<i64> sorted(large);
        std::sort(sorted.begin(), sorted.end());
        for (i64 a : active)
            if (members.n_rows[a] <= LANES || !std::binary_search(sorted.begin(), sorted.end(), a)) small.push_back(a);
    }
};

}  // namespace gpuens

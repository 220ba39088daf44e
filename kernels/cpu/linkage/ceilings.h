// Ceilings: upper bounds of the similarity of a region with all regions of a tile.
//
// The ceiling of a cluster in a tile is the cluster's largest share in any region of the tile, in units of 1 / 255, rounded
// up. So the similarity of region A with any region of tile t is at most
//
//   reach(A, t) / unit / M,   reach(A, t) = sum_c unit w_c (share of c in A) (ceiling of c in t)
#pragma once

#include <limits>

#include "runtime/lanes.h"
#include "linkage/regions.h"
#include "runtime/parallel.h"

namespace gpuens {

constexpr i64 WHOLE = 255;  // ceiling units in 1.0

// The smallest bound that is not nothing.
constexpr f32 SMALLEST = std::numeric_limits<f32>::min();

class Ceilings {
public:
    Ceilings(i64 n_clusters, i64 n_tiles_) : n_tiles(n_tiles_), memory(n_clusters * n_tiles_) {}

    // Tile t has the regions some[bounds[t]] ... some[bounds[t + 1] - 1].
    Ceilings(const Histograms& of, Vector<const i64> regions, Vector<const i64> bounds, i64 n_clusters)
        : Ceilings(n_clusters, bounds.size - 1) {
        over_ranges(n_tiles, 4'000, [&](i64 begin, i64 end) {
            for (i64 t = begin; t < end; ++t)
                for (i64 i = bounds[t]; i < bounds[t + 1]; ++i) raise(of, regions[i], t);
        });
    }

    const u8* operator[](i64 cluster) const { return memory.data() + cluster * n_tiles; }
    u8* operator[](i64 cluster) { return memory.data() + cluster * n_tiles; }

    i64 n_tiles;

private:
    void raise(const Histograms& of, i64 r, i64 t) {
        f64 each = (f64)WHOLE / (f64)of.size[r];
        for (i64 e = of.start[r]; e < of.start[r] + of.length[r]; ++e) {
            u8& ceiling = (*this)[of.clusters[e]][t];
            ceiling = std::max(ceiling, (u8)std::min(__builtin_ceil((f64)of.counts[e] * each), (f64)WHOLE));
        }
    }

    std::vector<u8> memory;
};

// Write the score that one unit of the ceiling of each cluster of region a contributes.
template <typename Weight>
void be_worth(const Histograms& of, i64 a, const Diagonal<Weight>& by, f32* worth) {
    f64 each = 1.0 / (f64)(WHOLE * of.size[a]);
    for (i64 i = 0, e = of.start[a]; i < of.length[a]; ++i, ++e)
        worth[i] = (f32)((f64)by.bounding[of.clusters[e]] * ((f64)of.counts[e] * each));
}

// Write the reach of a region of n entries in each tile, and return the largest.
inline f32 reach_tiles(const i32* clusters, const f32* worth, i64 n, const Ceilings& ceilings, f32* reach) {
    i64 n_tiles = ceilings.n_tiles, i = 0;
    std::fill(reach, reach + n_tiles, (f32)0);
    for (; i + 4 <= n; i += 4) {  // four entries at a time, so that sums are written less often
        f32 of_a = worth[i], of_b = worth[i + 1], of_c = worth[i + 2], of_d = worth[i + 3];
        const u8 *in_a = ceilings[clusters[i]], *in_b = ceilings[clusters[i + 1]];
        const u8 *in_c = ceilings[clusters[i + 2]], *in_d = ceilings[clusters[i + 3]];
#pragma GCC ivdep
        for (i64 t = 0; t < n_tiles; ++t)
            reach[t] += of_a * (f32)in_a[t] + of_b * (f32)in_b[t] + of_c * (f32)in_c[t] + of_d * (f32)in_d[t];
    }
    for (; i < n; ++i) {
        f32 of_a = worth[i];
        const u8* in_a = ceilings[clusters[i]];
#pragma GCC ivdep
        for (i64 t = 0; t < n_tiles; ++t) reach[t] += of_a * (f32)in_a[t];
    }
    f32 best = 0;
    for (i64 t = 0; t < n_tiles; ++t) best = std::max(best, reach[t]);
    return best;
}

// A factor below 1 that allows for the rounding of the reach of a region of n entries.
inline f64 lowered_by_rounding(i64 n) { return 1.0 - 2e-6 - 1.2e-7 * (f64)n; }

}  // namespace gpuens

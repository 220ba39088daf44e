// Steps of a random walk on the graph of the objects (kernels/walk.cu): the shares of labels around each object.
#include "neighbors/primitives.h"
#include "runtime/parallel.h"

#include <cmath>

namespace gpuens {

namespace {

constexpr f64 SHARE_NS = 0.15;  // a share of one neighbour; its row is often not in the cache
constexpr i64 AHEAD = 12;       // number of edges by which the prefetch of a row precedes its use
constexpr i64 WIDTH = 64;       // columns that are summed together

void prefetch(const void* address) { __builtin_prefetch(address); }

}  // namespace

void walk_step(Vector<const i64> starts, Vector<const i32> heads, Vector<const f32> weights, Matrix<const u16> shares,
               Matrix<u16> result) {
    i64 width = shares.columns, n_edges = heads.size;
    f64 row_ns = (f64)width * SHARE_NS * (1.0 + (f64)n_edges / (f64)std::max(shares.rows, (i64)1));
    over_ranges(shares.rows, row_ns, [&](i64 start, i64 stop) {
        f32 sums[WIDTH];
        for (i64 i = start; i < stop; ++i) {
            f32 total = 1.0f;
            for (i64 e = starts[i]; e < starts[i + 1]; ++e) total += weights[e];
            for (i64 first = 0; first < width; first += WIDTH) {
                i64 n = std::min(WIDTH, width - first);
                const u16* row = shares[i] + first;
                for (i64 c = 0; c < n; ++c) sums[c] = (f32)row[c];
                for (i64 e = starts[i]; e < starts[i + 1]; ++e) {
                    if (e + AHEAD < n_edges) prefetch(shares[heads[e + AHEAD]] + first);
                    const u16* neighbor = shares[heads[e]] + first;
                    f32 weight = weights[e];
                    for (i64 c = 0; c < n; ++c) sums[c] += weight * (f32)neighbor[c];
                }
                u16* out = result[i] + first;
                for (i64 c = 0; c < n; ++c) out[c] = (u16)(i32)(sums[c] / total + 0.5f);
            }
        }
    });
}

void count_shares(Matrix<const u16> shares, Vector<i64> counts) {
    over_ranges(shares.rows, (f64)shares.columns * SHARE_NS, [&](i64 start, i64 stop) {
        for (i64 i = start; i < stop; ++i) {
            i64 n = 0;
            for (i64 c = 0; c < shares.columns; ++c) n += shares[i][c] != 0;
            counts[i] += n;
        }
    });
}

void append_shares(Matrix<const u16> shares, i64 first, Vector<i64> places, Vector<i32> columns, Vector<u16> values) {
    over_ranges(shares.rows, (f64)shares.columns * SHARE_NS, [&](i64 start, i64 stop) {
        for (i64 i = start; i < stop; ++i) {
            i64 place = places[i];
            for (i64 c = 0; c < shares.columns; ++c) {
                if (shares[i][c] == 0) continue;
                columns[place] = (i32)(first + c);
                values[place++] = shares[i][c];
            }
            places[i] = place;
        }
    });
}

void sum_regions(const WalkShares& shares, Vector<const i64> regions, Matrix<i64> sums) {
    Looks looks;
    for (i64 i = 0; i < regions.size; ++i) {
        i64* row = sums[regions[i]];
        for (i64 e = shares.starts[i]; e < shares.starts[i + 1]; ++e) row[shares.columns[e]] += shares.values[e];
        looks();
    }
}

}  // namespace gpuens

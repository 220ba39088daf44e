// The K nearest other rows of label rows, by weighted label matches: gpuens/partition/nearest.py, whose search this is.
//
//   similarity(q, r) = sum_m w[offsets[m] + q_m] [q_m = r_m] / M, listed best first in the total order of the prelude
//
// order (G,): the rows as they stand in tiles. tiles (n_tiles, M, TILE): the rows of a tile side by side for each
// clustering. present (N_c, n_tiles) says whether a cluster has a row in a tile. One warp a query: its lanes bound what
// the tiles can hold, then score the rows of those tiles, band by band of the bounds, and together hold the list.
// Whole-number units bound the weights from above (and are exact for WEIGHT i64, ones), so that only rows that pass are
// scored in float64, in the order of the clusterings.
//
// variants: CODE = u8 u16 u32; WEIGHT = i64 f64

#define TILE 64

// One thread a tile and clustering, so that no two write to one place; present comes filled with zeros.
extern "C" __global__ void mark_present(const CODE* tiles, const i64* offsets, u8* present, i64 n_tiles,
                                        i64 n_clusterings) {
    FOR_EACH(at, n_tiles * n_clusterings) {
        i64 t = at / n_clusterings, m = at % n_clusterings;
        for (i64 row = 0; row < TILE; ++row) {
            CODE label = tiles[at * TILE + row];
            if (label != MISSING(CODE)) present[(offsets[m] + label) * n_tiles + t] = 1;
        }
    }
}

// queries (n,): rows, each to list rows of another component that are at least as similar as least. reach: scratch of
// n_tiles numbers for each warp of the grid. Writes row q of ids (G, K), similarities, bound and bound_hash, and adds
// the label comparisons made to compared. Dynamic shared memory: 3 M numbers for each warp of a block.
extern "C" __global__ void nearest_rows(
    const i64* queries, const f64* least, i64 n_queries, const CODE* codes, const CODE* tiles, const u8* present,
    const i64* offsets, const WEIGHT* weights, const u16* units, const i64* sizes, const i64* component,
    const i64* of_tile, const i64* order, f64 scale, i64 n_rows, i64 n_tiles, i64 n_clusterings, int n_listed,
    u16* reaches, i32* ids, f64* similarities, f64* bound, u64* bound_hash, u64* compared) {
    extern __shared__ i32 scratch[];
    int lane = threadIdx.x % 32;
    i64 warp = ((i64)blockIdx.x * blockDim.x + threadIdx.x) / 32, n_warps = (i64)gridDim.x * blockDim.x / 32;
    u16* reach = reaches + warp * n_tiles;
    i32* clustering = scratch + threadIdx.x / 32 * 3 * n_clusterings;  // of the query's known labels, in order
    i32* label = clustering + n_clusterings;
    i32* unit = label + n_clusterings;
    // rounding must not lift a floor above a score that ties with it
    f64 to_score = (f64)n_clusterings * scale * (1.0 - 1e-9);
    u64 work = 0;
    for (i64 i = warp; i < n_queries; i += n_warps) {
        i64 q = queries[i], mine = component[q];
        f64 at_least = least[i];

        int known = 0;
        for (i64 first = 0; first < n_clusterings; first += 32) {
            i64 m = first + lane;
            CODE own = m < n_clusterings ? codes[m * n_rows + q] : MISSING(CODE);
            unsigned there = __ballot_sync(ALL_LANES, own != MISSING(CODE));
            if (own != MISSING(CODE)) {
                int s = known + __popc(there & ((1u << lane) - 1));
                clustering[s] = (i32)m;
                label[s] = (i32)own;
                unit[s] = units[offsets[m] + own];
            }
            known += __popc(there);
        }
        __syncwarp();

        int best = 0;
        for (i64 t = lane; t < n_tiles; t += 32) {
            int sum = 0;
            for (int s = 0; s < known; ++s)
                if (present[(offsets[clustering[s]] + label[s]) * n_tiles + t]) sum += unit[s];
            reach[t] = (u16)sum;
            best = max(best, sum);
        }
        for (int step = 16; step; step /= 2) best = max(best, __shfl_xor_sync(ALL_LANES, best, step));
        work += known * n_tiles;

        WarpList list(n_listed);
        int floor = max(1, (int)(at_least * to_score + 1e-9));  // the score that is worth scoring exactly
        int high = best + 1, low = best - best / 4;
        while (high > floor) {
            low = max(low, floor);
            for (i64 first = 0; first < n_tiles; first += 32) {
                i64 own = first + lane;
                int promised = own < n_tiles ? (int)reach[own] : 0;
                bool wanted = promised >= low && promised < high && of_tile[own] != mine;
                unsigned visits = __ballot_sync(ALL_LANES, wanted);
                while (visits) {
                    int source = __ffs(visits) - 1;
                    visits &= visits - 1;
                    if (__shfl_sync(ALL_LANES, promised, source) < floor) continue;
                    i64 t = first + source;
                    const CODE* tile = tiles + t * n_clusterings * TILE;
                    work += known * TILE;
                    int score[TILE / 32] = {};
                    for (int s = 0; s < known; ++s) {
                        const CODE* column = tile + (i64)clustering[s] * TILE + lane;
                        for (int part = 0; part < TILE / 32; ++part)
                            if (column[32 * part] == (CODE)label[s]) score[part] += unit[s];
                    }
                    for (int part = 0; part < TILE / 32; ++part) {
                        i64 place = t * TILE + 32 * part + lane;
                        bool passes = score[part] >= floor && place < n_rows;
                        i64 r = passes ? order[place] : 0;
                        passes = passes && component[r] != mine;
                        f64 similarity = 0.0;
                        if (passes) {
                            i64 pairs = sizes[q] * sizes[r];
                            WEIGHT numerator = 0;
                            for (int s = 0; s < known; ++s)
                                if (tile[(i64)clustering[s] * TILE + 32 * part + lane] == (CODE)label[s])
                                    numerator += weights[offsets[clustering[s]] + label[s]] * (WEIGHT)pairs;
                            similarity = (f64)numerator / (f64)(pairs * n_clusterings);
                            passes = similarity >= at_least;
                        }
                        u64 tie = pair_hash(q, r);
                        unsigned offers = __ballot_sync(ALL_LANES, passes);
                        while (offers) {
                            int lender = __ffs(offers) - 1;
                            offers &= offers - 1;
                            list.insert(__shfl_sync(ALL_LANES, r, lender),
                                        __shfl_sync(ALL_LANES, similarity, lender),
                                        __shfl_sync(ALL_LANES, tie, lender));
                        }
                        if (list.full()) floor = max(floor, (int)(list.last_similarity() * to_score + 1e-9));
                    }
                }
            }
            high = low;
            low = min(high - 1, high - high / 4);
        }
        if (lane < n_listed) {
            ids[q * n_listed + lane] = (i32)list.id;
            similarities[q * n_listed + lane] = list.similarity;
        }
        f64 last = list.last_similarity();
        u64 last_tie = list.last_tie();
        if (lane == 0) {
            bound[q] = list.full() ? last : at_least;
            bound_hash[q] = list.full() ? last_tie : NO_HASH;
        }
        __syncwarp();  // the next query's labels take the place of this one's
    }
    if (lane == 0) atomicAdd(compared, work);
}

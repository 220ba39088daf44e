// Histograms of growing regions: moved, merged and searched (gpuens/partition/linkage/regions.py).
//
// The histogram of region r is entries start[r] ... start[r] + length[r] - 1 of an arena: clusters in ascending order,
// and counts. Region r has size[r] objects.
//
// variants: WEIGHT = i64 f64

// Copies the histogram of each live region to another arena, in any order, behind the first `used` entries. One warp
// per region.
extern "C" __global__ void move_histograms(const i64* live, i64 n_live, const i32* clusters, const i32* counts,
                                           const i64* start, const i64* length, i32* new_clusters, i32* new_counts,
                                           i64* new_start, i64* new_length, i64* used) {
    int lane = threadIdx.x % 32;
    i64 warp = ((i64)blockIdx.x * blockDim.x + threadIdx.x) / 32, n_warps = (i64)gridDim.x * blockDim.x / 32;
    for (i64 i = warp; i < n_live; i += n_warps) {
        i64 r = live[i], n = length[r], from = start[r];
        i64 to = __shfl_sync(ALL_LANES, lane == 0 ? add(used, n) : 0, 0);
        for (i64 e = lane; e < n; e += 32) {
            new_clusters[to + e] = clusters[from + e];
            new_counts[to + e] = counts[from + e];
        }
        if (lane == 0) {
            new_start[r] = to;
            new_length[r] = n;
        }
    }
}

// Merges the histogram of absorbed[p] into that of kept[p], for the last n_pairs (1,) of the first n_merges (1,) pairs.
// The result is written behind the first `used` entries of the arena, and absorbed[p] keeps no entries. One warp per
// pair: the position of an entry is the number of entries of both regions before it, where a cluster of both regions
// counts once.
extern "C" __global__ void merge_histograms(const i64* kept, const i64* absorbed, const i64* n_pairs,
                                            const i64* n_merges, i32* clusters, i32* counts, i64* start, i64* length,
                                            i64* size, i64* used) {
    int lane = threadIdx.x % 32;
    unsigned below = (1u << lane) - 1;
    i64 warp = ((i64)blockIdx.x * blockDim.x + threadIdx.x) / 32, n_warps = (i64)gridDim.x * blockDim.x / 32;
    for (i64 p = *n_merges - *n_pairs + warp; p < *n_merges; p += n_warps) {
        i64 a = kept[p], b = absorbed[p], begin = start[a], n = length[a], other = start[b], n_other = length[b];
        i64 to = __shfl_sync(ALL_LANES, lane == 0 ? add(used, n + n_other) : 0, 0), in_both = 0;
        for (int side = 0; side < 2; ++side) {
            in_both = 0;
            for (i64 first = 0; first < n; first += 32) {
                bool mine = first + lane < n;
                i64 e = begin + first + lane, end = other + n_other;
                i64 match = mine ? first_from(clusters, other, end, clusters[e]) : end;
                bool is_shared = match < end && clusters[match] == clusters[e];
                unsigned all_both = __ballot_sync(ALL_LANES, is_shared);
                if (mine && !(is_shared && side)) {
                    i64 at = to + first + lane + match - other - in_both - __popc(all_both & below);
                    clusters[at] = clusters[e];
                    counts[at] = counts[e] + (is_shared ? counts[match] : 0);
                }
                in_both += __popc(all_both);
            }
            i64 next = other, n_next = n_other;
            other = begin;
            n_other = n;
            begin = next;
            n = n_next;
        }
        __syncwarp();
        if (lane == 0) {
            start[a] = to;
            length[a] = n + n_other - in_both;
            length[b] = 0;
            size[a] += size[b];
        }
    }
}

// Fills ceilings (N_c, n_tiles) with zeros, if there are queries. numbers (2,): the numbers of active regions and of
// queries; a tile has `tile` regions.
extern "C" __global__ void clear_ceilings(const i64* numbers, i64 tile, i64 n_clusters, f32* ceilings) {
    if (numbers[1] == 0) return;
    i64 n = (numbers[0] + tile - 1) / tile * n_clusters;
    FOR_EACH(at, n) ceilings[at] = 0;
}

// Writes ceilings (N_c, n_tiles), which come filled with zeros: the largest share that a cluster has in a region of a
// tile, rounded up. numbers (2,) as in clear_ceilings. One warp per region.
extern "C" __global__ void raise_ceilings(const i64* active, const i64* numbers, i64 tile, const i32* clusters,
                                          const i32* counts, const i64* start, const i64* length, const i64* size,
                                          i32* ceilings) {
    if (numbers[1] == 0) return;
    i64 n_active = numbers[0], n_tiles = (n_active + tile - 1) / tile;
    i64 warp = ((i64)blockIdx.x * blockDim.x + threadIdx.x) / 32, n_warps = (i64)gridDim.x * blockDim.x / 32;
    for (i64 i = warp; i < n_active; i += n_warps) {
        i64 r = active[i];
        for (i64 e = start[r] + threadIdx.x % 32; e < start[r] + length[r]; e += 32) {
            f32 share = (f32)((f64)counts[e] / (f64)size[r] * (1.0 + 1e-6));
            // shares are not negative, so that their bits have the same order
            atomicMax(&ceilings[clusters[e] * n_tiles + i / tile], __float_as_int(share));
        }
    }
}

// The type of a region's score: the exact numerator (i64) where weights are whole numbers, otherwise a bound of the
// similarity in f32, because most GPUs add float64 64 times more slowly than float32.
template <typename Weight> struct Scores {
    typedef f32 type;
};
template <> struct Scores<i64> {
    typedef i64 type;
};

// A count, which is not negative, as a score: 32 bits without a sign become 64 by fewer instructions.
template <typename Score>
__device__ Score as_score(i32 count) { return (Score)(u32)count; }

#define QUEUE 32  // most tiles that the warps of a block visit between two barriers

// The number of blocks that share a query, so that some `busy` blocks have work; tiles come in runs of 32.
__device__ int parts_of(i64 n_queries, int n_runs, i64 busy) {
    return n_queries < busy && n_queries > 0 ? (int)min((i64)n_runs, (busy + n_queries - 1) / n_queries) : 1;
}

// Rebuilds the list of each query from all active regions. Tiles are visited in bands of falling bounds; the
// similarity of the query to a region of a tile is at most
//
//   reach(tile) / unit / M,   reach(tile) = sum_c unit w_c (share of c in the query) (ceiling of c in the tile)
//
// One block per query, or where queries are few (fewer than `busy`) several: each has a part of the tiles, 32 at a
// turn, and writes a list of its own. join_lists makes one list of them; the total order makes it independent of the
// parts.
//   - its threads compute the bounds of the tiles;
//   - its warps score the regions of the promising tiles, one lane per entry;
//   - its first warp computes the exact similarity of the regions that pass, and holds the list.
//
// numbers (2,): the numbers of active regions and of queries.
// bounding (N_c,): unit w_c. `unit` keeps every product of a weight and two shares a normal number, because CuPy
//   compiles with -ftz=true.
// whole: weights are whole numbers whose sums of products fit float64 exactly, so that the score decides.
// tables (blocks, N_c): scratch, zeros before and after. reaches (blocks, tiles, rounded up to 32): scratch.
// lasts (busy,): bits of the best last similarity in a full list of a part; zeros before, and after join_lists.
// found_ids, found_similarities (2 busy, K): the lists of the parts of queries that have several.
// room: largest number of tiles in one visit.
// at_once: regions scored between two barriers of a block; each takes 16 bytes of dynamic shared memory.
extern "C" __global__ void search_regions(
    const i64* queries, const i64* active, const i64* numbers, i64 tile, const f32* ceilings,
    const i32* clusters, const i32* counts, const i64* start, const i64* length, const i64* size,
    const WEIGHT* weights, const f32* bounding, f64 unit, i64 n_clusters, i64 n_clusterings, int whole, int room,
    i64 at_once, int n_listed, i64 busy, Scores<WEIGHT>::type* tables, f32* reaches, i64* lasts, i32* found_ids,
    f64* found_similarities, i32* ids, f64* similarities, f64* bound, u64* bound_hash, u64* compared) {
    extern __shared__ f64 offer_score[];  // (at_once,) scores, followed by (at_once,) i64 ids
    __shared__ i64 queue[QUEUE];
    __shared__ int n_offers;
    __shared__ f32 best_of_warp[32];
    // shared_floor: the smallest score per object with which a region can enter the list.
    // shared_least: the smallest reach with which a tile is worth a visit.
    __shared__ f32 shared_floor, shared_least;
    i64 n_active = numbers[0], n_queries = numbers[1], n_tiles = (n_active + tile - 1) / tile;
    i64* offer_id = (i64*)(offer_score + at_once);
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32, n_warps = blockDim.x / 32;
    typedef Scores<WEIGHT>::type Score;
    bool bounded = (WEIGHT)0.5 != 0;  // real weights: scores are bounds
    int n_runs = (int)((n_tiles + 31) / 32), n_parts = parts_of(n_queries, n_runs, busy);
    int most_own = (n_runs + n_parts - 1) / n_parts * 32;
    Score* table = tables + blockIdx.x * n_clusters;
    f32* reach = reaches + (i64)blockIdx.x * n_runs * 32;
    Histograms histograms = {clusters, counts, start, length, size};
    Weighting<WEIGHT> weighting = {weights, 0, n_clusterings};
    u64 work = 0;

    for (i64 item = blockIdx.x; item < n_queries * n_parts; item += gridDim.x) {
        i64 i = item / n_parts, a = queries[i], begin = start[a], end = begin + length[a];
        int part = (int)(item % n_parts);
        auto tile_of = [&](int index) { return (index / 32 * n_parts + part) * 32 + index % 32; };
        f64 size_a = (f64)size[a];
        f32 per_object = (f32)(1.0 / size_a);
        for (i64 e = begin + threadIdx.x; e < end; e += blockDim.x)
            table[clusters[e]] = bounded ? (Score)(bounding[clusters[e]] * ((f32)counts[e] * per_object))
                                         : (Score)(weights[clusters[e]] * (WEIGHT)counts[e]);
        f32 best = 0;
        for (int index = threadIdx.x; index < most_own; index += blockDim.x) {
            i64 t = tile_of(index), stop = t < n_tiles ? end : begin;
            f32 sum = 0;
            for (i64 e = begin; e < stop; ++e) {
                u32 c = (u32)clusters[e];
                sum += bounding[c] * ((f32)counts[e] * per_object) * ceilings[(u64)c * (u32)n_tiles + t];
            }
            work += stop - begin;
            reach[index] = sum;
            best = max(best, sum);
        }
        for (int step = 16; step; step /= 2) best = max(best, __shfl_xor_sync(ALL_LANES, best, step));
        if (lane == 0) best_of_warp[warp] = best;
        if (threadIdx.x == 0) shared_floor = shared_least = 0;
        __syncthreads();
        for (int w = 0; w < n_warps; ++w) best = max(best, best_of_warp[w]);

        WarpList list(n_listed);  // used only by the first warp
        // The factor from a similarity to the reach that a tile needs, lowered by the largest error of the float32
        // sums.
        f64 lowered = unit * (f64)n_clusterings * (1.0 - 2e-6 - 1.2e-7 * (f64)length[a]);
        f32 high = 2 * best + 1, low = (f32)0.75 * best;
        while (high > shared_least) {
            if (low < (f32)0.02 * best) low = 0;
            for (int next = 0; next < most_own;) {
                // The next tiles worth a visit; every warp finds the same ones.
                f32 least = shared_least;
                int queued = 0;
                while (next < most_own && queued < room) {
                    int index = next + lane;
                    f32 promised = index < most_own ? reach[index] : (f32)0;
                    bool is_due = promised > (f32)0 && promised >= low && promised < high && promised >= least;
                    unsigned visits = __ballot_sync(ALL_LANES, is_due);
                    next += 32;
                    while (queued + __popc(visits) > room) {  // postpone the last tile to the next visit
                        int last = 31 - __clz(visits);
                        visits &= ~(1u << last);
                        next = index - lane + last;
                    }
                    if (warp == 0 && (visits >> lane & 1))
                        queue[queued + __popc(visits & ((1u << lane) - 1))] = tile_of(index);
                    queued += __popc(visits);
                }
                i64 n_places = queued * tile;
                for (i64 meeting = 0; meeting < n_places; meeting += at_once) {
                    if (threadIdx.x == 0) n_offers = 0;
                    f32 floor = shared_floor;
                    __syncthreads();
                    for (i64 at = meeting + warp; at < min(meeting + at_once, n_places); at += n_warps) {
                        i64 place = queue[at / tile] * tile + at % tile;
                        if (place >= n_active) continue;
                        i64 r = active[place];
                        if (r == a) continue;  // the score of a region with itself may overflow i64
                        Score score = 0;
                        for (i64 e = start[r] + lane; e < start[r] + length[r]; e += 32)
                            score += as_score<Score>(counts[e]) * table[(u32)clusters[e]];
                        for (int step = 16; step; step /= 2) score += __shfl_xor_sync(ALL_LANES, score, step);
                        if (lane != 0) continue;
                        work += length[r];
                        if (score <= 0 || (f32)score < floor * (f32)size[r]) continue;
                        int offer = atomicAdd(&n_offers, 1);
                        offer_score[offer] = (f64)score;
                        offer_id[offer] = r;
                    }
                    __syncthreads();
                    if (warp == 0) {
                        int offers = n_offers;
                        for (int first = 0; first < offers; first += 32) {
                            i64 r = -1;
                            f64 similarity = 0.0;
                            if (first + lane < offers) {
                                r = offer_id[first + lane];
                                similarity = whole
                                                 ? offer_score[first + lane] / (f64)(size[a] * size[r] * n_clusterings)
                                                 : similarity_of(histograms, weighting, a, r);
                            }
                            u64 tie = pair_hash(a, r);
                            list.insert_each(list.admits(similarity, tie) && r >= 0, r, similarity, tie);
                        }
                        f64 last = list.last_similarity();
                        if (!list.full()) last = 0.0;
                        if (lane == 0 && n_parts > 1) {
                            i64 last_of_others = atomicMax(&lasts[i], __double_as_longlong(last));
                            last = max(last, __longlong_as_double(last_of_others));
                        }
                        if (lane == 0 && last > 0.0) {
                            // The two bounds are below the value of the last entry, of this part or of another, by more
                            // than the rounding of scores, sizes and products.
                            shared_least = (f32)max(0.0, last * lowered);
                            shared_floor = bounded ? shared_least
                                                   : (f32)(last * size_a * (f64)n_clusterings * (1.0 - 2e-6));
                        }
                    }
                    __syncthreads();
                }
            }
            __syncthreads();
            high = low;
            low *= (f32)0.75;
        }
        if (warp == 0) {
            if (n_parts > 1)
                list.write_entries(item, found_ids, found_similarities);
            else
                list.write(a, ids, similarities, bound, bound_hash, 0.0);
        }
        for (i64 e = begin + threadIdx.x; e < end; e += blockDim.x) table[clusters[e]] = 0.0;
        __syncthreads();
    }
    if (work) atomicAdd(compared, work);
}

// Makes the list of each query from the lists of its parts, if it has several. Arguments as of search_regions. One warp
// per query.
extern "C" __global__ void join_lists(const i64* queries, const i64* numbers, i64 tile, int n_listed, i64 busy,
                                      i64* lasts, const i32* found_ids, const f64* found_similarities, i32* ids,
                                      f64* similarities, f64* bound, u64* bound_hash) {
    i64 n_active = numbers[0], n_queries = numbers[1];
    int n_parts = parts_of(n_queries, (int)(((n_active + tile - 1) / tile + 31) / 32), busy);
    if (n_parts == 1) return;
    int lane = threadIdx.x % 32;
    i64 warp = ((i64)blockIdx.x * blockDim.x + threadIdx.x) / 32, n_warps = (i64)gridDim.x * blockDim.x / 32;
    for (i64 i = warp; i < n_queries; i += n_warps) {
        i64 a = queries[i], end = (i + 1) * n_parts * n_listed;
        WarpList list(n_listed);
        for (i64 first = i * n_parts * n_listed; first < end; first += 32) {
            i32 r = first + lane < end ? found_ids[first + lane] : -1;
            f64 similarity = r >= 0 ? found_similarities[first + lane] : 0.0;
            u64 tie = pair_hash(a, r);
            list.insert_each(list.admits(similarity, tie) && r >= 0, r, similarity, tie);
        }
        if (lane == 0) lasts[i] = 0;
        list.write(a, ids, similarities, bound, bound_hash, 0.0);
    }
}

// One round of reciprocal nearest neighbours (gpuens/partition/average.py): who is nearest to whom, as far as the lists
// can tell; which pairs are each other's nearest; and the lists after those have merged.
//
// ids (G, K), similarities: the lists, in no order between two searches, -1 behind the last entry. Everything outside
// list a comes after (bound[a], bound_hash[a]) in the total order; with a bound of `nothing` (0 for a diagonal S, whose
// similarities of 0 are not listed, else minus infinity) there is nothing.
//
// variants: COUNT = i32 i64; WEIGHT = i64 f64

#define RETIRED -1
#define UNKNOWN -2

// Finds the nearest of each region where it is UNKNOWN and the list can tell. One thread a region.
extern "C" __global__ void look_up(const i64* active, i64 n_active, int n_listed, f64 nothing, i64* nearest,
                                   f64* nearest_similarity, const i32* ids, const f64* similarities, const f64* bound,
                                   const u64* bound_hash) {
    FOR_EACH(i, n_active) {
        i64 a = active[i];
        if (nearest[a] != UNKNOWN) continue;
        i64 best = -1;
        f64 best_similarity = 0.0;
        u64 best_tie = NO_HASH;
        for (i64 at = a * n_listed; at < (a + 1) * n_listed && ids[at] >= 0; ++at) {
            u64 tie = pair_hash(a, ids[at]);
            if (best < 0 || comes_before(similarities[at], tie, best_similarity, best_tie)) {
                best = ids[at];
                best_similarity = similarities[at];
                best_tie = tie;
            }
        }
        if (best >= 0 && !comes_before(bound[a], bound_hash[a], best_similarity, best_tie)) {
            nearest[a] = best;
            nearest_similarity[a] = best_similarity;
        } else if (best < 0 && bound[a] <= nothing) {
            nearest[a] = RETIRED;
        }
    }
}

// reciprocal[i]: whether active region i and its nearest are each other's nearest, and it is the smaller of the two.
extern "C" __global__ void mutual_pairs(const i64* active, i64 n_active, const i64* nearest, bool* reciprocal) {
    FOR_EACH(i, n_active) {
        i64 a = active[i], b = nearest[a];
        reciprocal[i] = b > a && nearest[b] == a;
    }
}

// Brings the lists of active regions up to date with the merges of this round: partner[r] is what r has absorbed, or
// -1, and into[r] the region that r is part of now. Regions hold the unions, old_size the sizes
// before. weights: the diagonal of S, or the affinities of the unions, n_affinities to each. Rounding can hide the share
// `slack` of a similarity, and `margin`. One warp a region, a lane an entry (of both lists, for a union: K <= 16).
extern "C" __global__ void update_lists(const i64* active, i64 n_active, int n_listed, const i64* partner,
                                        const i64* into, const i64* old_size, const i32* clusters,
                                        const COUNT* counts, const i64* start, const i64* length, const i64* size,
                                        const WEIGHT* weights, i64 n_affinities, i64 n_clusterings, f64 slack,
                                        f64 margin, f64 nothing, i64* nearest, i32* ids, f64* similarities, f64* bound,
                                        u64* bound_hash) {
    int lane = threadIdx.x % 32;
    unsigned below = (1u << lane) - 1;
    i64 warp = ((i64)blockIdx.x * blockDim.x + threadIdx.x) / 32, n_warps = (i64)gridDim.x * blockDim.x / 32;
    for (i64 i = warp; i < n_active; i += n_warps) {
        i64 a = active[i], b = partner[a] >= 0 ? partner[a] : a;
        i64 side = lane < n_listed ? a : b, slot = lane % n_listed;
        bool mine = lane < (b == a ? 1 : 2) * n_listed;
        i32 old = mine ? ids[side * n_listed + slot] : -1;
        f64 similarity = mine ? similarities[side * n_listed + slot] : 0.0;
        i64 now = old >= 0 ? into[old] : -1;
        bool kept = now >= 0 && now != a;
        for (int other = 0; other < 31; ++other) {  // entries that have become one region
            i64 same = __shfl_sync(ALL_LANES, now, other);
            if (other < lane && same == now) kept = false;
        }
        if (kept && (b != a || partner[now] >= 0))
            similarity = similarity_of(clusters, counts, start, length, size, weights, n_affinities, n_clusterings, a, now);
        u64 tie = pair_hash(a, now);
        unsigned all_kept = __ballot_sync(ALL_LANES, kept);
        int place = __popc(all_kept & below), n_kept = __popc(all_kept);
        if (b != a) {  // the best of both lists, best first
            place = 0;
            for (int other = 0; other < 32; ++other) {
                f64 its_similarity = __shfl_sync(ALL_LANES, similarity, other);
                u64 its_tie = __shfl_sync(ALL_LANES, tie, other);
                if ((all_kept >> other & 1) && comes_before(its_similarity, its_tie, similarity, tie)) ++place;
            }
        }
        __syncwarp();
        if (mine && lane < n_listed && lane >= n_kept) ids[a * n_listed + lane] = -1;
        if (kept && place < n_listed) {
            ids[a * n_listed + place] = (i32)now;
            similarities[a * n_listed + place] = similarity;
        }
        if (b == a) {
            if (lane == 0 && nearest[a] >= 0 && (partner[nearest[a]] >= 0 || into[nearest[a]] != nearest[a]))
                nearest[a] = UNKNOWN;
            continue;
        }
        unsigned first_dropped = __ballot_sync(ALL_LANES, kept && place == n_listed);
        int dropped = first_dropped ? __ffs(first_dropped) - 1 : 0;
        f64 dropped_similarity = __shfl_sync(ALL_LANES, similarity, dropped);
        u64 dropped_tie = __shfl_sync(ALL_LANES, tie, dropped);
        if (lane != 0) continue;
        nearest[a] = UNKNOWN;
        if (bound[a] != bound[b]) {
            f64 part = (f64)old_size[a] / (f64)(old_size[a] + old_size[b]);
            bound[a] = (part * bound[a] + (1.0 - part) * bound[b]) * (1.0 + 1e-15) + margin;
            bound_hash[a] = 0;
        }
        if (slack > 0.0 || margin > 0.0) {
            dropped_similarity = dropped_similarity * (1.0 + slack) + margin;
            dropped_tie = 0;
        }
        if (first_dropped && dropped_similarity > nothing &&
            comes_before(dropped_similarity, dropped_tie, bound[a], bound_hash[a])) {
            bound[a] = dropped_similarity;
            bound_hash[a] = dropped_tie;
        }
    }
}

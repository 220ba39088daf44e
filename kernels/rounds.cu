// One round of reciprocal nearest neighbours (gpuens/partition/linkage/rounds.py), in four steps:
//   look_up        the nearest region of each active region, if the region's list decides it
//   pair_up        the pairs of regions that are each other's nearest
//   find_heights   the places of these merges in the order of a greedy algorithm
//   update_lists   the lists after these pairs have merged
//
// ids (G, K), similarities: the lists, unordered between two searches, -1 behind the last entry. Every region outside
// list a comes after (bound[a], bound_hash[a]) in the total order. A bound of `nothing` means that no region is outside
// the list; it is 0 for a diagonal S, whose similarities of 0 are not listed, otherwise minus infinity.
//
// `counts` stays on the device and passes numbers, such as that of the active regions, from one kernel to the next; the
// host launches several rounds without reading `counts`. If no region is active or unknown, a kernel does nothing.
//
// variants: WEIGHT = i64 f64

// Positions in `counts`. TICKET, TURN, DONE and SURVIVORS order the blocks of pair_up and are 0 between launches.
enum { COUNTS, TICKET, TURN, DONE, SURVIVORS };

// Finds the UNKNOWN nearest region of each active region in its list, and writes to `unknown` the regions whose list
// does not decide it. Also clears the partners of the last round and counts the histogram entries of active regions.
// One thread per region.
extern "C" __global__ void look_up(const i64* active, int n_listed, f64 nothing, const i64* length, i64* nearest,
                                   f64* nearest_similarity, i64* partner, i64* unknown, const i32* ids,
                                   const f64* similarities, const f64* bound, const u64* bound_hash, i64* counts) {
    int lane = threadIdx.x % 32;
    i64 n_active = counts[ACTIVE], entries = 0;
    i64 first = (i64)blockIdx.x * blockDim.x + threadIdx.x - lane, n_threads = (i64)gridDim.x * blockDim.x;
    for (; first < n_active; first += n_threads) {
        i64 a = first + lane < n_active ? active[first + lane] : -1;
        bool lost = a >= 0 && nearest[a] == UNKNOWN;
        if (a >= 0) {
            partner[a] = -1;
            entries += length[a];
        }
        if (lost) {
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
                lost = false;
            } else if (best < 0 && bound[a] <= nothing) {
                nearest[a] = RETIRED;
                lost = false;
            }
        }
        unsigned all_lost = __ballot_sync(ALL_LANES, lost);
        i64 place = lane == 0 && all_lost ? add(&counts[UNKNOWNS], __popc(all_lost)) : 0;
        place = __shfl_sync(ALL_LANES, place, 0) + __popc(all_lost & ((1u << lane) - 1));
        if (lost) unknown[place] = a;
    }
    for (int step = 16; step; step /= 2) entries += __shfl_xor_sync(ALL_LANES, entries, step);
    if (lane == 0 && entries) add(&counts[ENTRIES], entries);
}

// Takes the first entry of each new list as the nearest region, and raises the list's bound by the rounding tolerance:
// a share `slack` of the similarity, plus `margin`. n_rows (1,). One thread per row.
extern "C" __global__ void take_first_listed(const i64* rows, const i64* n_rows, int n_listed, f64 slack, f64 margin,
                                             i64* nearest, f64* nearest_similarity, const i32* ids,
                                             const f64* similarities, f64* bound, u64* bound_hash) {
    FOR_EACH(i, *n_rows) {
        i64 a = rows[i];
        nearest[a] = ids[a * n_listed] >= 0 ? ids[a * n_listed] : RETIRED;
        nearest_similarity[a] = similarities[a * n_listed];
        if (slack > 0.0 || margin > 0.0) {
            bound[a] = bound[a] * (1.0 + slack) + margin;
            bound_hash[a] = 0;
        }
    }
}

// Pairs active regions that are each other's nearest, and appends the pairs to the merges: the region with the smaller
// number absorbs the other (`partner` and `into`). Survivors are the active regions without the absorbed and the
// RETIRED ones. Merges and survivors keep the order of the active regions.
//
// A warp takes 32 * steps regions at a time (steps <= 32). Lane s keeps the votes of step s, from which a second pass
// computes the places in the output. Blocks take turns, in the order of their tickets, to learn where their output
// begins.
extern "C" __global__ void pair_up(const i64* active, int steps, const i64* nearest,
                                   const f64* nearest_similarity, i64* partner, i64* into, i64* survivors, i64* kept,
                                   i64* absorbed, f64* merged_at, i64* counts) {
    __shared__ i64 ticket, first_survivor, first_pair;
    __shared__ i64 survivors_of[32], pairs_of[32];  // one number per warp
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32, n_warps = blockDim.x / 32;
    unsigned below = (1u << lane) - 1;
    i64 n_active = counts[ACTIVE], n_merges = counts[MERGES], share = (i64)blockDim.x * steps;
    i64 n_shares = max((i64)1, (n_active + share - 1) / share);
    for (;;) {
        if (threadIdx.x == 0) ticket = add(&counts[TICKET], 1);
        __syncthreads();
        i64 turn = ticket;
        if (turn >= n_shares) break;
        i64 first = turn * share + warp * 32 * steps + lane;
        unsigned votes_to_stay = 0, votes_to_join = 0;
        int n_survivors = 0, n_pairs = 0;
        for (int s = 0; s < steps; ++s) {
            i64 a = first + 32 * s < n_active ? active[first + 32 * s] : -1, b = a >= 0 ? nearest[a] : RETIRED;
            bool mutual = b >= 0 && nearest[b] == a, joins = mutual && a < b;
            unsigned stay = __ballot_sync(ALL_LANES, b >= 0 && (joins || !mutual));
            unsigned join = __ballot_sync(ALL_LANES, joins);
            if (lane == s) {
                votes_to_stay = stay;
                votes_to_join = join;
            }
            n_survivors += __popc(stay);
            n_pairs += __popc(join);
        }
        if (lane == 0) {
            survivors_of[warp] = n_survivors;
            pairs_of[warp] = n_pairs;
        }
        __syncthreads();
        if (threadIdx.x == 0) {
            i64 all_survivors = 0, all_pairs = 0;
            for (int w = 0; w < n_warps; ++w) {
                i64 own_survivors = survivors_of[w], own_pairs = pairs_of[w];
                survivors_of[w] = all_survivors;
                pairs_of[w] = all_pairs;
                all_survivors += own_survivors;
                all_pairs += own_pairs;
            }
            while (add(&counts[TURN], 0) != turn) {
            }
            __threadfence();  // the additions of the previous block must be visible first
            if (turn == 0) replace(&counts[PAIRS], 0);  // clear the pairs of the previous round
            first_survivor = add(&counts[SURVIVORS], all_survivors);
            first_pair = add(&counts[PAIRS], all_pairs);
            __threadfence();
            add(&counts[TURN], 1);
        }
        __syncthreads();
        i64 survivor = first_survivor + survivors_of[warp], pair = n_merges + first_pair + pairs_of[warp];
        for (int s = 0; s < steps; ++s) {
            unsigned stay = __shfl_sync(ALL_LANES, votes_to_stay, s), join = __shfl_sync(ALL_LANES, votes_to_join, s);
            i64 at = pair + __popc(join & below);
            if (stay >> lane & 1) survivors[survivor + __popc(stay & below)] = active[first + 32 * s];
            if (join >> lane & 1) {
                i64 a = active[first + 32 * s], b = nearest[a];
                kept[at] = a;
                absorbed[at] = b;
                merged_at[at] = nearest_similarity[a];
                partner[a] = b;
                into[b] = a;
            }
            survivor += __popc(stay);
            pair += __popc(join);
        }
        __syncthreads();
    }
    if (threadIdx.x != 0) return;
    __threadfence();
    if (add(&counts[DONE], 1) < gridDim.x - 1) return;  // only the last block to finish writes the counts
    i64 n_pairs = add(&counts[PAIRS], 0);
    counts[ACTIVE] = add(&counts[SURVIVORS], 0);
    counts[MERGES] = n_merges + n_pairs;
    counts[ROUNDS] += n_pairs > 0;
    counts[SEARCHED] += counts[UNKNOWNS];
    counts[TICKET] = counts[TURN] = counts[DONE] = counts[SURVIVORS] = 0;
}

// Finds the height and the wait of each merge of this round, the last n_pairs (1,) of the first n_merges (1,) merges:
// its similarity, at most the heights of the merges of its parts; and the largest hash of the merge and of all merges
// within it at the same height, for which it waits. of_region, wait_of_region (G,): those of the last merge of each
// region, infinity before the first. One thread per merge.
extern "C" __global__ void find_heights(const i64* kept, const i64* absorbed, const f64* merged_at, const i64* n_pairs,
                                        const i64* n_merges, f64* of_region, u64* wait_of_region, f64* of_merge,
                                        u64* wait_of_merge) {
    FOR_EACH(p, *n_pairs) {
        i64 at = *n_merges - *n_pairs + p, parts[] = {kept[at], absorbed[at]};
        f64 height = min(merged_at[at], min(of_region[parts[0]], of_region[parts[1]]));
        u64 wait = pair_hash(parts[0], parts[1]);
        for (i64 part : parts)
            if (of_region[part] == height) wait = max(wait, wait_of_region[part]);
        of_region[parts[0]] = of_merge[at] = height;
        wait_of_region[parts[0]] = wait_of_merge[at] = wait;
    }
}

// A slice of a histogram, laid out for look-ups. For each 32 adjacent clusters: a bit per cluster that has an entry,
// and the number of entries before them.
#define SLICE 256  // words of 32 clusters in a slice

struct __align__(8) Entries {
    u32 present, before;
};

// Updates the lists of active regions after the merges of this round. The histograms already hold the unions. One warp
// per region, one lane per entry (of both lists for a union, hence K <= 16). The warp lays out the region's histogram
// in shared memory, a slice at a time; each lane walks the histogram of its entry, and looks the clusters up.
//
// partner[r]: the region that r has absorbed, or -1. into[r]: the region that contains r now.
// weights, as in common/histograms.h: the diagonal of S (n_columns = 0), the affinities V (n_columns > 0), or, where
//   n_clusterings is 0, the weights of both sums of a ratio, n_columns each.
// slack, margin: the rounding tolerance of a similarity, as a share of it and as an addend.
extern "C" __global__ void update_lists(
    const i64* active, int n_listed, const i64* partner, const i64* into, const i32* clusters,
    const i32* of_clusters, const i64* start, const i64* length, const i64* size, const WEIGHT* weights,
    i64 n_columns, i64 n_clusterings, f64 slack, f64 margin, f64 nothing, i64* nearest, i32* ids, f64* similarities,
    f64* bound, u64* bound_hash, i64* counts) {
    __shared__ Entries slices[4][SLICE];
    Entries* slice = slices[threadIdx.x / 32];
    i64 n_active = counts[ACTIVE];
    if (blockIdx.x == 0 && threadIdx.x == 0) counts[UNKNOWNS] = counts[ENTRIES] = 0;  // look_up adds to them
    int lane = threadIdx.x % 32;
    unsigned below = (1u << lane) - 1;
    Histograms histograms = {clusters, of_clusters, start, length, size};
    Weighting<WEIGHT> weighting = {weights, n_columns, n_clusterings};
    i64 warp = ((i64)blockIdx.x * blockDim.x + threadIdx.x) / 32, n_warps = (i64)gridDim.x * blockDim.x / 32;
    for (i64 i = warp; i < n_active; i += n_warps) {
        i64 a = active[i], b = partner[a] >= 0 ? partner[a] : a;
        i64 side = lane < n_listed ? a : b, slot = lane % n_listed;
        bool mine = lane < (b == a ? 1 : 2) * n_listed;
        i32 old = mine ? ids[side * n_listed + slot] : -1;
        f64 similarity = mine ? similarities[side * n_listed + slot] : 0.0;
        i64 now = old >= 0 ? into[old] : -1;
        bool kept = now >= 0 && now != a;
        for (int source = 0; source < 31; ++source) {  // keep one of the entries that have become the same region
            i64 region = __shfl_sync(ALL_LANES, now, source);
            if (source < lane && region == now) kept = false;
        }
        bool changed = kept && (b != a || partner[now] >= 0);
        if (n_columns && n_clusterings) {
            if (changed) similarity = similarity_of(histograms, weighting, a, now);
        } else if (__any_sync(ALL_LANES, changed)) {
            i64 begin = start[a], next = begin, end = begin + length[a];
            i64 e = changed ? start[now] : 0, end_now = changed ? e + length[now] : 0;
            WEIGHT total = 0, possible = 0;
            auto add_shared = [&](i32 cluster, i64 count_a, i64 count_b) {
                WEIGHT pairs = (WEIGHT)((i64)of_clusters[count_a] * (i64)of_clusters[count_b]);
                total += weights[cluster] * pairs;
                if (!n_clusterings) possible += weights[n_columns + cluster] * pairs;
            };
            if (end_now - e > 8 * (end - begin)) {  // a long histogram is not walked, but searched for each cluster
                for (i64 entry = begin; entry < end; ++entry) {
                    e = first_from(clusters, e, end_now, clusters[entry]);
                    if (e < end_now && clusters[e] == clusters[entry]) add_shared(clusters[entry], entry, e);
                }
                e = end_now;
            }
            while (next < end && __any_sync(ALL_LANES, e < end_now)) {
                i32 first = clusters[next] & ~31, limit = first + 32 * SLICE;
                __syncwarp();
                for (int s = lane; s < SLICE; s += 32) slice[s] = {0, 0};
                __syncwarp();
                for (unsigned inside = ALL_LANES; inside == ALL_LANES; next += __popc(inside)) {
                    i64 at = next + lane;
                    i32 cluster = at < end ? clusters[at] : limit;
                    inside = __ballot_sync(ALL_LANES, cluster < limit);
                    if (cluster >= limit) continue;
                    Entries& word = slice[(cluster - first) / 32];
                    atomicOr(&word.present, 1u << cluster % 32);
                    if (at == begin || clusters[at - 1] / 32 != cluster / 32) word.before = (u32)(at - begin);
                }
                __syncwarp();
                bool ends = e < end_now && clusters[end_now - 1] >= limit;
                i64 stop = ends ? first_from(clusters, e, end_now, limit) : end_now;
                for (; e < stop; ++e) {
                    u32 cluster = clusters[e], bit = 1u << cluster % 32;
                    Entries word = slice[(cluster - first) / 32 % SLICE];
                    if ((i32)cluster >= first && (word.present & bit))
                        add_shared(cluster, begin + word.before + __popc(word.present & (bit - 1)), e);
                }
            }
            if (changed && n_clusterings) similarity = (f64)total / (f64)(size[a] * size[now] * n_clusterings);
            if (changed && !n_clusterings) similarity = possible > 0 ? (f64)total / (f64)possible : 0.0;
        }
        u64 tie = pair_hash(a, now);
        unsigned all_kept = __ballot_sync(ALL_LANES, kept);
        int place = __popc(all_kept & below), n_kept = __popc(all_kept);
        if (b != a) {  // order the entries of both lists, best first
            place = 0;
            for (int source = 0; source < 32; ++source) {
                f64 its_similarity = __shfl_sync(ALL_LANES, similarity, source);
                u64 its_tie = __shfl_sync(ALL_LANES, tie, source);
                if ((all_kept >> source & 1) && comes_before(its_similarity, its_tie, similarity, tie)) ++place;
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
        Tolerance tolerance = {slack, margin, nothing};
        f64 share = (f64)(size[a] - size[b]) / (f64)size[a];  // share of a's objects that it had before the merge
        Bound of_union = union_bound({bound[a], bound_hash[a]}, {bound[b], bound_hash[b]}, share, !n_clusterings,
                                     tolerance);
        if (first_dropped)
            of_union = raised_bound(of_union, {dropped_similarity, dropped_tie}, !n_clusterings, tolerance);
        bound[a] = of_union.similarity;
        bound_hash[a] = of_union.tie;
    }
}

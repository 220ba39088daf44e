// The K nearest other rows of each label row, by weighted label matches (gpuens/partition/linkage/nearest.py).
//
//   similarity(q, r) = sum_m w[offsets[m] + q_m] [q_m = r_m] / M, listed best first in the total order of the prelude
//
// order (G,): the rows in the order of the tiles.
// tiles (n_tiles, M, TILE): the labels of each tile; for each clustering, the labels of the tile's rows are adjacent.
// present (N_c, n_words): bit t % 32 of word t / 32 says whether a cluster has a row in tile t.
// sliced (bits of all clusterings, 32 n_words): one bit of the 64 labels of a tile per u64 word.
// first_bit (M + 1,): the first row of `sliced` that belongs to a clustering.
//
// One warp per query, in two steps:
//   1. its lanes compute the largest score possible in each tile, 32 tiles per lane;
//   2. its lanes score the rows of the promising tiles, in bands of falling bounds, and together hold the list. Where
//      many of 32 tiles are wanted, a lane scores all rows of one tile at once by their bits; otherwise a lane scores
//      two rows of a tile.
// Scores are sums of whole-number units, which bound the weights from above (and equal them for WEIGHT i64, where all
// weights are 1). Only rows whose score passes are summed in float64, in the order of the clusterings.
//
// variants: CODE = u8 u16 u32; WEIGHT = i64 f64

#define TILE 64
#define PLANES 16  // bits of a score: the units of M labels add up to less than 2^PLANES
#define ONES ((WEIGHT)0.5 == 0)  // whether all weights are 1: WEIGHT is a type of whole numbers

// Marks the clusters of each tile in `present`, which comes filled with zeros. One thread per tile and clustering. The
// rows of a tile are similar, so comparing a label with the last one avoids most repeated atomic operations.
extern "C" __global__ void mark_present(const CODE* tiles, const i64* offsets, u32* present, i64 n_tiles,
                                        i64 n_clusterings) {
    i64 n_words = (n_tiles + 31) / 32;
    FOR_EACH(at, n_tiles * n_clusterings) {
        i64 t = at / n_clusterings, m = at % n_clusterings;
        CODE last = MISSING(CODE);
        for (i64 row = 0; row < TILE; ++row) {
            CODE label = tiles[at * TILE + row];
            if (label == last || label == MISSING(CODE)) continue;
            atomicOr(&present[(offsets[m] + label) * n_words + t / 32], 1u << t % 32);
            last = label;
        }
    }
}

// Writes `sliced`. One warp per clustering and 32 rows. first_bit gives each clustering enough bits that no label is
// all ones, the pattern of a missing label.
extern "C" __global__ void slice_labels(const CODE* tiles, const i32* first_bit, u32* sliced, i64 n_tiles,
                                        i64 n_clusterings) {
    i64 n_padded = (n_tiles + 31) / 32 * 32;
    FOR_EACH(at, n_tiles * n_clusterings * TILE) {
        i64 t = at / TILE / n_clusterings, m = at / TILE % n_clusterings, half = at / 32 % 2;
        CODE label = tiles[at];
        for (i32 bit = first_bit[m]; bit < first_bit[m + 1]; ++bit) {
            u32 found = __ballot_sync(ALL_LANES, label >> (bit - first_bit[m]) & 1);
            if (at % 32 == 0) sliced[2 * (bit * n_padded + t) + half] = found;
        }
    }
}

// One sum below 2^DEPTH for each bit position of a word: bit i of plane b is bit b of sum i.
template <typename Word, int DEPTH>
struct BitSums {
    Word planes[DEPTH];

    __device__ void clear() {
        for (int b = 0; b < DEPTH; ++b) planes[b] = 0;
    }

    // Adds a number to each sum whose bit of `chosen` is set.
    __device__ void add(Word chosen, u32 number) {
        Word carry = 0;
        for (int b = 0; b < DEPTH; ++b) {
            Word own = planes[b], added = number >> b & 1 ? chosen : 0;
            planes[b] = own ^ added ^ carry;
            carry = (own & added) | (carry & (own | added));
        }
    }

    // Returns a word with bit i set where sum i is at least `number`.
    __device__ Word at_least(int number) const {
        Word found = ~(Word)0;
        for (int b = 0; b < DEPTH; ++b) found = number >> b & 1 ? planes[b] & found : planes[b] | found;
        return number >> DEPTH ? 0 : found;
    }

    // Returns the largest of the sums.
    __device__ int largest() const {
        Word candidates = ~(Word)0;
        int found = 0;
        for (int b = DEPTH - 1; b >= 0; --b) {
            if (!(candidates & planes[b])) continue;
            candidates &= planes[b];
            found |= 1 << b;
        }
        return found;
    }
};

// One label of a query that is not missing: its cluster, the offset of its clustering in a tile, the label, and the
// unit of the cluster.
struct __align__(16) Known {
    u32 cluster, column, label, unit;
};

// Returns a word with bit i set where row i of a tile scores at least `floor`. The bits of a label are n_apart words
// apart in `sliced`.
template <int DEPTH>
__device__ u64 reaching(const u64* sliced, i64 n_apart, const i32* first_bit, const Known* labels, int known, int floor) {
    BitSums<u64, DEPTH> sums;
    sums.clear();
    for (int s = 0; s < known; ++s) {
        Known one = labels[s];
        const i32* bits = first_bit + one.column / TILE;
        const u64* words = sliced + bits[0] * n_apart;
        u64 same = ~0ull;
#pragma unroll 1  // a short loop of unknown length: unrolled code would mostly compute its number of turns
        for (i32 b = bits[1] - bits[0]; b > 0; --b, one.label >>= 1, words += n_apart) {
            u32 flipped = (one.label & 1) - 1;
            same &= *words ^ ((u64)flipped << 32 | flipped);
        }
        sums.add(same, ONES ? 1 : one.unit);
    }
    return sums.at_least(floor);
}

// Writes rows of ids (G, K), similarities, bound and bound_hash: for query q = queries[i], the nearest rows of other
// components whose similarity is at least least[i].
//
// reaches (warps of the grid, PLANES, n_words): scratch.
// known_labels (warps of the grid, M): scratch in global memory, used where the labels of a block do not fit its
//   dynamic shared memory (in_shared = 0).
// dense: if at least so many of 32 tiles must be compared, each lane scores a whole tile.
// compared: the number of label comparisons, to which the kernel adds the comparisons that it makes.
extern "C" __global__ void nearest_rows(
    const i64* queries, const f64* least, i64 n_queries, const CODE* codes, const CODE* tiles, const u32* present,
    const u64* sliced, const i32* first_bit, int dense, const i64* offsets, const WEIGHT* weights, const u16* units, const i64* sizes, const i64* component,
    const i64* of_tile, const i64* order, f64 scale, i64 n_rows, i64 n_tiles, i64 n_clusterings, int n_listed,
    int in_shared, u32* known_labels, u32* reaches, i32* ids, f64* similarities, f64* bound, u64* bound_hash,
    u64* compared) {
    extern __shared__ __align__(16) u32 shared[];  // aligned for entries of type Known
    int lane = threadIdx.x % 32;
    i64 warp = ((i64)blockIdx.x * blockDim.x + threadIdx.x) / 32, n_warps = (i64)gridDim.x * blockDim.x / 32;
    i64 n_words = (n_tiles + 31) / 32;
    u32* reach = reaches + warp * PLANES * n_words;
    Known* labels = in_shared ? (Known*)shared + threadIdx.x / 32 * n_clusterings
                              : (Known*)known_labels + warp * n_clusterings;  // the query's labels
                              // Lowered a little, so that rounding cannot lift a floor above a score that ties with the
                              // floor.
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
                u32 cluster = (u32)(offsets[m] + own);
                labels[known + __popc(there & ((1u << lane) - 1))] = {cluster, (u32)m * TILE, own, units[cluster]};
            }
            known += __popc(there);
        }
        __syncwarp();

        BitSums<u32, PLANES> sums;
        int best = 0;
        for (i64 word = lane; word < n_words; word += 32) {
            sums.clear();
            for (int s = 0; s < known; ++s) {
                Known one = labels[s];
                sums.add(present[one.cluster * n_words + word], ONES ? 1 : one.unit);
            }
            for (int b = 0; b < PLANES; ++b) reach[b * n_words + word] = sums.planes[b];
            best = max(best, sums.largest());
        }
        for (int step = 16; step; step /= 2) best = max(best, __shfl_xor_sync(ALL_LANES, best, step));
        work += known * n_tiles;

        WarpList list(n_listed);
        int floor = max(1, (int)(at_least * to_score + 1e-9));  // the least score that justifies the exact similarity
        f64 last = 0.0;  // similarity of the last entry of a full list
        u64 last_tie = NO_HASH;  // hash of the last entry of a full list
        // Computes the exact similarity of a lane's row where `passes` is true, and lists the row if it is near enough.
        auto offer = [&](bool passes, i64 place) {
            i64 r = passes ? order[place] : 0;
            passes = passes && component[r] != mine;
            f64 similarity = 0.0;
            u64 tie = pair_hash(q, r);
            if (passes) {
                const CODE* row = tiles + place / TILE * n_clusterings * TILE + place % TILE;
                i64 pairs = sizes[q] * sizes[r];
                WEIGHT numerator = 0;
                for (int s = 0; s < known; ++s)
                    if (row[labels[s].column] == labels[s].label)
                        numerator += weights[labels[s].cluster] * (WEIGHT)pairs;
                similarity = (f64)numerator / (f64)(pairs * n_clusterings);
                passes = similarity >= at_least &&
                         (!list.full() || comes_before(similarity, tie, last, last_tie));
            }
            if (!list.insert_each(passes, r, similarity, tie) || !list.full()) return;
            last = list.last_similarity();
            last_tie = list.last_tie();
            floor = max(floor, (int)(last * to_score + 1e-9));
        };
        int high = best + 1, low = best - best / 4;
        while (high > floor) {
            low = max(low, floor);
            for (i64 first = 0; first < n_words; first += 32) {
                bool inside = first + lane < n_words;
                for (int b = 0; b < PLANES; ++b) sums.planes[b] = inside ? reach[b * n_words + first + lane] : 0;
                u32 wanted = sums.at_least(low) & ~sums.at_least(high);
                while (unsigned wanting = __ballot_sync(ALL_LANES, wanted != 0)) {
                    int source = __ffs(wanting) - 1, before = floor;
                    u32 chosen = __shfl_sync(ALL_LANES, wanted, source);
                    i64 t = (first + source) * 32;
                    if (list.full() && __popc(chosen) >= dense) {  // nearly all rows pass while a list is not full
                        if (lane == source) wanted = 0;
                        t += lane;
                        u64 passing = ONES && known < 64
                                          ? reaching<6>(sliced + t, 32 * n_words, first_bit, labels, known, floor)
                                          : reaching<PLANES>(sliced + t, 32 * n_words, first_bit, labels, known, floor);
                        if (!(chosen >> lane & 1) || of_tile[t] == mine) passing = 0;
                        while (__ballot_sync(ALL_LANES, passing != 0)) {
                            offer(passing != 0, t * TILE + __ffsll(passing) - 1);
                            passing &= passing - 1;
                        }
                        work += 32 * known * TILE;
                    } else {
                        if (lane == source) wanted &= wanted - 1;
                        t += __ffs(chosen) - 1;
                        if (of_tile[t] == mine) continue;
                        const CODE* tile = tiles + t * n_clusterings * TILE + lane;
                        u32 score[TILE / 32] = {};
                        for (int s = 0; s < known; ++s) {
                            Known one = labels[s];
                            const CODE* column = tile + one.column;
                            for (int part = 0; part < TILE / 32; ++part)
                                if (column[32 * part] == one.label) score[part] += one.unit;
                        }
                        for (int part = 0; part < TILE / 32; ++part) {
                            i64 place = t * TILE + 32 * part + lane;
                            offer((int)score[part] >= floor && place < n_rows, place);
                        }
                        work += known * TILE;
                    }
                    if (floor > before) wanted &= sums.at_least(floor);
                }
            }
            high = low;
            low = min(high - 1, high - high / 4);
        }
        list.write(q, ids, similarities, bound, bound_hash, at_least);
        __syncwarp();  // the labels of the next query overwrite those of this query
    }
    if (lane == 0) atomicAdd(compared, work);
}

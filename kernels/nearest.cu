// The K nearest other rows of label rows, by weighted label matches (gpuens/partition/linkage/nearest.py).
//
//   similarity(q, r) = sum_m w[offsets[m] + q_m] [q_m = r_m] / M, listed best first in the total order of the prelude
//
// order (G,): the rows as they stand in tiles. tiles (n_tiles, M, TILE): the rows of a tile side by side for each
// clustering. present (N_c, n_words): bit t % 32 of word t / 32 says whether a cluster has a row in tile t. sliced (bits of
// all clusterings, 32 n_words): the labels of a tile, bit by bit in words of 64; first_bit (M + 1,) are the first of a
// clustering. One warp a query: its lanes bound what the tiles can hold, 32 tiles a lane, then score the rows of those
// tiles, band by band of the bounds, and together hold the list. Where many of 32 tiles are wanted, a lane scores a tile,
// all its rows at once by their bits; else a lane scores two rows of a tile. Whole-number units bound the weights from
// above (and are exact for WEIGHT i64, ones), so that only rows that pass are scored in float64, in the order of the
// clusterings.
//
// variants: CODE = u8 u16 u32; WEIGHT = i64 f64

#define TILE 64
#define PLANES 16  // units of M labels add up to less than 2^PLANES
#define ONES ((WEIGHT)0.5 == 0)  // all weights, which a type of whole numbers says

// One thread a tile and clustering; present comes filled with zeros. Rows of a tile are alike: few bits are set twice.
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

// One warp 32 rows and a clustering: labels have so many bits that a missing one, all ones, is none of them.
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

// A sum for each bit of a word, less than 2^DEPTH: bit i of plane b is bit b of sum i.
template <typename Word, int DEPTH>
struct BitSums {
    Word planes[DEPTH];

    __device__ void clear() {
        for (int b = 0; b < DEPTH; ++b) planes[b] = 0;
    }

    // Adds a number to the sums that are chosen.
    __device__ void add(Word chosen, u32 number) {
        Word carry = 0;
        for (int b = 0; b < DEPTH; ++b) {
            Word own = planes[b], added = number >> b & 1 ? chosen : 0;
            planes[b] = own ^ added ^ carry;
            carry = (own & added) | (carry & (own | added));
        }
    }

    // Which sums are at least a number.
    __device__ Word at_least(int number) const {
        Word found = ~(Word)0;
        for (int b = 0; b < DEPTH; ++b) found = number >> b & 1 ? planes[b] & found : planes[b] | found;
        return number >> DEPTH ? 0 : found;
    }

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

// A known label of a query, and where its clustering begins in a tile.
struct __align__(16) Known {
    u32 cluster, column, label, unit;
};

// Which rows of a tile reach a floor, by the bits of their labels, which are n_apart words apart.
template <int DEPTH>
__device__ u64 reaching(const u64* sliced, i64 n_apart, const i32* first_bit, const Known* labels, int known, int floor) {
    BitSums<u64, DEPTH> sums;
    sums.clear();
    for (int s = 0; s < known; ++s) {
        Known one = labels[s];
        const i32* bits = first_bit + one.column / TILE;
        const u64* words = sliced + bits[0] * n_apart;
        u64 same = ~0ull;
#pragma unroll 1  // few turns, which unrolling would spend on finding out how many they are
        for (i32 b = bits[1] - bits[0]; b > 0; --b, one.label >>= 1, words += n_apart) {
            u32 flipped = (one.label & 1) - 1;
            same &= *words ^ ((u64)flipped << 32 | flipped);
        }
        sums.add(same, ONES ? 1 : one.unit);
    }
    return sums.at_least(floor);
}

// queries (n,): rows, each to list rows of another component that are at least as similar as least. reaches (PLANES
// n_words for each warp of the grid): scratch. Writes row q of ids (G, K), similarities, bound and bound_hash, and adds
// the label comparisons made to compared. known: M entries for each warp of the grid, where those of a block do not fit
// its dynamic shared memory (in_shared = 0). dense: of 32 tiles, how many are many.
extern "C" __global__ void nearest_rows(
    const i64* queries, const f64* least, i64 n_queries, const CODE* codes, const CODE* tiles, const u32* present,
    const u64* sliced, const i32* first_bit, int dense, const i64* offsets, const WEIGHT* weights, const u16* units, const i64* sizes, const i64* component,
    const i64* of_tile, const i64* order, f64 scale, i64 n_rows, i64 n_tiles, i64 n_clusterings, int n_listed,
    int in_shared, u32* known_labels, u32* reaches, i32* ids, f64* similarities, f64* bound, u64* bound_hash,
    u64* compared) {
    extern __shared__ __align__(16) u32 shared[];  // which Known wants
    int lane = threadIdx.x % 32;
    i64 warp = ((i64)blockIdx.x * blockDim.x + threadIdx.x) / 32, n_warps = (i64)gridDim.x * blockDim.x / 32;
    i64 n_words = (n_tiles + 31) / 32;
    u32* reach = reaches + warp * PLANES * n_words;
    Known* labels = in_shared ? (Known*)shared + threadIdx.x / 32 * n_clusterings
                              : (Known*)known_labels + warp * n_clusterings;  // in the order of the clusterings
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
        int floor = max(1, (int)(at_least * to_score + 1e-9));  // the score that is worth scoring exactly
        f64 last = 0.0;  // of a full list
        u64 last_tie = NO_HASH;
        // Scores a lane's row exactly where it may be listed, and lists it.
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
                    if (list.full() && __popc(chosen) >= dense) {  // before, nearly all rows would pass
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
        __syncwarp();  // the next query's labels take the place of this one's
    }
    if (lane == 0) atomicAdd(compared, work);
}

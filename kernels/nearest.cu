// The K nearest other rows of each label row, by weighted label matches (gpuens/partition/linkage/nearest.py).
//
//   similarity(q, r) = sum_m w[offsets[m] + q_m] [q_m = r_m] / M, listed best first in the total order of the prelude
//
// order (G,): the rows in the order of the tiles.
// tiles (n_tiles, row_words, TILE) words: the labels of each tile. A word has the labels of PER_WORD clusterings.
// present (N_c + 1, n_words): bit t % 32 of word t / 32 says whether a cluster has a row in tile t. The last row, for
//   missing labels, is zeros.
//
// One warp per query, in two steps:
//   1. its lanes compute the largest score possible in each tile, 32 tiles per lane;
//   2. its lanes score the rows of the promising tiles, two rows per lane, in bands of falling bounds; together they
//      hold the list.
// Scores are sums of whole-number units of 16 bits, which bound the weights from above (and equal them for WEIGHT i64,
// where all weights are 1). The sum of a row's units is less than 2^PLANES. Only rows whose score passes are summed in
// float64, in the order of the clusterings.
//
// variants: CODE = u8 u16 u32; WEIGHT = i64 f64; PLANES = 16 24

#define TILE 64
#define ONES ((WEIGHT)0.5 == 0)  // true if WEIGHT is an integer: all weights are 1
#define BITS (8 * (int)sizeof(CODE))  // bits of a label
#define PER_WORD (32 / BITS)
#define LOW_BITS (0xffffffffu / (0xffffffffu >> (32 - BITS)))  // the lowest bit of each label of a word
#define TOP_BITS (LOW_BITS << (BITS - 1))

// The number of words of a label row. The last word may have fields without a clustering, which hold missing labels.
__device__ inline i64 words_of(i64 n_clusterings) { return (n_clusterings + PER_WORD - 1) / PER_WORD; }

// Marks the clusters of each tile in `present`, which comes filled with zeros. One thread per tile and clustering. The
// rows of a tile are similar, so comparing a label with the last one avoids most repeated atomic operations.
extern "C" __global__ void mark_present(const CODE* tiles, const i64* offsets, u32* present, i64 n_tiles,
                                        i64 n_clusterings) {
    i64 n_words = (n_tiles + 31) / 32;
    FOR_EACH(at, n_tiles * n_clusterings) {
        i64 t = at / n_clusterings, m = at % n_clusterings;
        const CODE* labels = tiles + (t * words_of(n_clusterings) + m / PER_WORD) * TILE * PER_WORD + m % PER_WORD;
        u32* words = present + offsets[m] * n_words + t / 32;
        CODE last = MISSING(CODE);
        for (i64 row = 0; row < TILE; ++row) {
            CODE label = labels[row * PER_WORD];
            if (label == last || label == MISSING(CODE)) continue;
            atomicOr(&words[label * n_words], 1u << t % 32);
            last = label;
        }
    }
}

// One sum for each bit position of a word: bit i of plane b is bit b of sum i.
struct BitSums {
    u32 planes[PLANES] = {};

    // Adds a number to each sum whose bit of `chosen` is set.
    __device__ void add(u32 rows, u32 number) {
        u32 carry = 0;
        for (int b = 0; b < PLANES; ++b) {
            u32 plane = planes[b], added = number >> b & 1 ? rows : 0;
            planes[b] = plane ^ added ^ carry;
            carry = (plane & added) | (carry & (plane | added));
        }
    }

    // Returns the largest of the sums.
    __device__ int largest() const {
        u32 candidates = ~0u;
        int sum = 0;
        for (int b = PLANES - 1; b >= 0; --b) {
            if (!(candidates & planes[b])) continue;
            candidates &= planes[b];
            sum |= 1 << b;
        }
        return sum;
    }
};

// Returns a word with bit i set where sum i is at least `number`. Plane b of the sums is planes[b * n_apart].
__device__ inline u32 at_least(int number, const u32* planes, int n_apart) {
    u32 lanes = ~0u;
#pragma unroll 4
    for (int b = 0; b < PLANES; ++b) {
        u32 plane = planes[b * n_apart];
        lanes = number >> b & 1 ? plane & lanes : plane | lanes;
    }
    return number >> PLANES ? 0 : lanes;
}

// A word of a query's labels: the labels, the top bit of each label that is not missing, and in the byte of this bit
// the low and the high byte of the unit of the label's cluster.
struct __align__(16) Word {
    u32 labels, known, low, high;

    // Returns the top bit of each known label that a row shares.
    __device__ u32 shared_with(u32 row) const {
        u32 apart = labels ^ row;
        return ~(apart | ((apart | TOP_BITS) - LOW_BITS)) & known;
    }
};

// The cluster of a query's label, and its unit; a missing label is of cluster N_c, which no tile has.
struct __align__(8) Bounding {
    u32 cluster, unit;
};

// The score of a row: sums of the low and of the high bytes of units, 128 times, because a top bit is 128 in its byte.
struct Score {
    u32 low = 0, high = 0;

    __device__ void add(u32 row, const Word& query) {
        u32 common = query.shared_with(row);
        low = __dp4a(common, ONES ? 0x01010101u : query.low, low);
        if (!ONES) high = __dp4a(common, query.high, high);
    }

    __device__ int total() const { return (int)((low + (high << 8)) / 128); }
};

// 80 registers a thread at most, for 24 warps per multiprocessor.
//
// Writes rows of ids (G, K), similarities, bound and bound_hash: for query q = queries[i], the nearest rows of other
// components whose similarity is at least smallest[i].
//
// room: the words of a query's labels that a warp holds in dynamic shared memory, at 16 + 8 PER_WORD bytes each. Longer
//   rows are held in parts, one after the other.
// to_score: the score of similarity 1, lowered a little, so that rounding cannot lift a floor above a score that ties
//   with the floor.
// reaches (warps of the grid, PLANES, n_words): scratch.
// compared: the number of label comparisons, to which the kernel adds the comparisons that it makes.
extern "C" __global__ void __launch_bounds__(128, PLANES > 16 ? 5 : 6) nearest_rows(
    const i64* queries, const f64* smallest, i64 n_queries, const CODE* codes, const u32* tiles, const u32* present,
    const i64* offsets, const WEIGHT* weights, const u16* units, const i64* sizes, const i64* component,
    const i64* of_tile, const i64* order, f64 to_score, i64 n_rows, i64 n_tiles, i64 n_clusterings, int n_listed,
    int room, u32* reaches, i32* ids, f64* similarities, f64* bound, u64* bound_hash, u64* compared) {
    extern __shared__ Word shared[];
    int lane = threadIdx.x % 32, row_words = (int)words_of(n_clusterings);
    i64 warp = ((i64)blockIdx.x * blockDim.x + threadIdx.x) / 32, n_warps = (i64)gridDim.x * blockDim.x / 32;
    int n_words = (int)((n_tiles + 31) / 32);
    u32* reach = reaches + warp * PLANES * n_words;
    Word* words = shared + threadIdx.x / 32 * room;
    Bounding* bounding = (Bounding*)(shared + blockDim.x / 32 * room) + threadIdx.x / 32 * room * PER_WORD;
    for (i64 i = warp; i < n_queries; i += n_warps) {
        i64 q = queries[i], mine = component[q];
        f64 enough = smallest[i];

        int word_held = -1;
        u32 missing = (u32)offsets[n_clusterings];
        // Holds the words of the query from `first` on, and returns their number.
        auto hold = [&](int first) {
            int n = min(room, row_words - first);
            if (word_held == first) return n;
            word_held = first;
            __syncwarp();
#pragma unroll 1  // unrolled, these loops would set the number of registers
            for (int s = lane; s < n; s += 32) {
                Word word = {};
#pragma unroll 1
                for (int f = 0; f < PER_WORD; ++f) {
                    i64 m = (i64)(first + s) * PER_WORD + f;
                    CODE label = m < n_clusterings ? codes[m * n_rows + q] : MISSING(CODE);
                    Bounding entry = {missing, 0};
                    if (label != MISSING(CODE)) {
                        int top = BITS * (f + 1) - 8;  // the lowest bit of the label's top byte
                        entry.cluster = (u32)(offsets[m] + label);
                        entry.unit = units[entry.cluster];
                        word.labels |= (u32)label << BITS * f;
                        word.known |= 128u << top;
                        word.low |= (entry.unit & 255) << top;
                        word.high |= (entry.unit >> 8) << top;
                    }
                    bounding[s * PER_WORD + f] = entry;
                }
                words[s] = word;
            }
            __syncwarp();
            return n;
        };

        int best = 0;
        u32 row_bytes = 4 * n_words;  // the offset of a cluster in bytes is one product of 32-bit numbers
        for (int first_word = 0; first_word < n_words; first_word += 32) {
            int word = first_word + lane;
            const char* present_word = (const char*)(present + word);
            BitSums sums;
            for (int first = 0; first < row_words; first += room) {
                int n = hold(first) * PER_WORD;
                if (word >= n_words) continue;
                for (int s = 0; s < n; ++s) {
                    Bounding entry = bounding[s];
                    u32 tiles_with = *(const u32*)(present_word + (u64)entry.cluster * row_bytes);
                    sums.add(tiles_with, ONES ? 1 : entry.unit);
                }
            }
            if (word >= n_words) continue;
            for (int b = 0; b < PLANES; ++b) reach[b * n_words + word] = sums.planes[b];
            best = max(best, sums.largest());
        }
        for (int step = 16; step; step /= 2) best = max(best, __shfl_xor_sync(ALL_LANES, best, step));

        WarpList list(n_listed);
        int floor = max(1, (int)(enough * to_score + 1e-9));  // the smallest score that justifies the exact similarity
        // Computes the exact similarity of a lane's row where its score passes, and lists the row if it is near enough.
        auto offer = [&](int score, i64 place) {
            bool passes = score >= floor && place < n_rows;
            i32 r = passes ? (i32)order[place] : 0;
            passes = passes && component[r] != mine;
            if (!__any_sync(ALL_LANES, passes)) return;
            u64 tie = pair_hash(q, r);
            i64 pairs = sizes[q] * sizes[r];
            WEIGHT numerator = ONES ? (WEIGHT)score * (WEIGHT)pairs : 0;
            for (int first = 0; !ONES && first < row_words; first += room) {
                int n = hold(first);
                const u32* row = tiles + (place / TILE * row_words + first) * TILE + place % TILE;
                for (int s = 0; passes && s < n; ++s) {
                    for (u32 common = words[s].shared_with(row[s * TILE]); common; common &= common - 1)
                        numerator += weights[bounding[s * PER_WORD + (__ffs(common) - 1) / BITS].cluster] *
                                     (WEIGHT)pairs;
                }
            }
            f64 similarity = (f64)numerator / (f64)(pairs * n_clusterings);
            passes = list.admits(similarity, tie) && passes && similarity >= enough;
            if (list.insert_each(passes, r, similarity, tie) && list.full())
                floor = max(floor, (int)(list.last_similarity() * to_score + 1e-9));
        };
        int visited = 0, high = best + 1, low = best - best / 4;
        while (high > floor) {
            low = max(low, floor);
            for (int first_word = 0; first_word < n_words; first_word += 32) {
                const u32* lane_reach = reach + first_word + lane;
                u32 segments = 0;
                if (first_word + lane < n_words)
                    segments = at_least(low, lane_reach, n_words) & ~at_least(high, lane_reach, n_words);
                while (unsigned wanting = __ballot_sync(ALL_LANES, segments != 0)) {
                    int source = __ffs(wanting) - 1, before = floor;
                    int t = (first_word + source) * 32 + __ffs(__shfl_sync(ALL_LANES, segments, source)) - 1;
                    if (lane == source) segments &= segments - 1;
                    if (of_tile[t] == mine) continue;
                    Score even, odd;  // scores of rows 2 lane and 2 lane + 1
                    for (int first = 0; first < row_words; first += room) {
                        int n = hold(first);
                        const u64* rows = (const u64*)(tiles + ((i64)t * row_words + first) * TILE) + lane;
                        for (int s = 0; s < n; ++s) {
                            Word word = words[s];
                            u64 two = rows[s * TILE / 2];
                            even.add((u32)two, word);
                            odd.add((u32)(two >> 32), word);
                        }
                    }
                    int scores[] = {even.total(), odd.total()};
#pragma unroll 1  // each turn is long
                    for (int side = 0; side < 2; ++side)
                        offer(side ? scores[1] : scores[0], (i64)t * TILE + 2 * lane + side);
                    ++visited;
                    if (floor > before && segments) segments &= at_least(floor, lane_reach, n_words);
                }
            }
            high = low;
            low = min(high - 1, high - high / 4);
        }
        list.write(q, ids, similarities, bound, bound_hash, enough);
        int n_labelled = 0;  // the query's labels that are not missing
        for (i64 m = lane; m < n_clusterings; m += 32) n_labelled += codes[m * n_rows + q] != MISSING(CODE);
        for (int step = 16; step; step /= 2) n_labelled += __shfl_xor_sync(ALL_LANES, n_labelled, step);
        if (lane == 0) atomicAdd(compared, (u64)n_labelled * (u64)(n_tiles + (i64)TILE * visited));
        __syncwarp();  // the labels of the next query overwrite those of this query
    }
}

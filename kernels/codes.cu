// Encoding of labels as codes, all clusterings at once (gpuens/labels/encoding.py). The labels of a clustering are
// marked in a table of bits; the code of a label is its rank among the marked labels.
//
// labels: row by row if `by_rows`, otherwise column by column. tables (M, n_words + 1) come filled with zeros: one bit
// for each label from 0 to 32 n_words - 1, and a last word with two flags, SOME_MISSING (a label of -1 or NaN) and ODD
// (any other label).
//
// variants: LABEL = u8 i32 i64 f64; CODE = u8 u16 u32

#define SOME_MISSING -1  // a missing label: -1 or NaN
#define ODD -2           // a label that has no bit in the table

template <typename Label> struct Wide { typedef i64 type; };
template <> struct Wide<f64> { typedef f64 type; };

// Returns the bit of a label in the table, or SOME_MISSING, or ODD.
__device__ inline i64 bit_of(LABEL label, i64 n_bits) {
    Wide<LABEL>::type value = label;
    if (value >= 0 && value < n_bits) return (i64)value == value ? (i64)value : ODD;
    return value == -1 || value != value ? SOME_MISSING : ODD;
}

// Marks the labels of each clustering. One thread per label; most threads find their bit already set and write nothing.
extern "C" __global__ void mark_labels(const LABEL* labels, int by_rows, i64 n_rows, i64 n_clusterings, i64 n_words,
                                       u32* tables) {
    FOR_EACH(at, n_rows * n_clusterings) {
        i64 m = by_rows ? at % n_clusterings : at / n_rows, bit = bit_of(labels[at], 32 * n_words);
        u32* word = tables + m * (n_words + 1) + (bit >= 0 ? bit / 32 : n_words);
        u32 mark = 1u << (bit >= 0 ? bit % 32 : -1 - bit);
        if (!(*word & mark)) atomicOr(word, mark);
    }
}

// Writes ranks (M, n_words): the number of labels marked in the words before each word. One warp per clustering.
extern "C" __global__ void rank_labels(const u32* tables, i64 n_clusterings, i64 n_words, i32* ranks) {
    int lane = threadIdx.x % 32;
    i64 warp = ((i64)blockIdx.x * blockDim.x + threadIdx.x) / 32, n_warps = (i64)gridDim.x * blockDim.x / 32;
    for (i64 m = warp; m < n_clusterings; m += n_warps) {
        i32 before = 0;
        for (i64 first = 0; first < n_words; first += 32) {
            i64 w = first + lane;
            i32 n_labels = w < n_words ? __popc(tables[m * (n_words + 1) + w]) : 0, upto = n_labels;
            for (int step = 1; step < 32; step *= 2) {
                i32 left = __shfl_up_sync(ALL_LANES, upto, step);
                if (lane >= step) upto += left;
            }
            if (w < n_words) ranks[m * n_words + w] = before + upto - n_labels;
            before += __shfl_sync(ALL_LANES, upto, 31);
        }
    }
}

// Writes codes (M, G), one clustering after the other. One thread per label.
extern "C" __global__ void write_codes(const LABEL* labels, int by_rows, i64 n_rows, i64 n_clusterings, i64 n_words,
                                       const u32* tables, const i32* ranks, CODE* codes) {
    FOR_EACH(at, n_rows * n_clusterings) {
        i64 m = by_rows ? at % n_clusterings : at / n_rows, i = by_rows ? at / n_clusterings : at % n_rows;
        i64 bit = bit_of(labels[at], 32 * n_words);
        CODE code = MISSING(CODE);
        if (bit >= 0) {
            u32 smaller = tables[m * (n_words + 1) + bit / 32] & ((1u << bit % 32) - 1);
            code = (CODE)(ranks[m * n_words + bit / 32] + __popc(smaller));
        }
        codes[m * n_rows + i] = code;
    }
}

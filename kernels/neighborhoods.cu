// Neighbourhoods as rows of bits: bit q % 64 of word q / 64 of row i says whether IaOSO(i, q) >= theta (CCE, eq 8).
//
// rows (R, M) and cols (M, C): labels. bits (R, ceil(C / 64)): pairs of 32-bit words, low word first, zeros beyond the
// last column. A warp writes one 32-bit word; each lane computes one column.
//
// Similarities are first summed in whole units, each rounded down, because most GPUs add float64 64 times more slowly:
//   sum >= surely    the pair is near
//   sum < hardly     the pair is not near
//   otherwise        the similarity is summed in float64 with the same bits as on the CPU, and compared with theta
//
// variants: CODE = u8 u16 u32

extern "C" __global__ void neighborhood_bits(const CODE* rows, const CODE* cols, const i64* offsets, const i64* starts,
                                             const i32* units, const f64* values, i32 hardly, i32 surely, f64 theta,
                                             u32* bits, i64 n_rows, i64 n_cols, i64 n_clusterings) {
    i64 n_words = 2 * ((n_cols + 63) / 64);
    FOR_EACH(at, 32 * n_rows * n_words) {
        i64 word = at / 32, q = word % n_words * 32 + at % 32;
        const CODE *row = rows + word / n_words * n_clusterings, *col = cols + q;
        bool near = false;
        if (q < n_cols) {
            i32 sum = coupled_sum(row, col, n_cols, offsets, starts, units, n_clusterings);
            near = sum >= surely;
            if (!near && sum >= hardly) {
                f64 exact = coupled_sum(row, col, n_cols, offsets, starts, values, n_clusterings);
                near = exact / (f64)n_clusterings >= theta;
            }
        }
        unsigned word_bits = __ballot_sync(ALL_LANES, near);
        if (at % 32 == 0) bits[word] = word_bits;
    }
}

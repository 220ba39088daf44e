// Rows as numbers in mixed radix, in 64-bit words that compare as the rows do, the first word first.
//
// codes (M, N): the labels of one clustering after the other; words (n_words, N). Clustering m gives word word_of[m] the
// digit 0 ... radices[m] - 1, of which the last stands for a missing label. One thread a row.
//
// variants: CODE = u8 u16 u32

extern "C" __global__ void pack_rows(const CODE* codes, const i64* radices, const i64* word_of, u64* words, i64 n_rows,
                                     i64 n_clusterings) {
    FOR_EACH(x, n_rows) {
        u64 word = 0;
        for (i64 m = 0; m < n_clusterings; ++m) {
            CODE label = codes[m * n_rows + x];
            u64 digit = label == MISSING(CODE) ? (u64)radices[m] - 1 : (u64)label;
            word = word * (u64)radices[m] + digit;
            if (m + 1 == n_clusterings || word_of[m + 1] != word_of[m]) {
                words[word_of[m] * n_rows + x] = word;
                word = 0;
            }
        }
    }
}

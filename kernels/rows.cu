// Rows of labels in lexicographic order: packed into words that have the same order, and found among other rows.
//
// pack_rows writes each row as a mixed-radix number in 64-bit words, the most significant word first. One thread per
// row.
//
// codes (M, N): the labels, one clustering after the other. words (n_words, N). Clustering m adds the digit
// 0 ... radices[m] - 1 to word word_of[m]; the last digit stands for a missing label.
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

// Writes places (n_rows,): the position of each row in `sorted_rows`, or -1 where it is absent. rows (M, n_rows);
// sorted_rows (M, n_sorted): distinct rows in lexicographic order. One thread per row makes a binary search.
extern "C" __global__ void find_rows(const CODE* rows, const CODE* sorted_rows, i64* places, i64 n_rows, i64 n_sorted,
                                     i64 n_clusterings) {
    FOR_EACH(x, n_rows) places[x] = place_among(rows + x, n_rows, sorted_rows, 1, n_sorted, n_sorted, n_clusterings);
}

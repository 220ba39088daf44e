// A tile of IaOSO (CCE, eq 6): out[i, j] = sum_m M_m[a_i[m], b_j[m]] / M.
//
// rows (R, M) and cols (M, C): labels; out (R, C). The k_m x k_m matrix M_m begins at values + starts[m]. A missing
// label has similarity 0 to every label. One thread per pair of objects; neighbouring threads have neighbouring
// columns. The sum is taken in the order of the clusterings.
//
// variants: CODE = u8 u16 u32

extern "C" __global__ void coupled_tile(const CODE* rows, const CODE* cols, const i64* offsets, const i64* starts,
                                        const f64* values, f64* out, i64 n_rows, i64 n_cols, i64 n_clusterings) {
    FOR_EACH(at, n_rows * n_cols)
        out[at] = coupled_sum(rows + at / n_cols * n_clusterings, cols + at % n_cols, n_cols, offsets, starts, values,
                              n_clusterings) / (f64)n_clusterings;
}

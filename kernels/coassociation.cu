// A tile of S = B diag(w) B^T / M: out[i, j] = sum_m w[offsets[m] + a_i[m]] [a_i[m] = b_j[m]] / M.
//
// rows (R, M) and cols (M, C) hold labels; out (R, C). A block of 32 x 8 threads takes 8 rows, whose labels it keeps in
// shared memory, by 32 columns, which its threads read side by side. The sum runs in the order of the clusterings and is
// divided once, as on the CPU; a missing label matches nothing.
//
// variants: CODE = u8 u16 u32

extern "C" __global__ void coassociation_tile(const CODE* rows, const CODE* cols, const i64* offsets,
                                              const f64* weights, f64* out, i64 n_rows, i64 n_cols, i64 n_clusterings) {
    extern __shared__ CODE labels[];
    for (i64 top = (i64)blockIdx.y * 8; top < n_rows; top += (i64)gridDim.y * 8) {
        __syncthreads();
        i64 height = min(n_rows - top, (i64)8);
        for (i64 at = threadIdx.y * 32 + threadIdx.x; at < height * n_clusterings; at += 256)
            labels[at] = rows[top * n_clusterings + at];
        __syncthreads();
        i64 i = top + threadIdx.y;
        if (i >= n_rows) continue;
        const CODE* row = labels + threadIdx.y * n_clusterings;
        for (i64 j = (i64)blockIdx.x * 32 + threadIdx.x; j < n_cols; j += (i64)gridDim.x * 32) {
            f64 sum = 0.0;
            for (i64 m = 0; m < n_clusterings; ++m) {
                CODE label = row[m];
                if (label != MISSING(CODE) && label == cols[m * n_cols + j]) sum += weights[offsets[m] + label];
            }
            out[i * n_cols + j] = sum / (f64)n_clusterings;
        }
    }
}

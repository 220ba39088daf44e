// A tile of S = B diag(w) B^T / M: out[i, j] = sum_m w[offsets[m] + a_i[m]] [a_i[m] = b_j[m]] / M.
//
// rows (R, M) and cols (M, C): labels; out (R, C). A block of 32 x 8 threads computes 8 rows by 32 columns;
// neighbouring threads read neighbouring columns. A warp keeps the labels of its row in shared memory, AT_ONCE
// clusterings at a time. The sum is taken in the order of the clusterings and divided once, as on the CPU. A missing
// label matches no label.
//
// variants: CODE = u8 u16 u32

#define AT_ONCE 256  // clusterings whose labels are in shared memory at once

extern "C" __global__ void coassociation_tile(const CODE* rows, const CODE* cols, const i64* offsets,
                                              const f64* weights, f64* out, i64 n_rows, i64 n_cols, i64 n_clusterings) {
    __shared__ CODE labels[8][AT_ONCE];
    for (i64 top = (i64)blockIdx.y * 8; top < n_rows; top += (i64)gridDim.y * 8) {
        for (i64 left = (i64)blockIdx.x * 32; left < n_cols; left += (i64)gridDim.x * 32) {
            i64 i = top + threadIdx.y, j = left + threadIdx.x;
            bool inside = i < n_rows && j < n_cols;
            f64 sum = 0.0;
            for (i64 first = 0; first < n_clusterings; first += AT_ONCE) {
                int n_loaded = (int)min(n_clusterings - first, (i64)AT_ONCE);
                __syncwarp();
                for (int m = threadIdx.x; m < n_loaded && i < n_rows; m += 32)
                    labels[threadIdx.y][m] = rows[i * n_clusterings + first + m];
                __syncwarp();
                for (int m = 0; m < n_loaded && inside; ++m) {
                    CODE label = labels[threadIdx.y][m];
                    if (label != MISSING(CODE) && label == cols[(first + m) * n_cols + j])
                        sum += weights[offsets[first + m] + label];
                }
            }
            if (inside) out[i * n_cols + j] = sum / (f64)n_clusterings;
        }
    }
}

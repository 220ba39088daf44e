// The number of common neighbours of two rows (CCE, eq 9): out[i, j] = sum_b 2^b sum_{p of run b} |A_i[p] and B_j[p]|.
//
// rows A (R, P), cols B (C, P): planes of 64 bits. Run b is planes runs[b] ... runs[b + 1] - 1, whose bits count 2^b
// times. out (R, C). A block of 16 x 16 threads computes 16 rows by 16 columns, with 16 planes at a time in shared
// memory.

extern "C" __global__ void overlaps(const u64* rows, const u64* cols, const i64* runs, i64* out, i64 n_rows, i64 n_cols,
                                    i64 n_planes, i64 n_runs) {
    __shared__ u64 a[16][17], b[16][17];
    int x = threadIdx.x, y = threadIdx.y;
    for (i64 top = (i64)blockIdx.y * 16; top < n_rows; top += (i64)gridDim.y * 16) {
        for (i64 left = (i64)blockIdx.x * 16; left < n_cols; left += (i64)gridDim.x * 16) {
            i64 total = 0;
            for (i64 run = 0; run < n_runs; ++run) {
                i64 once = 0, end = runs[run + 1];
                for (i64 first = runs[run]; first < end; first += 16) {
                    __syncthreads();
                    bool within = first + x < end;
                    a[y][x] = within && top + y < n_rows ? rows[(top + y) * n_planes + first + x] : 0;
                    b[y][x] = within && left + y < n_cols ? cols[(left + y) * n_planes + first + x] : 0;
                    __syncthreads();
                    for (int p = 0; p < 16; ++p) once += __popcll(a[y][p] & b[x][p]);
                }
                total += once << run;
            }
            if (top + y < n_rows && left + x < n_cols) out[(top + y) * n_cols + left + x] = total;
        }
    }
}

// Sums of products of the ranks in sparse columns (gpuens/similarity/ranks.py; ECRMC, eq 15).
//
//   products[c, d] = sum_i counts[i] rank[i, c] rank[i, d],  c <= d
//
// Ranks are whole numbers; a rank that is not stored is 0. They are stored twice:
//   by columns   column_starts (N_c + 1,), objects, in_column
//   by rows      row_starts (N + 1,), clusters (ascending), in_row
// products (N_c, N_c) come filled with zeros: integers, whose sum does not depend on the order of additions.
// One block per column, one warp per object of the column, one lane per entry of the object's row.
// in_shared: a row of products fits the dynamic shared memory.

extern "C" __global__ void rank_products(const i64* column_starts, const i64* objects, const i64* in_column,
                                         const i64* row_starts, const i64* clusters, const i64* in_row,
                                         const i64* counts, u64* products, i64 n_columns, int in_shared) {
    extern __shared__ u64 shared[];
    SharedSums<u64> sums(shared, n_columns);
    i64 lane = threadIdx.x % 32, warp = threadIdx.x / 32, n_warps = blockDim.x / 32;
    for (i64 c = blockIdx.x; c < n_columns; c += gridDim.x) {
        u64* row = products + c * n_columns;
        if (in_shared) {
            sums.clear();
            __syncthreads();
        }
        for (i64 e = column_starts[c] + warp; e < column_starts[c + 1]; e += n_warps) {
            i64 i = objects[e], value = in_column[e] * counts[i];
            for (i64 at = row_starts[i] + lane; at < row_starts[i + 1]; at += 32) {
                i64 d = clusters[at];
                if (d < c) continue;
                if (in_shared)
                    sums.add(d, (u64)(value * in_row[at]));
                else
                    atomicAdd(&row[d], (u64)(value * in_row[at]));
            }
        }
        if (in_shared) {
            __syncthreads();
            for (i64 d = threadIdx.x; d < n_columns; d += blockDim.x)
                if (sums[d]) row[d] = sums[d];
            __syncthreads();  // the sums of the next column overwrite those of this column
        }
    }
}

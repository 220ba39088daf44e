// How many neighbours a row has in each cluster, read from its bits: out[i, c] = sum of counts[q] over the neighbours q
// of row i that are in cluster c.
//
// bits (R, W): bit q % 64 of word q / 64; codes (M, Q): a missing label is in no cluster; counts (Q,): whole numbers, so
// that the order of additions does not matter; out (R, N_c), zeros before. One block a row, a thread a neighbour;
// `in_shared` says whether the row's N_c sums fit the dynamic shared memory.
//
// variants: CODE = u8 u16 u32

extern "C" __global__ void neighbor_counts(const u64* bits, const CODE* codes, const i64* offsets, const i64* counts,
                                           u64* out, i64 n_rows, i64 n_words, i64 n_cols, i64 n_clusterings,
                                           int in_shared) {
    extern __shared__ u64 shared[];
    i64 n_clusters = offsets[n_clusterings];
    SharedSums<u64> sums(shared, n_clusters);
    for (i64 i = blockIdx.x; i < n_rows; i += gridDim.x) {
        if (in_shared) {
            sums.clear();
            __syncthreads();
        }
        for (i64 q = threadIdx.x; q < n_cols; q += blockDim.x) {
            if (!(bits[i * n_words + q / 64] >> (q % 64) & 1)) continue;
            for (i64 m = 0; m < n_clusterings; ++m) {
                CODE label = codes[m * n_cols + q];
                if (label == MISSING(CODE)) continue;
                if (in_shared)
                    sums.add(offsets[m] + label, (u64)counts[q]);
                else
                    atomicAdd(&out[i * n_clusters + offsets[m] + label], (u64)counts[q]);
            }
        }
        if (in_shared) {
            __syncthreads();
            for (i64 c = threadIdx.x; c < n_clusters; c += blockDim.x) out[i * n_clusters + c] = sums[c];
            __syncthreads();  // the next row's sums take the place of this one's
        }
    }
}

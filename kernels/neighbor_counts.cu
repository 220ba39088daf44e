// The number of neighbours of a row in each cluster: out[i, c] = sum of counts[q] over the neighbours q of row i that
// are in cluster c.
//
// bits (R, W): row q is a neighbour where bit q % 64 of word q / 64 is set.
// codes (M, Q): labels; a missing label is in no cluster.
// counts (Q,): whole numbers, whose sum does not depend on the order of additions.
// out (R, N_c) comes filled with zeros.
// One block per row, one thread per neighbour. in_shared: the N_c sums of a row fit the dynamic shared memory.
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
            __syncthreads();  // the sums of the next row overwrite those of this row
        }
    }
}

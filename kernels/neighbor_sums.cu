// Sums over the neighbours of a row: out[i, d] = sum of values[q, d] over the neighbours q of row i.
//
// bits (R, W): row q is a neighbour where bit q % 64 of word q / 64 is set.
// values (Q, K): whole numbers, whose sum does not depend on the order of additions.
// out (R, K) comes filled with zeros.
// One block per row. Its threads divide the columns among them; with fewer columns than threads, also the neighbours.

extern "C" __global__ void neighbor_sums(const u64* bits, const i64* values, u64* out, i64 n_rows, i64 n_words,
                                         i64 n_cols, i64 width) {
    if (width == 0) return;
    i64 lanes = min(width, (i64)blockDim.x), stride = blockDim.x / lanes;
    i64 first = threadIdx.x / lanes;
    if (first == stride) return;
    for (i64 i = blockIdx.x; i < n_rows; i += gridDim.x) {
        for (i64 d = threadIdx.x % lanes; d < width; d += lanes) {
            i64 sum = 0;
            for (i64 q = first; q < n_cols; q += stride)
                if (bits[i * n_words + q / 64] >> (q % 64) & 1) sum += values[q * width + d];
            if (sum) atomicAdd(&out[i * width + d], (u64)sum);
        }
    }
}

// Histograms of pairs of objects, by the number of clusterings in which their labels match (and that label both
// objects).
//
//   pair_histogram    bins[sum_m step [both labelled] + [same label]] += n_g n_h, or n_g (n_g - 1) / 2 for g = h, g <= h
//   drawn_histogram   the same for given pairs of rows, each counted once
//
// codes (M, G): the labels of one clustering side by side. counts (G,): objects per row.
// bins (n_bins,): n_bins = M + 1 for step = 0, where only matches count; n_bins = (M + 1)^2 for step = M + 1.
// A block adds in shared memory where all bins fit. Sums of whole numbers do not depend on the order of additions.
//
// variants: CODE = u8 u16 u32

#define ROWS 16     // rows that a thread compares with its own at once; it keeps their bins in registers
#define AT_ONCE 64  // clusterings whose labels of these ROWS rows are in shared memory at once

__device__ inline i64 both_labelled(CODE a, CODE b) { return a != MISSING(CODE) && b != MISSING(CODE); }

// A tile is ROWS x blockDim.x pairs of rows, one thread per column; tiles below the diagonal are skipped.
extern "C" __global__ void pair_histogram(const CODE* codes, const i64* counts, u64* bins, i64 n_rows, i64 n_clusterings,
                                          i64 step, i64 n_bins, int in_shared) {
    extern __shared__ u64 shared[];
    __shared__ CODE labels[AT_ONCE][ROWS];
    SharedSums<u64> sums(shared, n_bins);
    if (in_shared) sums.clear();
    i64 across = (n_rows + blockDim.x - 1) / blockDim.x, down = (n_rows + ROWS - 1) / ROWS;
    for (i64 tile = blockIdx.x; tile < across * down; tile += gridDim.x) {
        i64 top = tile / across * ROWS, left = tile % across * blockDim.x;
        if (left + blockDim.x <= top) continue;
        i64 h = left + threadIdx.x;
        i64 bin[ROWS] = {};
        for (i64 first = 0; first < n_clusterings; first += AT_ONCE) {
            int n_loaded = (int)min(n_clusterings - first, (i64)AT_ONCE);
            __syncthreads();
            for (int at = threadIdx.x; at < n_loaded * ROWS; at += blockDim.x) {
                i64 g = top + at % ROWS;
                labels[at / ROWS][at % ROWS] = g < n_rows ? codes[(first + at / ROWS) * n_rows + g] : MISSING(CODE);
            }
            __syncthreads();
            for (int m = 0; m < n_loaded && h < n_rows; ++m) {
                CODE label = codes[(first + m) * n_rows + h];
                for (int r = 0; r < ROWS; ++r)
                    if (both_labelled(label, labels[m][r])) bin[r] += step + (label == labels[m][r]);
            }
        }
        for (int r = 0; r < ROWS; ++r) {
            i64 g = top + r;
            if (g > h || h >= n_rows) continue;
            u64 n = (u64)(g < h ? counts[g] * counts[h] : counts[g] * (counts[g] - 1) / 2);
            if (in_shared)
                sums.add(bin[r], n);
            else
                atomicAdd(&bins[bin[r]], n);
        }
    }
    __syncthreads();
    if (in_shared) sums.pour(bins, 0, n_bins);
}

// One thread per pair.
extern "C" __global__ void drawn_histogram(const CODE* codes, const i64* first, const i64* second, u64* bins, i64 n_pairs,
                                           i64 n_rows, i64 n_clusterings, i64 step, i64 n_bins, int in_shared) {
    extern __shared__ u64 shared[];
    SharedSums<u64> sums(shared, n_bins);
    if (in_shared) sums.clear();
    __syncthreads();
    FOR_EACH(i, n_pairs) {
        i64 bin = 0;
        for (i64 m = 0; m < n_clusterings; ++m) {
            CODE a = codes[m * n_rows + first[i]], b = codes[m * n_rows + second[i]];
            if (both_labelled(a, b)) bin += step + (a == b);
        }
        if (in_shared)
            sums.add(bin, 1);
        else
            atomicAdd(&bins[bin], (u64)1);
    }
    __syncthreads();
    if (in_shared) sums.pour(bins, 0, n_bins);
}

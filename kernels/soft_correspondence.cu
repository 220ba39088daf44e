// The two sums of an iteration of SCEC over all rows: memberships from correspondence matrices, and correspondence
// matrices from memberships.
//
//   label_memberships       out[g, d]  = sum_m T[offsets[m] + codes[m, g], d]; a missing label adds U[m, d]
//   label_correspondences   out[c, d] += values[g, d] over the rows g of cluster c; missing labels add to unknown[m, d]
//
// codes (M, G): the labels of one clustering side by side. T (N_c, k), U (M, k), values (G, k). Sums over m are taken
// in the order of the clusterings, as on the CPU. Sums over rows are in fixed point (i64), so that the order in which
// blocks add cannot change a bit.
//
// variants: CODE = u8 u16 u32

// One thread per element.
extern "C" __global__ void label_memberships(const CODE* codes, const i64* offsets, const f64* table,
                                             const f64* of_missing, f64* out, i64 n_rows, i64 n_clusterings,
                                             i64 width) {
    FOR_EACH(at, n_rows * width) {
        i64 g = at / width, d = at % width;
        f64 sum = 0.0;
        for (i64 m = 0; m < n_clusterings; ++m) {
            CODE label = codes[m * n_rows + g];
            sum += label == MISSING(CODE) ? of_missing[m * width + d] : table[(offsets[m] + label) * width + d];
        }
        out[at] = sum;
    }
}

// Grid: (chunks of rows, M), with at least k threads for each clustering. A thread keeps its column, so that it divides
// once. A block adds its chunk in shared memory if the (k_m + 1) x k table of its clustering has at most `shared_cells`
// cells; the last row of the table is for missing labels.
extern "C" __global__ void label_correspondences(const CODE* codes, const i64* offsets, const i64* values, u64* out,
                                                 u64* unknown, i64 n_rows, i64 width, i64 shared_cells) {
    extern __shared__ u64 shared[];
    i64 m = blockIdx.y, n_known = (offsets[m + 1] - offsets[m]) * width, n_cells = n_known + width;
    u64 *sums = out + offsets[m] * width, *missing_sums = unknown + m * width;
    const CODE* labels = codes + m * n_rows;
    i64 thread = (i64)blockIdx.x * blockDim.x + threadIdx.x, rows_at_once = (i64)gridDim.x * blockDim.x / width;
    i64 first = thread / width, d = thread - first * width;
    if (first >= rows_at_once) first = n_rows;  // threads that are left over
    bool in_shared = n_cells <= shared_cells;
    SharedSums<u64> cells(shared, n_cells);
    if (in_shared) {
        cells.clear();
        __syncthreads();
        int k = (int)width, at = (int)d, of_missing = at + (int)n_known;
        for (i64 g = first; g < n_rows; g += rows_at_once)
            cells.add(labels[g] == MISSING(CODE) ? of_missing : at + (int)labels[g] * k, (u64)values[g * width + d]);
        __syncthreads();
        cells.pour(sums, 0, n_known);
        cells.pour(missing_sums, n_known, n_cells);
    } else {
        for (i64 g = first; g < n_rows; g += rows_at_once)
            atomicAdd(labels[g] == MISSING(CODE) ? &missing_sums[d] : &sums[labels[g] * width + d], (u64)values[g * width + d]);
    }
}

// The two sums of soft_correspondence.cu for base clusterings that are soft.
//
//   soft_memberships        out[g, d]   += sum_j A[g, j] T[j, d]
//   soft_correspondences    out[b, j, d] = sum of A[g, j] values[g, d] over the rows g of block b
//
// A (N, J): the memberships in the clusters of all soft clusterings, side by side; T (J, k); values (N, k). All sums
// have the same order as on the CPU: that of the clusters, or that of the rows of a block. A block is `block_rows` rows
// on every device; the host adds the sums of the blocks.

// One thread per element.
extern "C" __global__ void soft_memberships(const f64* soft, const f64* table, f64* out, i64 n_rows, i64 n_clusters,
                                            i64 width) {
    FOR_EACH(at, n_rows * width) {
        i64 g = at / width, d = at % width;
        f64 sum = out[at];
        for (i64 j = 0; j < n_clusters; ++j) sum += soft[g * n_clusters + j] * table[j * width + d];
        out[at] = sum;
    }
}

// One thread per element of a block's sums.
extern "C" __global__ void soft_correspondences(const f64* soft, const f64* values, f64* out, i64 n_rows,
                                                i64 n_clusters, i64 width, i64 block_rows) {
    i64 n_blocks = (n_rows + block_rows - 1) / block_rows;
    FOR_EACH(at, n_blocks * n_clusters * width) {
        i64 d = at % width, j = at / width % n_clusters, first = at / width / n_clusters * block_rows;
        i64 last = first + block_rows < n_rows ? first + block_rows : n_rows;
        f64 sum = 0.0;
        for (i64 g = first; g < last; ++g) sum += soft[g * n_clusters + j] * values[g * width + d];
        out[at] = sum;
    }
}

// Cluster intersections: tables[starts[p] + c k_j + d] = sum of the weights of the objects in cluster c of clustering i
// and cluster d of clustering j, for all pairs p = (i, j) in one launch.
//
// labels (M, N): one clustering after the other; a label of n_clusters[m] or more is missing. Grid: (chunks of objects,
// pairs). A block counts its chunk in shared memory if the table of its pair fits, and then adds the table to the
// global one. Larger tables are counted directly in global memory. Weights are whole numbers (COUNT = u64), or all 1
// (COUNT = u32: the shared table takes half the memory, and a block counts fewer than 2^32 objects).
//
// variants: CODE = u8 u16 u32; COUNT = u32 u64

extern "C" __global__ void count_pairs(const CODE* labels, const i64* n_clusters, const i64* first, const i64* second,
                                       const i64* starts, const i64* weights, u64* tables, i64 n_objects,
                                       i64 shared_cells) {
    extern __shared__ COUNT shared[];
    i64 i = first[blockIdx.y], j = second[blockIdx.y];
    i64 rows = n_clusters[i], cols = n_clusters[j];
    const CODE* a = labels + i * n_objects;
    const CODE* b = labels + j * n_objects;
    u64* table = tables + starts[blockIdx.y];
    bool in_shared = rows * cols <= shared_cells;
    bool unit = sizeof(COUNT) == sizeof(u32);
    SharedSums<COUNT> cells(shared, rows * cols);
    if (in_shared) {
        cells.clear();
        __syncthreads();
    }
    FOR_EACH(x, n_objects) {
        i64 row = a[x], col = b[x];
        if (row >= rows || col >= cols) continue;
        u64 weight = unit ? 1 : (u64)weights[x];
        if (in_shared)
            cells.add(row * cols + col, weight);
        else
            atomicAdd(&table[row * cols + col], weight);
    }
    if (in_shared) {
        __syncthreads();
        cells.pour(table, 0, rows * cols);
    }
}

// Cluster intersections: tables[starts[p] + c k_j + d] = sum of the weights of the objects in cluster c of clustering i
// and cluster d of clustering j, for all pairs p = (i, j) in one launch.
//
// labels (M, N): one clustering after the other; a label of n_clusters[m] or more is missing. Grid: (chunks of objects,
// pairs). A thread reads four objects at once. A block counts its chunk in shared memory if the table of its pair fits,
// and then adds the table to the global one. Larger tables are counted directly in global memory. Weights are whole
// numbers (COUNT = u64), or all 1 (COUNT = u32: the shared table takes half the memory, and a block counts fewer than
// 2^32 objects).
//
// variants: CODE = u8 u16 u32; COUNT = u32 u64

// A row of labels, read in words of 32 bits although the row may begin at any label. A word is shifted together from
// two words in memory, so up to 4 bytes after it are read, too.
struct LabelWords {
    const u32* words;
    u32 skipped;  // bits of words[0] before the row

    __device__ LabelWords(const CODE* row)
        : words((const u32*)((const u8*)row - ((u64)row & 3))), skipped(8 * ((u64)row & 3)) {}

    __device__ u32 operator[](i64 w) const {
        return sizeof(CODE) == sizeof(u32) ? words[w] : (u32)(((u64)words[w + 1] << 32 | words[w]) >> skipped);
    }

    // Writes labels x ... x + 3, where 4 divides x.
    __device__ void read(i64 x, u32* four) const {
#pragma unroll
        for (int t = 0; t < 4; ++t)
            four[t] = ((*this)[(x + t) * sizeof(CODE) / 4] >> (8 * t * sizeof(CODE) % 32)) & MISSING(CODE);
    }
};

extern "C" __global__ void count_pairs(const CODE* labels, const i64* n_clusters, const i64* first, const i64* second,
                                       const i64* starts, const i64* weights, u64* tables, i64 n_objects,
                                       i64 shared_cells) {
    extern __shared__ COUNT shared[];
    i64 i = first[blockIdx.y], j = second[blockIdx.y];
    u32 rows = (u32)n_clusters[i], cols = (u32)n_clusters[j];
    i64 n_cells = (i64)rows * cols, in_fours = 4 * max(n_objects / 4 - 1, (i64)0);
    const CODE* a = labels + i * n_objects;
    const CODE* b = labels + j * n_objects;
    LabelWords words_of_a(a), words_of_b(b);
    u64* table = tables + starts[blockIdx.y];
    SharedSums<COUNT> cells(shared, n_cells);
    auto add_each = [&](auto add) {
        auto count = [&](u32 row, u32 col, i64 x) {
            if (row < rows && col < cols) add(row, col, sizeof(COUNT) == sizeof(u32) ? 1 : (u64)weights[x]);
        };
        FOR_EACH(four, in_fours / 4) {
            u32 row[4], col[4];
            words_of_a.read(4 * four, row);
            words_of_b.read(4 * four, col);
#pragma unroll
            for (int t = 0; t < 4; ++t) count(row[t], col[t], 4 * four + t);
        }
        FOR_EACH(x, n_objects - in_fours) count(a[in_fours + x], b[in_fours + x], in_fours + x);
    };
    if (n_cells > shared_cells) {
        add_each([&](u32 row, u32 col, u64 weight) { atomicAdd(&table[(i64)row * cols + col], weight); });
        return;
    }
    cells.clear();
    __syncthreads();
    add_each([&](u32 row, u32 col, u64 weight) { cells.add(row * cols + col, weight); });
    __syncthreads();
    cells.pour(table, 0, n_cells);
}

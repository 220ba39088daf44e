// k-means in label space: rows of labels and centroids, where a centroid is given by a cost for each label.
//
//   nearest_centroids   d[g, k] = constant[k] + sum_m cost[offsets[m] + codes[m, g], k], out = argmin_k and min_k
//   label_histograms    out[c, k] = sum of the weights of the rows with label k in cluster c
//
// codes (M, G): the labels of one clustering side by side; a missing label adds nothing. cost (N_c, K): the costs of
// one label side by side. Sums over m are taken in the order of the clusterings, as on the CPU. Of equal distances, the
// lowest k wins. Histograms are whole numbers.
//
// variants: CODE = u8 u16 u32

#define TILE 8  // centroids whose sums a thread keeps in registers: 32 bytes of a row of units, one memory sector

// Writes the nearest centroid of each row, and its distance. One thread per row.
//
// units (1 + N_c, K): constant and cost in whole units, rounded down. A sum of units is below the distance by less than
// M + 1 units. So only centroids within `slack` of the smallest sum so far are summed in float64, which most GPUs add 64
// times more slowly.
extern "C" __global__ void nearest_centroids(const CODE* codes, const i64* offsets, const i32* units, i32 slack,
                                             const f64* cost, const f64* constant, i64* labels, f64* distances,
                                             i64 n_rows, i64 n_clusterings, i64 n_centroids) {
    FOR_EACH(g, n_rows) {
        i64 nearest = -1;
        f64 smallest = 0.0;
        i32 smallest_units = 0x7fffffff;
        for (i64 first = 0; first < n_centroids; first += TILE) {
            i32 sums[TILE];
            for (int j = 0; j < TILE; ++j) sums[j] = first + j < n_centroids ? units[first + j] : smallest_units;
            for (i64 m = 0; m < n_clusterings; ++m) {
                CODE label = codes[m * n_rows + g];
                if (label == MISSING(CODE)) continue;
                const i32* costs = units + (1 + offsets[m] + label) * n_centroids + first;
                for (int j = 0; j < TILE; ++j)
                    if (first + j < n_centroids) sums[j] += costs[j];
            }
            for (int j = 0; j < TILE; ++j) smallest_units = min(smallest_units, sums[j]);
            u32 near = 0;
            for (int j = 0; j < TILE; ++j) near |= (u32)(first + j < n_centroids && sums[j] - slack <= smallest_units) << j;
            for (; near; near &= near - 1) {
                i64 k = first + __ffs(near) - 1;
                f64 sum = constant[k];
                for (i64 m = 0; m < n_clusterings; ++m) {
                    CODE label = codes[m * n_rows + g];
                    if (label != MISSING(CODE)) sum += cost[(offsets[m] + label) * n_centroids + k];
                }
                if (nearest >= 0 && sum >= smallest) continue;
                nearest = k;
                smallest = sum;
            }
        }
        labels[g] = nearest;
        distances[g] = smallest;
    }
}

// Grid: (chunks of rows, M). A block counts its chunk in shared memory if the k_m x K table of its clustering has at
// most `shared_cells` cells, otherwise in global memory.
extern "C" __global__ void label_histograms(const CODE* codes, const i64* offsets, const i64* weights,
                                            const i64* labels, u64* out, i64 n_rows, i64 n_labels, i64 shared_cells) {
    extern __shared__ u64 shared[];
    i64 m = blockIdx.y, n_cells = (offsets[m + 1] - offsets[m]) * n_labels;
    u64* table = out + offsets[m] * n_labels;
    bool in_shared = n_cells <= shared_cells;
    SharedSums<u64> cells(shared, n_cells);
    if (in_shared) {
        cells.clear();
        __syncthreads();
    }
    FOR_EACH(g, n_rows) {
        CODE label = codes[m * n_rows + g];
        if (label == MISSING(CODE)) continue;
        i64 cell = label * n_labels + labels[g];
        if (in_shared)
            cells.add(cell, (u64)weights[g]);
        else
            atomicAdd(&table[cell], (u64)weights[g]);
    }
    if (in_shared) {
        __syncthreads();
        cells.pour(table, 0, n_cells);
    }
}

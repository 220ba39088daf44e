// Labels of points by their nearest centers (gpuens/kmeans/lloyd.py), from products of centers and points.
//
//   labels[b, first + x]   argmax_c products[b, c, x] - half_squares[b, c]; of equal scores, the smaller c
//   changed                + number of labels that differ from those before
//
// products (B, k, n), half_squares (B, k), labels (B, N). Grid: (chunks of the n points, B). One thread per point:
// neighbouring threads read neighbouring products, and the scores are not stored.
//
// variants: REAL = f32 f64

extern "C" __global__ void label_by_products(const REAL* products, const REAL* half_squares, i64* labels, u64* changed,
                                             i64 n_centers, i64 n_points, i64 first, i64 n_labels) {
    const REAL* half_square = half_squares + blockIdx.y * n_centers;
    unsigned n_changed = 0;
    FOR_EACH(x, n_points) {
        const REAL* product = products + blockIdx.y * n_centers * n_points + x;
        int nearest = 0;
        REAL largest = *product - half_square[0];
        for (int c = 1; c < n_centers; ++c) {
            product += n_points;
            REAL score = *product - half_square[c];
            if (score > largest) {
                largest = score;
                nearest = c;
            }
        }
        i64* label = labels + blockIdx.y * n_labels + first + x;
        n_changed += *label != nearest;
        *label = nearest;
    }
    for (int by = 16; by; by /= 2) n_changed += __shfl_down_sync(ALL_LANES, n_changed, by);
    if (threadIdx.x % 32 == 0 && n_changed) atomicAdd(changed, (u64)n_changed);
}

// Parts of a step of Lloyd's iterations (gpuens/kmeans/lloyd.py) for B starts.
//
//   weigh_labels    hot[b, c, i] = weights[i] if labels[b, first + i] == c, otherwise 0: its products with points are sums
//   move_centers    moved[b, c] = total[b, c] / weight[b, c], squares[b, c] = (moved[b, c] - centers[b, c])^2
//
// labels (B, N), weights (N,), hot (B, k, n). centers, total, moved, squares (B, k, d), weight (B, k). One thread per
// element.
//
// variants: REAL = f32 f64

// Without weights (n_weights = 0), each point weighs 1.
extern "C" __global__ void weigh_labels(const i64* labels, const i64* weights, REAL* hot, i64 n_starts, i64 n_centers,
                                        i64 n_points, i64 first, i64 n_labels, i64 n_weights) {
    FOR_EACH(at, n_starts * n_centers * n_points) {
        i64 i = at % n_points, c = at / n_points % n_centers, b = at / n_points / n_centers;
        bool is_in_cluster = labels[b * n_labels + first + i] == c;
        hot[at] = is_in_cluster ? n_weights ? (REAL)weights[first + i] : (REAL)1 : (REAL)0;
    }
}

// A center of weight 0, and all centers of a start that has settled (B,), keep their places.
extern "C" __global__ void move_centers(const f64* centers, const f64* total, const f64* weight, const u8* settled,
                                        f64* moved, f64* squares, i64 n_starts, i64 n_centers, i64 n_features) {
    FOR_EACH(at, n_starts * n_centers * n_features) {
        i64 c = at / n_features;
        bool moves = weight[c] > 0.0 && !settled[c / n_centers];
        f64 mean = moves ? total[at] / (weight[c] > 1.0 ? weight[c] : 1.0) : centers[at], shift = mean - centers[at];
        moved[at] = mean;
        squares[at] = shift * shift;
    }
}

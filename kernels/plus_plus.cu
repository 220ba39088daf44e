// A step of k-means++ for B starts (gpuens/kmeans/plus_plus.py): the best of t drawn points becomes the next center.
//
//   draw_points     places[b, j] = number of i with reached[b, i] < uniform[b, c - 1, j] potential[b], at most n - 1
//   nearer_squares  squares[b, j, i] = min(nearest[b, i], |x_i - x_place|^2), from the product of the two points
//   keep_best       chosen[b, c] = places[b, j] of the least potentials[b, j]; of equal ones, the smallest j
//
// turned (d, n): the points; own (n,): the squares of their lengths. nearest (B, n): squared distances to the nearest
// center, and weighted (B, n): the same times weights (n,). potential (B,): sums of `weighted`; reached (B, n): its
// running sums. The products, sums and running sums are computed by libraries between the kernels.

// Writes the drawn points, others (d, B t), and their places. All running sums are compared, because rounding may make
// a sum smaller than its predecessor. One block per drawn point.
extern "C" __global__ void draw_points(const f64* turned, const f64* reached, const f64* potential, const f64* uniform,
                                       i64* places, f64* others, i64 n_points, i64 n_features, i64 n_drawn, i64 c,
                                       i64 n_centers) {
    __shared__ u32 n_below;
    i64 b = blockIdx.x / n_drawn, j = blockIdx.x % n_drawn;
    if (threadIdx.x == 0) n_below = 0;
    __syncthreads();
    f64 point = uniform[(b * (n_centers - 1) + c - 1) * n_drawn + j] * potential[b];
    u32 below = 0;
    for (i64 i = threadIdx.x; i < n_points; i += blockDim.x) below += reached[b * n_points + i] < point;
    if (below) atomicAdd(&n_below, below);
    __syncthreads();
    i64 place = n_below < n_points ? n_below : n_points - 1;  // rounding may leave the last sum below the drawn value
    if (threadIdx.x == 0) places[blockIdx.x] = place;
    for (i64 f = threadIdx.x; f < n_features; f += blockDim.x)
        others[f * gridDim.x + blockIdx.x] = turned[f * n_points + place];
}

// squares (B, t, n): the products of both points before, the squares after; spent (B, t, n): squares times weights.
extern "C" __global__ void nearer_squares(const f64* own, const f64* weights, const f64* nearest, const i64* places,
                                          f64* squares, f64* spent, i64 n_starts, i64 n_drawn, i64 n_points) {
    FOR_EACH(at, n_starts * n_drawn * n_points) {
        i64 candidate = at / n_points, i = at % n_points;
        f64 square = squares[at] * -2.0 + own[i] + own[places[candidate]];
        square = square > 0.0 ? square : 0.0;
        f64 before = nearest[candidate / n_drawn * n_points + i];
        squares[at] = square = square < before ? square : before;
        spent[at] = square * weights[i];
    }
}

// potentials (B, t): sums of `spent`. One thread per start and point.
extern "C" __global__ void keep_best(const i64* places, const f64* potentials, const f64* squares, const f64* spent,
                                     i64* chosen, f64* potential, f64* nearest, f64* weighted, i64 n_starts,
                                     i64 n_drawn, i64 n_points, i64 c, i64 n_centers) {
    FOR_EACH(at, n_starts * n_points) {
        i64 b = at / n_points, i = at % n_points, best = b * n_drawn;
        for (i64 candidate = best + 1; candidate < (b + 1) * n_drawn; ++candidate)
            if (potentials[candidate] < potentials[best]) best = candidate;
        nearest[at] = squares[best * n_points + i];
        weighted[at] = spent[best * n_points + i];
        if (i == 0) {
            chosen[b * n_centers + c] = places[best];
            potential[b] = potentials[best];
        }
    }
}

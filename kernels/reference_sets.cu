// Squared distances from some objects to all objects (gpuens/similarity/reference_sets.py), which the host then sorts.
//
//   out[i, j] = sum_d (x[d, first + i] - x[d, j])^2, in the order of the features; -1 for j = first + i
//
// The -1 puts each object first in its own order. x (D, N): the objects side by side for each feature. out (R, N). One
// thread per element; neighbouring threads read neighbouring objects.

extern "C" __global__ void squared_distances(const f64* x, f64* out, i64 first, i64 n_rows, i64 n_objects,
                                             i64 n_features) {
    FOR_EACH(at, n_rows * n_objects) {
        i64 i = first + at / n_objects, j = at % n_objects;
        out[at] = i == j ? -1.0 : squared_distance(x + i, x + j, n_objects, n_features);
    }
}

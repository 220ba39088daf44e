// Squared distances of points, summed in the order of the features.

// Feature d of a point is a[d * step], and b[d * step] of the other.
BOTH f64 squared_distance(const f64* a, const f64* b, i64 step, i64 n_features) {
    f64 sum = 0.0;
    for (i64 d = 0; d < n_features; ++d) {
        f64 apart = a[d * step] - b[d * step];
        sum += apart * apart;
    }
    return sum;
}

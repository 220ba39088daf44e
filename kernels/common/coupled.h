// The similarity of two label rows by similarities of clusters within each clustering (gpuens/similarity/coupled.py).

// sum_m M_m[a[m], b[m * step]], in the order of the clusterings. The k_m x k_m matrix M_m begins at values + starts[m];
// missing labels add nothing.
template <typename Code, typename Value>
BOTH Value coupled_sum(const Code* a, const Code* b, i64 step, const i64* offsets, const i64* starts,
                       const Value* values,
                       i64 n_clusterings) {
    Value sum = 0;
    for (i64 m = 0; m < n_clusterings; ++m) {
        Code v = a[m], w = b[m * step];
        if (v == MISSING(Code) || w == MISSING(Code)) continue;
        sum += values[starts[m] + (i64)v * (offsets[m + 1] - offsets[m]) + w];
    }
    return sum;
}

// Numbers in fixed point (gpuens/labels/incidence.py): whole multiples of a unit, whose sums do not depend on the order of
// the addends. The unit of a column is a power of two so large that all sums of n of its numbers fit an i64.
//
//   largest_sizes   largest[c] = max_i |values[i, c]|, as its bits: sizes have the order of their bits
//   fixed_point     unit[c] = 2^(e - 62) for the least e with n largest[c] < 2^e, whole[i, c] = values[i, c] / unit[c]
//
// values, whole (n_values / C, C); largest, unit (C,).
//
// variants: REAL = f32 f64

// Grid: (chunks of the rows, C). `largest` is 0 before.
extern "C" __global__ void largest_sizes(const REAL* values, u64* largest, i64 n_values) {
    f64 largest_size = 0.0;
    FOR_EACH(i, n_values / gridDim.y) {
        f64 size = fabs((f64)values[i * gridDim.y + blockIdx.y]);
        largest_size = size > largest_size ? size : largest_size;
    }
    for (int by = 16; by; by /= 2) {
        f64 other = __shfl_xor_sync(ALL_LANES, largest_size, by);
        largest_size = other > largest_size ? other : largest_size;
    }
    if (threadIdx.x % 32 == 0 && largest_size > 0.0) atomicMax(&largest[blockIdx.y], (u64)__double_as_longlong(largest_size));
}

// One thread per number; the first block always runs, and writes the units.
extern "C" __global__ void fixed_point(const REAL* values, const u64* largest, i64* fixed, f64* unit, i64 n_values,
                                       i64 n_columns, i64 n) {
    FOR_EACH(at, n_values > n_columns ? n_values : n_columns) {
        i64 c = at % n_columns;
        int e;
        frexp(__longlong_as_double((i64)largest[c]) * (f64)n, &e);
        f64 unit_of_column = ldexp(1.0, e - 62);
        if (at < n_columns) unit[c] = unit_of_column;
        if (at < n_values) fixed[at] = (i64)rint((f64)values[at] / unit_of_column);
    }
}

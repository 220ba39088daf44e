// The E step of a mixture of multinomials: shares from log2 likelihoods, by a log-sum-exp with the same steps as the
// CPU's.
//
//   posteriors   s = sums[g, k] + constant[k]
//                shares[g, k] = round(scale 2^(s_k - max s) / sum_j 2^(s_j - max s)),  bits[g] = log2 sum_j 2^s_j
//
// Powers and logarithms are polynomials (gpuens/partition/mixture.py: exp_terms, log_terms), because the functions of
// CUDA and of the C library differ in their last bits. sums (G, K) are overwritten.

#define LN2 0.6931471805599453
#define SQRT_HALF 0.7071067811865476

// Returns 2^x for x <= 0, by a polynomial in y = x ln 2, |y| <= ln 2 / 2, and a power of two; 0 for x < -64.
__device__ inline f64 power_of_two(f64 x, const f64* exp_terms, i64 n_terms) {
    if (x < -64.0) return 0.0;
    f64 whole = floor(x + 0.5), rest = (x - whole) * LN2, sum = exp_terms[n_terms - 1];
    for (i64 i = n_terms - 2; i >= 0; --i) sum = sum * rest + exp_terms[i];
    return ldexp(sum, (int)whole);
}

// Returns log2 x for x >= 1, by the odd powers of (m - 1) / (m + 1), where m = x 2^-e is from sqrt(1/2) to sqrt(2).
__device__ inline f64 logarithm(f64 x, const f64* log_terms, i64 n_terms) {
    int e;
    f64 m = frexp(x, &e);
    if (m < SQRT_HALF) {
        m *= 2.0;
        e -= 1;
    }
    f64 ratio = (m - 1.0) / (m + 1.0), square = ratio * ratio, sum = log_terms[n_terms - 1];
    for (i64 i = n_terms - 2; i >= 0; --i) sum = sum * square + log_terms[i];
    return (f64)e + ratio * sum;
}

// One thread per row.
extern "C" __global__ void posteriors(f64* sums, const f64* constant, f64 scale, const f64* exp_terms, i64 n_exp,
                                      const f64* log_terms, i64 n_log, i64* shares, f64* bits, i64 n_rows, i64 width) {
    FOR_EACH(g, n_rows) {
        f64* own = sums + g * width;
        f64 most = own[0] + constant[0];
        for (i64 k = 0; k < width; ++k) {
            own[k] += constant[k];
            if (own[k] > most) most = own[k];
        }
        f64 total = 0.0;
        for (i64 k = 0; k < width; ++k) {
            own[k] = power_of_two(own[k] - most, exp_terms, n_exp);
            total += own[k];
        }
        for (i64 k = 0; k < width; ++k) shares[g * width + k] = (i64)floor(own[k] / total * scale + 0.5);
        bits[g] = most + logarithm(total, log_terms, n_log);
    }
}

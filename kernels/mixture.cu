// The E step of a mixture of multinomials: shares from log2 likelihoods, by a log-sum-exp with the same steps as the
// CPU's.
//
//   posteriors   s = sums[g, k] + constant[k]
//                shares[g, k] = round(scale 2^(s_k - max s) / sum_j 2^(s_j - max s)),  bits[g] = log2 sum_j 2^s_j
//
// sums (G, K) are overwritten.

// One thread per row.
extern "C" __global__ void posteriors(f64* sums, const f64* constant, f64 scale, i64* shares, f64* bits, i64 n_rows,
                                      i64 width) {
    FOR_EACH(g, n_rows) {
        f64* row = sums + g * width;
        f64 largest = row[0] + constant[0];
        for (i64 k = 0; k < width; ++k) {
            row[k] += constant[k];
            if (row[k] > largest) largest = row[k];
        }
        f64 total = 0.0;
        for (i64 k = 0; k < width; ++k) {
            row[k] = power_of_two(row[k] - largest);
            total += row[k];
        }
        for (i64 k = 0; k < width; ++k) shares[g * width + k] = share_of(row[k], total, scale);
        bits[g] = largest + logarithm(total);
    }
}

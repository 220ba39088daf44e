// The part of one object in the first two derivatives of the log pseudo-likelihood of a Potts model (kernels/potts.cu), from its
// memberships and the sums over its neighbours' memberships, `fields` (k,), which are overwritten; powers (k,) are scratch.
struct Derivatives {
    f64 slope, curvature;
};

BOTH Derivatives derivatives_of(const f64* shares, f64* fields, f64* powers, i64 width, f64 beta) {
    f64 largest = fields[0], total = 0.0, first = 0.0, second = 0.0, agreement = 0.0;
    for (i64 k = 1; k < width; ++k) largest = fields[k] > largest ? fields[k] : largest;
    for (i64 k = 0; k < width; ++k) {
        fields[k] -= largest;
        powers[k] = power_of_two(beta * fields[k]);
    }
    for (i64 k = 0; k < width; ++k) {
        f64 moment = powers[k] * fields[k];
        total += powers[k];
        first += moment;
        second += moment * fields[k];
        agreement += shares[k] * fields[k];
    }
    f64 mean = first / total;
    return {agreement - mean, second / total - mean * mean};
}

// The nearest whole number of units; halves are rounded upwards.
BOTH i64 in_units(f64 value, f64 scale) {
    f64 scaled = value * scale + 0.5;
    i64 towards_0 = (i64)scaled;
    return towards_0 - (towards_0 > scaled);
}

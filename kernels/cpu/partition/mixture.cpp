// The E step of a mixture of multinomials (kernels/mixture.cu): all powers of a block of rows side by side.
#include "runtime/parallel.h"
#include "partition/primitives.h"

#include <algorithm>

namespace gpuens {

namespace {

constexpr i64 AT_ONCE = 1024;   // numbers of a block, which stay in the smallest cache
constexpr f64 POSTERIOR_NS = 2;

// Add the constants to a row, subtract the largest sum, and return it.
f64 subtract_most(f64* sums, Vector<const f64> constant) {
    f64 largest = sums[0] + constant[0];
    for (i64 k = 0; k < constant.size; ++k) {
        sums[k] += constant[k];
        largest = std::max(largest, sums[k]);
    }
    for (i64 k = 0; k < constant.size; ++k) sums[k] -= largest;
    return largest;
}

// Write the shares of a row's powers in units of 1 / scale, and return their sum.
f64 share(const f64* powers, i64 n, f64 scale, i64* shares) {
    f64 total = 0.0;
    for (i64 k = 0; k < n; ++k) total += powers[k];
    for (i64 k = 0; k < n; ++k) shares[k] = share_of(powers[k], total, scale);
    return total;
}

}  // namespace

void posteriors(Matrix<f64> sums, Vector<const f64> constant, f64 scale, Matrix<i64> shares, Vector<f64> bits) {
    i64 width = sums.columns, at_once = std::max(AT_ONCE / width, (i64)1);
    over_ranges(sums.rows, (f64)width * POSTERIOR_NS, [&](i64 start, i64 stop) {
        for (i64 first = start; first < stop; first += at_once) {
            i64 last = std::min(first + at_once, stop);
            for (i64 g = first; g < last; ++g) bits[g] = subtract_most(sums[g], constant);
            for (f64& power : Vector<f64>{sums[first], (last - first) * width}) power = power_of_two(power);
            for (i64 g = first; g < last; ++g) bits[g] += logarithm(share(sums[g], width, scale, shares[g]));
        }
    });
}

}  // namespace gpuens

// Exponentials and logarithms of arrays (kernels/exponentials.cu).
#include "runtime/parallel.h"
#include "runtime/primitives.h"

#include <cmath>
#include <limits>

namespace gpuens {

namespace {

constexpr f64 NUMBER_NS = 5.0;

template <typename Function>
void each(Vector<const f64> numbers, Vector<f64> results, Function function) {
    over_ranges(numbers.size, NUMBER_NS, [&](i64 start, i64 stop) {
        for (i64 i = start; i < stop; ++i) results[i] = function(numbers[i]);
    });
}

}  // namespace

void exponentials(Vector<const f64> exponents, Vector<f64> powers) {
    each(exponents, powers, [](f64 x) { return exponential(x); });
}

void logarithms(Vector<const f64> numbers, Vector<f64> bits) {
    // the C library's logarithms of 0, infinity, NaN and negative numbers have no rounding
    each(numbers, bits, [](f64 x) {
        return x > 0.0 && x <= std::numeric_limits<f64>::max() ? logarithm(x) : std::log2(x);
    });
}

}  // namespace gpuens

// Exponentials and logarithms by polynomials and exact steps, the same bits on every processor: the functions of CUDA, of
// NumPy and of C libraries differ in their last bits.

// The nearest whole number, by a floor that compilers vectorise.
BOTH i32 rounded(f64 x) {
    f64 shifted = x + 0.5;
    i32 towards_0 = (i32)shifted;
    return towards_0 - (towards_0 > shifted);
}

// 2^n for n from -1022 to 1023, as the bits of a number whose fraction is 0.
BOTH f64 whole_power_of_two(i32 n) {
    union {
        u64 bits;
        f64 value;
    } power;
    power.bits = (u64)(1023 + (i64)n) << 52;
    return power.value;
}

// (e^y - 1 - y) / y^2 for |y| <= ln 2 / 2, by its series 1 / 2! + y / 3! + ... + y^11 / 13!.
BOTH f64 series(f64 y) {
    f64 sum = 1.0 / 6227020800.0;  // 1 / 13!
    sum = sum * y + 1.0 / 479001600.0;
    sum = sum * y + 1.0 / 39916800.0;
    sum = sum * y + 1.0 / 3628800.0;
    sum = sum * y + 1.0 / 362880.0;
    sum = sum * y + 1.0 / 40320.0;
    sum = sum * y + 1.0 / 5040.0;
    sum = sum * y + 1.0 / 720.0;
    sum = sum * y + 1.0 / 120.0;
    sum = sum * y + 1.0 / 24.0;
    sum = sum * y + 1.0 / 6.0;
    sum = sum * y + 1.0 / 2.0;
    return sum;
}

// 2^x for x from -2^31 to 0, by a polynomial in y = x ln 2, |y| <= ln 2 / 2, and a power of two; 0 for x < -64. The power is
// set to 0 by a mask of its bits: from a choice of two results, compilers make a branch, and then no vectors.
BOTH f64 power_of_two(f64 x) {
    i32 exponent = rounded(x);
    f64 y = (x - exponent) * 0.6931471805599453;
    f64 sum = series(y) * y + 1.0;
    sum = sum * y + 1.0;
    union {
        u64 bits;
        f64 value;
    } power;
    power.bits = (u64)(1023 + (i64)exponent) << 52 & (0 - (u64)(x >= -64.0));
    return sum * power.value;
}

// log2 x for x > 0, by the odd powers of (m - 1) / (m + 1), where m = x 2^-e is from sqrt(1/2) to sqrt(2).
BOTH f64 logarithm(f64 x) {
    const f64 C = 2.0 / 0.6931471805599453;
    union {
        f64 value;
        u64 bits;
    } number;
    bool small = x < 2.2250738585072014e-308;  // subnormal
    number.value = small ? x * 18014398509481984.0 : x;
    i32 e = (i32)(number.bits >> 52) - (small ? 1076 : 1022);
    number.bits = (number.bits & 0xfffffffffffffull) | 0x3fe0000000000000ull;  // fraction in [1/2, 1)
    f64 m = number.value;
    if (m < 0.7071067811865476) {
        m *= 2.0;
        e -= 1;
    }
    f64 ratio = (m - 1.0) / (m + 1.0), square = ratio * ratio, sum = C / 21.0;
    sum = sum * square + C / 19.0;
    sum = sum * square + C / 17.0;
    sum = sum * square + C / 15.0;
    sum = sum * square + C / 13.0;
    sum = sum * square + C / 11.0;
    sum = sum * square + C / 9.0;
    sum = sum * square + C / 7.0;
    sum = sum * square + C / 5.0;
    sum = sum * square + C / 3.0;
    sum = sum * square + C;
    return (f64)e + ratio * sum;
}

// e^x within 1 unit in the last place: e^x = 2^n e^r with |r| <= ln 2 / 2. The high part of ln 2 has 32 bits, so that its
// product with n is exact; `lost` is the rounding error of r.
BOTH f64 exponential(f64 x) {
    if (!(x > -745.2)) return x != x ? x : 0.0;
    if (x > 709.8) x = 709.8;  // e^709.8 is infinite already
    i32 n = rounded(x * 1.4426950408889634);
    f64 high = x - n * 0.693147180369123816490, low = n * 1.90821492927058770002e-10;
    f64 r = high - low, lost = (high - r) - low;
    i32 half = n / 2;  // two factors, because 2^n may be no normal number
    return (1.0 + (r + (r * r * series(r) + lost))) * whole_power_of_two(half) * whole_power_of_two(n - half);
}

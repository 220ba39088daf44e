// Powers of two and logarithms by polynomials and exact steps: the functions of CUDA and of C libraries differ in their
// last bits.

// 2^x for x from -2^31 to 0, by a polynomial in y = x ln 2, |y| <= ln 2 / 2, and a power of two; 0 for x < -64.
BOTH f64 power_of_two(f64 x) {
    f64 shifted = x + 0.5;
    i32 towards_0 = (i32)shifted, whole = towards_0 - (towards_0 > shifted);  // a floor that compilers vectorise
    f64 y = (x - whole) * 0.6931471805599453;
    f64 sum = 1.0 / 6227020800.0;  // 1 / 13!, and so on
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
    sum = sum * y + 1.0;
    sum = sum * y + 1.0;
    union {
        u64 bits;
        f64 value;
    } power;
    power.bits = x < -64.0 ? 0 : (u64)(1023 + (i64)whole) << 52;  // 2^whole, whose fraction is 0
    return sum * power.value;
}

// log2 x for x >= 1, by the odd powers of (m - 1) / (m + 1), where m = x 2^-e is from sqrt(1/2) to sqrt(2).
BOTH f64 logarithm(f64 x) {
    const f64 C = 2.0 / 0.6931471805599453;
    int e;
    f64 m = frexp(x, &e);
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

// The share of a power in the total, in units of 1 / scale, rounded.
BOTH i64 share_of(f64 power, f64 total, f64 scale) { return (i64)(power / total * scale + 0.5); }

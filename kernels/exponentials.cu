// Exponentials of arrays (gpuens/runtime/exponentials.py): powers[i] = e^exponents[i], with the CPU's bits.

// One thread per number.
extern "C" __global__ void exponentials(const f64* exponents, f64* powers, i64 n) {
    FOR_EACH(i, n) powers[i] = exponential(exponents[i]);
}

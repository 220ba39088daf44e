// Kernels that call each CUDA function of shim.h, one kernel for each kind of function. Tests compare them with NumPy.

typedef unsigned u32;
typedef long long i64;
typedef unsigned long long u64;

#define ROW(result) out[n * row++ + i] = (result)

// out (14, n)
extern "C" __global__ void words(const u32* a, const u32* b, u32* out, i64 n) {
    for (i64 i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += (i64)gridDim.x * blockDim.x) {
        u32 x = a[i], y = __ldg(b + i);
        u64 wide = (u64)x << 32 | y;
        i64 row = 0;
        ROW(__popc(x));
        ROW(__popcll(wide));
        ROW(__ffs(x));
        ROW(__clz(x));
        ROW(__clzll(wide));
        ROW(__umulhi(x, y));
        ROW(__vcmpeq4(x, y));
        ROW(__vsetgtu4(x, y));
        ROW(__vcmpltu4(x, y));
        ROW(__vminu4(x, y));
        ROW(__vmaxu4(x, y));
        ROW(__vadd4(x, y));
        ROW(__dp4a(x, y, 7u));
        ROW(min(x, y) ^ max(x, y));
    }
}

// out (6, n)
extern "C" __global__ void floats(const float* a, const double* b, double* out, i64 n) {
    i64 i = blockIdx.x * blockDim.x + threadIdx.x, row = 0;
    if (i >= n) return;
    ROW(__int_as_float(__float_as_int(a[i])));
    ROW(__longlong_as_double(__double_as_longlong(b[i])));
    ROW(fminf(a[i], 0.0f));
    ROW(fmax(b[i], 0.0));
    ROW(min(b[i], __longlong_as_double(-1)));  // the double is not a number
    ROW(b[i] * b[i] + a[i]);
}

// out (9, n): subnormal floats become 0 when they are read or computed; subnormal doubles do not.
extern "C" __global__ void subnormal(const float* a, const double* b, double* out, i64 n) {
    i64 i = blockIdx.x * blockDim.x + threadIdx.x, row = 0;
    if (i >= n) return;
    float small = 1e-30f, kept = a[i];
    ROW(a[i]);
    ROW(a[i] * 1e-10f);
    ROW(a[i] * 1e-10);  // computed in double
    ROW((float)b[i]);
    ROW(b[i]);
    ROW(small * kept * 1e30f);
    kept *= small;
    ROW(kept);
    ROW(2 * a[i] + 1.0f / small);
    ROW(a[i] > 0.0f ? small : 0.0f);
}

// Each block is one warp; in has shape (blocks, 32) and out (7, blocks, 32).
extern "C" __global__ void lanes(const i64* in, i64* out) {
    i64 i = blockIdx.x * blockDim.x + threadIdx.x, n = (i64)gridDim.x * blockDim.x, row = 0;
    i64 value = in[i];
    int lane = threadIdx.x % warpSize;
    ROW(__shfl_sync(~0u, value, 5));
    ROW(__shfl_up_sync(~0u, value, 3));
    ROW(__shfl_down_sync(~0u, (double)value, 3));
    ROW(__shfl_xor_sync(~0u, (int)value, 9));
    ROW(__shfl_down_sync(~0u, (float)value, 2, 8));
    ROW(__ballot_sync(~0u, value & 1));
    u32 evens = 0x55555555u;
    ROW(lane % 2 == 0 ? __any_sync(evens, value > 900) + 2 * __all_sync(evens, value > 10) : -1);
}

// out (3, blocks): whether any value of a block is positive, whether all are, and how many are.
extern "C" __global__ void votes(const int* in, int* out) {
    int positive = in[blockIdx.x * blockDim.x + threadIdx.x] > 0;
    int any = __syncthreads_or(positive), all = __syncthreads_and(positive), count = __syncthreads_count(positive);
    if (threadIdx.x) return;
    out[blockIdx.x] = any;
    out[gridDim.x + blockIdx.x] = all;
    out[2 * gridDim.x + blockIdx.x] = count;
}

// Each output array has one item for each bin.
extern "C" __global__ void atomics(const int* bins, const int* values, int* sums, u64* wide_sums, double* real_sums,
                                   float* single_sums, int* least, u64* most, u32* bits, u32* parities, i64 n) {
    i64 i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    int bin = bins[i], value = values[i];
    atomicAdd(sums + bin, value);
    atomicAdd(wide_sums + bin, (u64)value);
    atomicAdd(real_sums + bin, (double)value);
    atomicAdd(single_sums + bin, (float)value);
    atomicMin(least + bin, value);
    atomicMax(most + bin, (u64)value);
    atomicOr(bits + bin, (u32)value);
    atomicXor(parities + bin, (u32)value);
}

// Each thread takes a ticket (the next number) by compare-and-swap, and marks this number as taken.
extern "C" __global__ void tickets(int* next, int* taken) {
    int seen = atomicAdd(next, 0), before;
    do {
        before = seen;
        seen = atomicCAS(next, before, before + 1);
    } while (seen != before);
    atomicExch(taken + seen, 1);
}

extern "C" __global__ void where(uint4* out) {
    u32 block = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
    u32 thread = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
    out[block * blockDim.x * blockDim.y * blockDim.z + thread] = make_uint4(
        threadIdx.x + 100 * blockIdx.x, threadIdx.y + 100 * blockIdx.y, threadIdx.z + 100 * blockIdx.z, block);
}

// out[block] = the block's share of the sum of x. Warps sum by shuffles, and blocks sum over warps by shared memory.
extern "C" __global__ void __launch_bounds__(256) sums(const double* x, double* out, i64 n) {
    __shared__ double of_warps[8];
    double sum = 0.0;
    for (i64 i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += (i64)gridDim.x * blockDim.x) sum += x[i];
    for (int by = 16; by; by /= 2) sum += __shfl_down_sync(~0u, sum, by);
    if (threadIdx.x % 32 == 0) of_warps[threadIdx.x / 32] = sum;
    __syncthreads();
    if (threadIdx.x) return;
    for (int warp = 1; warp < blockDim.x / 32; ++warp) sum += of_warps[warp];
    out[blockIdx.x] = sum;
}

extern "C" __global__ void scalars(bool a, unsigned char b, int c, u64 d, float e, double f, double* out) {
    out[0] = a;
    out[1] = b;
    out[2] = c;
    out[3] = d;
    out[4] = e;
    out[5] = f;
}

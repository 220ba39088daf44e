// A function writes one value past the end of shared memory. The function does not know where shared memory ends.
__device__ __noinline__ void put(long long* values, int at, long long value) { values[at] = value; }

extern "C" __global__ void turn(const long long* in, long long* out, int n) {
    __shared__ long long values[64];
    int t = threadIdx.x;
    put(values, t + FAULT, in[t]);
    __syncthreads();
    out[t] = values[n - 1 - t];
}

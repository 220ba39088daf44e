// Each file here has a kernel whose block reverses n values. The kernel has a fault only if FAULT is defined.
extern "C" __global__ void turn(const long long* in, long long* out, int n) {
    __shared__ long long values[64];
    int t = threadIdx.x;
    values[t] = in[t];
    if (!FAULT) __syncthreads();
    out[t] = values[n - 1 - t];
}

// The kernel reads values from shared memory; half of them have never been written.
extern "C" __global__ void turn(const long long* in, long long* out, int n) {
    __shared__ long long values[64];
    int t = threadIdx.x;
    if (!FAULT || t < n / 2) values[t] = in[t];
    __syncthreads();
    out[t] = values[n - 1 - t];
}

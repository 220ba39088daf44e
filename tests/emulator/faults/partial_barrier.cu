// Half of the block returns before the barrier.
extern "C" __global__ void turn(const long long* in, long long* out, int n) {
    __shared__ long long values[64];
    int t = threadIdx.x;
    values[t] = in[t];
    if (FAULT && t >= n / 2) return;
    __syncthreads();
    out[t] = values[n - 1 - t];
}

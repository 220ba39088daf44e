// The two halves of the block wait at two different barriers.
extern "C" __global__ void turn(const long long* in, long long* out, int n) {
    __shared__ long long values[64];
    int t = threadIdx.x;
    values[t] = in[t];
    if (FAULT && t >= n / 2) __syncthreads();
    if (!FAULT || t < n / 2) __syncthreads();
    out[t] = values[n - 1 - t];
}

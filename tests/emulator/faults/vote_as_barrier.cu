// The lanes of a warp wait for each other in a vote, but a vote does not order memory accesses.
extern "C" __global__ void turn(const long long* in, long long* out, int n) {
    __shared__ long long values[64];
    int t = threadIdx.x;
    values[t] = in[t];
    __any_sync(0xFFFFFFFFu, 0);
    if (!FAULT) __syncwarp();
    out[n - 1 - (t ^ 31)] = values[t ^ 31];
}

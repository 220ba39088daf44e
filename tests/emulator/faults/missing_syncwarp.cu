// The lanes of a warp exchange values by shared memory, but do not wait for each other.
extern "C" __global__ void turn(const long long* in, long long* out, int n) {
    __shared__ long long values[64];
    int t = threadIdx.x;
    values[t] = in[t];
    if (!FAULT) __syncwarp();
    out[n - 1 - (t ^ 31)] = values[t ^ 31];
}

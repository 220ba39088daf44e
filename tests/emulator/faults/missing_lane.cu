// The mask of a shuffle names lanes that never execute the shuffle.
extern "C" __global__ void turn(const long long* in, long long* out, int n) {
    int t = threadIdx.x;
    if (FAULT && t % 32 >= 24) return;
    long long value = __shfl_xor_sync(0xFFFFFFFFu, in[t], 31);
    out[n - 1 - (t ^ 31)] = value;
}

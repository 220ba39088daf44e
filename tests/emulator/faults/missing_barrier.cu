// Every fault here is planted in a block that turns n values around; without FAULT it is right.
extern "C" __global__ void turn(const long long* in, long long* out, int n) {
    __shared__ long long values[64];
    int t = threadIdx.x;
    values[t] = in[t];
    if (!FAULT) __syncthreads();
    out[t] = values[n - 1 - t];
}

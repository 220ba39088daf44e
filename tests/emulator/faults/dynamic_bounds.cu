// One value is written past the end of dynamic shared memory.
extern "C" __global__ void turn(const long long* in, long long* out, int n) {
    extern __shared__ long long values[];
    int t = threadIdx.x;
    values[t + FAULT] = in[t];
    __syncthreads();
    out[t] = values[n - 1 - t];
}

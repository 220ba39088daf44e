// One value is read past the end of an array.
extern "C" __global__ void turn(const long long* in, long long* out, int n) {
    int t = threadIdx.x;
    out[t] = in[n - 1 - t + FAULT];
}

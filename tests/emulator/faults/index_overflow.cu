// An intermediate result in the computation of an index exceeds the range of int.
extern "C" __global__ void turn(const long long* in, long long* out, int n) {
    int t = threadIdx.x, size = 70000000;
    out[n - 1 - t] = in[FAULT ? t * size / size : (long long)t * size / size];
}

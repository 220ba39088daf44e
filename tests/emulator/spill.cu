// If N is not small, each thread has more values than registers (in a block of 1024 threads).
extern "C" __global__ void __launch_bounds__(1024) spill(double* values, int n) {
    double mine[N];
#pragma unroll
    for (int i = 0; i < N; ++i) mine[i] = values[threadIdx.x + i * n];
    for (int round = 0; round < n; ++round) {
#pragma unroll
        for (int i = 0; i < N; ++i) mine[i] = mine[i] * mine[(i * 7 + 3) % N] + mine[(i + 1) % N];
    }
#pragma unroll
    for (int i = 0; i < N; ++i) values[threadIdx.x + i * n] = mine[i];
}

// CUB's reduction of a block, which CuPy's reductions use. It reduces the items of each thread in order, then the
// threads of each warp by halves, then the warps in order. NVIDIA's own header contains PTX, which only NVRTC compiles.
#pragma once

namespace cub {

template <typename T, int THREADS>
class BlockReduce {
public:
    struct TempStorage {
        alignas(T) char of_threads[THREADS * sizeof(T)];
    };
    explicit BlockReduce(TempStorage& storage) : parts(reinterpret_cast<T*>(storage.of_threads)) {}

    // Return the result to thread 0.
    template <int ITEMS, typename Operation>
    T Reduce(T (&items)[ITEMS], Operation op) {
        T own = items[0];
        for (int i = 1; i < ITEMS; ++i) own = op(own, items[i]);
        unsigned lane = threadIdx.x % 32;
        parts[threadIdx.x] = own;
        for (unsigned half = 16; half > 0; half /= 2) {
            __syncthreads();
            T other = lane + half < 32 ? parts[threadIdx.x + half] : own;
            __syncthreads();
            if (lane + half < 32) parts[threadIdx.x] = own = op(own, other);
        }
        __syncthreads();
        for (int warp = 32; threadIdx.x == 0 && warp < THREADS; warp += 32) own = op(own, parts[warp]);
        return own;
    }

private:
    T* parts;
};

}  // namespace cub

// CUB's loads of a tile, as CuPy's reductions use them: each thread loads a few adjacent items.
#pragma once

namespace cub {

enum BlockLoadAlgorithm { BLOCK_LOAD_DIRECT };

template <typename T, int THREADS, int ITEMS, BlockLoadAlgorithm>
struct BlockLoad {
    struct TempStorage {};
    explicit BlockLoad(TempStorage&) {}

    template <typename Input, typename Default>
    void Load(const Input* from, T (&items)[ITEMS], int n, Default otherwise) {
        for (int i = 0; i < ITEMS; ++i) {
            int place = int(threadIdx.x) * ITEMS + i;
            items[i] = place < n ? T(from[place]) : T(otherwise);
        }
    }
};

}  // namespace cub

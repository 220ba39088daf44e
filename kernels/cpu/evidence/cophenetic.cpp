// Pairs of objects that the merges of a tree bring together.
#include "evidence/primitives.h"
#include "runtime/parallel.h"

namespace gpuens {

void pairs_merged(Vector<const i64> kept, Vector<const i64> absorbed, Vector<const f64> sizes, Vector<f64> pairs) {
    std::vector<f64> size(sizes.begin(), sizes.end());
    for (i64 i = 0; i < kept.size; ++i) {
        if (i % 4096 == 0) look();
        pairs[i] = size[kept[i]] * size[absorbed[i]];
        size[kept[i]] += size[absorbed[i]];
    }
}

}  // namespace gpuens

#include "linkage/reverse_neighbors.h"

namespace gpuens {

void ReverseNeighbors::follow(Vector<const i64> regions, State& state) {
    if (used + regions.size > (i64)nodes.size()) {
        used = 0;
        for (i64 a : state.left()) top[a] = NOBODY;
        for (i64 a : state.left())
            if (node[a] != NOBODY) wait(a, state);
    }
    for (i64 a : regions) wait(a, state);
}

void ReverseNeighbors::wait(i64 a, const State& state) {
    node[a] = NOBODY;
    if (state.nearest[a] < 0 || until[a] == __builtin_inf()) return;
    i32 n = (i32)used++;
    node[a] = n;
    nodes[n] = {until[a], (i32)a, NOBODY, NOBODY};
    i32& heap = top[state.now(state.nearest[a])];
    heap = melded(heap, n);
}

std::vector<i64> ReverseNeighbors::meet(const State& state, const i64* size) {
    Vector<const i64> kept = state.last_kept(), absorbed = state.last_absorbed();
    std::vector<i64> unsure;
    for (i64 p = 0; p < kept.size; ++p) node[kept[p]] = node[absorbed[p]] = NOBODY;
    for (i64 p = 0; p < kept.size; ++p) {
        i64 a = kept[p], b = absorbed[p];
        i32 first = melded(top[a], top[b]);
        while (first != NOBODY && nodes[first].until < (f64)size[a]) {
            i64 follower = nodes[first].follower;
            if (node[follower] == first) {
                node[follower] = NOBODY;
                unsure.push_back(follower);
            }
            first = melded(nodes[first].left, nodes[first].right);
        }
        top[a] = first;
        top[b] = NOBODY;
    }
    return unsure;
}

i32 ReverseNeighbors::melded(i32 one, i32 other) {
    if (one == NOBODY) return other;
    if (other == NOBODY) return one;
    if (nodes[other].until < nodes[one].until) std::swap(one, other);
    i32 first = one;
    while (nodes[one].right != NOBODY) {
        i32 below = nodes[one].right;
        if (nodes[other].until < nodes[below].until) std::swap(below, other);
        nodes[one].right = nodes[one].left;
        nodes[one].left = below;
        one = below;
    }
    nodes[one].right = nodes[one].left;
    nodes[one].left = other;
    return first;
}

}  // namespace gpuens

// Reverse nearest neighbours: a round updates only regions whose nearest may have changed.
//
// If A is the nearest region of F, then F is a follower of A.
//
// While A, of similarity s with F, grows from n to n' objects, the similarity stays at least s n / n'. No other union
// is nearer to F than the nearer of its parts. So A remains the nearest region of F, whatever A merges with, until it
// has more than `until` objects: up to that size A is nearer than all other regions, in F's list or not, by more than
// rounding errors. Up to that size, the list of F needs no update. (Of similarities that may be negative, or are
// ratios, A must not grow at all.)
//
// A region with many followers merges in nearly every round, but only few followers need an update each time. So the
// followers of a region wait in a heap, with the smallest `until` on top. When regions merge, their heaps are melded.
// They are skew heaps (Sleator and Tarjan: Self-adjusting heaps, SIAM J. Comput. 15, 1986).
#pragma once

#include "linkage/rounds.h"

namespace gpuens {

// A heap of followers for each region. Nodes of earlier waits are ignored; when no node is left, all heaps are built
// anew.
class ReverseNeighbors {
public:
    // n_nodes: two for each region, except in tests.
    ReverseNeighbors(i64 n_regions, i64 n_nodes)
        : until(n_regions), top(n_regions, NOBODY), node(n_regions, NOBODY), nodes(n_nodes) {}

    // The number of objects up to which the nearest region of each region surely stays the nearest.
    std::vector<f64> until;

    // Insert each of these regions into the heap of its nearest region.
    void follow(Vector<const i64> regions, State& state);

    // Meld the heaps of the pairs of the last round. Their followers whose nearest region may have changed leave the
    // heaps, and are returned; so do regions that have merged.
    std::vector<i64> meet(const State& state, const i64* size);

private:
    static constexpr i32 NOBODY = -1;

    struct Node {
        f64 until;
        i32 follower, left, right;
    };

    void wait(i64 a, const State& state);
    i32 melded(i32 one, i32 other);

    std::vector<i32> top, node;  // the node on top of each region's heap, and the node in which each region waits now
    std::vector<Node> nodes;
    i64 used = 0;
};

}  // namespace gpuens

// Reverse nearest neighbours: a round updates only regions whose nearest may have changed.
//
// If A is the nearest region of F, then F is a follower of A.
//
// While A, of similarity s with F, grows from n to n' objects, the similarity stays at least s n / n'. No other union is nearer
// to F than the nearer of its parts. So A remains the nearest region of F, whatever A merges with, until it has more than
// `until` objects: up to that size A is nearer than all other regions, in F's list or not, by more than rounding errors. Up to
// that size, the list of F needs no update.
//
// A region with many followers merges in nearly every round, but only few followers need an update each time. So the followers
// of a region wait in a heap, with the smallest `until` on top. When regions merge, their heaps are melded. They are skew heaps
// (Sleator and Tarjan: Self-adjusting heaps, SIAM J. Comput. 15, 1986).
#pragma once

#include "linkage/rounds.h"

namespace gpuens {

// A heap of followers for each region. Nodes of earlier waits are ignored; when no node is left, all heaps are built anew.
class Heaps {
public:
    Heaps(i64 n_regions, i64 n_nodes) : top(n_regions, NOBODY), node(n_regions, NOBODY), nodes(n_nodes) {}

    // Insert each region in `some` into the heap of its nearest region.
    void follow(Vector<const i64> some, const State& state, const Certain& certain);

    // Meld the heaps of merged regions. Their followers whose nearest region may have changed leave the heaps, and are
    // returned; so do regions that have merged.
    std::vector<i64> meet(Vector<const i64> kept, Vector<const i64> absorbed, const i64* size);

private:
    static constexpr i32 NOBODY = -1;

    struct Node {
        f64 until;
        i32 owner, left, right;
    };

    void wait(i64 a, const State& state, const Certain& certain);
    i32 melded(i32 one, i32 other);

    std::vector<i32> top, node;  // the node on top of each region's heap, and the node in which each region waits now
    std::vector<Node> nodes;
    i64 used = 0;
};

// The steps of a round, restricted to the regions that are due: their nearest region is unknown or was just found.
class ReverseNeighbors {
public:
    // place (G,): the place of each region in the order of active regions. Nodes: two for each region, except in tests.
    ReverseNeighbors(const State& state, Vector<const i64> place, f64 slack, i64 n_nodes);

    // Find the nearest region of each region that is due.
    void look_up(const State& state, const i64* size, const Shortlists& lists);

    // Write the current nearest region of each of `some`; if it has grown, its similarity becomes NaN.
    void settle(Vector<const i64> some, const State& state) const;

    // Pair regions that are each other's nearest, and write the survivors. At least one region of a new pair is due, because
    // the two were not each other's nearest before.
    void pair_up(const State& state, const i64* length);

    // Update the lists of regions that become due: unions, and followers whose nearest may have changed.
    void update_lists(const State& state, const Regions& regions, const AnyWeighting& weighting,
                      const Tolerance& tolerance, const Shortlists& lists);

    // Two regions are each other's nearest.
    void pair(i64 a, i64 b) { due = {a, b}; }

    Certain certain;

private:
    Vector<const i64> place;
    Heaps heaps;
    std::vector<i64> due;
    std::vector<bool> gone;  // absorbed or retired
};

}  // namespace gpuens

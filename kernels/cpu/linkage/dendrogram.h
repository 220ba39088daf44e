// Merges in the order of a greedy algorithm, for linkages that end with it.
#pragma once

#include "runtime/arrays.h"
#include "runtime/records.h"

namespace gpuens {

// A merge list: merge i joins regions kept[i] and absorbed[i] at height[i].
struct Merges {
    RECORD(Merges, (Vector<i64>, kept), (Vector<i64>, absorbed), (Vector<f64>, heights));
};

// Merges in any order in which the parts of each come before it, and their order most similar first: a merge waits until its
// two regions exist, and of waiting merges with equal similarity, that with the smaller hash comes first. Trees are joined
// at similarity 0, in the order of their names, so that there are (n_leaves - 1,) sorted merges.
void sort_merges(Vector<const i64> kept, Vector<const i64> absorbed, Vector<const f64> similarities,
                 const Merges& sorted);

}  // namespace gpuens

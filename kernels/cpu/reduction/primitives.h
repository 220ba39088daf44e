// The primitives of gpuens/reduction on the CPU, as Python calls them (bindings.cpp).
#pragma once

#include <tuple>

#include "runtime/arrays.h"

namespace gpuens {

// ca_tree.cpp. rows (G, M) in the order of the leaves; prefixes (G,).
void common_prefixes(Codes<Matrix> rows, Vector<i32> prefixes);

// The parent of each node, leaves first, and the split, first and last leaf of inner nodes, which are numbered as
// they open.
std::tuple<Grown<i64>, Grown<i64>, Grown<i64>, Grown<i64>> inner_nodes(Vector<const i32> prefixes);

// The nodes `within` a limit that have no ancestor within it; parents come after their children.
void topmost_nodes(Vector<const i64> parents, Vector<const bool> within, Vector<bool> topmost);

// marks (n_nodes,): the ancestors of nodes with a mark get 1.
void mark_ancestors(Vector<const i64> parents, Vector<u8> marks);

// The shape of a tree: starts and children as in common/tree.h; first and last leaf of each node; levels of inner
// nodes, the deepest first: levels[i] ... levels[i + 1] - 1 do not depend on each other.
struct TreeShape {
    Vector<const i64> starts, children, first, last, levels;
};

// radii, representatives (n_nodes,): those of the leaves before. n_des = 0: exact.
void measure_nodes(Codes<Matrix> rows, const TreeShape& shape, i64 n_des, Vector<i32> radii,
                   Vector<i64> representatives);

// nodes (n,): where their representatives end, among the nodes of mark 2; ends (n,).
void descend_tree(Codes<Matrix> rows, const TreeShape& shape, Vector<const i64> representatives, Vector<const u8> marks,
                  Vector<const i64> nodes, Vector<i64> ends);

}  // namespace gpuens

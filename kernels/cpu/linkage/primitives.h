// The primitives of linkages, as Python calls them (bindings.cpp).
#pragma once

#include "runtime/arrays.h"
#include "linkage/dendrogram.h"
#include "linkage/nearest.h"
#include "linkage/shortlist.h"

namespace gpuens {

// dendrogram.cpp, and sort_merges. kept, absorbed (n,): a merge list of n_leaves leaves.

// The labels (n_leaves,) after the merges, in the order of the clusters' smallest leaves.
void cut_merges(Vector<const i64> kept, Vector<const i64> absorbed, Vector<i64> labels);

// The number of regions of at least `smallest_size` objects before the first merge and after each, n_large (n + 1,);
// counts (n + 1,) are those of the leaves.
void count_large(Vector<const i64> kept, Vector<const i64> absorbed, Vector<const i64> counts, i64 smallest_size,
                 Vector<i64> n_large);

// The two nodes (n, 2) of each merge, the smaller first, and its leaves (n,); merge i makes node n + 1 + i.
void number_nodes(Vector<const i64> kept, Vector<const i64> absorbed, Matrix<i64> children, Vector<i64> n_leaves);

// The two regions of each merge, named by their smallest leaves, from any nodes within them: leaves, or n_leaves + i
// for the union of merge i.
void name_merges(Vector<const i64> one, Vector<const i64> other, i64 n_leaves, Vector<i64> kept, Vector<i64> absorbed);

// apart (n,): true if no clustering labels objects of both regions of a merge; observed (R, M), added up by the merges.
void find_apart(Vector<const i64> kept, Vector<const i64> absorbed, Matrix<bool> observed, Vector<bool> apart);

// locality.cpp. columns (M, G), clusters (N_c, 8): random points, overwritten; order (G,), in which similar rows are
// adjacent.
void order_by_locality(Codes<Matrix> columns, Vector<const i64> offsets, Matrix<f64> clusters, Vector<i64> order);

// nearest.cpp. columns (M, G): codes of rows, written to tiles.
void lay_out_tiles(Codes<Matrix> columns, AnyTiled tiled);

// The lists of rows `queries` (n,), of rows of other components than its own with a similarity of at least `smallest`
// (n,); component (G,). Returns the number of label comparisons.
i64 nearest_rows(AnyTiled tiled, Vector<const i64> queries, Vector<const f64> smallest, Vector<const i64> component,
                 const Shortlists& lists);

// pair_chains.cpp. distances (n (n + 1) / 2,) of all pairs of n + 1 rows, overwritten: the merges of average or
// complete linkage, the nearest first; each row counts once.
void link_pairs(Vector<f64> distances, bool average, Vector<i64> kept, Vector<i64> absorbed, Vector<f64> heights);

// contiguous.cpp.

// Neighbours of G regions, those of region g at starts[g] ... starts[g + 1] - 1; each is a neighbour of its neighbours.
struct Neighbors {
    RECORD(Neighbors, (Vector<const i64>, starts), (Vector<const i32>, neighbors));  // starts (G + 1,)
};

// Sums (G, N_c) of the rows of regions, ≥ 0: clusters, ascending within a region, and values.
template <typename Value>
struct SparseRows {
    RECORD(SparseRows, (Vector<const i64>, starts), (Vector<const i32>, columns), (Vector<const Value>, values));
};

using AnySparseRows = std::variant<SparseRows<i32>, SparseRows<i64>>;

// Merge the most similar adjacent regions until all merges are made or no regions are adjacent; return the number of
// merges, whose heights may rise. counts (G,): numbers of objects; weights (N_c,) ≥ 0.
i64 link_neighbors(Neighbors graph, Vector<const i64> counts, AnySparseRows rows, Vector<const f64> weights,
                   const Merges& merges);

// boruvka.cpp. component (G,): each row's, named by its smallest row.

// The best edge so far that leaves each component, by its name: from row tail to row head, -1 if there is none.
struct Edges {
    RECORD(Edges, (Vector<i64>, tail), (Vector<i64>, head), (Vector<f64>, similarity), (Vector<u64>, tie));
};

// The edges of rows start ... and all others, tile (rows, G).
void offer_tile(i64 start, Matrix<const f64> tile, Vector<const i64> component, const Edges& edges);

// The best listed edge of each of the rows (n,); unsure (G,): whether its list has none and its bound allows one.
void offer_listed(Vector<const i64> component, const Shortlists& lists, Vector<const i64> rows, const Edges& edges,
                  Vector<bool> unsure);

// Join components by edges (n,), and tell which of these did, used (n,).
void contract(Vector<i64> component, Vector<const i64> tail, Vector<const i64> head, Vector<bool> used);

}  // namespace gpuens

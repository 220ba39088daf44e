// The primitives of gpuens/similarity. Label rows (R, M) are compared with columns (M, C), whose labels of one
// clustering are side by side; both have codes of one type.
#pragma once

#include <tuple>

#include "runtime/arrays.h"
#include "runtime/records.h"
#include "similarity/sparse.h"

namespace gpuens {

// Similarities of clusters within each clustering (gpuens/similarity/blocks.py): the k_m x k_m matrix of clustering m
// begins at values + starts[m].
struct ClusterBlocks {
    RECORD(ClusterBlocks, (Vector<const i64>, starts), (Vector<const f64>, values));

    const f64* row(Vector<const i64> offsets, i64 m, i64 label) const {
        return values.data + starts[m] + label * (offsets[m + 1] - offsets[m]);
    }
};

// coassociation.cpp. offsets (M + 1,), weights (N_c,); tile (R, C).
void coassociation_tile(Codes<Matrix> rows, Codes<Matrix> cols, Vector<const i64> offsets, Vector<const f64> weights,
                        Matrix<f64> tile);

// coupled_objects.cpp. tile (R, C).
void coupled_tile(Codes<Matrix> rows, Codes<Matrix> cols, Vector<const i64> offsets, ClusterBlocks blocks,
                  Matrix<f64> tile);

// coupled_clusters.cpp. shares (N_c, k) of the k clusters of one clustering in all clusters, weights (M,);
// similarities (k, k).
void relative_similarities(Matrix<const f64> shares, Vector<const i64> offsets, Vector<const f64> weights,
                           Matrix<f64> similarities);

// mapping.cpp. The nearest objects (R, T) of R objects, nearest first, and the distances.
struct ReferenceSets {
    RECORD(ReferenceSets, (Matrix<const i64>, ids), (Matrix<const f64>, distances));
};

// The places of clustering m begin at firsts[m], counts[i, m] (R, M) of them are in use; zeros before.
struct Coefficients {
    RECORD(Coefficients,
           (Matrix<i32>, clusters),  // (R, places)
           (Matrix<f64>, values),    // (R, places)
           (Matrix<i32>, counts));   // (R, M)
};

// codes (M, N), firsts (M,).
void mapping_coefficients(ReferenceSets of, Codes<Matrix> codes, Vector<const i64> offsets, Vector<const i64> firsts,
                          Coefficients coefficients);

// links.cpp. The n-th largest number of each row of a tile (R, C); thresholds (R,).
void nth_largest(Matrix<const f64> tile, i64 n, Vector<f64> thresholds);

// trajectories.cpp. The inner products (n, n) of trajectories of steps (n, n), CSR, and spare memory of their size.
void walk_products(AnySparse<f64> step, i64 n_steps, Matrix<f64> products, Matrix<f64> spare);

// refined_paths.cpp. points (D, n): the objects of row g begin at bounds[g] (G + 1,). Mean and largest distances (G, G)
// of rows start ... stop - 1 and all rows up to each, on both sides of the diagonal.
void row_distances(Matrix<const f64> points, Vector<const i64> bounds, std::tuple<i64, i64> rows, Matrix<f64> mean,
                   Matrix<f64> farthest);

// The largest distance (N_c,) in each cluster; codes (M, G), farthest (G, G).
void farthest_in_clusters(Codes<Matrix> codes, Vector<const i64> offsets, Matrix<const f64> farthest,
                          Vector<f64> largest);

// sum_m w_c (1 - d inverse[c]) over common clusters c; codes (M, G), distances d and similar (G, G), weights w (N_c,).
void refine(Codes<Matrix> codes, Vector<const i64> offsets, Matrix<const f64> distances, Vector<const f64> inverse,
            Vector<const f64> weights, Matrix<f64> similar);

// leaves.cpp. Points (N, D) in leaves (gpuens/similarity/reference_sets.py). Leaf l has places starts[l] ... starts[l + 1] - 1
// of the order, and one row of coordinates per feature, infinite beyond its points.
struct Leaves {
    RECORD(Leaves,
           (Vector<const i64>, order),        // (N,): the points, leaf by leaf
           (Vector<const i64>, starts),       // (n_leaves + 1,)
           (Vector<const i64>, leaf_of),      // (N,): the leaf of each point
           (Matrix<const f64>, coordinates),  // (n_leaves D, width)
           // (2 n_groups D, 64): the smallest coordinates of all leaves, then the largest
           (Matrix<const f64>, boxes),
           (Matrix<const f64>, hulls));       // (2 D, n_groups): the boxes of groups of leaves

    i64 n_leaves() const { return starts.size - 1; }
    i64 n_groups() const { return hulls.columns; }
    i64 n_features() const { return hulls.rows / 2; }
    i64 width() const { return coordinates.columns; }
    const f64* leaf(i64 i) const { return coordinates[i * n_features()]; }
    const f64* box(i64 side, i64 group) const { return boxes[(side * n_groups() + group) * n_features()]; }
    const f64* hull(i64 side, i64 feature) const { return hulls[side * n_features() + feature]; }
};

// Order the points (N, D) so that leaf l has those from starts[l] on, by splits at medians; as many leaves as a power
// of 2.
void split_points(Matrix<const f64> points, Vector<const i64> starts, Vector<i64> order);

// Fill coordinates, lower and upper (n_groups D, 64), the boxes of the leaves; all are infinite before.
void fill_leaves(Matrix<const f64> points, Vector<const i64> order, Vector<const i64> starts, Matrix<f64> coordinates,
                 Matrix<f64> lower, Matrix<f64> upper);

// The nearest other points of points `first` ... first + R - 1; ids and squares of the distances (R, T), T < N.
void nearest_others(Matrix<const f64> points, i64 first, Leaves leaves, Matrix<i64> ids, Matrix<f64> squares);

// reference_sets.cpp. Nearest objects among candidates (R, C); an object that is no candidate has a squared distance of
// beyond[i] or more.
void nearest_candidates(Matrix<const f64> points, i64 first, Matrix<const i64> candidates, Vector<const f64> beyond,
                        Matrix<i64> ids, Matrix<f64> squares);

// rank_correlation.cpp. Twice each value's average rank in its column minus twice that of the column's zeros, shifted
// to the right; counts (N,) with sum n. Values below 2^44, ranks in their order.
void doubled_ranks(AnySparse<i64> columns, Vector<const i64> counts, i64 n, i64 shift, Vector<i64> ranks);

// One matrix twice, by columns and by rows; products (N_c, N_c) of columns c <= d, zeros before.
void rank_products(AnySparse<i64> columns, AnySparse<i64> rows, Vector<const i64> counts, Matrix<i64> products);

// (n products[c, d] - totals[c] totals[d]) / (deviations[c] deviations[d]), the numerator rounded once; result (N_c,
// N_c).
void correlations(Matrix<const i64> products, Vector<const i64> totals, i64 n, Vector<const f64> deviations,
                  Matrix<f64> result);

// neighborhoods.cpp. A similarity of at least theta makes two rows neighbours. Sums of units, scale of which are 1.0,
// decide nearly always: below `hardly` they are none, from `surely` on they are.
struct Threshold {
    RECORD(Threshold, (u32, hardly), (u32, surely), (f64, scale), (f64, theta));
};

// Bit j % 64 of word j / 64 of row i (R, words): whether row i and column j are neighbours.
void neighborhood_bits(Codes<Matrix> rows, Codes<Matrix> cols, Vector<const i64> offsets, ClusterBlocks blocks,
                       Threshold threshold, Matrix<u64> bits);

// overlaps.cpp. sum_b 2^b sum_{p of run b} popcount(rows[i, p] & cols[j, p]); rows (R, P), cols (C, P), common (R, C).
// Run b is planes runs[b] ... runs[b + 1] - 1.
void overlaps(Matrix<const u64> rows, Matrix<const u64> cols, Vector<const i64> runs, Matrix<i64> common);

// Subtract the two objects of a pair from their common neighbours (R, C); bits (R, words) of the rows. place,
// are_neighbors and counts (G,): each row's bit, whether two of its objects are neighbours, and its number of objects.
void leave_out_themselves(Matrix<i64> common, Matrix<const u64> bits, Vector<const i64> rows, Vector<const i64> cols,
                          Vector<const i64> place, Vector<const bool> are_neighbors, Vector<const i64> counts);

// neighbor_counts.cpp. Bit q of the members (N_c, words) of each cluster that contains row q, of codes (M, G); zeros
// before.
void mark_members(Codes<Matrix> codes, Vector<const i64> offsets, Matrix<u64> members);

// The sum of counts (G,) of the neighbours in each cluster, of label rows (G, M); sums (R, N_c), zeros before.
void neighbor_counts(Matrix<const u64> bits, Codes<Matrix> rows, Vector<const i64> offsets, Vector<const i64> counts,
                     Matrix<i64> sums);

// The sum of values (G, K) of the neighbours; sums (R, K).
void neighbor_sums(Matrix<const u64> bits, Matrix<const i64> values, Matrix<i64> sums);

}  // namespace gpuens

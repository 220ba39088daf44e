// The primitives of gpuens/partition on the CPU, as Python calls them (bindings.cpp).
#pragma once

#include <functional>
#include <optional>
#include <tuple>

#include "runtime/arrays.h"
#include "runtime/records.h"

namespace gpuens {

// bottleneck.cpp. codes (M, G), counts (G,); of_whole: x log2 x for whole numbers x. losses (G - k,): one merge each;
// labels (G,) are the clusters that are left.
void merge_by_information(Codes<Matrix> codes, Vector<const i64> offsets, Vector<const i64> counts,
                          Vector<const f64> of_whole, Vector<i64> labels, Vector<f64> losses);

// medoids.cpp. distances (n, n), weights (n,); medoids (k,), ascending.
void pam(Matrix<const f64> distances, Vector<const f64> weights, Vector<i64> medoids);

// median.cpp. Clusterings with their numbers of times, and rows with their counts.
struct MedianEnsemble {
    RECORD(MedianEnsemble,
           (Codes<Matrix>, codes),        // (M, G)
           (Vector<const i64>, offsets),  // (M + 1,)
           (Vector<const i64>, counts),   // (G,)
           (Vector<const i64>, times));   // (M,)
};

struct MedianLoss {
    RECORD(MedianLoss,
           (i64, kind),  // 0 Binder's, 1 variation of information, 2 one minus the adjusted Rand index
           (f64, a),
           (Vector<const f64>, of_whole));  // x log2 x for whole numbers x, for kind 1
};

struct MedianBounds {
    RECORD(MedianBounds,
           (i64, least), (i64, most),  // clusters
           (i64, max_iter),            // sweeps
           (i64, settled));  // rows: a sweep that moves no more is the last; unless 0, no cluster is taken apart
};

// Links of rows: rows of a must-link group move together, as a block; each cannot-link within a cluster costs a penalty.
struct MedianLinks {
    RECORD(MedianLinks,
           (Vector<const i64>, group),    // (G,): the smallest row of each row's block
           (Vector<const i64>, first),    // (n_links,): blocks of cannot-links
           (Vector<const i64>, second),   // (n_links,)
           (f64, penalty));               // in units of the loss
};

// S searches; orders (S, n): permutations of the first rows of blocks, without links of all rows; labels (S, G) change, and rows of label -1 are allocated first.
// losses (S,); sweeps (S,), negative if max_iter ended them.
void search_medians(const MedianEnsemble& ensemble, const MedianLoss& loss, const MedianBounds& bounds,
                    Matrix<const i64> orders, Matrix<i64> labels, Vector<f64> losses, Vector<i64> sweeps,
                    const std::optional<MedianLinks>& links);

// The best of all partitions of few rows: labels (G,). Returns its loss.
f64 median_of_all(const MedianEnsemble& ensemble, const MedianLoss& loss, const MedianBounds& bounds,
                  Vector<i64> labels, const std::optional<MedianLinks>& links);

// metis.cpp. A graph in CSR format: starts (n + 1,), columns and edges. Rows start ... (rows, n) of similarities come
// after what starts[start] says is filled; the diagonal and zeros are no edges.
void append_edges(i64 start, Matrix<const f64> rows, Vector<i64> starts, Vector<i64> columns, Vector<f64> edges);

// Copy each edge's value with row < column to the other direction. Returns the first pair i, j that differs by more
// than a share `within`, and both values; i = -1 if there is none.
std::tuple<i64, i64, f64, f64> symmetrize(Vector<const i64> starts, Vector<const i64> columns, Vector<f64> edges,
                                          f64 within);

// labels (n,), weights (n,): each part without vertices gets the vertex of the heaviest part that is least similar to
// it.
void fill_empty_parts(Vector<i64> labels, Vector<const i64> weights, i64 n_parts, Vector<const i64> starts,
                      Vector<const i64> columns, std::variant<Vector<const i32>, Vector<const i64>> edges);

// mirkin.cpp. codes (M, G), counts (G,); labels (G,), overlap (N_c, k) and objects (k,) are those of the partition and
// change. Returns the number of sweeps, negative if max_iter ended them.
i64 descend_mirkin(Codes<Matrix> codes, Vector<const i64> offsets, Vector<const i64> counts, Vector<i64> labels,
                   Matrix<i64> overlap, Vector<i64> objects, i64 max_iter);

// mixture.cpp. sums (G, K) are overwritten; constant (K,), shares (G, K), bits (G,).
void posteriors(Matrix<f64> sums, Vector<const f64> constant, f64 scale, Matrix<i64> shares, Vector<f64> bits);

// ordered_products.cpp. pairs (R, T), table (T, k): their product is added to sums (R, k), in the order of the T terms.
void add_products(Matrix<const f64> pairs, Matrix<const f64> table, Matrix<f64> sums);

// Add the product of the transpose of soft (N, J) and values (N, k) for each block of `block_rows` rows: sums (blocks,
// J, k).
void add_products_of_blocks(Matrix<const f64> soft, Matrix<const f64> values, i64 block_rows, Matrix<f64> sums);

// rock.cpp. links: the upper triangle of n clusters, row by row; rows start ... (rows, n - start) are copied into it.
void copy_links(i64 start, Matrix<const i64> rows, i64 n, Vector<i64> links);

// sizes (n,); powers: a table for the sizes 0, 1, 2, ..., and the exponent, for sizes beyond the table. kept, absorbed,
// goodness (n - k,): the merges. The triangle is compacted when a share `shrink_at` of its clusters is left; `merged`
// is told numbers of further merges.
void merge_by_goodness(Vector<i64> links, Vector<const i64> sizes, std::tuple<Vector<const f64>, f64> powers,
                       f64 shrink_at, Vector<i64> kept, Vector<i64> absorbed, Vector<f64> goodness,
                       const std::function<void(i64)>& merged);

// soft_correspondence.cpp. codes (M, G); table (N_c, k), of_missing (M, k), sums (G, k).
void label_memberships(Codes<Matrix> codes, Vector<const i64> offsets, Matrix<const f64> table,
                       Matrix<const f64> of_missing, Matrix<f64> sums);

// values (G, k); known (N_c, k), unknown (M, k).
void label_correspondences(Codes<Matrix> codes, Vector<const i64> offsets, Matrix<const i64> values, Matrix<i64> known,
                           Matrix<i64> unknown);

// soft_descent.cpp. The terms of eq 3 of M clusterings; alpha and beta are multiplied by the number of objects.
struct SoftTerms {
    RECORD(SoftTerms,
           (Vector<const i64>, bounds),       // (M + 1,): the clusters of each clustering
           (Vector<const bool>, there),       // (N_c,): true for clusters with objects
           (Vector<const f64>, held),         // (N_c,): objects of each cluster
           (Vector<const f64>, shared),       // (M,): the part of each entry of A^T A that is due to missing labels
           (Vector<const f64>, grams),        // A^T A of soft clusterings, one after the other
           (Vector<const i64>, gram_starts),  // (M,): the first place of each in grams, -1 for labels
           (f64, alpha), (f64, beta));
};

struct Stepping {
    RECORD(Stepping, (f64, tol), (i64, n_steps), (f64, vanished));  // a correspondence below `vanished` becomes 0
};

// products, table (N_c, k); parts (M,). The table steps until it moves by no more than tol.
void step_correspondences(const SoftTerms& terms, Matrix<const f64> products, Matrix<f64> table, const Stepping& by);
void soft_objectives(const SoftTerms& terms, Matrix<const f64> products, Matrix<const f64> table, Vector<f64> parts);

}  // namespace gpuens

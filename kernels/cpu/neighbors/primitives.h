// The primitives of gpuens/neighbors on the CPU, as Python calls them (bindings.cpp).
#pragma once

#include "runtime/arrays.h"
#include "runtime/records.h"

namespace gpuens {

// walk.cpp. One step of a random walk on a graph in compressed sparse rows: starts (N + 1,), heads and weights (edges,);
// shares, result (N, C) in whole units.
void walk_step(Vector<const i64> starts, Vector<const i32> heads, Vector<const f32> weights, Matrix<const u16> shares,
               Matrix<u16> result);

// The number of shares above 0 in each row, added to counts (N,).
void count_shares(Matrix<const u16> shares, Vector<i64> counts);

// The shares above 0 of each row, appended at places (N,), which move on; columns count from `first`.
void append_shares(Matrix<const u16> shares, i64 first, Vector<i64> places, Vector<i32> columns, Vector<u16> values);

// Shares (N, C) above 0 in compressed sparse rows, columns ascending.
struct WalkShares {
    RECORD(WalkShares,
           (Vector<const i64>, starts),   // (N + 1,)
           (Vector<const i32>, columns),  // (n_shares,)
           (Vector<const u16>, values),   // (n_shares,)
           (i64, n_columns));             // C
};

// regions.cpp. The neighbours of regions, and their mean shares: starts and row_starts (R + 1,).
struct GrownRegions {
    Grown<i64> starts, row_starts;
    Grown<i32> heads, columns;
    Grown<u16> values;
};

// Pairs of neighbours merge in rounds until `n_regions` are left, or until a round merges few: regions (N,) is the region
// of each object. The result is empty if nothing merged.
GrownRegions pair_neighbors(Vector<const i64> starts, Vector<const i32> heads, const WalkShares& shares, i64 n_regions,
                            Vector<i64> regions);

// The sums (R, C) of the shares of the objects of each region; regions (N,).
void sum_regions(const WalkShares& shares, Vector<const i64> regions, Matrix<i64> sums);

// A graph of N objects in CSR format, with both directions of each edge and no loops.
struct GraphArrays {
    RECORD(GraphArrays,
           (Vector<const i64>, starts),    // (N + 1,)
           (Vector<const i32>, heads),     // (edges,)
           (Vector<const f64>, weights));  // (edges,)
};

// The log-likelihoods of the labels of objects in classes.
struct RowTerms {
    RECORD(RowTerms,
           (Matrix<const f64>, lookups),  // (G, k): those of rows
           (Vector<const i64>, row_of),   // (N,): the row of each object
           (Vector<const f64>, tau));     // (1,): their factor
};

// potts.cpp. colors (N,): no two neighbours have the same color. Returns the number of colors.
i64 color_objects(Vector<const i64> starts, Vector<const i32> heads, Vector<i32> colors);

// objects: those to be updated, none a neighbour of another; memberships (N, k) and labels (N,) change.
void update_memberships(const GraphArrays& graph, Vector<const i64> objects, const RowTerms& terms, f64 beta,
                        Matrix<f64> memberships, Vector<i64> labels);

// members (N,): the objects of row 0, of row 1, ..., which begin at starts (G + 1,). shares (G, k) in units of 1 / scale.
void sum_memberships(Matrix<const f64> memberships, Vector<const i64> members, Vector<const i64> starts, f64 scale,
                     Matrix<i64> shares);

// derivatives (2,) with respect to beta of the log pseudo-likelihood of some objects, the second with its sign changed, in
// units of 1 / scale.
void pseudo_likelihood(const GraphArrays& graph, Vector<const i64> objects, Matrix<const f64> memberships, f64 beta,
                       f64 scale, Vector<i64> derivatives);

// residuals, shares (G, k); squares (1,) = sum shares residuals^2, each term rounded to a multiple of 1 / scale.
void sum_squares(Matrix<const f64> residuals, Matrix<const i64> shares, f64 scale, Vector<i64> squares);

}  // namespace gpuens

// The primitives of gpuens/neighbors on the CPU, as Python calls them (bindings.cpp).
#pragma once

#include "arrays.h"

namespace gpuens {

// walk.cpp. One step of a random walk on a graph in compressed sparse rows: starts (N + 1,), heads and weights (edges,);
// shares, result (N, C) in whole units.
void walk_step(Vector<const i64> starts, Vector<const i32> heads, Vector<const f32> weights, Matrix<const u16> shares,
               Matrix<u16> result);

// The number of shares above 0 in each row, added to counts (N,).
void count_shares(Matrix<const u16> shares, Vector<i64> counts);

// The shares above 0 of each row, appended at places (N,), which move on; columns count from `first`.
void append_shares(Matrix<const u16> shares, i64 first, Vector<i64> places, Vector<i32> columns, Vector<i32> values);

// Σ of the sparse rows (row_starts, columns, values) of each region, dense: sums (R, C).
void sum_regions(Vector<const i64> row_starts, Vector<const i32> columns, Vector<const i32> values,
                 Vector<const i64> regions, Matrix<i64> sums);

}  // namespace gpuens

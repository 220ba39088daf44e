// Objects and landmarks, as Python calls it (bindings.cpp).
#pragma once

#include <tuple>

#include "neighbors/primitives.h"
#include "runtime/arrays.h"

namespace gpuens {

// List b is ids[begins[b]] ... ids[begins[b + 1] - 1] of (ids, begins).
using Lists = std::tuple<Vector<const i64>, Vector<const i64>>;

// landmarks.cpp. points (n, d), their lists (n,), landmarks (p, d); ids and squares (n, n_kept), nearest first.
void nearest_landmarks(Matrix<const f32> points, Lists lists, Vector<const i64> of, Matrix<const f32> landmarks,
                       Matrix<i64> ids, Matrix<f32> squares);

// ids and squares (N, K) of the objects' edges; products (p, p), zeros before, in so many ranges of rows, each of which
// reads all objects.
void landmark_products(Codes<Matrix> ids, Matrix<const f32> squares, f64 sigma, i64 n_ranges, Matrix<f64> products);

// chebyshev.cpp. The entries of a matrix (p, p) other than 0, row by row, times the scale (p,) of their row and column:
// starts (p + 1,), columns and values.
using Entries = std::tuple<Grown<i64>, Grown<i32>, Grown<f64>>;
Entries entries_of(Matrix<const f64> matrix, Vector<const f64> scale);

// vectors (p, width) become T(2 A / cut - 1) vectors for the matrix A of these entries and the Chebyshev polynomial T
// of the degree.
void chebyshev(Vector<const i64> starts, Vector<const i32> columns, Vector<const f64> values, f64 cut, i64 degree,
               Matrix<f64> vectors);

// sparse_landmarks.cpp. landmarks (p, d), base (d,); columns (d, p), squares (p,).
void turn_landmarks(Matrix<const f32> landmarks, Vector<const f32> base, Matrix<f32> columns, Vector<f64> squares);

// points (begins, features, values, base), landmarks (columns, squares); ids and squares (n, n_kept), nearest first.
using StoredPoints = std::tuple<Vector<const i64>, std::variant<Vector<const i32>, Vector<const i64>>,
                                Vector<const f32>, Vector<const f32>>;
using TurnedLandmarks = std::tuple<Matrix<const f32>, Vector<const f64>>;
void nearest_of_stored(StoredPoints points, Lists lists, Vector<const i64> of, TurnedLandmarks landmarks,
                       Matrix<i64> ids, Matrix<f32> squares);

// shares.cpp. squares (N, K) become shares; reach (p,), rows (p, d).
void landmark_shares(Codes<Matrix> ids, Matrix<f32> squares, f64 sigma, Vector<const f64> reach,
                     Matrix<const f64> rows);

// towards (p, k), lift (k,); labels (N,) change, sums (k, p) and sizes (k,) are written, added up in chunks of objects.
// Returns the number of labels that changed.
i64 nearest_by_shares(Codes<Matrix> ids, Matrix<const f32> shares, Matrix<const f64> towards, Vector<const f64> lift,
                      Vector<i64> labels, i64 chunk, Matrix<f64> sums, Vector<i64> sizes);

// local_moves.cpp. strengths (N,) above 0, or 0 without neighbours; orders (M, N), permutations of the objects; labels
// (M, N), start partitions with labels from 0 to N - 1, become partitions numbered by their first objects.
void move_locally(const GraphArrays& graph, Vector<const f64> strengths, f64 resolution, Matrix<const i32> orders,
                  Matrix<i32> labels);

// genie.cpp. points (n, d), sizes (n,) above 0; labels (n,).
void genie(Matrix<const f32> points, Vector<const i64> sizes, i64 n_clusters, f64 most_unequal, Vector<i64> labels);

}  // namespace gpuens

// k-means of points, as Python calls it (bindings.cpp).
#pragma once

#include <tuple>

#include "runtime/arrays.h"

namespace gpuens {

// plus_plus.cpp. turned (d, n), weights (n,), first (B,), uniform (B, (k - 1) draws); centers (B, k).
void plus_plus(Reals<Matrix> turned, Vector<const f64> weights, Vector<const i64> first, Matrix<const f64> uniform,
               Matrix<i64> centers);

// weighted.cpp. points (n, d), counts (n,). One pass: labels (n,) change, sums (k, d + 1) of points and of weights are
// written; returns the number of labels that changed.
i64 nearest_centers(Reals<Matrix> points, Vector<const i64> counts, Matrix<const f64> centers, Vector<i64> labels,
                    Matrix<f64> sums);

// Iterations from the given centers (k, d), which move; labels (n,) are written.
void descend_weighted(Reals<Matrix> points, Vector<const i64> counts, f64 enough, i64 most_iterations,
                      Matrix<f64> centers, Vector<i64> labels);

// The best of the starts from points first_centers (B, k): centers (k, d), labels (n,).
void best_of_starts(Reals<Matrix> points, Vector<const i64> counts, Matrix<const i64> first_centers, f64 enough,
                    i64 most_iterations, Matrix<f64> centers, Vector<i64> labels);

// nested.cpp. points (n, d); around (d, n or more), in the frame (scale, mean). labels (n,) change; returns the number of
// labels that changed.
using Frame = std::tuple<f64, Vector<const f64>>;
i64 nearest_of_sample(Reals<Matrix> points, Matrix<const f32> around, Frame frame, Matrix<const f64> centers,
                      Vector<i64> labels);

// Iterations from the given centers, which move; returns the inertia before and after.
std::tuple<f64, f64> fit_sample(Reals<Matrix> points, Matrix<const f32> around, Frame frame, f64 enough,
                                i64 most_iterations, Matrix<f64> centers);

// ../label_space.cpp. codes (M, G), cost (N_c, K), constant (K,); labels and distances (G,).
void nearest_centroids(Codes<Matrix> codes, Vector<const i64> offsets, Matrix<const f64> cost,
                       Vector<const f64> constant, Vector<i64> labels, Vector<f64> distances);

}  // namespace gpuens

// Lloyd's iterations of one start, whatever the points are (gpuens/kmeans/lloyd.py has them for a GPU).
//
// A cloud of points has
//
//   n(), labels()                    the number of points, and the center of each
//   label(centers, sums)             label the points by their nearest centers, and write their sums (k, d + 1), of which
//                                    the last column is of weights; return how many labels have changed
//   square(x, centers)               the squared distance of a point to its center
//   weight(x), coordinate(x, j)      of a point, as `sums` count it
//   center(sum, weight, j)           coordinate j of a center that is not empty
#pragma once

#include <algorithm>
#include <numeric>
#include <vector>

#include "runtime/arrays.h"
#include "kmeans/sums.h"
#include "runtime/parallel.h"

namespace gpuens {

constexpr f64 NOTHING = 1e-24;       // a squared distance that may be only a rounding error, if no coordinate is above 1
constexpr i64 BETWEEN_LOOKS = 1024;  // points

// Give each empty cluster the point that is farthest from its current center; of equal ones, the first. A point at its
// center stays there.
template <typename Cloud>
void refill(Cloud& cloud, Matrix<const f64> centers, Matrix<f64> sums) {
    i64 d = centers.columns;
    std::vector<i64> empty;
    for (i64 c = 0; c < centers.rows; ++c)
        if (sums[c][d] == 0.0) empty.push_back(c);
    if (empty.empty()) return;
    std::vector<f64> squares(cloud.n());
    for (i64 x = 0; x < cloud.n(); ++x) {
        if (x % BETWEEN_LOOKS == 0) look();
        squares[x] = cloud.square(x, centers);
    }
    std::vector<i64> farthest(cloud.n());
    std::iota(farthest.begin(), farthest.end(), 0);
    i64 n_refilled = std::min((i64)empty.size(), cloud.n());
    std::partial_sort(farthest.begin(), farthest.begin() + n_refilled, farthest.end(), [&](i64 x, i64 y) {
        return squares[x] > squares[y] || (squares[x] == squares[y] && x < y);
    });
    for (i64 i = 0; i < n_refilled && squares[farthest[i]] > NOTHING; ++i) {
        i64 x = farthest[i], &label = cloud.labels()[x];
        f64 *from = sums[label], *to = sums[empty[i]], weight = cloud.weight(x);
        for (i64 j = 0; j < d; ++j) {
            f64 coordinate = weight * cloud.coordinate(x, j);
            from[j] -= coordinate;
            to[j] = coordinate;
        }
        from[d] -= weight;
        to[d] = weight;
        label = empty[i];
    }
}

// Move the centers to the means of their points; return the square of the way. An empty cluster's stays.
template <typename Cloud>
f64 move_centers(const Cloud& cloud, Matrix<const f64> sums, Matrix<f64> centers) {
    i64 d = centers.columns;
    std::vector<f64> ways(centers.rows * d);
    for (i64 c = 0; c < centers.rows; ++c) {
        f64 weight = sums[c][d];
        if (!(weight > 0)) continue;
        for (i64 j = 0; j < d; ++j) {
            f64 moved = cloud.center(sums[c][j], weight, j) / std::max(weight, 1.0), way = moved - centers[c][j];
            ways[c * d + j] = way * way;
            centers[c][j] = moved;
        }
    }
    return pairwise_sum<f64>(0, (i64)ways.size(), [&](i64 i) { return ways[i]; });
}

// Iterate until no label changes, or the centers move by no more than the square `enough`.
template <typename Cloud>
void descend(Cloud& cloud, Matrix<f64> centers, f64 enough, i64 most_iterations) {
    std::vector<f64> memory(centers.rows * (centers.columns + 1));
    Matrix<f64> sums{memory.data(), centers.rows, centers.columns + 1};
    for (i64 i = 0; i < most_iterations; ++i) {
        if (!cloud.label(as_const(centers), sums)) return;
        refill(cloud, as_const(centers), sums);
        if (move_centers(cloud, as_const(sums), centers) <= enough) return;
    }
}

}  // namespace gpuens

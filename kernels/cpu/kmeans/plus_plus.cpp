// k-means++ (gpuens/kmeans/plus_plus.py): each further center is the best of several points, drawn in proportion to the
// squared distance from the centers so far.
//
// Sums over points are taken point by point. Several candidates are compared at once, so that their sums do not wait for
// each other. Distances to candidates are not kept; those to the best candidate are computed again.
#include "kmeans/primitives.h"
#include "runtime/lanes.h"
#include "runtime/parallel.h"

#include <algorithm>
#include <limits>
#include <vector>

namespace gpuens {

namespace {

constexpr int AT_ONCE = 4;           // candidates that are compared at the same time
constexpr i64 BLOCK = 64;            // points whose distances are computed before they are added
constexpr i64 BETWEEN_LOOKS = 1024;  // blocks

template <typename Point>
class Start {
public:
    Start(Matrix<const Point> turned_, Vector<const f64> weights_)
        : turned(turned_), weights(weights_), nearest(n(), std::numeric_limits<Point>::infinity()), reached(n()) {}

    void choose(i64 first, const f64* uniform, i64 n_draws, i64 k, i64* centers) {
        std::vector<i64> candidates(n_draws);
        centers[0] = first;
        for (i64 c = 1; c < k; ++c, uniform += n_draws) {
            f64 potential = take(centers[c - 1]);
            for (i64 t = 0; t < n_draws; ++t) candidates[t] = reaching(uniform[t] * potential);
            centers[c] = best(candidates);
        }
    }

private:
    i64 n() const { return turned.columns; }

    // The first point whose sum reaches a number; rounding may leave the last one's below.
    i64 reaching(f64 number) const {
        return std::lower_bound(reached.begin(), reached.end() - 1, number) - reached.begin();
    }

    // Add a center; return the weighted sum of the squared distances to the nearest center.
    f64 take(i64 center) {
        f64 total = 0.0;
        each_block<1>(&center, [&](i64 g, const Point(&near)[1][BLOCK], i64 n_points) {
            for (i64 p = 0; p < n_points; ++p) {
                nearest[g + p] = near[0][p];
                total += weights[g + p] * near[0][p];
                reached[g + p] = total;
            }
        });
        return total;
    }

    // The candidate that leaves the smallest sum; of equal ones, the first.
    i64 best(const std::vector<i64>& candidates) {
        i64 candidate = candidates[0];
        f64 smallest = std::numeric_limits<f64>::infinity();
        for (i64 t = 0; t < (i64)candidates.size();) {
            i64 n_tried = std::min((i64)AT_ONCE, (i64)candidates.size() - t);
            f64 totals[AT_ONCE] = {};
            if (n_tried == 4) add<4>(&candidates[t], totals);
            else if (n_tried == 3) add<3>(&candidates[t], totals);
            else if (n_tried == 2) add<2>(&candidates[t], totals);
            else add<1>(&candidates[t], totals);
            for (i64 c = 0; c < n_tried; ++c, ++t)
                if (totals[c] < smallest) smallest = totals[c], candidate = candidates[t];
        }
        return candidate;
    }

    template <int CANDIDATES>
    void add(const i64* candidates, f64* totals) {
        f64 sums[CANDIDATES] = {};
        each_block<CANDIDATES>(candidates, [&](i64 g, const Point(&near)[CANDIDATES][BLOCK], i64 n_points) {
            for (i64 p = 0; p < n_points; ++p)
                for (int c = 0; c < CANDIDATES; ++c) sums[c] += weights[g + p] * near[c][p];
        });
        std::copy(sums, sums + CANDIDATES, totals);
    }

    // Call `work(g, near, some)` on the squared distances of points g ... g + some - 1 to their nearest centers, were a
    // candidate one of them.
    template <int CANDIDATES, typename Work>
    void each_block(const i64* candidates, Work&& work) {
        Point near[CANDIDATES][BLOCK];
        for (i64 g = 0; g < n(); g += BLOCK) {
            if (g % (BETWEEN_LOOKS * BLOCK) == 0) look();
            i64 n_points = std::min(BLOCK, n() - g), p = 0;
            constexpr int WIDE = VECTOR_BYTES / sizeof(Point);
            for (; p + 2 * WIDE <= n_points; p += 2 * WIDE) compare<CANDIDATES, 2, WIDE>(candidates, g, p, near);
            for (; p + WIDE <= n_points; p += WIDE) compare<CANDIDATES, 1, WIDE>(candidates, g, p, near);
            for (; p < n_points; ++p) compare<CANDIDATES, 1, 1>(candidates, g, p, near);
            work(g, near, n_points);
        }
    }

    // The distances of points g + p on, as many as N_VECTORS vectors hold.
    template <int CANDIDATES, int N_VECTORS, int WIDE>
    [[gnu::always_inline]] inline void compare(const i64* candidates, i64 g, i64 p, Point (&near)[CANDIDATES][BLOCK]) {
        using Pack = Native<Point, WIDE>;
        Pack square[CANDIDATES][N_VECTORS] = {};
        for (i64 j = 0; j < turned.rows; ++j) {
            const Point* row = turned[j];
            Pack coordinates[N_VECTORS];
#pragma GCC unroll 2
            for (int v = 0; v < N_VECTORS; ++v) coordinates[v] = loaded<Pack>(row + g + p + v * WIDE);
#pragma GCC unroll 4
            for (int c = 0; c < CANDIDATES; ++c)
#pragma GCC unroll 2
                for (int v = 0; v < N_VECTORS; ++v) {
                    Pack apart = coordinates[v] - row[candidates[c]];
                    square[c][v] += apart * apart;
                }
        }
        for (int c = 0; c < CANDIDATES; ++c)
            for (int v = 0; v < N_VECTORS; ++v) {
                Pack before = loaded<Pack>(&nearest[g + p + v * WIDE]);
                Pack smaller = before < square[c][v] ? before : square[c][v];
                std::memcpy(&near[c][p + v * WIDE], &smaller, sizeof smaller);
            }
    }

    Matrix<const Point> turned;
    Vector<const f64> weights;
    std::vector<Point> nearest;  // squared distance of each point to the nearest center
    std::vector<f64> reached;    // weighted sum of `nearest` up to each point
};

}  // namespace

void plus_plus(Reals<Matrix> turned, Vector<const f64> weights, Vector<const i64> first, Matrix<const f64> uniform,
               Matrix<i64> centers) {
    std::visit([&]<typename Point>(Matrix<const Point> of) {
        i64 k = centers.columns, n_draws = k > 1 ? uniform.columns / (k - 1) : 0;
        over_ranges(first.size, (f64)(of.columns * of.rows * (k - 1) * n_draws) / 8, [&](i64 start, i64 stop) {
            for (i64 b = start; b < stop; ++b)
                Start<Point>(of, weights).choose(first[b], uniform[b], n_draws, k, centers[b]);
        });
    }, turned);
}

}  // namespace gpuens

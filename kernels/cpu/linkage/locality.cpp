// A locality-preserving order of label rows, as gpuens/partition/linkage/locality.py describes it: points of clusters by power
// iterations on a sample of rows, then the points of all rows, halved repeatedly.
#include <algorithm>
#include <cmath>
#include <memory>
#include <vector>

#include "linkage/primitives.h"
#include "runtime/parallel.h"

namespace gpuens {

namespace {

constexpr int DIMENSIONS = 8;     // coordinates of a point
constexpr int STEPS = 3;          // power iterations
constexpr i64 SAMPLED = 1 << 14;  // rows used to compute the points of clusters
constexpr i64 LEAF = 32;          // smallest number of rows in a part that results from halving
constexpr i64 LOOKED_AT = 64;     // rows used to estimate the direction in which a part's points differ most
constexpr i64 AT_ONCE = 256;      // rows whose sums a cache holds while clusterings are added
constexpr f64 LABEL_NS = 3;       // time to add a label's point
constexpr f64 HALVING_NS = 10;    // time to put a row into one half of its part

struct PlacedRow {
    f32 point[DIMENSIONS];
    i64 row;
};

i64 ratio_up(i64 a, i64 b) { return (a + b - 1) / b; }

void add(const f64* point, f64* sum) {
    for (int d = 0; d < DIMENSIONS; ++d) sum[d] += point[d];
}

// Call `work(i, point)` with the mean point of the clusters of each row i * step for i = start ... stop - 1; zeros for a row
// without labels.
template <typename Code, typename Work>
void each_point(Matrix<const Code> columns, Vector<const i64> offsets, Matrix<f64> clusters, i64 start, i64 stop, i64 step,
                Work&& work) {
    for (i64 first = start; first < stop; first += AT_ONCE) {
        f64 points[AT_ONCE][DIMENSIONS] = {}, n_labels[AT_ONCE] = {};
        i64 n = std::min(stop - first, AT_ONCE);
        for (i64 m = 0; m < columns.rows; ++m) {
            const Code* labels = columns[m] + first * step;
            for (i64 i = 0; i < n; ++i) {
                Code label = labels[i * step];
                if (label == MISSING(Code)) continue;
                add(clusters[offsets[m] + label], points[i]);
                ++n_labels[i];
            }
        }
        for (i64 i = 0; i < n; ++i) {
            for (f64& x : points[i]) x /= std::max(n_labels[i], 1.0);
            work(first + i, points[i]);
        }
    }
}

// Give the points (n, d) mean 0 and variance 1 in each dimension.
void standardize(Matrix<f64> points) {
    f64 mean[DIMENSIONS] = {}, variance[DIMENSIONS] = {};
    for (i64 i = 0; i < points.rows; ++i) add(points[i], mean);
    for (f64& x : mean) x /= (f64)points.rows;
    for (i64 i = 0; i < points.rows; ++i)
        for (int d = 0; d < DIMENSIONS; ++d) {
            points[i][d] -= mean[d];
            variance[d] += points[i][d] * points[i][d];
        }
    f64 scale[DIMENSIONS];
    for (int d = 0; d < DIMENSIONS; ++d) scale[d] = 1 / std::max(std::sqrt(variance[d] / (f64)points.rows), 1e-12);
    for (i64 i = 0; i < points.rows; ++i)
        for (int d = 0; d < DIMENSIONS; ++d) points[i][d] *= scale[d];
}

// Write the mean point of each cluster's rows, zeros for a cluster without rows; row i * step has point i.
template <typename Code>
void average(const Code* labels, i64 step, Matrix<f64> points, Matrix<f64> clusters) {
    std::vector<f64> sizes(clusters.rows);
    std::fill(clusters[0], clusters[clusters.rows], 0.0);
    for (i64 i = 0; i < points.rows; ++i) {
        Code label = labels[i * step];
        if (label == MISSING(Code)) continue;
        add(points[i], clusters[label]);
        ++sizes[label];
    }
    for (i64 c = 0; c < clusters.rows; ++c)
        for (int d = 0; d < DIMENSIONS; ++d) clusters[c][d] /= std::max(sizes[c], 1.0);
}

// Replace the random points of clusters by those after power iterations on a sample of rows.
template <typename Code>
void iterate(Matrix<const Code> columns, Vector<const i64> offsets, Matrix<f64> clusters) {
    i64 step = ratio_up(columns.columns, SAMPLED), n = ratio_up(columns.columns, step);
    std::vector<f64> memory(n * DIMENSIONS);
    Matrix<f64> points{memory.data(), n, DIMENSIONS};
    for (int s = 0; s < STEPS; ++s) {
        over_ranges(n, (f64)columns.rows * LABEL_NS, [&](i64 start, i64 stop) {
            each_point(columns, offsets, clusters, start, stop, step,
                       [&](i64 i, const f64* point) { std::copy(point, point + DIMENSIONS, points[i]); });
        });
        standardize(points);
        over_ranges(columns.rows, (f64)n * LABEL_NS, [&](i64 start, i64 stop) {
            for (i64 m = start; m < stop; ++m)
                average(columns[m], step, points, {clusters[offsets[m]], offsets[m + 1] - offsets[m], DIMENSIONS});
        });
    }
}

// The direction in which the points of a part differ most.
int widest(const PlacedRow* part, i64 n) {
    i64 step = ratio_up(n, LOOKED_AT);
    f64 sums[DIMENSIONS] = {}, squares[DIMENSIONS] = {}, spread[DIMENSIONS];
    for (i64 i = 0; i < n; i += step)
        for (int d = 0; d < DIMENSIONS; ++d) {
            f64 x = part[i].point[d];
            sums[d] += x;
            squares[d] += x * x;
        }
    for (int d = 0; d < DIMENSIONS; ++d) spread[d] = squares[d] - sums[d] * sums[d] / (f64)ratio_up(n, step);
    return (int)(std::max_element(spread, spread + DIMENSIONS) - spread);
}

// Put rows in order: halve each part along its widest direction, until parts are short.
void halve(PlacedRow* rows, i64 n) {
    auto bound = [&](i64 i, i64 n_parts) { return rows + i * n / n_parts; };
    for (i64 n_parts = 1; n / n_parts >= 2 * LEAF; n_parts *= 2)
        over_ranges(n_parts, (f64)(n / n_parts) * HALVING_NS, [&](i64 start, i64 stop) {
            Looks compared;
            for (i64 p = start; p < stop; ++p) {
                PlacedRow *begin = bound(p, n_parts), *end = bound(p + 1, n_parts);
                int along = widest(begin, end - begin);
                std::nth_element(begin, bound(2 * p + 1, 2 * n_parts), end, [&](const PlacedRow& a, const PlacedRow& b) {
                    compared();
                    return a.point[along] < b.point[along];
                });
            }
        });
}

}  // namespace

void order_by_locality(Codes<Matrix> columns, Vector<const i64> offsets, Matrix<f64> clusters, Vector<i64> order) {
    std::visit([&](auto of) {
        iterate(of, offsets, clusters);
        std::unique_ptr<PlacedRow[]> rows(new PlacedRow[order.size]);
        over_ranges(order.size, (f64)of.rows * LABEL_NS, [&](i64 start, i64 stop) {
            each_point(of, offsets, clusters, start, stop, 1, [&](i64 g, const f64* point) {
                std::copy(point, point + DIMENSIONS, rows[g].point);
                rows[g].row = g;
            });
        });
        halve(rows.get(), order.size);
        for (i64 i = 0; i < order.size; ++i) order[i] = rows[i].row;
    }, columns);
}

}  // namespace gpuens

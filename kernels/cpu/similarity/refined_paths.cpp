// Co-association refined by distances (gpuens/similarity/refined_paths.py).
#include "runtime/parallel.h"
#include "similarity/primitives.h"

#include <algorithm>
#include <cmath>
#include <mutex>

namespace gpuens {

namespace {

constexpr i64 TOGETHER = 512;  // objects whose distances to one object are computed together
constexpr i64 LANES_OF_LARGEST = 16, PAIRS = 64;
constexpr f64 DIFFERENCE_NS = 0.2, PAIR_NS = 0.2;

// The distances of an object and others, added to sums and compared with the largest.
void add_distances(Matrix<const f64> points, i64 x, i64 first, i64 n, f64* sums, f64* largest) {
    f64 squares[TOGETHER];
    std::fill_n(squares, n, 0.0);
    for (i64 d = 0; d < points.rows; ++d) {
        f64 coordinate = points[d][x];
        const f64* coordinates = points[d] + first;
        for (i64 y = 0; y < n; ++y) squares[y] += (coordinates[y] - coordinate) * (coordinates[y] - coordinate);
    }
    for (i64 y = 0; y < n; ++y) {
        f64 distance = std::sqrt(squares[y]);
        sums[y] += distance;
        largest[y] = std::max(largest[y], distance);
    }
}

// The maximum of `largest` and the n numbers with a label.
template <typename Code>
f64 largest_of(const Code* labels, Code label, const f64* values, i64 n, f64 largest) {
    f64 lanes[LANES_OF_LARGEST] = {};
    i64 h = 0;
    for (; h + LANES_OF_LARGEST <= n; h += LANES_OF_LARGEST)
        for (i64 j = 0; j < LANES_OF_LARGEST; ++j)
            lanes[j] = std::max(lanes[j], labels[h + j] == label ? values[h + j] : 0.0);
    for (; h < n; ++h)
        if (labels[h] == label) largest = std::max(largest, values[h]);
    for (f64 lane : lanes) largest = std::max(largest, lane);
    return largest;
}

}  // namespace

void row_distances(Matrix<const f64> points, Vector<const i64> bounds, std::tuple<i64, i64> rows, Matrix<f64> mean,
                   Matrix<f64> farthest) {
    i64 start = std::get<0>(rows), stop = std::get<1>(rows);  // Clang 14 and 15 capture no structured bindings
    f64 row_ns = (f64)bounds[stop] * (f64)((bounds[stop] - bounds[start]) / (stop - start) + 1);
    in_threads(stop - start, row_ns * (f64)(points.rows + 2) * DIFFERENCE_NS, [&](Ranges& ranges) {
        std::vector<f64> sums(bounds[stop]), largest(bounds[stop]);
        while (Range range = ranges.next())
            for (i64 g = start + range.start; g < start + range.stop; ++g) {
                i64 begin = bounds[g], end = bounds[g + 1];
                std::fill_n(sums.begin(), end, 0.0);
                std::fill_n(largest.begin(), end, 0.0);
                for (i64 first = 0; first < end; first += TOGETHER) {
                    i64 n = std::min(TOGETHER, end - first);
                    for (i64 x = begin; x < end; ++x) {
                        look();
                        add_distances(points, x, first, n, sums.data() + first, largest.data() + first);
                    }
                }
                for (i64 h = 0; h <= g; ++h) {
                    f64 total = 0.0, most = 0.0;
                    for (i64 y = bounds[h]; y < bounds[h + 1]; ++y) {
                        total += sums[y];
                        most = std::max(most, largest[y]);
                    }
                    i64 pairs = (end - begin) * (bounds[h + 1] - bounds[h]);
                    mean[g][h] = mean[h][g] = total / (f64)pairs;
                    farthest[g][h] = farthest[h][g] = most;
                }
            }
    });
}

void farthest_in_clusters(Codes<Matrix> codes, Vector<const i64> offsets, Matrix<const f64> farthest,
                          Vector<f64> largest) {
    std::fill(largest.begin(), largest.end(), 0.0);
    std::mutex merging;
    std::visit([&]<typename Code>(Matrix<const Code> labels) {
        in_threads(farthest.rows, (f64)(labels.rows * farthest.rows) / 2 * PAIR_NS, [&](Ranges& ranges) {
            std::vector<f64> thread_largest(largest.size);
            while (Range range = ranges.next())
                for (i64 g = range.start; g < range.stop; ++g) {
                    look();
                    for (i64 m = 0; m < labels.rows; ++m)
                        if (Code label = labels[m][g]; label != MISSING(Code)) {
                            f64& cluster_largest = thread_largest[offsets[m] + label];
                            cluster_largest = largest_of(labels[m], label, farthest[g], g + 1, cluster_largest);
                        }
                }
            std::lock_guard<std::mutex> lock(merging);
            for (i64 c = 0; c < largest.size; ++c) largest[c] = std::max(largest[c], thread_largest[c]);
        });
    }, codes);
}

void refine(Codes<Matrix> codes, Vector<const i64> offsets, Matrix<const f64> distances, Vector<const f64> inverse,
            Vector<const f64> weights, Matrix<f64> similar) {
    std::visit([&]<typename Code>(Matrix<const Code> labels) {
        over_ranges(similar.rows, (f64)(labels.rows * similar.rows) / 2 * PAIR_NS, [&](i64 start, i64 stop) {
            for (i64 g = start; g < stop; ++g)
                for (i64 first = 0; first <= g; first += PAIRS) {
                    look();
                    i64 n = std::min(PAIRS, g + 1 - first);
                    f64 total[PAIRS] = {};
                    const f64* apart = distances[g] + first;
                    for (i64 m = 0; m < labels.rows; ++m) {
                        Code label = labels[m][g];
                        if (label == MISSING(Code)) continue;
                        f64 weight = weights[offsets[m] + label], by = inverse[offsets[m] + label];
                        const Code* column_labels = labels[m] + first;
                        for (i64 h = 0; h < n; ++h)  // a zero that is added changes no sum
                            total[h] += column_labels[h] == label ? weight * (1.0 - apart[h] * by) : 0.0;
                    }
                    for (i64 h = 0; h < n; ++h) similar[g][first + h] = similar[first + h][g] = total[h];
                }
        });
    }, codes);
}

}  // namespace gpuens

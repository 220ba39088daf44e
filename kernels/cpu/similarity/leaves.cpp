// Nearest points by a k-d tree of two levels (gpuens/similarity/reference_sets.py).
#include "runtime/parallel.h"
#include "similarity/nearest_list.h"
#include "similarity/primitives.h"

#include <algorithm>
#include <limits>

namespace gpuens {

namespace {

constexpr i64 GROUP = 64;               // leaves in a group
constexpr i64 FIRST = 9, BETWEEN = 16;  // features after which partial sums are compared with the limit
constexpr f64 POINT_NS = 20'000, FILLED_NS = 3;
constexpr f64 INFINITE = std::numeric_limits<f64>::infinity();

// The feature of largest range among some points.
i64 widest(Matrix<const f64> points, const i64* order, i64 n) {
    std::vector<f64> low(points.columns, INFINITE), high(points.columns, -INFINITE);
    for (i64 p = 0; p < n; ++p) {
        const f64* point = points[order[p]];
        for (i64 d = 0; d < points.columns; ++d) {
            low[d] = std::min(low[d], point[d]);
            high[d] = std::max(high[d], point[d]);
        }
    }
    i64 best = 0;
    for (i64 d = 1; d < points.columns; ++d)
        if (high[d] - low[d] > high[best] - low[best]) best = d;
    return best;
}

// Put the points of the first half of the leaves first.
void halve(Matrix<const f64> points, i64* order, i64 n, i64 half) {
    i64 feature = widest(points, order, n);
    std::vector<std::pair<f64, i64>> values(n);
    for (i64 p = 0; p < n; ++p) values[p] = {points[order[p]][feature], order[p]};
    std::nth_element(values.begin(), values.begin() + half, values.end());
    for (i64 p = 0; p < n; ++p) order[p] = values[p].second;
}

bool any_within(const f64* squares, i64 n, f64 limit) {
    i64 within = 0;
    for (i64 p = 0; p < n; ++p) within |= squares[p] <= limit;
    return within;
}

// Write sums over the features of `add(feature)(place)`, n side by side; return whether any may be within the limit. Partial
// sums are bounds, too. N: n where it is known, and sums stay in registers.
template <i64 N, typename Add>
bool sum_features(i64 n_features, i64 n, f64 limit, f64* squares, Add&& add) {
    f64 in_registers[N ? N : 1];
    f64* sums = N ? in_registers : squares;
    for (i64 p = 0; p < (N ? N : n); ++p) sums[p] = 0.0;
    for (i64 d = 0; d < n_features; ++d) {
        auto of_feature = add(d);
#pragma GCC ivdep
        for (i64 p = 0; p < (N ? N : n); ++p) sums[p] += of_feature(p);
        if (d % BETWEEN == FIRST && !any_within(sums, N ? N : n, limit)) return false;
    }
    if (N) std::copy_n(sums, N, squares);
    return true;
}

// Dispatch on the number of places in a leaf.
template <typename Add>
bool sum_leaf(i64 n_features, i64 n, f64 limit, f64* squares, Add&& add) {
    switch (n) {
        case 24: return sum_features<24>(n_features, n, limit, squares, add);
        case 32: return sum_features<32>(n_features, n, limit, squares, add);
        case 40: return sum_features<40>(n_features, n, limit, squares, add);
        default: return sum_features<0>(n_features, n, limit, squares, add);  // small data sets
    }
}

// Searches the tree for the points nearest to one.
class Search {
public:
    Search(const Leaves& leaves, Matrix<const f64> points_)
        : tree(leaves), points(points_), of_points(leaves.width()), of_leaves(GROUP), of_groups(leaves.n_groups()) {}

    void find(i64 i, i64* ids, f64* squares, i64 n_neighbors) {
        self = i;
        list = {ids, squares, n_neighbors};
        limit = INFINITE;
        i64 leaf = tree.leaf_of[i], group = leaf / GROUP;
        bound<0>(tree.hull(0, 0), tree.hull(1, 0), tree.n_groups(), of_groups.data());
        search_group(group, leaf);
        for (i64 other = 0; other < tree.n_groups(); ++other)
            if (other != group && !(of_groups[other] > limit)) search_group(other, -1);
    }

private:
    // `own`: the leaf that is searched first; -1 if it is in another group.
    void search_group(i64 group, i64 first_leaf) {
        if (!bound<GROUP>(tree.box(0, group), tree.box(1, group), GROUP, of_leaves.data())) return;
        if (first_leaf >= 0) search_leaf(first_leaf);
        i64 first = group * GROUP, n = std::min(GROUP, tree.n_leaves() - first);
        for (i64 at = 0; at < n; ++at)
            if (first + at != first_leaf && !(of_leaves[at] > limit)) search_leaf(first + at);
    }

    void search_leaf(i64 leaf) {
        i64 n = tree.width();
        const f64 *point = points[self], *others = tree.leaf(leaf);
        bool within = sum_leaf(points.columns, n, limit, of_points.data(), [&](i64 d) {
            return [x = point[d], own = others + d * n](i64 p) { return (x - own[p]) * (x - own[p]); };
        });
        if (!within) return;
        for (i64 p = tree.starts[leaf]; p < tree.starts[leaf + 1]; ++p) {
            f64 square = of_points[p - tree.starts[leaf]];
            if (!(square <= limit) || tree.order[p] == self) continue;
            list.offer(tree.order[p], square);
            if (list.full()) limit = list.farthest();
        }
    }

    // Write the squared distances of n boxes; return whether any may be within the limit.
    template <i64 N>
    bool bound(const f64* lower, const f64* upper, i64 n, f64* squares) {
        const f64* point = points[self];
        return sum_features<N>(points.columns, n, limit, squares, [&](i64 d) {
            return [x = point[d], low = lower + d * n, high = upper + d * n](i64 b) {
                f64 gap = std::max(std::max(low[b] - x, x - high[b]), 0.0);
                return gap * gap;
            };
        });
    }

    const Leaves& tree;
    Matrix<const f64> points;
    std::vector<f64> of_points, of_leaves, of_groups;
    NearestList list{};
    i64 self = 0;
    f64 limit = INFINITE;
};

}  // namespace

void split_points(Matrix<const f64> points, Vector<const i64> starts, Vector<i64> order) {
    for (i64 n_leaves = starts.size - 1; n_leaves > 1; n_leaves /= 2) {
        i64 n_parts = (starts.size - 1) / n_leaves;
        f64 part_ns = (f64)(order.size / n_parts + 1) * (f64)(points.columns + 10) * FILLED_NS;
        over_ranges(n_parts, part_ns, [&](i64 start, i64 stop) {
            for (i64 part = start; part < stop; ++part) {
                look();
                const i64* bounds = starts.data + part * n_leaves;
                halve(points, order.data + bounds[0], bounds[n_leaves] - bounds[0], bounds[n_leaves / 2] - bounds[0]);
            }
        });
    }
}

void fill_leaves(Matrix<const f64> points, Vector<const i64> order, Vector<const i64> starts, Matrix<f64> coordinates,
                 Matrix<f64> lower, Matrix<f64> upper) {
    i64 n_features = points.columns;
    over_ranges(starts.size - 1, (f64)(coordinates.columns * n_features) * FILLED_NS, [&](i64 start, i64 stop) {
        for (i64 leaf = start; leaf < stop; ++leaf) {
            look();
            i64 group = leaf / GROUP, at = leaf % GROUP, begin = starts[leaf], end = starts[leaf + 1];
            for (i64 d = 0; d < n_features; ++d) {
                f64 *row = coordinates[leaf * n_features + d], low = INFINITE, high = -INFINITE;
                for (i64 p = begin; p < end; ++p) {
                    f64 x = row[p - begin] = points[order[p]][d];
                    low = std::min(low, x);
                    high = std::max(high, x);
                }
                if (begin == end) continue;
                lower[group * n_features + d][at] = low;
                upper[group * n_features + d][at] = high;
            }
        }
    });
}

void nearest_others(Matrix<const f64> points, i64 first, Leaves leaves, Matrix<i64> ids, Matrix<f64> squares) {
    in_threads(ids.rows, POINT_NS, [&](Ranges& ranges) {
        Search search(leaves, points);
        while (Range range = ranges.next())
            for (i64 r = range.start; r < range.stop; ++r) {
                if (r % 16 == 0) look();
                search.find(first + r, ids[r], squares[r], ids.columns);
            }
    });
}

}  // namespace gpuens

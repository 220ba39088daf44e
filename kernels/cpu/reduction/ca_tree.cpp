// The CA-tree (kernels/ca_tree.cu): its shape, the radius and the representative of each node, and descents of nodes
// that a cut leaves out.
#include "runtime/lanes.h"
#include "runtime/parallel.h"
#include "reduction/primitives.h"

#include <algorithm>

namespace gpuens {

namespace {

constexpr i64 TILE = 64;        // members that are compared with another one at once
constexpr i64 FEW = 8;          // members whose pairs are compared one by one
constexpr i32 NONE = -(1 << 29);  // the radius of no member, and the distance of none
constexpr f64 LABEL_NS = 0.5;   // a label of two rows compared, or of a row and a tile

template <typename Code>
CATree<Code> tree_of(Matrix<const Code> rows, const TreeShape& shape) {
    return {rows.data, rows.rows, rows.columns, shape.starts.data, shape.children.data};
}

// Rows of up to TILE members, clustering by clustering, and a bound, by distances of rows and radii, of the distance of
// each member's farthest object so far.
template <typename Code>
class Tile {
public:
    explicit Tile(i64 n_clusterings_) : n_clusterings(n_clusterings_), labels(n_clusterings * TILE) {}

    void clear() {
        std::fill(radii, radii + TILE, NONE);
        std::fill(farthest, farthest + TILE, NONE);
    }

    void put(i64 place, const Code* row, i32 radius) {
        for (i64 m = 0; m < n_clusterings; ++m) labels[m * TILE + place] = row[m];
        radii[place] = radius;
    }

    i32 reach(i64 place) const { return farthest[place]; }

    // Compare the tile with another member, or its own member at `self`; return the distance of its farthest object.
    i32 compare(const Code* row, i32 radius, i64 self) {
        i32 apart[TILE] = {};
        // numbers of differing labels, in the labels' type while they cannot overflow
        for (i64 first = 0; first < n_clusterings; first += MISSING(Code))
            add_differences(row, first, std::min(first + (i64)MISSING(Code), n_clusterings), apart);
        if (self < TILE) apart[self] = NONE;
        i32 farthest_member = NONE;
        for (i64 j = 0; j < TILE; ++j) {
            farthest_member = std::max(farthest_member, apart[j] + radii[j]);
            farthest[j] = std::max(farthest[j], apart[j] + radius);
        }
        return farthest_member;
    }

private:
    void add_differences(const Code* row, i64 first, i64 end, i32* apart) const {
        constexpr i64 N = TILE / IN_REGISTER<Code>;
        Register<Code> differ[N] = {};
        i32 missing = 0;
        for (i64 m = first; m < end; ++m) {
            if (row[m] == MISSING(Code)) {
                ++missing;
                continue;
            }
            for (i64 v = 0; v < N; ++v)
                differ[v] -= (Register<Code>)(load(labels.data() + m * TILE + v * IN_REGISTER<Code>) != row[m]);
        }
        Code counts[TILE];
        std::memcpy(counts, differ, sizeof counts);
        for (i64 j = 0; j < TILE; ++j) apart[j] += (i32)counts[j] + missing;
    }

    i64 n_clusterings;
    std::vector<Code> labels;
    i32 radii[TILE], farthest[TILE];
};

// Measures nodes, in memory of its own.
template <typename Code>
class Measure {
public:
    Measure(Matrix<const Code> rows, const TreeShape& shape_, i64 n_des_, Vector<i32> radii_,
            Vector<i64> representatives_)
        : tree(tree_of(rows, shape_)), shape(shape_), n_des(n_des_), radii(radii_), representatives(representatives_),
          tile(rows.columns) {
        i64 max_children = 0;
        for (i64 z = 0; z + 1 < shape.starts.size; ++z)
            max_children = std::max(max_children, shape.starts[z + 1] - shape.starts[z]);
        members.resize(n_des > 0 ? std::min(n_des, tree.n_rows) + max_children : 0);
    }

    // Write the least reach of a member, and its representative; of equal reaches, the first.
    void node(i64 z) {
        i64 n = find_members(z);
        reach.resize(n);
        for (i64 i = 0; i < n; ++i) reach[i] = radii[members[i]];
        if (n <= FEW)
            compare_pairs(n);
        else
            for (i64 first = 0; first < n; first += TILE) compare_tile(first, n);
        i32 radius = (i32)tree.n_clusterings + 1;
        i64 representative = z;
        for (i64 i = 0; i < n; ++i) {
            i32 bounded = std::min(reach[i], (i32)tree.n_clusterings);
            i64 leaf = representatives[members[i]];
            if (bounded > radius || (bounded == radius && leaf >= representative)) continue;
            radius = bounded;
            representative = leaf;
        }
        radii[z] = radius;
        representatives[z] = representative;
    }

private:
    void compare_pairs(i64 n) {
        for (i64 i = 0; i < n; ++i)
            for (i64 j = 0; j < i; ++j) {
                i32 apart = tree.hamming(representatives[members[i]], representatives[members[j]]);
                reach[i] = std::max(reach[i], apart + radii[members[j]]);
                reach[j] = std::max(reach[j], apart + radii[members[i]]);
            }
    }

    // Compare members from `first` on, as many as a tile has, with each other and with all later ones.
    void compare_tile(i64 first, i64 n) {
        i64 last = std::min(first + TILE, n);
        tile.clear();
        look();
        for (i64 i = first; i < last; ++i) tile.put(i - first, row_of(i), radii[members[i]]);
        for (i64 i = first; i < n; ++i)
            reach[i] = std::max(reach[i], tile.compare(row_of(i), radii[members[i]], i - first));
        for (i64 i = first; i < last; ++i) reach[i] = std::max(reach[i], tile.reach(i - first));
    }

    i64 find_members(i64 z) {
        if (n_des > 0) return tree.members_of(z, n_des, radii.data, shape.first.data, members.data());
        i64 n = shape.last[z] - shape.first[z] + 1;
        members.resize(n);
        for (i64 i = 0; i < n; ++i) members[i] = shape.first[z] + i;
        return n;
    }

    const Code* row_of(i64 member) const {
        return tree.rows + representatives[members[member]] * tree.n_clusterings;
    }

    CATree<Code> tree;
    const TreeShape& shape;
    i64 n_des;
    Vector<i32> radii;
    Vector<i64> representatives;
    Tile<Code> tile;
    std::vector<i64> members;
    std::vector<i32> reach;
};

}  // namespace

void common_prefixes(Codes<Matrix> rows, Vector<i32> prefixes) {
    std::visit([&](auto of) {
        auto tree = tree_of(of, {});
        over_ranges(of.rows, 8, [&](i64 start, i64 stop) {
            for (i64 i = start; i < stop; ++i) prefixes[i] = i > 0 ? tree.common_prefix(i - 1, i) : 0;
        });
    }, rows);
}

std::tuple<Grown<i64>, Grown<i64>, Grown<i64>, Grown<i64>> inner_nodes(Vector<const i32> prefixes) {
    i64 n = prefixes.size;
    Grown<i64> parents(n, -1), splits, first, last;  // inner node z is node n + z
    std::vector<i64> opened;                         // inner nodes, from the root down
    for (i64 i = 1; i <= n; ++i) {
        i64 shared = i < n ? prefixes[i] : -1;
        i64 below = i - 1, start = i - 1;  // the child of the next node that opens, or of the last one that has
        while (!opened.empty() && splits[opened.back()] > shared) {
            i64 z = opened.back();
            opened.pop_back();
            parents[below] = z;
            last[z] = i - 1;
            below = n + z;
            start = first[z];
        }
        if (i == n) break;
        if (opened.empty() || splits[opened.back()] < shared) {
            opened.push_back((i64)splits.size());
            splits.push_back(shared);
            first.push_back(start);
            last.push_back(-1);
            parents.push_back(-1);
        }
        parents[below] = opened.back();
    }
    return {std::move(parents), std::move(splits), std::move(first), std::move(last)};
}

void topmost_nodes(Vector<const i64> parents, Vector<const bool> within, Vector<bool> topmost) {
    std::vector<u8> covered(parents.size);  // nodes within the limit, and their descendants
    for (i64 z = parents.size - 1; z >= 0; --z) {
        bool above = parents[z] >= 0 && covered[parents[z]];
        topmost[z] = within[z] && !above;
        covered[z] = within[z] || above;
    }
}

void mark_ancestors(Vector<const i64> parents, Vector<u8> marks) {
    for (i64 z = 0; z < parents.size; ++z)
        if (marks[z] > 0 && parents[z] >= 0 && marks[parents[z]] == 0) marks[parents[z]] = 1;
}

void measure_nodes(Codes<Matrix> rows, const TreeShape& shape, i64 n_des, Vector<i32> radii,
                   Vector<i64> representatives) {
    std::visit([&](auto of) {
        for (i64 level = 0; level + 1 < shape.levels.size; ++level) {
            i64 from = shape.levels[level], n = shape.levels[level + 1] - from;
            i64 members = n_des > 0 ? n_des : of.rows / std::max(n, (i64)1);
            in_threads(n, (f64)(members * (1 + members / TILE) * of.columns) * LABEL_NS, [&](Ranges& ranges) {
                Measure measure(of, shape, n_des, radii, representatives);
                while (Range range = ranges.next())
                    for (i64 z = range.start; z < range.stop; ++z) measure.node(from + z);
            });
        }
    }, rows);
}

void descend_tree(Codes<Matrix> rows, const TreeShape& shape, Vector<const i64> representatives, Vector<const u8> marks,
                  Vector<const i64> nodes, Vector<i64> ends) {
    std::visit([&](auto of) {
        auto tree = tree_of(of, shape);
        over_ranges(nodes.size, (f64)(16 * of.columns), [&](i64 start, i64 stop) {
            for (i64 e = start; e < stop; ++e) {
                look();
                ends[e] = tree.descend(marks.size - 1, representatives[nodes[e]], representatives.data, marks.data);
            }
        });
    }, rows);
}

}  // namespace gpuens

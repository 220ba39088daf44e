// The Genie algorithm (gpuens/generate/genie.py): merges along the minimum spanning tree, of smallest clusters first if
// the sizes are too unequal.
#include "generate/landmarks.h"
#include "generate/primitives.h"
#include "runtime/parallel.h"

#include <numeric>
#include <vector>

namespace gpuens {

namespace {

struct Edge {
    i64 a, b;
    f32 square;
};

// The minimum spanning tree by Prim's algorithm, its edges ascending by length; of equal ones, in the order found.
std::vector<Edge> spanning_tree(Matrix<const f32> points) {
    i64 n = points.rows, d = points.columns, lanes = filled_up(n);
    std::vector<f32> memory(d * lanes), apart(lanes), least(lanes, FAR);
    std::vector<f32> inside(lanes);  // infinite for points of the tree, and behind the last point
    std::vector<i32> towards(lanes);
    for (i64 i = 0; i < n; ++i)
        for (i64 j = 0; j < d; ++j) memory[j * lanes + i] = points[i][j];
    std::fill(inside.begin() + n, inside.end(), FAR);
    std::vector<Edge> edges;
    edges.reserve(n - 1);
    for (i64 newest = 0; (i64)edges.size() < n - 1;) {
        look();
        inside[newest] = least[newest] = FAR;
        squared_distances(points[newest], {memory.data(), d, lanes}, apart.data());
        for (i64 i = 0; i < lanes; ++i) {
            f32 distance = apart[i] + inside[i];
            towards[i] = distance < least[i] ? (i32)newest : towards[i];
            least[i] = distance < least[i] ? distance : least[i];
        }
        i64 nearest = least_of(least.data(), lanes);
        edges.push_back({towards[nearest], nearest, least[nearest]});
        newest = nearest;
    }
    std::stable_sort(edges.begin(), edges.end(), [](Edge one, Edge other) { return one.square < other.square; });
    return edges;
}

// The sizes of the clusters, ascending.
class Sizes {
public:
    explicit Sizes(Vector<const i64> sizes) : ascending(sizes.begin(), sizes.end()) {
        std::sort(ascending.begin(), ascending.end());
        total = (f64)std::accumulate(ascending.begin(), ascending.end(), (i64)0);
    }

    i64 smallest() const { return ascending[0]; }
    i64 n_clusters() const { return (i64)ascending.size(); }

    // True if the Gini index, a sum of whole numbers, is above a threshold.
    bool more_unequal_than(f64 threshold) const {
        i64 n = n_clusters(), spread = 0;
        for (i64 i = 0; i < n; ++i) spread += (2 * i + 1 - n) * ascending[i];
        return (f64)spread > threshold * ((f64)n - 1.0) * total;
    }

    void merge(i64 a, i64 b) {
        for (i64 one : {a, b}) ascending.erase(std::lower_bound(ascending.begin(), ascending.end(), one));
        ascending.insert(std::upper_bound(ascending.begin(), ascending.end(), a + b), a + b);
    }

private:
    std::vector<i64> ascending;
    f64 total;
};

// Number the clusters 0, 1, ... in their order.
void renumber(Vector<i64> labels) {
    std::vector<i64> number(labels.size, -1);
    for (i64 label : labels) number[label] = 0;
    for (i64 label = 0, next = 0; label < labels.size; ++label)
        if (number[label] == 0) number[label] = next++;
    for (i64& label : labels) label = number[label];
}

}  // namespace

void genie(Matrix<const f32> points, Vector<const i64> sizes, i64 n_clusters, f64 most_unequal, Vector<i64> cluster) {
    if (points.rows == 0) return;
    std::vector<Edge> edges = spanning_tree(points);
    std::vector<i64> size(sizes.begin(), sizes.end());
    std::vector<bool> merged(edges.size());
    std::iota(cluster.begin(), cluster.end(), 0);
    Sizes left(sizes);
    for (i64 first = 0; left.n_clusters() > std::max((i64)1, n_clusters);) {
        look();
        while (merged[first]) ++first;
        i64 e = first;
        auto smaller = [&] { return std::min(size[cluster[edges[e].a]], size[cluster[edges[e].b]]); };
        if (left.more_unequal_than(most_unequal))
            while (merged[e] || smaller() > left.smallest()) ++e;
        merged[e] = true;
        i64 kept = cluster[edges[e].a], absorbed = cluster[edges[e].b];
        for (i64& name : cluster) name = name == absorbed ? kept : name;
        left.merge(size[kept], size[absorbed]);
        size[kept] += size[absorbed];
    }
    renumber(cluster);
}

}  // namespace gpuens

// Linkage of all pairs by chains of nearest neighbours (gpuens/partition/linkage/complete.py).
//
// A chain goes from a cluster to its nearest one, from there to that one's nearest, and so on; distances on it decrease, so it
// ends in two clusters that are each other's nearest, which merge. The steps, ties and roundings are those of SciPy's linkage.
#include <algorithm>
#include <limits>

#include "linkage/primitives.h"
#include "linkage/union_find.h"
#include "parallel.h"

namespace gpuens {

namespace {

// Merge i joins two clusters, each known by one of its rows.
struct Join {
    i64 one, other;
    f64 distance;
};

class Chains {
public:
    // distances (n (n - 1) / 2,) of rows a < b, the pairs of row 0 first.
    Chains(Vector<f64> distances_, i64 n_, bool average_)
        : distances(distances_), n(n_), average(average_), size(n, 1) {
        chain.reserve(n);
    }

    std::vector<Join> join_all() {
        std::vector<Join> joins;
        joins.reserve(n - 1);
        while ((i64)joins.size() < n - 1) joins.push_back(join_nearest());
        return joins;
    }

private:
    f64& between(i64 a, i64 b) const {
        if (a > b) std::swap(a, b);
        return distances[n * a - a * (a + 1) / 2 + (b - a - 1)];
    }

    // Extend the chain to its end; join the last two clusters, and let the larger row stand for both.
    Join join_nearest() {
        if (chain.empty()) chain.push_back(std::find_if(size.begin(), size.end(), [](i64 s) { return s > 0; }) - size.begin());
        while (true) {
            look();
            i64 last = chain.back(), before = chain.size() > 1 ? chain[chain.size() - 2] : -1, nearest = before;
            // of equal distances, that to the cluster before is taken, so that chains end
            f64 least = before >= 0 ? between(last, before) : std::numeric_limits<f64>::infinity();
            for (i64 i = 0; i < n; ++i) {
                if (size[i] == 0 || i == last) continue;
                if (f64 distance = between(last, i); distance < least) least = distance, nearest = i;
            }
            if (before >= 0 && nearest == before) {
                chain.resize(chain.size() - 2);
                join(std::min(last, before), std::max(last, before));
                return {std::min(last, before), std::max(last, before), least};
            }
            chain.push_back(nearest);
        }
    }

    void join(i64 gone, i64 kept) {
        f64 n_gone = (f64)size[gone], n_kept = (f64)size[kept];
        size[kept] += size[gone];
        size[gone] = 0;
        for (i64 i = 0; i < n; ++i) {
            if (size[i] == 0 || i == kept) continue;
            f64 one = between(i, gone), &other = between(i, kept);
            other = average ? (n_gone * one + n_kept * other) / (n_gone + n_kept) : std::max(one, other);
        }
    }

    Vector<f64> distances;
    i64 n;
    bool average;
    std::vector<i64> size;   // of the cluster that each row stands for; 0: of none
    std::vector<i64> chain;
};

}  // namespace

void link_pairs(Vector<f64> distances, bool average, Vector<i64> kept, Vector<i64> absorbed, Vector<f64> heights) {
    i64 n = kept.size + 1;
    std::vector<Join> joins = Chains(distances, n, average).join_all();
    std::stable_sort(joins.begin(), joins.end(), [](const Join& one, const Join& other) {
        return one.distance < other.distance;
    });
    Sets clusters(n);
    for (i64 i = 0; i < n - 1; ++i) {
        i64 a = clusters.name_of(joins[i].one), b = clusters.name_of(joins[i].other);
        kept[i] = std::min(a, b);
        absorbed[i] = std::max(a, b);
        heights[i] = joins[i].distance;
        clusters.put(absorbed[i], kept[i]);
    }
}

}  // namespace gpuens

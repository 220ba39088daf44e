// Linkage of all pairs by chains of nearest neighbours (gpuens/partition/linkage/complete.py).
//
// A chain goes from a cluster to its nearest one, from there to that one's nearest, and so on; distances on it decrease,
// so it ends in two clusters that are each other's nearest, which merge. The steps, ties and roundings are those of
// SciPy's linkage.
#include <algorithm>
#include <limits>

#include "linkage/primitives.h"
#include "linkage/union_find.h"
#include "runtime/parallel.h"

namespace gpuens {

namespace {

// A merge of two clusters, each identified by its representative row.
struct Join {
    i64 a, b;
    f64 distance;
};

class Chains {
public:
    // distances (n (n - 1) / 2,) of rows a < b, finite, the pairs of row 0 first.
    Chains(Vector<f64> distances_, i64 n_, bool average_)
        : distances(distances_), n(n_), average(average_), n_rows_of(n, 1) {
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

    // Extend the chain to its end, and join the last two clusters; the larger row represents both.
    Join join_nearest() {
        if (chain.empty()) {
            auto first = std::find_if(n_rows_of.begin(), n_rows_of.end(), [](i64 n_rows) { return n_rows > 0; });
            chain.push_back(first - n_rows_of.begin());
        }
        while (true) {
            look();
            i64 last = chain.back(), before = chain.size() > 1 ? chain[chain.size() - 2] : -1, nearest = before;
            // the cluster before wins a tie, so that chains end
            f64 smallest = before >= 0 ? between(last, before) : std::numeric_limits<f64>::infinity();
            for (i64 i = 0; i < n; ++i) {
                if (n_rows_of[i] == 0 || i == last) continue;
                // a mean of vast distances may be infinite
                if (f64 distance = between(last, i); nearest < 0 || distance < smallest) smallest = distance, nearest = i;
            }
            if (before >= 0 && nearest == before) {
                chain.resize(chain.size() - 2);
                join(std::min(last, before), std::max(last, before));
                return {std::min(last, before), std::max(last, before), smallest};
            }
            chain.push_back(nearest);
        }
    }

    void join(i64 absorbed, i64 survivor) {
        f64 n_absorbed = (f64)n_rows_of[absorbed], n_survivor = (f64)n_rows_of[survivor];
        n_rows_of[survivor] += n_rows_of[absorbed];
        n_rows_of[absorbed] = 0;
        for (i64 i = 0; i < n; ++i) {
            if (n_rows_of[i] == 0 || i == survivor) continue;
            f64 from_absorbed = between(i, absorbed), &from_survivor = between(i, survivor);
            from_survivor =
                average ? (n_absorbed * from_absorbed + n_survivor * from_survivor) / (n_absorbed + n_survivor)
                        : std::max(from_absorbed, from_survivor);
        }
    }

    Vector<f64> distances;
    i64 n;
    bool average;
    std::vector<i64> n_rows_of;  // rows in the cluster that each row represents; 0 if it represents none
    std::vector<i64> chain;
};

}  // namespace

void link_pairs(Vector<f64> distances, bool average, Vector<i64> kept, Vector<i64> absorbed, Vector<f64> heights) {
    i64 n = kept.size + 1;
    std::vector<Join> joins = Chains(distances, n, average).join_all();
    std::stable_sort(joins.begin(), joins.end(), [](const Join& first, const Join& second) {
        return first.distance < second.distance;
    });
    Sets clusters(n);
    for (i64 i = 0; i < n - 1; ++i) {
        i64 a = clusters.name_of(joins[i].a), b = clusters.name_of(joins[i].b);
        kept[i] = std::min(a, b);
        absorbed[i] = std::max(a, b);
        heights[i] = joins[i].distance;
        clusters.put(absorbed[i], kept[i]);
    }
}

}  // namespace gpuens

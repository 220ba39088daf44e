// Local moves of the Louvain algorithm (gpuens/generate/louvain.py). An object i with the strength s_i moves to the
// community C of a neighbour with the largest
//
//   gain(C) = sum_{j in C} w_ij - r s_i S_C / S,   S_C = sum_{j in C, j != i} s_j,  S = sum_j s_j,
//
// if it exceeds that of its own community. Objects wait in a queue, at first in a random order; an object that moves
// appends its neighbours in other communities. The moves end with the queue.
#include "generate/primitives.h"
#include "runtime/parallel.h"

#include <algorithm>
#include <numeric>
#include <vector>

namespace gpuens {

namespace {

constexpr f64 VISITS = 5;       // visits of an object, a typical number
constexpr f64 NEIGHBOR_NS = 8;  // time to read the community of a neighbour from memory
constexpr f64 ROUNDING = 1e-10;  // gain per unit of strength that may be a rounding error of the sums

class Moves {
public:
    Moves(const GraphArrays& graph_, Vector<const f64> strengths_, f64 resolution)
        : graph(graph_), strengths(strengths_), n(strengths.size),
          factor(resolution / std::accumulate(strengths.begin(), strengths.end(), 0.0)), totals(n), links(n, 0.0),
          queue(n), waits(n), numbers(n) {}

    // Improve a start partition, labels (n,) from 0 to n - 1; number its communities in the order of their first
    // objects.
    void improve(const i32* order, i32* labels) {
        std::fill(totals.begin(), totals.end(), 0.0);
        for (i64 i = 0; i < n; ++i) totals[labels[i]] += strengths[i];
        std::copy_n(order, n, queue.begin());
        std::fill(waits.begin(), waits.end(), 1);
        for (i64 first = 0, n_waiting = n; n_waiting > 0; --n_waiting, first = next(first), looks()) {
            i32 i = queue[first];
            waits[i] = 0;
            if (!move(i, labels)) continue;
            for (i64 e = graph.starts[i]; e < graph.starts[i + 1]; ++e) {
                i32 j = graph.heads[e];
                if (waits[j] || labels[j] == labels[i]) continue;
                waits[j] = 1;
                i64 place = first + n_waiting;
                queue[place < n ? place : place - n] = j;
                ++n_waiting;
            }
        }
        renumber(labels);
    }

private:
    i64 next(i64 place) const { return place + 1 < n ? place + 1 : 0; }

    // Move object i to its best community; return whether this is another one.
    bool move(i32 i, i32* labels) {
        nearby.clear();
        for (i64 e = graph.starts[i]; e < graph.starts[i + 1]; ++e) {
            i32 community = labels[graph.heads[e]];
            if (links[community] == 0.0) nearby.push_back(community);
            links[community] += graph.weights[e];
        }
        i32 before = labels[i], best = before;
        f64 strength = strengths[i], expected = factor * strength;
        totals[before] -= strength;
        f64 largest_gain = links[before] - expected * totals[before] + ROUNDING * strength;
        for (i32 community : nearby) {
            f64 gain = links[community] - expected * totals[community];
            if (community == before || !(gain > largest_gain)) continue;
            largest_gain = gain;
            best = community;
        }
        for (i32 community : nearby) links[community] = 0.0;
        totals[best] += strength;
        labels[i] = best;
        return best != before;
    }

    void renumber(i32* labels) {
        std::fill(numbers.begin(), numbers.end(), -1);
        i32 n_communities = 0;
        for (i64 i = 0; i < n; ++i) {
            i32& number = numbers[labels[i]];
            if (number < 0) number = n_communities++;
            labels[i] = number;
        }
    }

    const GraphArrays& graph;
    Vector<const f64> strengths;
    i64 n;
    f64 factor;
    std::vector<f64> totals, links;  // (n,): S_C of each community, and its edges' weights to the current object
    std::vector<i32> queue, nearby;  // a ring (n,); communities of the current object's neighbours
    std::vector<char> waits;         // (n,): whether an object is in the queue
    std::vector<i32> numbers;
    Looks looks;
};

}  // namespace

void move_locally(const GraphArrays& graph, Vector<const f64> strengths, f64 resolution, Matrix<const i32> orders,
                  Matrix<i32> labels) {
    in_threads(labels.rows, (f64)graph.heads.size * VISITS * NEIGHBOR_NS, [&](Ranges& ranges) {
        Moves moves(graph, strengths, resolution);
        while (Range range = ranges.next())
            for (i64 m = range.start; m < range.stop; ++m) moves.improve(orders[m], labels[m]);
    });
}

}  // namespace gpuens

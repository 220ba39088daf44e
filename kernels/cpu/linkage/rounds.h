// Average linkage by rounds of reciprocal nearest neighbours. Terms of this folder:
//
// A region is a set of objects, at first those of one row. Its id is its smallest row. Similarities of regions are
// exact and come from histograms (regions.h).
//
// In a round, all pairs of regions that are each other's nearest merge. Average linkage is reducible: the union of C
// and D is never nearer to A than the nearer one of C and D. So merges of a round do not disturb each other, and the
// merges of all rounds, sorted by similarity, are those of the greedy algorithm. One total order decides ties
// (common/order.h).
//
// A shortlist (shortlist.h) has the K regions nearest to a region, and a bound: all regions outside the list come after
// it. While the best entry comes before the bound, it is the nearest region, and no search is needed:
//
// - when listed regions merge, the union takes their places, with its own similarity; the bound still holds;
// - when C and D merge, their lists are joined; the bound of the union is (|C| bound of C + |D| bound of D) / (|C| +
//   |D|),
//   because a similarity with the union is the same mean of two similarities;
// - when a full list drops an entry, the bound is raised to that entry.
//
// Example, with lists of one entry. A: [B .9 | bound .8], B: [A .9 | .3], C: [A .8 | .4], D: [C .2 | .1]. Round 1: A
// and B are each other's nearest and merge to A. Their lists hold only each other, so that the list of the union is
// empty, and its bound (.8 + .3) / 2 = .55. C's entry becomes the union, say at (.8 + .2) / 2 = .5, which is above C's
// bound, .4: the nearest of C is A. The list of A does not tell which region is its nearest: A is searched, and C is
// found, at .5. Round 2: A and C merge.
//
// Three ways of finding nearest regions serve these rounds: lists (listed.h), a table of all pairs for many clusterings
// (pair_table.h), and a matrix of all pairs for few rows (pair_matrix.h). With lists, a round looks only at regions
// whose nearest may have changed (reverse_neighbors.h).
//
// A region whose similarity with every other region is 0 retires; the rounds end when no region is left. At the end,
// regions that have retired are joined at similarity 0. With similarities of any sign the last region retires.
#pragma once

#include <algorithm>
#include <functional>
#include <numeric>
#include <stdexcept>
#include <string>
#include <vector>

#include "linkage/dendrogram.h"
#include "linkage/regions.h"
#include "runtime/parallel.h"

namespace gpuens {

template <typename T>
Vector<const T> span(const std::vector<T>& of) {
    return {of.data(), (i64)of.size()};
}

// G regions between rounds.
class State {
public:
    // Each row is a region; place (G,): its place in an order in which similar ones are side by side.
    explicit State(Vector<const i64> place_)
        : nearest(place_.size, UNKNOWN), nearest_similarity(place_.size), into(place_.size), partner(place_.size, -1),
          place(place_.begin(), place_.end()), inactive(place_.size), active(place_.size), n_active(place_.size) {
        std::iota(into.begin(), into.end(), (i64)0);
        for (i64 i = 0; i < n_active; ++i) active[place[i]] = i;
    }

    std::vector<i64> nearest;  // id of the nearest region when it was found; `now` maps it to the present region
    std::vector<f64> nearest_similarity;
    std::vector<i64> into;     // the region that absorbed each region, or the region itself
    std::vector<i64> partner;  // the region that each region has absorbed in this round, or -1
    std::vector<i64> kept, absorbed;
    std::vector<f64> similarities;  // similarity of each merge
    i64 rounds = 0;

    // The region, not absorbed so far, that contains region r.
    i64 now(i64 r) const {
        while (into[r] != r) r = into[r];
        return r;
    }

    i64 n_left() const { return n_active; }

    // The regions that are neither absorbed nor retired, similar ones side by side.
    const std::vector<i64>& left() {
        if ((i64)active.size() != n_active) std::erase_if(active, [&](i64 a) { return inactive[a]; });
        return active;
    }

    void sort(std::vector<i64>& regions) const {
        std::sort(regions.begin(), regions.end(), [&](i64 a, i64 b) { return place[a] < place[b]; });
    }

    // The pairs of the last round.
    Vector<const i64> last_kept() const { return last(kept); }
    Vector<const i64> last_absorbed() const { return last(absorbed); }

    // The kept region of each pair of regions that are each other's nearest, of new pairs only: one of both is among
    // `regions`, which are all whose nearest region is new.
    std::vector<i64> pair_up(Vector<const i64> regions) {
        for (i64 a : last_kept()) partner[a] = -1;
        std::vector<i64> pairs;
        for (i64 a : regions) {
            if (nearest[a] < 0) continue;
            i64 b = now(nearest[a]);
            if (nearest[b] < 0 || now(nearest[b]) != a) continue;
            i64 first = std::min(a, b);
            if (partner[first] >= 0) continue;  // paired from the other side
            partner[first] = std::max(a, b);
            pairs.push_back(first);
        }
        sort(pairs);
        return pairs;
    }

    // Pair regions that merge whatever their similarity: pairs (kept, absorbed); return the kept regions.
    std::vector<i64> pair_up(const std::vector<std::pair<i64, i64>>& must) {
        for (i64 a : last_kept()) partner[a] = -1;
        std::vector<i64> pairs;
        for (auto [a, b] : must) {
            partner[a] = b;
            nearest_similarity[a] = __builtin_inf();
            pairs.push_back(a);
        }
        sort(pairs);
        return pairs;
    }

    // Merge the pairs of this round, whose similarities are known, into their kept regions.
    void merge(const std::vector<i64>& pairs) {
        n_last = (i64)pairs.size();
        for (i64 a : pairs) {
            i64 b = partner[a];
            kept.push_back(a);
            absorbed.push_back(b);
            similarities.push_back(nearest_similarity[a]);
            into[b] = a;
            leave_out(b);
        }
        rounds += n_last > 0;
    }

    void leave_out(i64 r) {
        inactive[r] = true;
        --n_active;
    }

    // Rounding errors made the nearest regions form a cycle: pair the two most similar ones, among regions whose
    // nearest region is left. Nearest regions and similarities are current.
    i64 pair_best() {
        i64 best = -1;
        for (i64 a : left()) {
            if (nearest[a] < 0 || inactive[nearest[a]]) continue;
            f64 similarity = nearest_similarity[a], highest = best < 0 ? 0.0 : nearest_similarity[best];
            if (best < 0 || similarity > highest || (similarity == highest && a < best)) best = a;
        }
        if (best < 0)  // a bound was too low; absorbed regions have no histogram to read
            throw std::runtime_error("average linkage found no nearest region for one of " + std::to_string(n_active) +
                                     " regions; please report this.");
        nearest[nearest[best]] = best;
        nearest_similarity[nearest[best]] = nearest_similarity[best];
        return best;
    }

private:
    Vector<const i64> last(const std::vector<i64>& of) const { return {of.data() + of.size() - n_last, n_last}; }

    std::vector<i64> place;
    std::vector<char> inactive;  // absorbed or retired
    std::vector<i64> active;
    i64 n_active, n_last = 0;
};

// Report of the progress to Python: numbers of first searches and of merges.
using Report = std::function<void(i64)>;

// Merge regions until none is left, or `nearest` gives up. Pairs that must merge do so first, in the rounds of
// must_pairs(), which returns none when all have merged. `Nearest` has
//   find()             the nearest region of each region; the number of searches, or -1 to give up
//   updated_regions()  the regions whose nearest region is new
//   settle(regions)    writes their nearest region as it is now, and the similarity with it
//   retire(region)     leaves out a region that will never merge
//   unite()            unites the histograms of the pairs of this round, and updates what it knows by them
template <typename Nearest, typename MustPairs>
void merge_in_rounds(State& state, Nearest& nearest, const Report& report, MustPairs&& must_pairs) {
    Pace pace;
    for (bool paired = true, all_new = true; state.n_left();) {
        look();
        if (pace.due()) call_python(report, (i64)state.kept.size());
        i64 n_searches = nearest.find();
        if (n_searches < 0) return;
        if (all_new) {
            if (std::vector<i64> pairs = state.pair_up(must_pairs()); !pairs.empty()) {
                state.merge(pairs);
                nearest.unite();
                continue;
            }
        }
        std::vector<i64> best_pair;
        if (!paired && !n_searches) {
            nearest.settle(span(state.left()));
            i64 best = state.pair_best();
            best_pair = {best, state.nearest[best]};
        }
        const std::vector<i64>& updated =
            !best_pair.empty() ? best_pair : all_new ? state.left() : nearest.updated_regions();
        all_new = false;
        std::vector<i64> pairs = state.pair_up(span(updated));
        nearest.settle(span(pairs));
        for (i64 a : updated)
            if (state.nearest[a] == RETIRED) {
                nearest.retire(a);
                state.leave_out(a);
            }
        state.merge(pairs);
        paired = !pairs.empty();
        nearest.unite();
    }
    call_python(report, (i64)state.kept.size());
}

template <typename Nearest>
void merge_in_rounds(State& state, Nearest& nearest, const Report& report) {
    merge_in_rounds(state, nearest, report, [] { return std::vector<std::pair<i64, i64>>(); });
}

}  // namespace gpuens

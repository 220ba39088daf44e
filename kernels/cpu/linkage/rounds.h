// The state of average linkage between rounds of reciprocal nearest neighbours (gpuens/partition/linkage/rounds.py).
#pragma once

#include <optional>
#include <variant>

#include "linkage/regions.h"
#include "linkage/shortlist.h"

namespace gpuens {

constexpr i64 RETIRED = -1;  // in place of the nearest region, if a region has similarity 0 with every other region
constexpr i64 UNKNOWN = -2;  // in place of the nearest region, while it is not known

// The fields of gpuens.partition.linkage.rounds.State and of its counts.
struct State {
    Vector<i64> active, survivors, unknown, nearest;
    Vector<f64> nearest_similarity;
    Vector<i64> into, partner, kept, absorbed;
    Vector<f64> merged_at;
    Vector<i64> counts;

    enum Count { ACTIVE, UNKNOWNS, ENTRIES, PAIRS, MERGES, ROUNDS, USED, COMPARED };

    i64& operator[](Count count) const { return counts[count]; }
    Vector<const i64> current() const { return {active.data, counts[ACTIVE]}; }

    // The region, not absorbed so far, that contains region r.
    i64 now(i64 r) const {
        while (into[r] != r) r = into[r];
        return r;
    }
};

// The weights of similarities (common/histograms.h): those of a diagonal S (N_c,), or a matrix of affinities or of both sums
// of a ratio; the latter have no number of clusterings.
struct AnyWeighting {
    std::variant<Vector<const i64>, Vector<const f64>, Matrix<const i64>, Matrix<const f64>> weights;
    std::optional<i64> n_clusterings;
};

// Rounding tolerances of a similarity, relative and absolute, and the bound of a list that holds all regions.
struct Tolerance {
    f64 slack = 0.0, margin = 0.0, nothing = 0.0;

    bool any() const { return slack > 0.0 || margin > 0.0; }
    f64 raised(f64 similarity) const { return similarity * (1.0 + slack) + margin; }
};

// The size up to which each region's nearest region stays the nearest (reverse_neighbors.h).
//
// While the nearest region has at most `until` objects, its similarity exceeds that of all other regions by at least the
// relative difference `margin`, which is more than rounding errors. `seen` is the round in which a list was made, and
// `merged` the round in which a region last merged.
struct Certain {
    std::vector<f64> until;
    std::vector<i64> seen, merged;
    f64 margin;

    Certain(i64 n, f64 slack) : until(n), seen(n), merged(n), margin(1e-12 + 4.0 * slack) {}

    // Region a has a new nearest region; no other region's similarity is above `rival`.
    void note(i64 a, f64 rival, const State& state, const i64* size) {
        i64 nearest = state.nearest[a];
        seen[a] = state[State::ROUNDS];
        until[a] = __builtin_inf();
        if (rival > 0.0 && nearest >= 0)
            until[a] = state.nearest_similarity[a] / rival * (1.0 - margin) * (f64)size[nearest];
    }
};

// Find each UNKNOWN nearest region of `some` in its list; write regions whose list does not decide it to state.unknown.
void look_up(Vector<const i64> some, const State& state, const i64* size, f64 nothing, Certain& certain,
             const Shortlists& lists);

// Update the lists of `some` by the merges of this round.
void update_lists(Vector<const i64> some, const State& state, const Regions& regions, const AnyWeighting& weighting,
                  const Tolerance& tolerance, Certain& certain, const Shortlists& lists);

}  // namespace gpuens

// The steps of a round of reciprocal nearest neighbours (kernels/rounds.cu).
#include "linkage/rounds.h"

#include <algorithm>
#include <numeric>

#include "linkage/primitives.h"
#include "parallel.h"

namespace gpuens {

namespace {

constexpr i64 LAID = 1 << 20;     // largest number of counts in dense histograms
constexpr i64 AT_ONCE = 4;        // pairs of regions compared in one loop
constexpr i64 CLEARED = 256;      // clusters for which a dense histogram pays, for each region that is updated
constexpr i64 WORTH_LAYING = 3;   // similarities from which on writing a dense histogram costs less than it saves
constexpr f64 UPDATE_NS = 2'000;  // a list

// --- similarities of the regions in lists -----------------------------------------------------------------------------

// Any similarity but that of a diagonal S.
template <typename Weight>
struct OfPairs {
    Histograms of;
    Weighting<Weight> by;

    f64 similarity(i64 a, i64 b) const { return similarity_of(of, by, a, b); }
    bool dense() const { return false; }
    void lay(i64) {}
    void clear(i64) {}
    f64 of_laid(i64 a, i64 b) const { return similarity(a, b); }
    bool waits(i64, i64) const { return false; }
    bool quick(i64) const { return false; }
    template <typename Write>
    void wait(i64, i64, i64, Write&&) {}
    template <typename Write>
    void end(Write&&) {}
};

template <typename Weight>
class OfHistograms {
public:
    OfHistograms(const Similarities<Weight>& exact_, const Longest& longest_, i64 n_held)
        : exact(exact_), longest(longest_), held(n_held), none(0) {}

    f64 similarity(i64 a, i64 b) const { return exact.with(laid ? held : none, a, b); }
    bool dense() const { return (bool)held; }
    void lay(i64 a) {
        if (!held) return;
        held.lay(exact.of, a);
        laid = true;
    }
    void clear(i64 a) {
        if (!laid) return;
        held.clear(exact.of, a);
        laid = false;
    }

    // Whether the histogram of region r is dense already.
    bool quick(i64 r) const { return longest[r] != nullptr; }

    // Whether the similarity of region a with r is best computed together with others, by the dense histogram of r.
    bool waits(i64 a, i64 r) const { return quick(r) && exact.of.length[a] <= exact.of.length[r]; }

    template <typename Write>
    void wait(i64 a, i64 place, i64 r, Write&& write) {
        waiting[n_waiting++] = {a, place, r};
        if (n_waiting == AT_ONCE) end(write);
    }

    // Score the waiting pairs, the same bits as one after the other, with consecutive additions of different pairs.
    template <typename Write>
    void end(Write&& write) {
        if (!n_waiting) return;
        for (i64 i = n_waiting; i < AT_ONCE; ++i) waiting[i] = waiting[0];
        const auto& of = exact.of;
        const Weight* weights = exact.weights;
        i64 common = of.length[waiting[0].a], start[AT_ONCE];
        const i32* with[AT_ONCE];
        Weight totals[AT_ONCE] = {};
        for (i64 i = 0; i < AT_ONCE; ++i) {
            common = std::min(common, of.length[waiting[i].a]);
            start[i] = of.start[waiting[i].a];
            with[i] = longest[waiting[i].r];
        }
        for (i64 e = 0; e < common; ++e)
            for (i64 i = 0; i < AT_ONCE; ++i) {
                i32 cluster = of.clusters[start[i] + e];
                totals[i] += weight_of(weights, cluster) *
                             (Weight)((i64)with[i][cluster] * (i64)of.counts[start[i] + e]);
            }
        for (i64 i = 0; i < n_waiting; ++i) {
            auto [a, place, r] = waiting[i];
            Weight total = plus_shared(totals[i], of, start[i] + common, start[i] + of.length[a], with[i], weights);
            write(a, place, exact.mean(total, a, r));
        }
        n_waiting = 0;
    }

private:
    struct Pair {
        i64 a, place, r;
    };

    Similarities<Weight> exact;
    const Longest& longest;
    Held held, none;
    bool laid = false;
    Pair waiting[AT_ONCE];
    i64 n_waiting = 0;
};

// --- updates ----------------------------------------------------------------------------------------------------------

template <typename Scores>
class Update {
public:
    Update(const State& state_, const Tolerance& tolerance_, Certain& certain_, const Shortlists& lists_, Scores scores_,
           bool ratio_, const i64* size_)
        : state(state_), tolerance(tolerance_), certain(certain_), lists(lists_), scores(std::move(scores_)),
          ratio(ratio_), size(size_), n_listed(lists.n_listed()), list(lists) {
        pooled.reserve(2 * n_listed);
    }

    void one(i64 a) {
        i64 since = certain.seen[a];
        certain.seen[a] = state[State::ROUNDS];
        if (state.partner[a] < 0)
            replace(a, since);
        else
            unite(a);
    }

    void end() { scores.end(writes()); }

private:
    auto writes() {
        return [this](i64 a, i64 place, f64 similarity) { lists.similarities[a][place] = similarity; };
    }

    bool changed(i64 r, i64 since) const { return certain.merged[r] > since; }

    // Replace listed regions by the unions that contain them now.
    void replace(i64 a, i64 since) {
        i64 old = state.nearest[a];
        if (old >= 0 && (state.partner[old] >= 0 || state.into[old] != old)) state.nearest[a] = UNKNOWN;
        i32* ids = lists.ids[a];
        f64* similarities = lists.similarities[a];
        if (scores.dense()) {
            i64 n_changed = 0;
            for (i64 s = 0; s < n_listed; ++s) {
                i64 r = ids[s] >= 0 ? state.now(ids[s]) : a;
                n_changed += changed(r, since) && !scores.quick(r);
            }
            if (n_changed >= WORTH_LAYING) scores.lay(a);
        }
        i64 kept = 0;  // entries before the first changed one stay as they are
        while (kept < n_listed && ids[kept] >= 0 && !changed(state.now(ids[kept]), since)) ++kept;
        for (i64 s = kept; s < n_listed && ids[s] >= 0; ++s) {
            i64 r = state.now(ids[s]);
            if (!changed(r, since)) {
                ids[kept] = ids[s];
                similarities[kept++] = similarities[s];
                continue;
            }
            if (std::find(ids, ids + kept, (i32)r) != ids + kept) continue;
            ids[kept] = (i32)r;
            if (scores.waits(a, r))
                scores.wait(a, kept, r, writes());
            else
                similarities[kept] = scores.similarity(a, r);
            ++kept;
        }
        scores.clear(a);
        std::fill(ids + kept, ids + n_listed, -1);
    }

    // Write the list of a union from the lists of its two parts, and the bound of all regions outside both lists.
    void unite(i64 a) {
        state.nearest[a] = UNKNOWN;
        join_bounds(a, state.partner[a]);
        pool(a);
        list.begin_over(a);
        scores.lay(a);
        for (i64 r : pooled) {
            f64 similarity = scores.similarity(a, r);
            u64 tie = pair_hash(a, r);
            if (list.full()) drop(a, similarity, tie);
            list.add(r, similarity, tie);
        }
        scores.clear(a);
    }

    // A similarity with a union is the mean of those with its parts, or, of a ratio, between them.
    void join_bounds(i64 a, i64 b) {
        f64 &bound = lists.bound[a], other = lists.bound[b];
        u64& hash = lists.bound_hash[a];
        if (ratio) {
            if (bound != other || lists.bound_hash[b] == 0) hash = 0;
            bound = std::max(bound, other);
        } else if (bound != other) {
            f64 part = (f64)(size[a] - size[b]) / (f64)size[a];  // share of region a's objects before the merge
            bound = (part * bound + (1.0 - part) * other) * (1.0 + 1e-15) + tolerance.margin;
            hash = 0;
        }
    }

    // Collect the regions of both lists.
    void pool(i64 a) {
        pooled.clear();
        for (i64 side : {a, state.partner[a]})
            for (i64 s = 0; s < n_listed && lists.ids[side][s] >= 0; ++s) {
                i64 r = state.now(lists.ids[side][s]);
                if (r != a && std::find(pooled.begin(), pooled.end(), r) == pooled.end()) pooled.push_back(r);
            }
    }

    // Of a full list and one more region, the last is dropped, and the bound raised to it.
    void drop(i64 a, f64 similarity, u64 tie) {
        f64 dropped = list.last();
        u64 dropped_tie = list.last_tie();
        if (!comes_before(similarity, tie, dropped, dropped_tie)) {
            dropped = similarity;
            dropped_tie = tie;
        }
        if (tolerance.any()) {
            dropped = tolerance.raised(dropped);
            dropped_tie = 0;
        }
        f64& bound = lists.bound[a];
        u64& hash = lists.bound_hash[a];
        if (ratio && hash == 0) dropped_tie = 0;
        if (dropped <= tolerance.nothing || !comes_before(dropped, dropped_tie, bound, hash)) return;
        bound = dropped;
        hash = dropped_tie;
    }

    const State& state;
    Tolerance tolerance;
    Certain& certain;
    Shortlists lists;
    Scores scores;
    bool ratio;
    const i64* size;
    i64 n_listed;
    Shortlist list;
    std::vector<i64> pooled;
};

// The regions that merged in this round and have most entries, as many as there is room for. These few regions are in many
// lists, and the regions that have these lists mostly have fewer entries.
std::vector<i64> longest_merged(const State& state, const Histograms& of, i64 n_clusterings, i64 n_clusters) {
    std::vector<i64> merged;
    for (i64 p = state[State::MERGES] - state[State::PAIRS]; p < state[State::MERGES]; ++p)
        if (of.length[state.kept[p]] > n_clusterings) merged.push_back(state.kept[p]);
    size_t room = std::min(LAID, state[State::ACTIVE] * n_clusterings) / n_clusters;
    if (merged.size() > room) {
        std::stable_sort(merged.begin(), merged.end(), [&](i64 a, i64 b) { return of.length[a] > of.length[b]; });
        merged.resize(room);
    }
    return merged;
}

// Run updates in threads, each with scores of its own.
template <typename Scores>
void update_each(Vector<const i64> some, const State& state, const Tolerance& tolerance, Certain& certain,
                 const Shortlists& lists, bool ratio, const i64* size, Scores&& scores_of_thread) {
    in_threads(some.size, UPDATE_NS, [&](Ranges& ranges) {
        Update update(state, tolerance, certain, lists, scores_of_thread(), ratio, size);
        while (Range range = ranges.next()) {
            for (i64 i = range.start; i < range.stop; ++i) update.one(some[i]);
            update.end();
        }
    });
}

}  // namespace

void look_up(Vector<const i64> some, const State& state, const i64* size, f64 nothing, Certain& certain,
             const Shortlists& lists) {
    i64 unknown = 0;
    for (i64 a : some) {
        state.partner[a] = -1;
        if (state.nearest[a] != UNKNOWN) continue;
        i64 best = -1;
        f64 best_similarity = 0.0, rival = lists.bound[a];
        u64 best_tie = NO_HASH;
        for (i64 s = 0; s < lists.n_listed() && lists.ids[a][s] >= 0; ++s) {
            i64 r = lists.ids[a][s];
            f64 similarity = lists.similarities[a][s];
            u64 tie = pair_hash(a, r);
            if (best < 0 || comes_before(similarity, tie, best_similarity, best_tie)) {
                rival = std::max(rival, best_similarity);
                best = r, best_similarity = similarity, best_tie = tie;
            } else {
                rival = std::max(rival, similarity);
            }
        }
        if (best >= 0 && !comes_before(lists.bound[a], lists.bound_hash[a], best_similarity, best_tie)) {
            state.nearest[a] = best;
            state.nearest_similarity[a] = best_similarity;
            certain.note(a, rival, state, size);
        } else if (best < 0 && lists.bound[a] <= nothing) {
            state.nearest[a] = RETIRED;
        } else {
            state.unknown[unknown++] = a;
        }
    }
    state[State::UNKNOWNS] = unknown;
}

void look_up(State state, Regions regions, f64 nothing, Shortlists lists) {
    Certain certain(state.nearest.size, 0.0);
    look_up(state.current(), state, regions.size.data, nothing, certain, lists);
    state[State::ENTRIES] = entries_of(regions.length.data, state.current());
}

void take_first_listed(Vector<const i64> some, State state, Tolerance tolerance, Shortlists lists) {
    for (i64 a : some) {
        i64 first = lists.ids[a][0];
        state.nearest[a] = first >= 0 ? first : RETIRED;
        state.nearest_similarity[a] = lists.similarities[a][0];
        if (!tolerance.any()) continue;
        lists.bound[a] = tolerance.raised(lists.bound[a]);
        lists.bound_hash[a] = 0;
    }
}

void pair_up(State state) {
    i64 survivors = 0, &merges = state[State::MERGES], before = merges;
    for (i64 a : state.current()) {
        i64 b = state.nearest[a];
        bool mutual = b >= 0 && state.nearest[b] == a;
        if (b < 0 || (mutual && b < a)) continue;
        state.survivors[survivors++] = a;
        if (!mutual) continue;
        state.kept[merges] = a;
        state.absorbed[merges] = b;
        state.merged_at[merges++] = state.nearest_similarity[a];
        state.partner[a] = b;
        state.into[b] = a;
    }
    state[State::ACTIVE] = survivors;
    state[State::PAIRS] = merges - before;
    state[State::ROUNDS] += merges > before;
}

void update_lists(Vector<const i64> some, const State& state, const Regions& regions, const AnyWeighting& weighting,
                  const Tolerance& tolerance, Certain& certain, const Shortlists& lists) {
    for (i64 p = state[State::MERGES] - state[State::PAIRS]; p < state[State::MERGES]; ++p)
        certain.merged[state.kept[p]] = state[State::ROUNDS];
    bool ratio = !weighting.n_clusterings;
    i64 n_clusterings = weighting.n_clusterings.value_or(0);
    std::visit([&]<typename Weights>(const Weights& weights) {
        using Weight = std::remove_cvref_t<decltype(*weights.data)>;
        Histograms of = regions;
        if constexpr (requires { weights.columns; }) {
            OfPairs<Weight> scores{of, {weights.data, weights.columns, n_clusterings}};
            update_each(some, state, tolerance, certain, lists, ratio, of.size, [&] { return scores; });
        } else {
            i64 n_clusters = weights.size;
            Longest longest(of, longest_merged(state, of, n_clusterings, n_clusters), n_clusters,
                                   state.nearest.size);
            Similarities<Weight> exact{of, weights.data, n_clusterings};
            i64 n_held = n_clusters <= CLEARED * some.size ? n_clusters : 0;
            update_each(some, state, tolerance, certain, lists, ratio, of.size,
                        [&] { return OfHistograms<Weight>(exact, longest, n_held); });
        }
    }, weighting.weights);
}

void update_lists(State state, Regions regions, AnyWeighting weighting, Tolerance tolerance, Shortlists lists) {
    Certain certain(state.nearest.size, 0.0);
    update_lists(state.current(), state, regions, weighting, tolerance, certain, lists);
    state[State::UNKNOWNS] = state[State::ENTRIES] = 0;  // as after the kernel, to whose counts that of look_up adds
}

}  // namespace gpuens

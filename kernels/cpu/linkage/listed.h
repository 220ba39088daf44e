// Nearest regions by shortlists (rounds.h): lists are updated by merges, and searched anew when they do not decide.
#pragma once

#include "linkage/links.h"
#include "linkage/reverse_neighbors.h"
#include "linkage/shortlist.h"

namespace gpuens {

// Round numbers (G,) of each list's last update and of each region's last merge.
struct Rounds {
    std::vector<i64> updated, merged;

    explicit Rounds(i64 n) : updated(n), merged(n, -1) {}

    // True if region r has merged since the last update of region a's list.
    bool changed(i64 r, i64 a) const { return merged[r] > updated[a]; }
};

// Updates lists one after the other, in one thread. `Scores` has similarities of a region with those of its list:
//   lay(a), clear(a)             around similarities of region a with several others
//   lay_if(a, count)             lays region a if the number of similarities, which count() tells, is worth it
//   similarity(a, r), quick(r)   and whether it needs no layout
//   waits(a, r), wait(...), end  whether a similarity is best computed together with others, and these
template <typename Scores>
class ListUpdate {
public:
    ListUpdate(const State& state_, const Rounds& rounds_, const CannotLinks& cannot_, const Shortlists& lists_,
               const Tolerance& tolerance_, bool ratio_, const i64* size_, Scores scores_)
        : state(state_), rounds(rounds_), cannot(cannot_), lists(lists_), tolerance(tolerance_), ratio(ratio_),
          size(size_), scores(std::move(scores_)), n_listed(lists.n_listed()), list(lists) {
        pooled.reserve(2 * n_listed);
    }

    void update(i64 a) { state.partner[a] < 0 ? replace(a) : unite(a); }
    void end() { scores.end(writes()); }

private:
    auto writes() {
        return [this](i64 a, i64 place, f64 similarity) { lists.similarities[a][place] = similarity; };
    }

    // Replace listed regions by the unions that contain them now.
    void replace(i64 a) {
        i32* ids = lists.ids[a];
        f64* similarities = lists.similarities[a];
        scores.lay_if(a, [&] {
            i64 n_changed = 0;
            for (i64 s = 0; s < n_listed; ++s) {
                i64 r = ids[s] >= 0 ? state.now(ids[s]) : a;
                n_changed += rounds.changed(r, a) && !scores.quick(r);
            }
            return n_changed;
        });
        const CannotLinks::Regions* forbidden = cannot.of(a);
        i64 kept = 0;  // entries before the first changed one stay as they are
        while (kept < n_listed && ids[kept] >= 0 && !rounds.changed(state.now(ids[kept]), a)) ++kept;
        for (i64 s = kept; s < n_listed && ids[s] >= 0; ++s) {
            i64 r = state.now(ids[s]);
            if (!rounds.changed(r, a)) {
                ids[kept] = ids[s];
                similarities[kept++] = similarities[s];
                continue;
            }
            if (std::find(ids, ids + kept, (i32)r) != ids + kept) continue;
            if (forbidden && forbidden->contains(r)) continue;
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
        i64 b = state.partner[a];
        // share of region a's objects that it had before the merge
        f64 share = (f64)(size[a] - size[b]) / (f64)size[a];
        Bound bound = union_bound(bound_of(a), bound_of(b), share, ratio, tolerance);
        pool(a, b);
        list.begin_over(a);
        scores.lay(a);
        for (i64 r : pooled) {
            Bound entry = {scores.similarity(a, r), pair_hash(a, r)}, last = entry;
            if (list.full()) {  // the last of the list and this entry is dropped
                if (comes_before(entry.similarity, entry.tie, list.last(), list.last_tie()))
                    last = {list.last(), list.last_tie()};
                bound = raised_bound(bound, last, ratio, tolerance);
            }
            list.add(r, entry.similarity, entry.tie);
        }
        scores.clear(a);
        lists.bound[a] = bound.similarity;
        lists.bound_hash[a] = bound.tie;
    }

    Bound bound_of(i64 a) const { return {lists.bound[a], lists.bound_hash[a]}; }

    // Collect the regions of both lists but those that must not join the union.
    void pool(i64 a, i64 b) {
        const CannotLinks::Regions* forbidden = cannot.of(a);
        pooled.clear();
        for (i64 side : {a, b})
            for (i64 s = 0; s < n_listed && lists.ids[side][s] >= 0; ++s) {
                i64 r = state.now(lists.ids[side][s]);
                if (forbidden && forbidden->contains(r)) continue;
                if (r != a && std::find(pooled.begin(), pooled.end(), r) == pooled.end()) pooled.push_back(r);
            }
    }

    const State& state;
    const Rounds& rounds;
    const CannotLinks& cannot;
    Shortlists lists;
    Tolerance tolerance;
    bool ratio;
    const i64* size;
    Scores scores;
    i64 n_listed;
    Shortlist list;
    std::vector<i64> pooled;
};

// `Scorer` is the similarity of a linkage:
//   RATIO               whether it is a ratio of sums (common/histograms.h)
//   PATIENT             whether the similarity with a growing region falls no faster than its share of the objects
//   tolerance           of rounding
//   similarity(a, b)
//   scores_of_updates(state, n)  what makes the `Scores` of each thread, for n updates of lists
//   search(queries, state)       rebuilds lists from all regions; the number of comparisons
//   unite(state)                 adds up what it keeps of regions
template <typename Scorer>
class Listed {
public:
    // The first list of each region, or empty ones that exclude nothing, if `listed` is false.
    Listed(State& state_, Regions& regions_, Scorer& scorer_, CannotLinks& cannot_, const Shortlists& lists_,
           i64 n_nodes, bool listed)
        : state(state_), regions(regions_), scorer(scorer_), cannot(cannot_), lists(lists_),
          rounds((i64)state.into.size()),
          followers((i64)state.into.size(), n_nodes), due(state.left()), margin(1e-12 + 4.0 * scorer.tolerance.slack) {
        if (listed) take_first_listed(due);
    }

    i64 searches = 0, comparisons = 0;

    i64 find() {
        std::vector<i64> unknown = look_up();
        if (!unknown.empty()) {
            if (scorer.gives_up(state, comparisons)) {
                settle(span(state.left()));
                return -1;
            }
            searches += (i64)unknown.size();
            comparisons += scorer.search(span(unknown), state);
            take_first_listed(unknown);
        }
        followers.follow(span(due), state);
        return (i64)unknown.size();
    }

    const std::vector<i64>& updated_regions() const { return due; }

    void settle(Vector<const i64> queries) {
        over_ranges(queries.size, SIMILARITY_NS, [&](i64 begin, i64 end) {
            for (i64 i = begin; i < end; ++i) {
                i64 a = queries[i], &nearest = state.nearest[a];
                if (nearest < 0) continue;
                nearest = state.now(nearest);
                if (rounds.changed(nearest, a)) state.nearest_similarity[a] = scorer.similarity(a, nearest);
            }
        });
    }

    void retire(i64 a) { regions.retire(a); }

    // Update the lists of regions that become due: unions, and followers whose nearest may have changed.
    void unite() {
        regions.unite(state.last_kept(), state.last_absorbed());
        scorer.unite(state);
        Vector<const i64> kept = state.last_kept();
        cannot.unite(kept, state.last_absorbed());
        for (i64 a : kept) rounds.merged[a] = state.rounds;
        const i64* size = Histograms(regions).size;
        due = followers.meet(state, size);
        if (cannot) add_refused(kept);
        due.insert(due.end(), kept.begin(), kept.end());
        state.sort(due);
        auto scores = scorer.scores_of_updates(state, (i64)due.size());
        in_threads((i64)due.size(), UPDATE_NS, [&](Ranges& ranges) {
            ListUpdate update(state, rounds, cannot, lists, scorer.tolerance, Scorer::RATIO, size, scores());
            while (Range range = ranges.next()) {
                for (i64 i = range.start; i < range.stop; ++i) update.update(due[i]);
                update.end();
            }
        });
        for (i64 a : due) {
            state.nearest[a] = UNKNOWN;
            rounds.updated[a] = state.rounds;
        }
    }

private:
    static constexpr f64 SIMILARITY_NS = 500, UPDATE_NS = 2'000;

    // Find the nearest of each due region in its list; return the regions whose list does not decide it.
    std::vector<i64> look_up() {
        std::vector<i64> unknown;
        for (i64 a : due) {
            if (state.nearest[a] != UNKNOWN) continue;
            Bound best = {0.0, NO_HASH};
            i64 nearest = -1;
            f64 rival = lists.bound[a];
            for (i64 s = 0; s < lists.n_listed() && lists.ids[a][s] >= 0; ++s) {
                i64 r = lists.ids[a][s];
                f64 similarity = lists.similarities[a][s];
                u64 tie = pair_hash(a, r);
                if (nearest >= 0 && !comes_before(similarity, tie, best.similarity, best.tie)) {
                    rival = std::max(rival, similarity);
                    continue;
                }
                rival = std::max(rival, best.similarity);
                nearest = r;
                best = {similarity, tie};
            }
            if (nearest >= 0 && !comes_before(lists.bound[a], lists.bound_hash[a], best.similarity, best.tie)) {
                take(a, nearest, best.similarity, rival);
            } else if (nearest < 0 && lists.bound[a] <= scorer.tolerance.nothing) {
                state.nearest[a] = RETIRED;
            } else {
                unknown.push_back(a);
            }
        }
        return unknown;
    }

    // Add to the due regions those whose nearest region has become one that they must not join.
    void add_refused(Vector<const i64> kept) {
        std::unordered_set<i64> listed(due.begin(), due.end());
        for (i64 a : kept) {
            const CannotLinks::Regions* refused = cannot.of(a);
            if (!refused) continue;
            for (i64 r : *refused)
                if (state.partner[r] < 0 && state.nearest[r] >= 0 && state.now(state.nearest[r]) == a &&
                    listed.insert(r).second)
                    due.push_back(r);
        }
    }

    // Drop from the new list of region a all regions that it must not join. If none of a full list is left, list the
    // nearest of all allowed regions.
    void drop_forbidden(i64 a, const CannotLinks::Regions& forbidden) {
        i32* ids = lists.ids[a];
        f64* similarities = lists.similarities[a];
        i64 kept = 0;
        for (i64 s = 0; s < lists.n_listed() && ids[s] >= 0; ++s) {
            if (forbidden.contains(ids[s])) continue;
            ids[kept] = ids[s];
            similarities[kept++] = similarities[s];
        }
        std::fill(ids + kept, ids + lists.n_listed(), -1);
        std::fill(similarities + kept, similarities + lists.n_listed(), 0.0);
        if (kept || lists.bound[a] <= scorer.tolerance.nothing) return;
        look();
        Shortlist list(lists);
        list.begin(a);
        for (i64 r : state.left())
            if (r != a && !forbidden.contains(r)) list.add_similar(r, scorer.similarity(a, r));
        list.end();
    }

    // Take the first entry of each new list as the nearest region; raise the list's bound by the rounding tolerance.
    void take_first_listed(const std::vector<i64>& queries) {
        const Tolerance& tolerance = scorer.tolerance;
        for (i64 a : queries) {
            if (auto* forbidden = cannot.of(a)) drop_forbidden(a, *forbidden);
            f64 second = lists.n_listed() > 1 ? lists.similarities[a][1] : 0.0;
            if (tolerance.slack > 0.0 || tolerance.margin > 0.0) {
                lists.bound[a] = lists.bound[a] * (1.0 + tolerance.slack) + tolerance.margin;
                lists.bound_hash[a] = 0;
            }
            if (lists.ids[a][0] < 0)
                state.nearest[a] = RETIRED;
            else
                take(a, lists.ids[a][0], lists.similarities[a][0], std::max(second, lists.bound[a]));
            rounds.updated[a] = state.rounds;
        }
    }

    // Region a has a new nearest region; no other region's similarity is above `rival`.
    void take(i64 a, i64 nearest, f64 similarity, f64 rival) {
        state.nearest[a] = nearest;
        state.nearest_similarity[a] = similarity;
        f64 size = (f64)Histograms(regions).size[nearest];
        if (!Scorer::PATIENT)
            followers.until[a] = size;
        else
            followers.until[a] = rival > 0.0 ? similarity / rival * (1.0 - margin) * size : __builtin_inf();
    }

    State& state;
    Regions& regions;
    Scorer& scorer;
    CannotLinks& cannot;
    Shortlists lists;
    Rounds rounds;
    ReverseNeighbors followers;
    std::vector<i64> due;  // regions whose nearest region is new or unknown
    f64 margin;            // the least relative difference of similarities that exceeds rounding errors
};

}  // namespace gpuens

// Similarities of regions under a diagonal S, as lists need them (listed.h).
#pragma once

#include "linkage/average.h"
#include "linkage/searches.h"

namespace gpuens {

// Similarities of a region with those of its list, in one thread (ListUpdate).
template <typename Weight>
class DiagonalScores {
public:
    DiagonalScores(const Similarities<Weight>& exact_, const Longest& longest_, i64 n_held)
        : exact(exact_), longest(longest_), dense(n_held), none(0) {}

    f64 similarity(i64 a, i64 b) const { return exact.with(laid ? dense : none, a, b); }
    void lay(i64 a) {
        if (!dense) return;
        dense.lay(exact.of, a);
        laid = true;
    }
    template <typename Count>
    void lay_if(i64 a, Count&& count) {
        if (dense && count() >= WORTH_LAYING) lay(a);
    }
    void clear(i64 a) {
        if (!laid) return;
        dense.clear(exact.of, a);
        laid = false;
    }

    // True if region r has a dense histogram.
    bool quick(i64 r) const { return longest[r] != nullptr; }

    // True if the similarity of regions a and r is best computed in a batch, by the dense histogram of r.
    bool waits(i64 a, i64 r) const { return quick(r) && exact.of.length[a] <= exact.of.length[r]; }

    template <typename Write>
    void wait(i64 a, i64 place, i64 r, Write&& write) {
        waiting[n_waiting++] = {a, place, r};
        if (n_waiting == AT_ONCE) end(write);
    }

    // Score the waiting pairs with interleaved additions; the bits are those of scoring one pair at a time.
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
    static constexpr i64 AT_ONCE = 4;       // pairs of regions compared in one loop
    // similarities from which on writing a dense histogram costs less than it saves
    static constexpr i64 WORTH_LAYING = 3;

    struct Pair {
        i64 a, place, r;
    };

    Similarities<Weight> exact;
    const Longest& longest;
    DenseHistogram dense, none;
    bool laid = false;
    Pair waiting[AT_ONCE];
    i64 n_waiting = 0;
};

template <typename Weight>
class DiagonalScorer {
public:
    static constexpr bool RATIO = false, PATIENT = true;

    DiagonalScorer(const RowIndex& index, const Regions& regions_, const Diagonal<Weight>& by_, const AnyDiagonal& any,
                   const Shortlists& lists, const Conduct& conduct)
        : tolerance{by_.slack(), 0.0, 0.0}, members(lists.ids.rows), regions(regions_), by(by_), table(conduct.table),
          longest(lists.ids.rows, by.n_clusters()),
          searches(index, any, lists, conduct.left, conduct.tiles,
                   conduct.only ? std::optional((Kind)*conduct.only) : std::nullopt) {}

    Tolerance tolerance;
    Members members;

    f64 similarity(i64 a, i64 b) const { return exact()(a, b); }

    auto scores_of_updates(const State& state, i64 n) {
        longest.lay(regions, longest_merged(state));
        i64 n_held = by.n_clusters() <= CLEARED * n ? by.n_clusters() : 0;
        return [this, n_held] { return DiagonalScores<Weight>(exact(), longest, n_held); };
    }

    i64 search(Vector<const i64> queries, State& state) { return searches.search(queries, state, regions, members); }

    void unite(const State& state) { members.unite(state.last_kept(), state.last_absorbed()); }

    // True once searches have cost more than a table of all pairs; later searches would cost as much again.
    bool gives_up(const State& state, i64 comparisons) const {
        if (state.n_left() > table.most_regions) return false;
        i64 n_labels = state.n_left() * (i64)members.n_rows.size() * by.n_clusterings;
        return table.comparisons < std::min(4 * comparisons, n_labels);
    }

private:
    static constexpr i64 LAID = 1 << 20;  // largest number of counts in dense histograms
    static constexpr i64 CLEARED = 256;   // clusters for which a dense histogram pays, for each list that is updated

    Similarities<Weight> exact() const { return {regions, by.weights.data, by.n_clusterings}; }

    // The regions that merged in this round and have most entries, as many as there is room for. These few regions are
    // in many lists, and the regions that have these lists mostly have fewer entries.
    std::vector<i64> longest_merged(const State& state) const {
        const i64* length = Histograms(regions).length;
        std::vector<i64> merged;
        for (i64 a : state.last_kept())
            if (length[a] > by.n_clusterings) merged.push_back(a);
        std::size_t room = std::min(LAID, state.n_left() * by.n_clusterings) / by.n_clusters();
        if (merged.size() > room) {
            std::stable_sort(merged.begin(), merged.end(), [&](i64 a, i64 b) { return length[a] > length[b]; });
            merged.resize(room);
        }
        return merged;
    }

    const Regions& regions;
    const Diagonal<Weight>& by;
    TableTerms table;
    Longest longest;
    Searches searches;
};

}  // namespace gpuens

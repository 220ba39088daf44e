#include "linkage/average.h"

#include <chrono>
#include <stdexcept>
#include <string>

#include "linkage/primitives.h"
#include "linkage/reverse_neighbors.h"
#include "parallel.h"

namespace gpuens {

namespace {

constexpr auto BETWEEN_REPORTS = std::chrono::milliseconds(100);
constexpr f64 SIMILARITY_NS = 500;

std::optional<Kind> kind_of(std::optional<i64> number) {
    return number ? std::optional((Kind)*number) : std::nullopt;
}

// The first `n` numbers.
Vector<const i64> first(const Vector<i64>& of, i64 n) { return {of.data, n}; }

class Linkage {
public:
    Linkage(const RowIndex& index_, const Members& members_, const AnyRegions& regions_, const AnyDiagonal& diagonal_,
            const State& state_, const Shortlists& lists_, const Conduct& conduct, const TakesOver& takes_over_)
        : index(index_), members(members_), regions(regions_), diagonal(diagonal_), state(state_), lists(lists_),
          tolerance{conduct.slack, 0.0, 0.0}, takes_over(takes_over_),
          followers(state, index.place, conduct.slack, conduct.n_nodes),
          searches({index, members, diagonal, lists}, conduct.left, conduct.tiles, kind_of(conduct.only)) {
        std::visit([&](const auto& by) {
            n_clusterings = by.n_clusterings;
            weighting = {by.weights, by.n_clusterings};
        }, diagonal);
        entries() = 0;
        for (i64 a : state.current()) entries() += length()[a];
        take_first_listed(state.current());
    }

    // State is the caller's: its arrays of active regions and survivors change places in each round.
    Linked run() {
        i64 rounds = 0;
        while (find_nearest()) {
            merge();
            ++rounds;
        }
        if (rounds % 2) {
            std::copy_n(state.active.data, state[State::ACTIVE], state.survivors.data);
            std::swap(state.active, state.survivors);
        }
        auto [by_tiles, by_rows, by_histograms] = searches.used;
        return {std::move(arena), n_searches, {by_tiles, by_rows, by_histograms}};
    }

private:
    i64& entries() { return state[State::ENTRIES]; }
    i64* length() const { return std::visit([](const auto& of) { return of.length.data; }, regions); }
    i64* size() const { return std::visit([](const auto& of) { return of.size.data; }, regions); }

    // Find the nearest region of each active region; return whether any region has one, and no table takes over.
    bool find_nearest() {
        look();
        followers.look_up(state, size(), lists);
        Vector<const i64> active = state.current(), unknown = first(state.unknown, state[State::UNKNOWNS]);
        if (!active.size) return false;
        bool taken = report(active.size, unknown.size);
        if (taken && unknown.size) {
            followers.settle(active, state);
            return false;
        }
        if (unknown.size) {
            n_searches += unknown.size;
            state[State::COMPARED] += searches.search(unknown, state, regions, entries());
            take_first_listed(unknown);
        } else if (state[State::PAIRS] == 0) {  // rounding errors made the nearest regions form a cycle
            pair_best(active);
        }
        return true;
    }

    bool report(i64 active, i64 unknown) {
        auto now = std::chrono::steady_clock::now();
        if (!unknown && now - reported < BETWEEN_REPORTS) return false;
        reported = now;
        return takes_over(active, unknown, state[State::COMPARED], state[State::MERGES]);
    }

    void take_first_listed(Vector<const i64> some) {
        gpuens::take_first_listed(some, state, tolerance, lists);
        for (i64 a : some) {
            f64 second = lists.n_listed() > 1 ? lists.similarities[a][1] : 0.0;
            followers.certain.note(a, std::max(second, lists.bound[a]), state, size());
        }
    }

    void merge() {
        i64 n_active = state[State::ACTIVE], n_entries = entries(), merges = state[State::MERGES];
        followers.pair_up(state, length());
        std::swap(state.active, state.survivors);
        i64 pairs = state[State::PAIRS];
        Vector<const i64> kept{state.kept.data + merges, pairs}, absorbed{state.absorbed.data + merges, pairs};
        make_room(first(state.survivors, n_active), kept, absorbed, n_entries);
        score_grown(kept, absorbed, state.merged_at.data + merges);
        merge_histograms(regions, kept, absorbed);
        members.unite(kept, absorbed);
        followers.update_lists(state, regions, weighting, tolerance, lists);
    }

    // Make room in the arena for the unions. Mostly it can be compacted in place. `live`: regions before the merges.
    void make_room(Vector<const i64> live, Vector<const i64> kept, Vector<const i64> absorbed, i64 n_entries) {
        i64 needed = 0;
        for (i64 p = 0; p < kept.size; ++p) needed += length()[kept[p]] + length()[absorbed[p]];
        std::visit([&]<typename Count>(Regions<Count>& of) {
            i64 capacity = of.clusters.size;
            if (of.used[0] + needed <= capacity) return;
            if (n_entries + needed <= capacity) return compact(of, live);
            move(of, live, std::max(capacity, n_entries + needed + n_entries / 2));
        }, regions);
    }

    template <typename Count>
    void move(Regions<Count>& of, Vector<const i64> live, i64 capacity) {
        Arena larger{Grown<i32>(capacity), Grown<Count>(capacity)};
        auto& [clusters, any_counts] = larger;
        auto& counts = std::get<Grown<Count>>(any_counts);
        std::vector<i64> lengths;
        i64 at = 0;
        for (i64 r : live) {
            i64 n = of.length[r];
            std::copy_n(of.clusters.data + of.start[r], n, clusters.data() + at);
            std::copy_n(of.counts.data + of.start[r], n, counts.data() + at);
            of.start[r] = at;
            lengths.push_back(n);
            at += n;
        }
        std::fill(of.length.begin(), of.length.end(), 0);
        for (i64 i = 0; i < live.size; ++i) of.length[live[i]] = lengths[i];
        of.used[0] = at;
        of.clusters = {clusters.data(), capacity};
        of.counts = {counts.data(), capacity};
        arena = std::move(larger);
    }

    // Replace similarities that are NaN by those of `some` with `others`.
    void score_grown(Vector<const i64> some, Vector<const i64> others, f64* similarities) {
        std::visit([&]<typename Count, typename Weight, typename Bound>(const Regions<Count>& of,
                                                                        const Diagonal<Weight, Bound>& by) {
            Similarities<Count, Weight> exact{of, by.weights.data, by.n_clusterings};
            over_ranges(some.size, SIMILARITY_NS, [&](i64 begin, i64 end) {
                for (i64 i = begin; i < end; ++i)
                    if (similarities[i] != similarities[i] && others[i] >= 0)
                        similarities[i] = exact(some[i], others[i]);
            });
        }, regions, diagonal);
    }

    // Pair the two most similar regions, among regions whose nearest region is active.
    void pair_best(Vector<const i64> active) {
        followers.settle(active, state);
        std::vector<i64> nearest;
        std::vector<f64> similarities;
        for (i64 a : active) {
            nearest.push_back(state.nearest[a]);
            similarities.push_back(state.nearest_similarity[a]);
        }
        score_grown(active, {nearest.data(), active.size}, similarities.data());
        std::vector<i64> sorted(active.begin(), active.end());
        std::sort(sorted.begin(), sorted.end());
        i64 best = -1;
        for (i64 i = 0; i < active.size; ++i) {
            i64 a = active[i];
            state.nearest_similarity[a] = similarities[i];
            if (!std::binary_search(sorted.begin(), sorted.end(), nearest[i])) continue;
            f64 highest = best < 0 ? 0.0 : state.nearest_similarity[best];
            if (best < 0 || similarities[i] > highest || (similarities[i] == highest && a < best)) best = a;
        }
        if (best < 0)  // a bound was too low; absorbed regions have no histogram to read
            throw std::runtime_error("average linkage found no nearest region for one of " +
                                     std::to_string(active.size) + " regions; please report this.");
        i64 other = state.nearest[best];
        state.nearest[other] = best;
        state.nearest_similarity[other] = state.nearest_similarity[best];
        followers.pair(best, other);
    }

    RowIndex index;
    Members members;
    AnyRegions regions;
    AnyDiagonal diagonal;
    State state;
    Shortlists lists;
    Tolerance tolerance;
    AnyWeighting weighting;
    i64 n_clusterings = 0, n_searches = 0;
    const TakesOver& takes_over;
    ReverseNeighbors followers;
    Searches searches;
    std::optional<Arena> arena;
    std::chrono::steady_clock::time_point reported{};
};

}  // namespace

Linked average_linkage(RowIndex index, Members members, AnyRegions regions, AnyDiagonal diagonal, State state,
                       Shortlists lists, Conduct conduct, const TakesOver& takes_over) {
    return Linkage(index, members, regions, diagonal, state, lists, conduct, takes_over).run();
}

}  // namespace gpuens

#include "linkage/average.h"

#include "linkage/primitives.h"
#include "linkage/reverse_neighbors.h"
#include "parallel.h"

namespace gpuens {

namespace {

constexpr f64 SIMILARITY_NS = 500;

std::optional<Kind> kind_of(std::optional<i64> number) {
    return number ? std::optional((Kind)*number) : std::nullopt;
}

// The first `n` numbers.
Vector<const i64> first(const Vector<i64>& of, i64 n) { return {of.data, n}; }

class Linkage {
public:
    Linkage(const RowIndex& index_, const Members& members_, const Regions& regions_, const AnyDiagonal& diagonal_,
            const State& state_, const Shortlists& lists_, const Conduct& conduct, const std::function<void(i64)>& report_)
        : index(index_), unions(regions_, members_), diagonal(diagonal_), state(state_), lists(lists_),
          tolerance{conduct.slack, 0.0, 0.0}, table(conduct.table), report(report_),
          followers(state, index.place, conduct.slack, conduct.n_nodes),
          searches({index, unions.members, diagonal, lists}, conduct.left, conduct.tiles, kind_of(conduct.only)) {
        std::visit([&](const auto& by) {
            n_clusterings = by.n_clusterings;
            weighting = {by.weights, by.n_clusterings};
        }, diagonal);
        entries() = entries_of(unions.length(), state.current());
        take_first_listed(state.current());
    }

    // State is the caller's: its arrays of active regions and survivors change places in each round.
    Linked run() {
        i64 rounds = 0;
        while (find_nearest()) {
            merge();
            ++rounds;
        }
        end_rounds(state, rounds);
        auto [by_tiles, by_rows, by_histograms] = searches.used;
        return {std::move(unions.arena), n_searches, {by_tiles, by_rows, by_histograms}, table_pays};
    }

private:
    i64& entries() { return state[State::ENTRIES]; }

    // Find the nearest region of each active region; return whether any region has one, and no table pays.
    bool find_nearest() {
        look();
        if (pace.due()) call_python(report, state[State::MERGES]);
        followers.look_up(state, unions.size(), lists);
        Vector<const i64> active = state.current(), unknown = first(state.unknown, state[State::UNKNOWNS]);
        if (!active.size) return false;
        if (unknown.size) {
            table_pays = pays(active.size);
            if (table_pays) {
                followers.settle(active, state);
                return false;
            }
            n_searches += unknown.size;
            state[State::COMPARED] += searches.search(unknown, state, unions.regions, entries());
            take_first_listed(unknown);
        } else if (state[State::PAIRS] == 0) {  // rounding errors made the nearest regions form a cycle
            pair_best(active);
        }
        return true;
    }

    // Whether searches have already cost more than a table of all pairs; later searches would then, too.
    bool pays(i64 n_active) {
        if (n_active > table.most_regions) return false;
        i64 comparisons = n_active * unions.members.n_rows.size * n_clusterings;
        return table.comparisons < std::min(4 * state[State::COMPARED], comparisons);
    }

    void take_first_listed(Vector<const i64> some) {
        gpuens::take_first_listed(some, state, tolerance, lists);
        for (i64 a : some) {
            f64 second = lists.n_listed() > 1 ? lists.similarities[a][1] : 0.0;
            followers.certain.note(a, std::max(second, lists.bound[a]), state, unions.size());
        }
    }

    void merge() {
        i64 n_active = state[State::ACTIVE], n_entries = entries(), merges = state[State::MERGES];
        followers.pair_up(state, unions.length());
        std::swap(state.active, state.survivors);
        i64 pairs = state[State::PAIRS];
        Vector<const i64> kept{state.kept.data + merges, pairs}, absorbed{state.absorbed.data + merges, pairs};
        score_grown(kept, absorbed, state.merged_at.data + merges);
        unions.unite(first(state.survivors, n_active), kept, absorbed, n_entries);
        followers.update_lists(state, unions.regions, weighting, tolerance, lists);
    }

    // Replace similarities that are NaN by those of `some` with `others`.
    void score_grown(Vector<const i64> some, Vector<const i64> others, f64* similarities) {
        std::visit([&]<typename Weight>(const Diagonal<Weight>& by) {
            Similarities<Weight> exact{unions.regions, by.weights.data, by.n_clusterings};
            over_ranges(some.size, SIMILARITY_NS, [&](i64 begin, i64 end) {
                for (i64 i = begin; i < end; ++i)
                    if (similarities[i] != similarities[i] && others[i] >= 0)
                        similarities[i] = exact(some[i], others[i]);
            });
        }, diagonal);
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
        i64 best = gpuens::pair_best(state, active, similarities.data());
        followers.pair(best, state.nearest[best]);
    }

    RowIndex index;
    Unions unions;
    AnyDiagonal diagonal;
    State state;
    Shortlists lists;
    Tolerance tolerance;
    AnyWeighting weighting;
    i64 n_clusterings = 0, n_searches = 0;
    TableTerms table;
    bool table_pays = false;
    const std::function<void(i64)>& report;
    ReverseNeighbors followers;
    Searches searches;
    Pace pace;
};

}  // namespace

Linked average_linkage(RowIndex index, Members members, Regions regions, AnyDiagonal diagonal, State state,
                       Shortlists lists, Conduct conduct, const std::function<void(i64)>& report) {
    return Linkage(index, members, regions, diagonal, state, lists, conduct, report).run();
}

}  // namespace gpuens

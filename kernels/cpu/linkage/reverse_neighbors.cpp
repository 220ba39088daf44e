#include "linkage/reverse_neighbors.h"

#include <algorithm>

namespace gpuens {

namespace {

template <typename T>
Vector<const T> span(const std::vector<T>& of) {
    return {of.data(), (i64)of.size()};
}

void sort_by(Vector<const i64> place, std::vector<i64>& some) {
    std::sort(some.begin(), some.end(), [&](i64 a, i64 b) { return place[a] < place[b]; });
}

}  // namespace

// --- heaps ------------------------------------------------------------------------------------------------------------

void Heaps::follow(Vector<const i64> some, const State& state, const Certain& certain) {
    if (used + some.size > (i64)nodes.size()) {
        used = 0;
        for (i64 a : state.current()) top[a] = NOBODY;
        for (i64 a : state.current())
            if (node[a] != NOBODY) wait(a, state, certain);
    }
    for (i64 a : some) wait(a, state, certain);
}

void Heaps::wait(i64 a, const State& state, const Certain& certain) {
    node[a] = NOBODY;
    if (state.nearest[a] < 0 || certain.until[a] == __builtin_inf()) return;
    i32 n = (i32)used++;
    node[a] = n;
    nodes[n] = {certain.until[a], (i32)a, NOBODY, NOBODY};
    i32& heap = top[state.now(state.nearest[a])];
    heap = melded(heap, n);
}

std::vector<i64> Heaps::meet(Vector<const i64> kept, Vector<const i64> absorbed, const i64* size) {
    std::vector<i64> unsure;
    for (i64 p = 0; p < kept.size; ++p) node[kept[p]] = node[absorbed[p]] = NOBODY;
    for (i64 p = 0; p < kept.size; ++p) {
        i64 a = kept[p], b = absorbed[p];
        i32 first = melded(top[a], top[b]);
        while (first != NOBODY && nodes[first].until < (f64)size[a]) {
            i64 owner = nodes[first].owner;
            if (node[owner] == first) {
                node[owner] = NOBODY;
                unsure.push_back(owner);
            }
            first = melded(nodes[first].left, nodes[first].right);
        }
        top[a] = first;
        top[b] = NOBODY;
    }
    return unsure;
}

i32 Heaps::melded(i32 one, i32 other) {
    if (one == NOBODY) return other;
    if (other == NOBODY) return one;
    if (nodes[other].until < nodes[one].until) std::swap(one, other);
    i32 first = one;
    while (nodes[one].right != NOBODY) {
        i32 below = nodes[one].right;
        if (nodes[other].until < nodes[below].until) std::swap(below, other);
        nodes[one].right = nodes[one].left;
        nodes[one].left = below;
        one = below;
    }
    nodes[one].right = nodes[one].left;
    nodes[one].left = other;
    return first;
}

// --- steps of a round -------------------------------------------------------------------------------------------------

ReverseNeighbors::ReverseNeighbors(const State& state, Vector<const i64> place_, f64 slack, i64 n_nodes)
    : certain(place_.size, slack), place(place_), heaps(place.size, n_nodes),
      due(state.active.begin(), state.active.begin() + state[State::ACTIVE]), gone(place.size) {}

void ReverseNeighbors::look_up(const State& state, const i64* size, const Shortlists& lists) {
    gpuens::look_up(span(due), state, size, 0.0, certain, lists);
}

void ReverseNeighbors::settle(Vector<const i64> some, const State& state) const {
    for (i64 a : some) {
        i64& nearest = state.nearest[a];
        if (nearest < 0) continue;
        nearest = state.now(nearest);
        if (certain.merged[nearest] > certain.seen[a]) state.nearest_similarity[a] = __builtin_nan("");
    }
}

void ReverseNeighbors::pair_up(const State& state, const i64* length) {
    heaps.follow(span(due), state, certain);
    std::vector<i64> kept;
    for (i64 a : due) {
        if (state.nearest[a] < 0) continue;
        i64 b = state.now(state.nearest[a]);
        if (state.nearest[b] < 0 || state.now(state.nearest[b]) != a) continue;
        if (state.partner[std::min(a, b)] >= 0) continue;  // paired from the other side
        state.partner[std::min(a, b)] = std::max(a, b);
        kept.push_back(std::min(a, b));
    }
    sort_by(place, kept);
    settle(span(kept), state);
    i64 &merges = state[State::MERGES], &entries = state[State::ENTRIES];
    for (i64 a : kept) {
        i64 b = state.partner[a];
        state.kept[merges] = a;
        state.absorbed[merges] = b;
        state.merged_at[merges++] = state.nearest_similarity[a];
        state.into[b] = a;
        gone[b] = true;
        entries -= length[a] + length[b];  // those of the union are added after it exists
    }
    for (i64 a : due)
        if (state.nearest[a] == RETIRED) {
            gone[a] = true;
            entries -= length[a];
        }
    i64 survivors = 0;
    for (i64 a : state.current()) {
        state.survivors[survivors] = a;
        survivors += !gone[a];
    }
    state[State::ACTIVE] = survivors;
    state[State::PAIRS] = (i64)kept.size();
    state[State::ROUNDS] += !kept.empty();
}

void ReverseNeighbors::update_lists(const State& state, const Regions& regions, const AnyWeighting& weighting,
                                    const Tolerance& tolerance, const Shortlists& lists) {
    i64 merges = state[State::MERGES], pairs = state[State::PAIRS];
    Vector<const i64> kept{state.kept.data + merges - pairs, pairs};
    Vector<const i64> absorbed{state.absorbed.data + merges - pairs, pairs};
    due = heaps.meet(kept, absorbed, regions.size.data);
    for (i64 a : due) state.nearest[a] = UNKNOWN;
    due.insert(due.end(), kept.begin(), kept.end());
    sort_by(place, due);
    gpuens::update_lists(span(due), state, regions, weighting, tolerance, certain, lists);
    for (i64 a : kept) state[State::ENTRIES] += regions.length[a];
}

}  // namespace gpuens

#include "linkage/unions.h"

#include <algorithm>
#include <stdexcept>
#include <string>

#include "linkage/primitives.h"

namespace gpuens {

void Unions::unite(Vector<const i64> live, Vector<const i64> kept, Vector<const i64> absorbed, i64 n_entries) {
    make_room(live, kept, absorbed, n_entries);
    merge_histograms(regions, kept, absorbed);
    members.unite(kept, absorbed);
}

// Make room in the arena for the unions. Mostly it can be compacted in place.
void Unions::make_room(Vector<const i64> live, Vector<const i64> kept, Vector<const i64> absorbed, i64 n_entries) {
    i64 needed = entries_of(length(), kept) + entries_of(length(), absorbed);
    i64 capacity = regions.clusters.size;
    if (regions.used[0] + needed <= capacity) return;
    if (n_entries + needed <= capacity) return compact(regions, live);
    move(live, std::max(capacity, n_entries + needed + n_entries / 2));
}

void Unions::move(Vector<const i64> live, i64 capacity) {
    Arena larger{Grown<i32>(capacity), Grown<i32>(capacity)};
    auto& [clusters, counts] = larger;
    std::vector<i64> start(regions.start.begin(), regions.start.end());
    std::vector<i64> lengths(regions.length.begin(), regions.length.end());
    Regions before = regions;
    before.start.data = start.data(), before.length.data = lengths.data();
    regions.clusters = {clusters.data(), capacity};
    regions.counts = {counts.data(), capacity};
    regions.used[0] = 0;
    std::fill(regions.length.begin(), regions.length.end(), 0);
    move_histograms(before, regions, live);
    arena = std::move(larger);
}

i64 pair_best(const State& state, Vector<const i64> active, const f64* similarities) {
    std::vector<i64> sorted(active.begin(), active.end());
    std::sort(sorted.begin(), sorted.end());
    i64 best = -1;
    for (i64 i = 0; i < active.size; ++i) {
        i64 a = active[i];
        state.nearest_similarity[a] = similarities[i];
        if (!std::binary_search(sorted.begin(), sorted.end(), state.nearest[a])) continue;
        f64 highest = best < 0 ? 0.0 : state.nearest_similarity[best];
        if (best < 0 || similarities[i] > highest || (similarities[i] == highest && a < best)) best = a;
    }
    if (best < 0)  // a bound was too low; absorbed regions have no histogram to read
        throw std::runtime_error("average linkage found no nearest region for one of " + std::to_string(active.size) +
                                 " regions; please report this.");
    i64 other = state.nearest[best];
    state.nearest[other] = best;
    state.nearest_similarity[other] = state.nearest_similarity[best];
    return best;
}

void end_rounds(State& state, i64 rounds) {
    if (rounds % 2 == 0) return;
    std::copy_n(state.active.data, state[State::ACTIVE], state.survivors.data);
    std::swap(state.active, state.survivors);
}

}  // namespace gpuens

// Unions of regions in average linkage, however their pairs were found (average.cpp, table_rounds.cpp).
#pragma once

#include <optional>
#include <tuple>

#include "linkage/members.h"
#include "linkage/rounds.h"

namespace gpuens {

// An arena in which there was room for all unions.
using Arena = std::tuple<Grown<i32>, Grown<i32>>;

class Unions {
public:
    Unions(const Regions& regions_, const Members& members_) : regions(regions_), members(members_) {}

    i64* length() const { return regions.length.data; }
    i64* size() const { return regions.size.data; }

    // Merge the histograms and rows of pairs. Before, there were `live` regions, which had so many entries.
    void unite(Vector<const i64> live, Vector<const i64> kept, Vector<const i64> absorbed, i64 n_entries);

    Regions regions;
    Members members;
    std::optional<Arena> arena;  // the last one, unless it is the first

private:
    void make_room(Vector<const i64> live, Vector<const i64> kept, Vector<const i64> absorbed, i64 n_entries);
    void move(Vector<const i64> live, i64 capacity);
};

// Of the active regions whose nearest region is active, find the one with the highest similarity; make both each
// other's nearest, and return the first. `similarities`: those of the active regions with their nearest regions.
i64 pair_best(const State& state, Vector<const i64> active, const f64* similarities);

// After so many rounds, each of which swapped the arrays of active regions and survivors: leave the active regions in
// the caller's array.
void end_rounds(State& state, i64 rounds);

}  // namespace gpuens

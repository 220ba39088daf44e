// Average linkage without an N x N matrix, by rounds of reciprocal nearest neighbours, under a diagonal S
// (gpuens/partition/linkage/average.py).
#pragma once

#include <functional>
#include <optional>
#include <tuple>

#include "linkage/searches.h"

namespace gpuens {

// How a linkage goes about its work; no choice changes a result.
struct Conduct {
    f64 slack;                // relative rounding error of a similarity
    f64 left;                 // share of comparisons that the first lists needed despite bounds
    TileSizes tiles;
    std::optional<i64> only;  // the one kind of search to use
    i64 n_nodes;              // of the heaps of reverse neighbours
};

// An arena in which there was room for all unions.
using Arena = std::tuple<Grown<i32>, std::variant<Grown<i32>, Grown<i64>>>;

struct Linked {
    std::optional<Arena> arena;      // the last one, unless it is the first
    i64 searches;                    // regions for which all others were searched
    std::tuple<i64, i64, i64> used;  // searches of each kind
};

// How a round begins. Returns whether a table of all pairs is to take over; it is asked while some regions' nearest is unknown.
// The arguments: active regions, those whose nearest is unknown, comparisons in searches so far, and merges so far.
using TakesOver = std::function<bool(i64, i64, i64, i64)>;

// Merge regions until none has a similarity above 0 with another, or a table takes over. The first lists are those of rows. State,
// members and regions are left as the last round leaves them.
Linked average_linkage(RowIndex index, Members members, AnyRegions regions, AnyDiagonal diagonal, State state,
                       Shortlists lists, Conduct conduct, const TakesOver& takes_over);

}  // namespace gpuens

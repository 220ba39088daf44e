// Average linkage without an N x N matrix, by rounds of reciprocal nearest neighbours, under a diagonal S
// (gpuens/partition/linkage/average.py).
#pragma once

#include <functional>
#include <optional>
#include <tuple>

#include "linkage/searches.h"
#include "linkage/unions.h"

namespace gpuens {

// The size limit and the cost of a table of all pairs of regions (gpuens/partition/linkage/pair_table.py).
struct TableTerms {
    i64 most_regions;  // regions whose table fits the memory
    i64 comparisons;   // comparisons of labels that cost as much as the table
};

// How a linkage goes about its work; no choice changes a result.
struct Conduct {
    f64 slack;                // relative rounding error of a similarity
    f64 left;                 // share of comparisons that the first lists needed despite bounds
    TileSizes tiles;
    std::optional<i64> only;  // the one kind of search to use
    i64 n_nodes;              // of the heaps of reverse neighbours
    TableTerms table;
};

struct Linked {
    std::optional<Arena> arena;      // the last one, unless it is the first
    i64 searches;                    // regions for which all others were searched
    std::tuple<i64, i64, i64> used;  // searches of each kind
    bool table_pays;                 // whether a table of all pairs is to take over
};

// Merge regions until none has a similarity above 0 with another, or a table pays. The first lists are those of rows. State,
// members and regions are left as the last round leaves them. `report` is told the number of merges now and then.
Linked average_linkage(RowIndex index, Members members, Regions regions, AnyDiagonal diagonal, State state,
                       Shortlists lists, Conduct conduct, const std::function<void(i64)>& report);

}  // namespace gpuens

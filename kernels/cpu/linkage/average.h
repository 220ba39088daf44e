// Average linkage without an N x N matrix (rounds.h), under three kinds of similarities.
//
// The merges are written sorted. Functions tell `report` the number of merges now and then.
#pragma once

#include <optional>

#include "linkage/links.h"
#include "linkage/members.h"
#include "linkage/rounds.h"
#include "linkage/shortlist.h"

namespace gpuens {

// Distinct label rows.
struct LabelRows {
    RECORD(LabelRows,
           (Codes<Matrix>, columns),      // (M, G): codes
           (Vector<const i64>, offsets),  // (M + 1,)
           (Vector<const i64>, counts));  // (G,): numbers of objects
};

// Sizes of tiles; tests make them small.
struct TileSizes {
    RECORD(TileSizes,
           (i64, rows),            // most rows of a tile, multiplied where there are many rows
           (i64, most_ceilings));  // most ceilings of all tiles together
};

// The size limit, the cost and the lists of a table of all pairs of regions.
struct TableTerms {
    RECORD(TableTerms,
           (i64, most_regions),  // regions whose table fits the memory
           (i64, comparisons),   // comparisons of labels that cost as much as the table
           (i64, n_listed));     // regions in a list
};

// The tuning of a linkage, which changes no result.
struct Conduct {
    RECORD(Conduct,
           (f64, left),  // share of comparisons that the first lists needed despite bounds
           (TileSizes, tiles),
           (std::optional<i64>, only),  // the only kind of search
           (i64, n_nodes),              // nodes in the heaps of reverse neighbours
           (TableTerms, table));
};

// Numbers of rounds, of searches after the first lists, and of comparisons.
using Effort = std::tuple<i64, i64, i64>;

// Linkage of few rows under a diagonal S of weights (N_c,). exact: weights are 1, and float64 holds all sums.
Effort link_few(LabelRows rows, Vector<const f64> weights, bool exact, const Merges& sorted);

// Linkage under a diagonal S. lists: the rows' lists; a table of all pairs is used from the beginning if they have no
// room.
Effort link_diagonal(Codes<Matrix> columns, RowIndex index, AnyDiagonal diagonal, Shortlists lists, Conduct conduct,
                     const Merges& sorted, const Report& report);

// Linkage under a diagonal S with links, without a table. Merges of must-links come first, at a similarity of infinity;
// the last merges join clusters that cannot-links keep apart, at minus infinity.
Effort link_constrained(Codes<Matrix> columns, RowIndex index, AnyDiagonal diagonal, Shortlists lists, Conduct conduct,
                        Links links, const Merges& sorted, const Report& report);

// Linkage under any symmetric S, by affinities V = M S n (G, N_c), which are overwritten; margin: rounding tolerance of
// a similarity. `searched` is told how many of the first lists are made.
Effort link_general(LabelRows rows, Matrix<f64> affinities, f64 margin, i64 n_listed, const Merges& sorted,
                    const Report& searched, const Report& report);

// Linkage over the clusterings that label both regions (all_pairs.h): the last n_clusterings of the rows.
Effort link_observed(LabelRows rows, Numbers<Matrix> weights, Vector<const f32> bounding, i64 n_listed,
                     const Merges& sorted,
                     const Report& searched, const Report& report);

}  // namespace gpuens

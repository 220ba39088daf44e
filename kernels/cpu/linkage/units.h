// The mean similarity of all pairs of regions in small units, for a table (pair_table.h).
#pragma once

#include "linkage/members.h"

namespace gpuens {

struct Units {
    i64 n, n_columns;              // regions; columns are padded to whole lanes
    std::unique_ptr<u16[]> pairs;  // (n, n_columns)
    f64 slack = 0.0;  // largest excess of a pair's units over its similarity
    f64 unit = 0.0;   // the least number of units in a similarity of 1

    Matrix<u16> of_pairs() const { return {pairs.get(), n, n_columns}; }
};

template <typename Weight>
Units units_of(const std::vector<i64>& active, const Members& members, const RowIndex& index, const Regions& regions,
               const Diagonal<Weight>& by);

}  // namespace gpuens

// The sums of a table of all pairs of regions: those of n initial regions, and those of their unions
// (pair_table.h).
#pragma once

#include <vector>

#include "runtime/arrays.h"

namespace gpuens {

// A region is known by its place among the initial regions; a union takes the place of the kept region. Columns always
// belong to the initial regions. All bounds are in units.
class PairSums {
public:
    // A float32 sum, stored in the memory of two 16-bit entries of `units`.
    typedef f32 Wide __attribute__((may_alias));

    // size (n,): numbers of objects of the initial regions.
    PairSums(Matrix<u16> units, f64 slack, const std::vector<i64>& size);

    i64 n() const { return units.rows; }
    i64 n_columns() const { return units.columns; }

    // An upper bound on the similarity of the regions at places p and q, of size_p and size_q objects.
    f64 upper(i64 p, i64 q, i64 size_p, i64 size_q) const;

    // A lower bound on that similarity, where `reach` is the upper bound.
    f64 lower(f64 reach, i64 p, i64 q) const { return reach * (1.0 - 2.0 * EPS * terms(p, q)) - loss; }

    // The active regions in the layout of a search.
    struct Columns {
        std::vector<i64> unions, ends;  // places of regions of several columns, and the ends of their columns
        std::vector<u32> columns;
        std::vector<f32> per_object;  // 1 / objects of the region at each place, 0 without one
    };
    Columns columns_of(const std::vector<i64>& places, const std::vector<i64>& size) const;

    // Write, for each place, an upper bound on the similarity of the region at place p, of so many objects, with the
    // region there; 0 for p itself and for places without a region.
    void bound_all(i64 p, i64 size, const Columns& with, f32* uppers) const;

    // The region at place p takes in the one at place q.
    void unite(i64 p, i64 q);

private:
    static constexpr f64 EPS = 6e-8;  // relative rounding error of a float32 sum, for each term
    static constexpr i64 OTHERS = 16;  // roundings of a similarity in addition to those of its sum

    i64 half() const { return units.columns / 2; }
    bool is_union(i64 p) const { return first[p] >= 0; }
    Wide* wide(i64 row) const { return (Wide*)units[row]; }
    f64 terms(i64 p, i64 q) const { return (f64)(n_members[p] + n_members[q] + OTHERS); }
    f64 at(i64 p, i64 column) const;

    Matrix<u16> units;
    f64 loss;  // largest excess of a pair's units over its similarity
    std::vector<i64> first, second;  // the rows with both halves of a union's sums; -1 for an initial region
    std::vector<f32> worth;  // objects of the initial region of each column
    std::vector<i64> follows, last, n_members;  // a chain of the columns of each region, and their number
};

}  // namespace gpuens

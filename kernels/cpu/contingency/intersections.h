// The non-empty cells of the tables of one clustering with several later ones, each table row-major.
#pragma once

#include <memory>

#include "runtime/arrays.h"
#include "runtime/records.h"

namespace gpuens {

// Cells starts[p] ... starts[p + 1] - 1 of rows, columns and counts are those of clusterings `i` and `first + p`.
template <typename Count>
struct Cells {
    RECORD(Cells, (i64, i), (i64, first), (Vector<const i64>, starts), (Vector<const i64>, rows), (Vector<const i64>, columns),
           (Vector<const Count>, counts));
    std::shared_ptr<void> memory;  // owner of the arrays, reused for the next cells

    i64 tables() const { return starts.size - 1; }
};

using AnyCells = std::variant<Cells<i64>, Cells<f64>>;

}  // namespace gpuens

// The non-empty cells of the tables of one clustering with several later ones, each row-major, and what is made of them.
#pragma once

#include <memory>

#include "arrays.h"
#include "records.h"

namespace gpuens {

// Those of clusterings `i` and `first + p` are starts[p] ... starts[p + 1] - 1 of rows, columns and counts.
template <typename Count>
struct Cells {
    RECORD(Cells, (i64, i), (i64, first), (Vector<const i64>, starts), (Vector<const i64>, rows), (Vector<const i64>, columns),
           (Vector<const Count>, counts));
    std::shared_ptr<void> memory;  // in which they are until the next ones

    i64 tables() const { return starts.size - 1; }
};

using AnyCells = std::variant<Cells<i64>, Cells<f64>>;

}  // namespace gpuens

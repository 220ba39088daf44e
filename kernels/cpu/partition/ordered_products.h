// Products of matrices whose terms are added in a given order.
#pragma once

#include "runtime/arrays.h"

namespace gpuens {

// A matrix or its transpose: entry (row, term) is data[row * row_step + term * term_step].
struct Factors {
    const f64* data;
    i64 rows, terms, row_step, term_step;
};

// Add the product with a table (terms, k) to sums (rows, k), in the order of the terms.
void add_in_order(Factors of, Matrix<const f64> table, Matrix<f64> sums);

}  // namespace gpuens

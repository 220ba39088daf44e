// The last columns of a table, too few for a vector: a copy with zeros beside them, which is read as a vector.
#pragma once

#include <algorithm>

#include "runtime/arrays.h"
#include "runtime/lanes.h"

namespace gpuens {

template <typename T>
struct Tail {
    i64 first, n;  // columns first ... first + n - 1
    std::vector<T> copied;

    explicit Tail(Matrix<const T> table) : first(table.columns / IN_REGISTER<T> * IN_REGISTER<T>), n(table.columns - first) {
        if (n == 0) return;
        copied.resize(table.rows * IN_REGISTER<T>);
        for (i64 row = 0; row < table.rows; ++row)
            std::copy(table[row] + first, table[row] + table.columns, copied.data() + row * IN_REGISTER<T>);
    }

    Matrix<const T> table() const { return {copied.data(), (i64)copied.size() / IN_REGISTER<T>, IN_REGISTER<T>}; }
};

}  // namespace gpuens

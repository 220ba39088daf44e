// Arrays that Python has allocated, C-contiguous, as spans. Functions of several types take one of them in a variant
// and dispatch once, before their loops.
#pragma once

#include <variant>
#include <vector>

#include "runtime/common.h"

namespace gpuens {

template <typename T>
struct Vector {
    T* data = nullptr;
    i64 size = 0;

    T& operator[](i64 i) const { return data[i]; }
    T* begin() const { return data; }
    T* end() const { return data + size; }
};

template <typename T>
struct Matrix {
    T* data = nullptr;
    i64 rows = 0, columns = 0;

    T* operator[](i64 row) const { return data + row * columns; }
};

// Arrays that are only read, with any steps between neighbours.
template <typename T>
struct Strided {
    const T* data = nullptr;
    i64 rows = 0, columns = 0, row_step = 0, column_step = 0;

    const T* operator[](i64 row) const { return data + row * row_step; }
};

template <typename T>
Matrix<const T> as_const(Matrix<T> matrix) {
    return {matrix.data, matrix.rows, matrix.columns};
}

// An array of a size that only its function knows: Python takes it over.
template <typename T>
struct Grown : std::vector<T> {
    using std::vector<T>::vector;
};

// Label codes, and weights or counts, of any of their types.
template <template <typename> typename Array>
using Codes = std::variant<Array<const u8>, Array<const u16>, Array<const u32>>;
template <template <typename> typename Array>
using Numbers = std::variant<Array<const i64>, Array<const f64>>;

// Labels (M, N) of any type of numbers.
using Labels = std::variant<Strided<i64>, Strided<i32>, Strided<short>, Strided<signed char>, Strided<u8>, Strided<u16>,
                            Strided<u32>, Strided<u64>, Strided<f64>, Strided<f32>>;

// Points, of either precision.
template <template <typename> typename Array>
using Reals = std::variant<Array<const f32>, Array<const f64>>;

}  // namespace gpuens

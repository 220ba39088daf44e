// Chebyshev polynomials of a matrix that is mostly zeros (gpuens/generate/directions.py).
#include "generate/primitives.h"
#include "runtime/lanes.h"
#include "runtime/least.h"
#include "runtime/parallel.h"

#include <vector>

namespace gpuens {

namespace {

constexpr i64 ROWS_BETWEEN_LOOKS = 64;

// Vectors side by side, row by row, each row filled up with zeros to whole registers.
class Block {
public:
    Block(i64 n, i64 n_registers) : width(n_registers * IN_REGISTER<f64>), memory(n * width) {}
    f64* operator[](i64 row) { return memory.data() + row * width; }
    const f64* operator[](i64 row) const { return memory.data() + row * width; }

private:
    i64 width;
    std::vector<f64> memory;
};

// Rows of a matrix without its zeros.
struct Rows {
    Vector<const i64> starts;
    Vector<const i32> columns;
    Vector<const f64> values;

    // Write `factor` times row i of the product with `now`, minus `same` times row i, minus that row of `before`.
    template <int N>
    [[gnu::always_inline]] inline void step(i64 i, i64 first, f64 factor, f64 same, const Block& now, const Block& before,
                                            Block& next) const {
        Register<f64> sums[N] = {};
        i64 left = first * IN_REGISTER<f64>;
        for (i64 at = starts[i]; at < starts[i + 1]; ++at) {
            const f64* row = now[columns[at]] + left;
            f64 value = values[at];
#pragma GCC unroll 4
            for (int v = 0; v < N; ++v) sums[v] += value * load(row + v * IN_REGISTER<f64>);
        }
#pragma GCC unroll 4
        for (int v = 0; v < N; ++v) {
            i64 place = left + v * IN_REGISTER<f64>;
            store(factor * sums[v] - same * load(now[i] + place) - load(before[i] + place), next[i] + place);
        }
    }
};

}  // namespace

Entries entries_of(Matrix<const f64> matrix, Vector<const f64> scale) {
    Entries entries;
    auto& [starts, columns, values] = entries;
    starts.push_back(0);
    std::vector<i32> places(matrix.columns + 1);
    for (i64 i = 0; i < matrix.rows; ++i) {
        if (i % ROWS_BETWEEN_LOOKS == 0) look();
        i64 n_found = 0;
        for (i64 j = 0; j < matrix.columns; ++j) {
            places[n_found] = (i32)j;
            n_found += matrix[i][j] != 0.0;
        }
        columns.insert(columns.end(), places.begin(), places.begin() + n_found);
        for (i64 at = 0; at < n_found; ++at) values.push_back(matrix[i][places[at]] * scale[i] * scale[places[at]]);
        starts.push_back((i64)columns.size());
    }
    return entries;
}

void chebyshev(Vector<const i64> starts, Vector<const i32> columns, Vector<const f64> values, f64 cut, i64 degree,
               Matrix<f64> vectors) {
    Rows rows{starts, columns, values};
    i64 n = vectors.rows, width = vectors.columns, n_registers = (width + IN_REGISTER<f64> - 1) / IN_REGISTER<f64>;
    Block before(n, n_registers), now(n, n_registers), next(n, n_registers);
    for (i64 i = 0; i < n; ++i) std::copy_n(vectors[i], width, now[i]);
    for (i64 d = 1; d <= degree; ++d) {
        f64 times = d == 1 ? 1.0 : 2.0;  // the first is 2 A / cut - 1; before it, there is nothing to subtract
        for (i64 i = 0; i < n; ++i) {
            if (i % ROWS_BETWEEN_LOOKS == 0) look();
            in_groups(n_registers, [&]<int N>(i64 first) __attribute__((always_inline)) {
                rows.step<N>(i, first, 2.0 * times / cut, times, now, before, next);
            });
        }
        std::swap(before, now);
        std::swap(now, next);
    }
    for (i64 i = 0; i < n; ++i) std::copy_n(now[i], width, vectors[i]);
}

}  // namespace gpuens

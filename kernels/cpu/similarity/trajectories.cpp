// Inner products of the trajectories of random walks along few links (gpuens/similarity/trajectories.py).
//
//   Q_0 = 0,   Q_t = P (I + Q_(t-1)) P^T
//
// A thread holds some rows of P (I + Q), turned, and never all of them: those are P Q's, four links at a time, so that a sum
// is read and written once for them. Every column of P (P Q)^T is then a sum of few of its lines, eight sums side by side.
#include "runtime/lanes.h"
#include "runtime/parallel.h"
#include "similarity/primitives.h"

#include <algorithm>
#include <memory>

namespace gpuens {

namespace {

constexpr i64 ROWS = 8;       // rows of P Q in a block, one cache line per column
constexpr i64 COLUMNS = 512;  // columns of P Q in a block
constexpr f64 LINK_NS = 0.2;

// sum_e values[e] * products[places[e]], n columns of it.
template <typename Index>
void add_lines(const Sparse<Index, f64>& step, i64 row, const f64* products, i64 size, i64 n, f64* sums) {
    i64 end = step.starts[row + 1], e = step.starts[row];
    auto line = [&](i64 of) { return products + (i64)step.places[of] * size; };
    std::fill_n(sums, n, 0.0);
    for (; e + 4 <= end; e += 4) {
        f64 s = step.values[e], t = step.values[e + 1], u = step.values[e + 2], v = step.values[e + 3];
        const f64 *a = line(e), *b = line(e + 1), *c = line(e + 2), *d = line(e + 3);
#pragma GCC ivdep
        for (i64 j = 0; j < n; ++j) sums[j] = (((sums[j] + s * a[j]) + t * b[j]) + u * c[j]) + v * d[j];
    }
    for (; e < end; ++e) {
        f64 s = step.values[e];
        const f64* a = line(e);
#pragma GCC ivdep
        for (i64 j = 0; j < n; ++j) sums[j] += s * a[j];
    }
}

template <typename Index>
void walk(const Sparse<Index, f64>& step, const f64* products, f64* out) {
    i64 size = step.size(), n_links = step.starts[size];
    in_threads((size + ROWS - 1) / ROWS, (f64)((n_links + size) * ROWS) * LINK_NS, [&](Ranges& ranges) {
        std::unique_ptr<f64[]> turned(new f64[size * ROWS]());
        f64 of_row[COLUMNS];
        while (Range range = ranges.next())
            for (i64 first = range.start * ROWS; first < std::min(range.stop * ROWS, size); first += ROWS) {
                i64 n_rows = std::min(ROWS, size - first);
                for (i64 low = 0; low < size; low += COLUMNS) {
                    look();
                    i64 n = std::min(COLUMNS, size - low);
                    for (i64 i = 0; i < n_rows; ++i) {
                        add_lines(step, first + i, products + low, size, n, of_row);
                        for (i64 j = 0; j < n; ++j) turned[(low + j) * ROWS + i] = of_row[j];
                    }
                }
                for (i64 j = 0; j < size; ++j) {
                    if (j % 256 == 0) look();
                    Native<f64, ROWS> sums = {};
                    for (i64 e = step.starts[j]; e < step.starts[j + 1]; ++e)
                        sums += step.values[e] * loaded<Native<f64, ROWS>>(turned.get() + (i64)step.places[e] * ROWS);
                    std::memcpy(out + j * size + first, &sums, sizeof(f64) * (size_t)n_rows);
                }
            }
    });
}

}  // namespace

void walk_products(AnySparse<f64> step, i64 n_steps, Matrix<f64> products, Matrix<f64> spare) {
    f64 *now = n_steps % 2 ? spare.data : products.data, *then = n_steps % 2 ? products.data : spare.data;
    i64 n = products.rows;
    std::fill_n(now, n * n, 0.0);
    with_sparse(step, [&](const auto& of) {
        for (i64 t = 0; t < n_steps; ++t) {
            for (i64 i = 0; i < n; ++i) now[i * n + i] += 1.0;
            walk(of, now, then);
            std::swap(now, then);
        }
    });
}

}  // namespace gpuens

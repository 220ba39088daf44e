// Products with the incidence matrix B of rows and clusters, which is never built: a look-up per label (kernels/products.cu).
//
// codes (M, G): the labels of one clustering side by side; a missing label adds nothing. Sums over a row follow the order of
// the clusterings.
#include "runtime/parallel.h"
#include "labels/primitives.h"

#include <algorithm>
#include <cmath>

namespace gpuens {

constexpr i64 AT_ONCE = 1024;  // rows whose sums a cache holds while clusterings are added
constexpr i64 WIDE = 32, NARROW = 4;  // columns of a table that are added up at once
constexpr i64 POINTS = 8;      // points whose lengths are computed side by side
constexpr i64 N_PARTIAL_SUMS = 4;  // independent sums: consecutive rows hit the same cluster, so one sum would stall on its latency

void row_sums(Codes<Matrix> codes, Vector<const i64> offsets, Vector<const f64> values, Vector<f64> sums) {
    std::visit([&](auto of) {
        over_ranges(sums.size, (f64)of.rows, [&](i64 start, i64 stop) {
            for (i64 first = start; first < stop; first += AT_ONCE) {
                i64 n = std::min(stop - first, AT_ONCE);
                f64* block = sums.data + first;
                std::fill(block, block + n, 0.0);
                for (i64 m = 0; m < of.rows; ++m) {
                    auto* labels = of[m] + first;
                    const f64* of_clusters = values.data + offsets[m];
                    for (i64 g = 0; g < n; ++g)
                        if (auto label = labels[g]; label != MISSING(decltype(label))) block[g] += of_clusters[label];
                }
            }
        });
    }, codes);
}

// Write the sums of columns first ... first + n - 1 for a row; those of LANES columns stay in registers.
template <i64 LANES, typename Code>
static void add_rows(Matrix<const Code> codes, i64 g, Vector<const i64> offsets, Matrix<const f64> table, i64 first,
                     i64 n, f64* into) {
    f64 sums[LANES] = {};
    for (i64 m = 0; m < codes.rows; ++m) {
        Code label = codes[m][g];
        if (label == MISSING(Code)) continue;
        const f64* row = table[offsets[m] + label] + first;
        for (i64 d = 0; d < n; ++d) sums[d] += row[d];
    }
    std::copy(sums, sums + n, into + first);
}

// Write the sums of all columns for a row.
template <typename Code>
static void add_row(Matrix<const Code> codes, i64 g, Vector<const i64> offsets, Matrix<const f64> table, f64* into) {
    i64 d = 0, width = table.columns;
    for (; d + WIDE <= width; d += WIDE) add_rows<WIDE>(codes, g, offsets, table, d, WIDE, into);
    for (; d + NARROW <= width; d += NARROW) add_rows<NARROW>(codes, g, offsets, table, d, NARROW, into);
    for (; d < width; ++d) add_rows<1>(codes, g, offsets, table, d, 1, into);
}

void row_lookups(Codes<Matrix> codes, Vector<const i64> offsets, Matrix<const f64> table, Matrix<f64> sums) {
    std::visit([&](auto of) {
        i64 width = table.columns;
        over_ranges(sums.rows, (f64)(of.rows * (2 + width / 4)), [&](i64 start, i64 stop) {
            for (i64 g = start; g < stop; ++g) add_row(of, g, offsets, table, sums[g]);
        });
    }, codes);
}

// Scale points (n, d), one after the other, to length 1. Squares are added in the order of the dimensions, of several
// points side by side.
static void scale(const f64* points, i64 n, i64 d, f32* into) {
    f64 squares[POINTS] = {};
    for (i64 j = 0; j < d; ++j)
        for (i64 p = 0; p < n; ++p) squares[p] += points[p * d + j] * points[p * d + j];
    for (i64 p = 0; p < n; ++p) {
        f64 length = squares[p] > 0 ? std::sqrt(squares[p]) : 1.0;
        for (i64 j = 0; j < d; ++j) into[p * d + j] = (f32)(points[p * d + j] / length);
    }
}

void unit_points(Codes<Matrix> codes, Vector<const i64> offsets, Matrix<const f64> table, Matrix<f32> points) {
    std::visit([&](auto of) {
        i64 width = table.columns;
        in_threads(points.rows, (f64)(of.rows * (2 + width / 4)), [&](Ranges& ranges) {
            std::vector<f64> memory(POINTS * width);
            while (Range range = ranges.next())
                for (i64 first = range.start; first < range.stop; first += POINTS) {
                    i64 n = std::min(POINTS, range.stop - first);
                    for (i64 p = 0; p < n; ++p) add_row(of, first + p, offsets, table, memory.data() + p * width);
                    scale(memory.data(), n, width, points[first]);
                }
        });
    }, codes);
}

template <typename Code, typename Number>
static void add_clusters(const Code* labels, Vector<const Number> values, i64 k, Number* sums) {
    std::vector<Number> partial(N_PARTIAL_SUMS * k);
    i64 part = values.size / N_PARTIAL_SUMS;
    for (i64 g = 0; g < part; ++g)
        for (i64 p = 0; p < N_PARTIAL_SUMS; ++p)
            if (Code label = labels[g + p * part]; label != MISSING(Code)) partial[p * k + label] += values[g + p * part];
    for (i64 g = N_PARTIAL_SUMS * part; g < values.size; ++g)
        if (labels[g] != MISSING(Code)) partial[labels[g]] += values[g];
    for (i64 c = 0; c < k; ++c) sums[c] += (partial[c] + partial[k + c]) + (partial[2 * k + c] + partial[3 * k + c]);
}

void cluster_sums(Codes<Matrix> codes, Vector<const i64> offsets, Numbers<Vector> values,
                  std::variant<Vector<i64>, Vector<f64>> sums) {
    std::visit([&]<typename Code, typename Number>(Matrix<const Code> of, Vector<const Number> numbers) {
        Vector<Number> into = std::get<Vector<Number>>(sums);
        over_ranges(of.rows, (f64)of.columns, [&](i64 start, i64 stop) {
            for (i64 m = start; m < stop; ++m)
                add_clusters(of[m], numbers, offsets[m + 1] - offsets[m], into.data + offsets[m]);
        });
    }, codes, values);
}

}  // namespace gpuens

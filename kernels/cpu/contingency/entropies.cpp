// The uncertainty of clusters from the cells of their tables (gpuens/contingency/entropies.py), in units of 1 / one: sums of
// whole numbers, in any order.
#include "runtime/parallel.h"
#include "contingency/primitives.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace gpuens {

namespace {

constexpr f64 WORD_NS = 0.5;  // a pair of clusters

template <typename Count>
i64 term(Count count, Count total, f64 one) {
    if (count == total) return 0;
    f64 p = (f64)count / (f64)total;
    return -(i64)std::rint(p * logarithm(p) * one);
}

}  // namespace

void entropy_terms(f64 one, Matrix<i64> terms) {
    for (i64 total = 1; total < terms.rows; ++total)
        for (i64 count = 1; count < total; ++count) terms[total][count] = term(count, total, one);
}

void add_entropies(AnyCells cells, Vector<const i64> offsets, f64 one, Matrix<const i64> terms, Vector<const i64> times,
                   Vector<i64> of_rows, Vector<i64> of_columns) {
    std::visit([&]<typename Count>(const Cells<Count>& of) {
        auto term_of = [&](Count count, Count total) {
            return total < terms.rows ? terms[(i64)total][(i64)count] : term(count, total, one);
        };
        std::vector<Count> row_totals(of_rows.size), totals;
        for (i64 p = 0; p < of.tables(); ++p) {
            i64 second = offsets[of.first + p], start = of.starts[p], stop = of.starts[p + 1];
            i64* of_other = of_columns.data + second - offsets[of.first];
            totals.assign(offsets[of.first + p + 1] - second, 0);
            for (i64 t = start; t < stop; ++t) {
                row_totals[of.rows[t]] += of.counts[t];
                totals[of.columns[t]] += of.counts[t];
            }
            for (i64 t = start; t < stop; ++t) {
                of_rows[of.rows[t]] += times[of.first + p] * term_of(of.counts[t], row_totals[of.rows[t]]);
                of_other[of.columns[t]] += times[of.i] * term_of(of.counts[t], totals[of.columns[t]]);
            }
            for (i64 t = start; t < stop; ++t) row_totals[of.rows[t]] = 0;
        }
    }, cells);
}

void entropies_of_words(Vector<const u64> words, Vector<const i64> times, Matrix<const i64> terms, Vector<i64> total) {
    over_ranges(words.size, WORD_NS * (f64)words.size, [&](i64 start, i64 stop) {
        for (i64 c = start; c < stop; ++c) {
            look();
            const i64* of_counts = terms[std::popcount(words[c])];
            i64 sum = 0;
            for (i64 d = 0; d < words.size; ++d) sum += times[d] * of_counts[std::popcount(words[c] & words[d])];
            total[c] = sum;
        }
    });
}

void add_row_entropies(Vector<const i64> rows, Vector<const i64> columns, Numbers<Vector> counts,
                       Vector<const i64> offsets, f64 one, Vector<i64> total) {
    std::visit([&]<typename Count>(Vector<const Count> counted) {
        for (i64 t = 0, end; t < rows.size; t = end) {
            if (t % 1024 == 0) look();
            i64 after = *std::upper_bound(offsets.begin(), offsets.end(), columns[t]);
            Count sum = 0;
            for (end = t; end < rows.size && rows[end] == rows[t] && columns[end] < after; ++end) sum += counted[end];
            for (i64 u = t; u < end; ++u) total[rows[u]] += term(counted[u], sum, one);
        }
    }, counts);
}

}  // namespace gpuens

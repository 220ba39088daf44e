// Spearman's rank correlation of sparse columns in whole numbers (gpuens/similarity/ranks.py, kernels/rank_correlation.cu).
#include "runtime/parallel.h"
#include "similarity/primitives.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>

namespace gpuens {

namespace {

constexpr i64 FEW = 256;                   // entries that are sorted by comparisons
constexpr int DIGIT = 11, VALUE_BITS = 44; // bits of a digit of the radix sort, and of a value
constexpr i64 TILE = 64;                   // columns of correlations that are also written as rows
constexpr f64 SORTED_NS = 30, PRODUCT_NS = 1, CORRELATION_NS = 10;

struct Ranked {
    i64 value, entry;
};

// Sort a column's entries by value.
void sort_by_value(std::vector<Ranked>& ranked, std::vector<Ranked>& spare) {
    if ((i64)ranked.size() <= FEW) {
        std::sort(ranked.begin(), ranked.end(), [](Ranked a, Ranked b) { return a.value < b.value; });
        return;
    }
    constexpr i64 DIGITS = 1 << DIGIT;
    std::vector<i64> ends(DIGITS);
    spare.resize(ranked.size());
    for (int shift = 0; shift < VALUE_BITS; shift += DIGIT) {
        look();
        auto digit = [shift](const Ranked& of) { return of.value >> shift & (DIGITS - 1); };
        std::fill(ends.begin(), ends.end(), 0);
        for (const Ranked& of : ranked) ++ends[digit(of)];
        i64 end = 0;
        for (i64& of : ends) end += std::exchange(of, end);
        for (const Ranked& of : ranked) spare[ends[digit(of)]++] = of;
        ranked.swap(spare);
    }
}

// a b - c d, rounded once.
f64 difference(u64 a, u64 b, u64 c, u64 d) {
    using u128 = unsigned __int128;
    u128 left = (u128)a * b, right = (u128)c * d, magnitude = left < right ? right - left : left - right;
    f64 scale = 1.0;
    if (u64 high = (u64)(magnitude >> 64); high) {
        // the bits that do not fit; if they are not zero, the last kept bit is set, so that there is only one rounding
        int extra = 64 - std::countl_zero(high);
        bool lost = (u64)(magnitude << (128 - extra) >> 64) | (u64)(magnitude << (128 - extra));
        magnitude = magnitude >> extra | (u128)lost;
        scale = std::ldexp(1.0, extra);
    }
    f64 rounded = (f64)(u64)magnitude * scale;
    return left < right ? -rounded : rounded;
}

}  // namespace

void doubled_ranks(AnySparse<i64> columns, Vector<const i64> counts, i64 n, i64 shift, Vector<i64> ranks) {
    with_sparse(columns, [&](const auto& of) {
        f64 each = (f64)ranks.size / (f64)std::max(of.size(), (i64)1) + 1;
        in_threads(of.size(), each * SORTED_NS, [&](Ranges& ranges) {
            std::vector<Ranked> ranked, spare;
            while (Range range = ranges.next())
                for (i64 c = range.start; c < range.stop; ++c) {
                    look();
                    ranked.clear();
                    i64 zeros = n, before = 0;
                    for (i64 e = of.starts[c]; e < of.starts[c + 1]; ++e) {
                        ranked.push_back({of.values[e], e});
                        zeros -= counts[of.places[e]];
                    }
                    sort_by_value(ranked, spare);
                    for (size_t first = 0, last; first < ranked.size(); first = last) {
                        i64 tied = 0;
                        for (last = first; last < ranked.size() && ranked[last].value == ranked[first].value; ++last)
                            tied += counts[of.places[ranked[last].entry]];
                        for (size_t e = first; e < last; ++e)
                            ranks[ranked[e].entry] = (zeros + 2 * before + tied) >> shift;
                        before += tied;
                    }
                }
        });
    });
}

void rank_products(AnySparse<i64> columns, AnySparse<i64> rows, Vector<const i64> counts, Matrix<i64> products) {
    with_sparse(columns, [&](const auto& by_column) {
        with_sparse(rows, [&](const auto& by_row) {
            i64 n_entries = by_column.starts.back();
            f64 in_row = (f64)n_entries / (f64)std::max(by_row.size(), (i64)1) / 2;
            f64 in_column = (f64)n_entries / (f64)std::max(by_column.size(), (i64)1);
            over_ranges(products.rows, (in_row + 4) * in_column * PRODUCT_NS, [&](i64 start, i64 stop) {
                for (i64 c = start; c < stop; ++c) {
                    i64* row = products[c];
                    for (i64 e = by_column.starts[c]; e < by_column.starts[c + 1]; ++e) {
                        if (e % 1024 == 0) look();
                        i64 i = by_column.places[e], value = by_column.values[e] * counts[i];
                        // the columns of a row are in ascending order
                        for (i64 at = by_row.starts[i + 1] - 1; at >= by_row.starts[i] && by_row.places[at] >= c; --at)
                            row[by_row.places[at]] += value * by_row.values[at];
                    }
                }
            });
        });
    });
}

void correlations(Matrix<const i64> products, Vector<const i64> totals, i64 n, Vector<const f64> deviations,
                  Matrix<f64> result) {
    i64 size = result.rows;
    over_ranges(size, (f64)size / 2 * CORRELATION_NS, [&](i64 start, i64 stop) {
        for (i64 left = start / TILE * TILE; left < size; left += TILE) {
            look();
            for (i64 c = start; c < stop; ++c) {
                result[c][c] = 1.0;
                for (i64 d = std::max(left, c + 1); d < std::min(left + TILE, size); ++d) {
                    f64 denominator = deviations[c] * deviations[d], correlation = 0.0;
                    if (denominator > 0.0) {
                        f64 covariance = difference((u64)n, (u64)products[c][d], (u64)totals[c], (u64)totals[d]);
                        correlation = std::min(std::max(covariance / denominator, -1.0), 1.0);
                    }
                    result[c][d] = result[d][c] = correlation;
                }
            }
        }
    });
}

}  // namespace gpuens

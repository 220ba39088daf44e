// Terms of the agreement of two clusterings, from the cells of their table (gpuens/contingency/scores.py): mutual
// information, shares of common objects, and how unequal the clusters are.
#include "runtime/parallel.h"
#include "contingency/primitives.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace gpuens {

namespace {

constexpr i64 LOOKED_UP = 256;  // objects up to which logarithms are looked up: for more, differences of these are too rough
constexpr i64 ROOMY = 4;        // cells for each object, up to which the share of a cell is looked up in a whole table

f64 nats(f64 x) { return 0.6931471805599453 * logarithm(x); }

// The natural logarithm of n objects, from a table made at the first call: not when the module is loaded, by instructions that
// the processor may lack.
f64 logarithm_of_few(i64 n) {
    static const auto logarithms = [] {
        std::array<f64, LOOKED_UP + 1> table{};
        for (i64 i = 1; i <= LOOKED_UP; ++i) table[i] = nats((f64)i);
        return table;
    }();
    return logarithms[n];
}

// Call `work(p, start, stop, of_rows, of_columns, total)` for each table, with the sums of its rows and columns.
template <typename Count, typename Work>
void each_table(const Cells<Count>& of, Work&& work) {
    std::vector<Count> of_rows(of.rows.size ? 1 + *std::max_element(of.rows.begin(), of.rows.end()) : 0);
    std::vector<Count> of_columns(of.columns.size ? 1 + *std::max_element(of.columns.begin(), of.columns.end()) : 0);
    for (i64 p = 0; p < of.tables(); ++p) {
        i64 start = of.starts[p], stop = of.starts[p + 1];
        Count total = 0;
        for (i64 t = start; t < stop; ++t) {
            of_rows[of.rows[t]] += of.counts[t];
            of_columns[of.columns[t]] += of.counts[t];
            total += of.counts[t];
        }
        work(p, start, stop, of_rows, of_columns, total);
        for (i64 t = start; t < stop; ++t) of_rows[of.rows[t]] = of_columns[of.columns[t]] = 0;
    }
}

// Call `work(sum)` for each row (or column) of a table's cells once, in the order in which they come first.
template <typename Count, typename Work>
void each_sum(const i64* lines, i64 n, std::vector<Count>& sums, Work&& work) {
    for (i64 t = 0; t < n; ++t) {
        Count& sum = sums[lines[t]];
        if (sum < 0) continue;
        work(sum);
        sum = -sum;  // seen
    }
    for (i64 t = 0; t < n; ++t) sums[lines[t]] = std::abs(sums[lines[t]]);
}

template <typename Count>
f64 logarithm_of_ratio(Count a, Count b, Count c, Count d) {  // log(a b / (c d)), exactly 0 for 1
    if constexpr (std::is_same_v<Count, i64>)
        if (b <= LOOKED_UP) {  // b is the total
            if (a * b == c * d) return 0;
            return logarithm_of_few(a) + logarithm_of_few(b) - logarithm_of_few(c) - logarithm_of_few(d);
        }
    return nats((f64)a * (f64)b / ((f64)c * (f64)d));
}

template <typename Count>
f64 entropy_of(Count sum, Count total) {
    f64 p = (f64)sum / (f64)total;
    if constexpr (std::is_same_v<Count, i64>)
        if (total <= LOOKED_UP) return p * (logarithm_of_few(total) - logarithm_of_few(sum));
    return -p * nats(p);
}

}  // namespace

void informations(AnyCells cells, Matrix<f64> terms) {
    std::visit([&]<typename Count>(const Cells<Count>& of) {
        each_table(of, [&](i64 p, i64 start, i64 stop, auto& of_rows, auto& of_columns, Count total) {
            i64 n_rows = 0, n_columns = 0, n = stop - start;
            f64 shared = 0, entropies[2] = {};
            for (i64 t = start; t < stop; ++t)
                shared += (f64)of.counts[t] *
                          logarithm_of_ratio(of.counts[t], total, of_rows[of.rows[t]], of_columns[of.columns[t]]);
            each_sum(of.rows.data + start, n, of_rows, [&](Count sum) { ++n_rows, entropies[0] += entropy_of(sum, total); });
            each_sum(of.columns.data + start, n, of_columns,
                     [&](Count sum) { ++n_columns, entropies[1] += entropy_of(sum, total); });
            f64* row = terms[p];
            if (n == 0)
                row[0] = row[1] = row[2] = std::numeric_limits<f64>::quiet_NaN();
            else if (n == n_rows && n == n_columns)
                row[0] = row[1] = row[2] = 1;
            else if (n_rows == 1 || n_columns == 1)
                row[0] = 0, row[1] = row[2] = 1;
            else
                row[0] = shared / (f64)total, row[1] = entropies[0], row[2] = entropies[1];
        });
    }, cells);
}

void unevenness(AnyCells cells, Matrix<f64> results) {
    std::visit([&]<typename Count>(const Cells<Count>& of) {
        each_table(of, [&](i64 p, i64 start, i64 stop, auto& of_rows, auto& of_columns, Count total) {
            auto spread = [&](const i64* lines, std::vector<Count>& sums) {
                f64 squares = 0, around = 0;
                each_sum(lines, stop - start, sums, [&](Count sum) { squares += (f64)sum * (f64)sum; });
                f64 mean = squares / (f64)std::max(total, (Count)1);
                each_sum(lines, stop - start, sums, [&](Count sum) {
                    around += (f64)sum * ((f64)sum - mean) * ((f64)sum - mean);
                });
                return around;
            };
            results[p][0] = spread(of.rows.data + start, of_rows);
            results[p][1] = spread(of.columns.data + start, of_columns);
        });
    }, cells);
}

void shares_of_cells(AnyCells cells, Codes<Matrix> labels, Vector<const i64> k, Vector<const i64> times, f64 one,
                     Vector<f64> means, Vector<i64> sums) {
    std::visit([&]<typename Count>(const Cells<Count>& of, auto codes) {
        std::vector<i64> units, begins, whole;
        i64 n_objects = sums.size;
        each_table(of, [&](i64 p, i64 start, i64 stop, auto& of_rows, auto& of_columns, Count total) {
            i64 j = of.first + p, k_i = k[of.i], k_j = k[j], weight = times[of.i] * times[j];
            bool roomy = k_i * k_j <= ROOMY * n_objects;
            f64 sum = 0;
            units.resize(stop - start);
            if (roomy) whole.resize(std::max((i64)whole.size(), k_i * k_j));
            else begins.assign(k_i + 1, 0);
            for (i64 t = start; t < stop; ++t) {
                f64 share = (f64)of.counts[t] / (f64)std::max(of_rows[of.rows[t]], of_columns[of.columns[t]]);
                sum += (f64)of.counts[t] * share;
                units[t - start] = (i64)std::rint(share * one) * weight;
                if (roomy) whole[of.rows[t] * k_j + of.columns[t]] = units[t - start];
                else ++begins[of.rows[t] + 1];
            }
            means[p] = stop > start ? sum / (f64)total : std::numeric_limits<f64>::quiet_NaN();
            if (!roomy) for (i64 row = 0; row < k_i; ++row) begins[row + 1] += begins[row];
            const auto *a = codes[of.i], *b = codes[j];
            const i64* columns = of.columns.data + start;
            for (i64 x = 0; x < n_objects; ++x) {
                i64 row = a[x], column = b[x];
                if (row >= k_i || column >= k_j) continue;
                if (roomy)
                    sums[x] += whole[row * k_j + column];
                else
                    sums[x] += units[std::lower_bound(columns + begins[row], columns + begins[row + 1], column) - columns];
            }
        });
    }, cells, labels);
}

}  // namespace gpuens

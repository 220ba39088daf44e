// Contingency tables of pairs of clusterings (kernels/intersections.cu), and their cells that are not empty.
//
// A thread counts one clustering with several later ones, in memory of the size of a cache that it uses again for the
// next. Tables of few cells are counted by bits, those of more cells than objects cluster by cluster.
#include "runtime/lanes.h"
#include "runtime/parallel.h"
#include "contingency/primitives.h"

#include <algorithm>
#include <bit>
#include <numeric>
#include <utility>

namespace gpuens {

namespace {

constexpr i64 CELLS_AT_ONCE = 32'768;  // cells counted before they are used; a single table may have more
constexpr i64 OBJECTS_AT_ONCE = 256;   // objects whose cells are computed before any cell is added to
// cells up to which a table is counted by bits; beyond, counting object by object is quicker
constexpr i64 MARKED_CELLS = 200;
// words of each cluster compared at a time, so that they stay in the smallest cache
constexpr i64 WORDS = 384;
constexpr i64 SCANNED = 16;            // counts scanned in the time of sorting one number

// Add each object to cell a * k_b + b of a flat table; missing labels go, without a branch, to its last cell. Numbers
// of cells are found for many objects at once, and are of a type that may be half as long as that of the cells.
template <typename Cell, typename Code, typename Count>
void count_objects(Count* flat, const Code* a, const Code* b, i64 n, Cell k_a, Cell k_b, const Count* weights) {
    Cell cells[OBJECTS_AT_ONCE], nowhere = k_a * k_b;
    for (i64 first = 0; first < n; first += OBJECTS_AT_ONCE) {
        i64 n_chunk = std::min(OBJECTS_AT_ONCE, n - first);
        for (i64 x = 0; x < n_chunk; ++x) {
            Cell row = a[first + x], column = b[first + x], cell = row * k_b + column;
            cells[x] = ((row < k_a) & (column < k_b)) ? cell : nowhere;
        }
        if (weights)
            for (i64 x = 0; x < n_chunk; ++x) flat[cells[x]] += weights[first + x];
        else
            for (i64 x = 0; x < n_chunk; ++x) flat[cells[x]] += 1;
    }
}

template <typename Code, typename Count>
void count_into(Count* flat, const Code* a, const Code* b, i64 n, i64 k_a, i64 k_b, const Count* weights) {
    if (k_a * k_b < 1ll << 32)
        count_objects<u32>(flat, a, b, n, (u32)k_a, (u32)k_b, weights);
    else
        count_objects<u64>(flat, a, b, n, (u64)k_a, (u64)k_b, weights);
}

template <typename Code>
void mark(const Code* labels, i64 n, i64 k, u64* bits) {
    i64 words = (n + 63) / 64;
    for (i64 x = 0; x < n; ++x)
        if (labels[x] < k) bits[labels[x] * words + x / 64] |= 1ull << x % 64;
}

// A bit for each object in a cluster, of clusterings of few clusters.
struct Marked {
    Matrix<u64> bits;
    std::vector<i64> first;  // row of bits of each clustering's first cluster, -1 if it has none
    std::vector<u64> memory;

    template <typename Code>
    Marked(Matrix<const Code> labels, Vector<const i64> k, i64 most_bytes) : first(labels.rows, -1) {
        i64 rows = 0, words = (labels.columns + 63) / 64;
        for (i64 m = 0; m < labels.rows; ++m) rows += 2 * k[m] <= MARKED_CELLS ? k[m] : 0;
        if (8 * rows * words > most_bytes) return;
        memory.resize(rows * words);
        bits = {memory.data(), rows, words};
        for (i64 m = 0, row = 0; m < labels.rows; ++m) {
            if (2 * k[m] > MARKED_CELLS) continue;
            first[m] = row;
            row += k[m];
        }
        over_ranges(labels.rows, (f64)labels.columns, [&](i64 start, i64 stop) {
            for (i64 m = start; m < stop; ++m)
                if (first[m] >= 0) mark(labels[m], labels.columns, k[m], bits[first[m]]);
        });
    }

    // True if both clusterings have bits. A table of few cells does not prove it: one cluster beside 150 has 150 cells.
    bool both(i64 i, i64 j) const { return first[i] >= 0 && first[j] >= 0; }

    const u64* of(i64 m) const { return bits[first[m]]; }

    // Add the number of objects with both bits to each cell of a flat table; four cells at once read a row's bits once.
    template <typename Count>
    void count_into(Count* flat, i64 i, i64 j, i64 k_i, i64 k_j) const {
        for (i64 begin = 0; begin < bits.columns; begin += WORDS) {
            i64 n = std::min(WORDS, bits.columns - begin);
            for (i64 row = 0; row < k_i; ++row) {
                const u64* row_bits = bits[first[i] + row] + begin;
                for (i64 column = 0; column < k_j; column += 4) {
                    const u64* other[4];
                    i64 in[4], n_columns = std::min((i64)4, k_j - column);
                    for (i64 c = 0; c < 4; ++c) other[c] = bits[first[j] + column + std::min(c, n_columns - 1)] + begin;
                    count_common(row_bits, other, n, in);
                    for (i64 c = 0; c < n_columns; ++c) flat[row * k_j + column + c] += in[c];
                }
            }
        }
    }
};

// Counts tables, in memory of its own.
template <typename Code, typename Count>
class Tables {
public:
    Tables(Matrix<const Code> labels_, Vector<const i64> k_, const Count* weights_, const Marked& marked_)
        : labels(labels_), k(k_), weights(weights_), marked(marked_), starts(k.size) {
        std::vector<i64> sorted(k.begin(), k.end());
        std::sort(sorted.begin(), sorted.end());
        i64 n = labels.columns, largest = sorted.back(), pair = largest * sorted[k.size - 2];
        i64 room = std::max(std::min(pair, n), std::min(CELLS_AT_ONCE, pair * k.size));
        dense = std::max(std::min(pair, 4 * n), largest) + 1;
        table.resize(dense);
        // an empty cell may be written behind the last one
        for (auto* part : {&rows, &columns}) part->resize(room + 1);
        counts.resize(room + 1);
    }

    // The cells of clustering i with `first` ... last - 1, as many tables as there is room for, one at least.
    Cells<Count> count(i64 i, i64 first, i64 last, std::shared_ptr<void> memory) {
        n_cells = 0;
        sorted_by = -1;
        i64 n_tables = 0;
        for (i64 j = first; j < last && (i64)rows.size() - 1 - n_cells >= std::min(labels.columns, k[i] * k[j]); ++j) {
            look();
            if (k[i] * k[j] < dense)
                count_dense(i, j);
            else
                count_by_clusters(i, j);
            starts[++n_tables] = n_cells;
        }
        return {i, first, {starts.data(), n_tables + 1}, {rows.data(), n_cells}, {columns.data(), n_cells},
                {counts.data(), n_cells}, std::move(memory)};
    }

private:
    void count_dense(i64 i, i64 j) {
        bool is_small = k[i] * k[j] <= MARKED_CELLS, by_bits = is_small && marked.both(i, j);
        if (by_bits && marked.bits.columns == 1) return count_words(marked.of(i), marked.of(j), k[i], k[j]);
        if (by_bits)
            marked.count_into(table.data(), i, j, k[i], k[j]);
        else
            count_into(table.data(), labels[i], labels[j], labels.columns, k[i], k[j], weights);
        i64 at = 0;
        for (i64 row = 0; row < k[i]; ++row)
            for (i64 column = 0; column < k[j]; ++column, ++at)
                if (is_small)
                    n_cells += put(row, column, std::exchange(table[at], 0));
                else if (table[at] != 0)
                    take(row, column, at);
        table[at] = 0;  // the cell of missing labels
    }

    // Count tables of at most 64 objects, where a cluster is one word of bits.
    void count_words(const u64* row_words, const u64* column_words, i64 k_i, i64 k_j) {
        for (i64 row = 0; row < k_i; ++row)
            for (i64 column = 0; column < k_j; ++column)
                n_cells += put(row, column, std::popcount(row_words[row] & column_words[column]));
    }

    // Row by row, that is, cluster by cluster of i. Objects are added in their order here, too.
    void count_by_clusters(i64 i, i64 j) {
        if (sorted_by != i) sort_objects(i);
        const Code* other = labels[j];
        i64* cell_columns = columns.data();
        for (i64 row = 0, at = 0; row < k[i]; ++row) {
            i64 begin = n_cells, end = begin;
            for (; at < ends[row]; ++at) {
                i64 x = objects[at], column = other[x];
                if (column >= k[j]) continue;
                if (table[column] == 0) cell_columns[end++] = column;
                table[column] += weights ? weights[x] : 1;
            }
            if ((end - begin) * SCANNED > k[j]) {
                for (i64 column = 0; column < k[j]; ++column)
                    if (table[column] != 0) take(row, column, column);
            } else {
                std::sort(cell_columns + begin, cell_columns + end);
                for (i64 t = begin; t < end; ++t) take(row, cell_columns[t], cell_columns[t]);
            }
        }
    }

    void take(i64 row, i64 column, i64 at) { n_cells += put(row, column, std::exchange(table[at], 0)); }

    // Write a cell behind the last one, which the next one replaces if it is empty: no branch that goes either way.
    bool put(i64 row, i64 column, Count count) {
        rows[n_cells] = row;
        columns[n_cells] = column;
        counts[n_cells] = count;
        return count != 0;
    }

    // Sort the objects by cluster.
    void sort_objects(i64 i) {
        const Code* row_labels = labels[i];
        objects.resize(labels.columns);
        ends.assign(k[i] + 1, 0);
        for (i64 x = 0; x < labels.columns; ++x)
            if (row_labels[x] < k[i]) ++ends[row_labels[x] + 1];
        std::partial_sum(ends.begin(), ends.end(), ends.begin());
        for (i64 x = 0; x < labels.columns; ++x)
            if (row_labels[x] < k[i]) objects[ends[row_labels[x]]++] = x;
        sorted_by = i;
    }

    Matrix<const Code> labels;
    Vector<const i64> k;
    const Count* weights;
    const Marked& marked;
    i64 dense, n_cells = 0, sorted_by = -1;
    std::vector<i64> starts, rows, columns, objects, ends;
    std::vector<Count> table, counts;  // the table is all zeros before and after
};

template <typename Code, typename Count>
void over_cells_of(Matrix<const Code> labels, Vector<const i64> k, const Count* weights, i64 bytes,
                   const std::function<void(const AnyCells&)>& work) {
    std::vector<i64> before(k.size);  // pairs of clusterings before those of each with later ones
    for (i64 i = 1; i < k.size; ++i) before[i] = before[i - 1] + k.size - i;
    Marked marked(labels, k, weights ? 0 : bytes);
    in_threads(before.back(), (f64)labels.columns, [&](Ranges& ranges) {
        auto tables = std::make_shared<Tables<Code, Count>>(labels, k, weights, marked);
        while (Range range = ranges.next())
            for (i64 pair = range.start; pair < range.stop;) {
                i64 i = std::upper_bound(before.begin(), before.end(), pair) - before.begin() - 1;
                i64 first = i + 1 + pair - before[i], last = std::min(k.size, i + 1 + range.stop - before[i]);
                Cells<Count> cells = tables->count(i, first, last, tables);
                call_python(work, cells);
                pair += cells.tables();
            }
    });
}

// Call `work(first + row, second + column, p, t)` on each cell t, numbered by all clusters, of each table p.
template <typename Count, typename Work>
void each_cell(const Cells<Count>& cells, Vector<const i64> offsets, Work&& work) {
    for (i64 p = 0; p < cells.tables(); ++p)
        for (i64 t = cells.starts[p]; t < cells.starts[p + 1]; ++t)
            work(offsets[cells.i] + cells.rows[t], offsets[cells.first + p] + cells.columns[t], p, t);
}

}  // namespace

void over_cells(Codes<Matrix> labels, Vector<const i64> k, std::optional<Numbers<Vector>> weights, i64 bytes,
                const std::function<void(const AnyCells&)>& work) {
    std::visit([&](auto of) {
        if (!weights) return over_cells_of<std::remove_cvref_t<decltype(of[0][0])>, i64>(of, k, nullptr, bytes, work);
        std::visit([&](auto vector) { over_cells_of(of, k, vector.data, bytes, work); }, *weights);
    }, labels);
}

void count_table(Codes<Vector> a, Codes<Vector> b, std::tuple<i64, i64> k, std::optional<Numbers<Vector>> weights,
                 std::variant<Vector<i64>, Vector<f64>> flat) {
    std::visit([&]<typename Code, typename Count>(Vector<const Code> of, Vector<Count> table) {
        const Count* weight = weights ? std::get<Vector<const Count>>(*weights).data : nullptr;
        auto [k_a, k_b] = k;
        count_into(table.data, of.data, std::get<Vector<const Code>>(b).data, of.size, k_a, k_b, weight);
    }, a, flat);
}

void count_with(Codes<Matrix> labels, i64 m, Vector<const i64> offsets, std::optional<Vector<const i64>> weights,
                Matrix<i64> shared) {
    std::visit([&](auto of) {
        for (i64 other = 0; other < of.rows; ++other) {
            look();
            i64 *cells = shared[offsets[other]], k = offsets[other + 1] - offsets[other], width = shared.columns;
            auto *a = of[other], *b = of[m];
            for (i64 x = 0; x < of.columns; ++x)
                if (a[x] < k && b[x] < width) cells[a[x] * width + b[x]] += weights ? (*weights)[x] : 1;
        }
    }, labels);
}

void place_in_square(AnyCells cells, Vector<const i64> offsets, std::variant<Matrix<i64>, Matrix<f64>> shared) {
    std::visit([&]<typename Count>(const Cells<Count>& of) {
        auto square = std::get<Matrix<Count>>(shared);
        each_cell(of, offsets, [&](i64 r, i64 c, i64, i64 t) { square[r][c] = square[c][r] = of.counts[t]; });
    }, cells);
}

void count_in_rows(AnyCells cells, Vector<const i64> offsets, Matrix<i64> n_cells) {
    std::visit([&](const auto& of) {
        each_cell(of, offsets, [&](i64 r, i64 c, i64 p, i64) { ++n_cells[r][of.first + p], ++n_cells[c][of.i]; });
    }, cells);
}

void place_in_rows(AnyCells cells, Vector<const i64> offsets, Matrix<i64> starts,
                   std::variant<Vector<i32>, Vector<i64>> indices, std::variant<Vector<i64>, Vector<f64>> counts) {
    std::visit([&]<typename Count, typename Index>(const Cells<Count>& of, Vector<Index> into) {
        auto counted = std::get<Vector<Count>>(counts);
        auto place = [&](i64 row, i64 clustering, i64 column, i64 t) {
            i64 at = starts[row][clustering]++;
            into[at] = (Index)column;
            counted[at] = of.counts[t];
        };
        each_cell(of, offsets, [&](i64 r, i64 c, i64 p, i64 t) {
            place(r, of.first + p, c, t);
            place(c, of.i, r, t);
        });
    }, cells, indices);
}

namespace {

template <typename Sum>
void add_squares(const Cells<i64>& of, Matrix<Sum> sums) {
    std::vector<i64> of_rows(of.rows.size ? 1 + *std::max_element(of.rows.begin(), of.rows.end()) : 0);
    std::vector<i64> of_columns(of.columns.size ? 1 + *std::max_element(of.columns.begin(), of.columns.end()) : 0);
    for (i64 p = 0; p < of.tables(); ++p) {
        i64 start = of.starts[p], stop = of.starts[p + 1];
        Sum* sum = sums[p];
        auto square = [](i64 count) { return (Sum)count * (Sum)count; };
        for (i64 t = start; t < stop; ++t) {
            i64 count = of.counts[t];
            of_rows[of.rows[t]] += count;
            of_columns[of.columns[t]] += count;
            sum[0] += 1;
            sum[3] += (Sum)count;
            sum[4] += square(count);
        }
        for (i64 t = start; t < stop; ++t) {  // each row and column once
            i64 &row = of_rows[of.rows[t]], &column = of_columns[of.columns[t]];
            sum[1] += row > 0;
            sum[2] += column > 0;
            sum[5] += square(row);
            sum[6] += square(column);
            row = column = 0;
        }
    }
}

}  // namespace

void sums_of_squares(AnyCells cells, std::variant<Matrix<i64>, Matrix<f64>> sums) {
    std::visit([&](auto into) { add_squares(std::get<Cells<i64>>(cells), into); }, sums);
}

std::tuple<Grown<i64>, Grown<i64>, std::variant<Grown<i64>, Grown<f64>>> nonzero(Numbers<Matrix> table) {
    return std::visit([&]<typename Count>(Matrix<const Count> of) {
        i64 n_cells = of.rows * of.columns, n = 0;
        for (i64 at = 0; at < n_cells; ++at) n += of.data[at] != 0;
        Grown<i64> rows(n), columns(n);
        Grown<Count> counts(n);
        i64 t = 0;
        for (i64 row = 0; row < of.rows; ++row)
            for (i64 column = 0; column < of.columns; ++column)
                if (of[row][column] != 0) {
                    rows[t] = row;
                    columns[t] = column;
                    counts[t++] = of[row][column];
                }
        return std::tuple<Grown<i64>, Grown<i64>, std::variant<Grown<i64>, Grown<f64>>>(
            std::move(rows), std::move(columns), std::move(counts));
    }, table);
}

}  // namespace gpuens

// A tile of similarities of label rows by similarities of clusters within each clustering (kernels/coupled_objects.cu).
//
// For some columns, a table has the similarities of each cluster to the columns' labels, side by side: a row of labels
// adds up rows of the table. Where clusters are many, a table would be read less than it is worth, and similarities are
// looked up one by one.
#include "runtime/parallel.h"
#include "similarity/primitives.h"

#include <algorithm>

namespace gpuens {

namespace {

constexpr i64 ROWS = 512;               // rows of a tile that read one table
constexpr i64 TABLED = 32;              // columns of a table
constexpr i64 LOOKED_UP = 2048;         // columns whose sums a cache holds while similarities are looked up
constexpr i64 TABLE_CLUSTERS = 1024;    // clusters of a table that a cache holds; at least ROWS
constexpr i64 READ = 2;                 // times that each row of a table should be read
constexpr i64 TABLED_VALUES = 1 << 17;  // values up to which all S_m stay in L2 while each table reads them
constexpr f64 SIMILARITY_NS = 0.2;

// A part of the tile, with the rows and columns that it compares.
template <typename Code>
struct Part {
    Matrix<const Code> rows, cols;
    Vector<const i64> offsets;
    ClusterBlocks blocks;
    Matrix<f64> tile;
    i64 top, bottom, left, n_columns;

    // Add the similarities of a cluster and the columns' labels.
    void look_up(i64 m, i64 label, f64* sums) const {
        const f64* row = blocks.row(offsets, m, label);
        const Code* labels = cols[m] + left;
        for (i64 j = 0; j < n_columns; ++j) sums[j] += labels[j] == MISSING(Code) ? 0.0 : row[labels[j]];
    }

    // The first clustering after `first` whose clusters have no room in the same table.
    i64 end_of_table(i64 first) const {
        i64 m = first;
        while (m < rows.columns && offsets[m + 1] - offsets[first] <= TABLE_CLUSTERS) ++m;
        return m;
    }

    void add_by_table(std::vector<f64>& table) const {
        for (i64 first = 0, last; first < rows.columns; first = last) {
            look();
            last = end_of_table(first);
            std::fill(table.begin(), table.end(), 0.0);
            for (i64 m = first; m < last; ++m)
                for (i64 c = offsets[m]; c < offsets[m + 1]; ++c)
                    look_up(m, c - offsets[m], table.data() + (c - offsets[first]) * TABLED);
            for (i64 i = top; i < bottom; ++i) add_rows_of(table, rows[i], first, last, tile[i] + left);
        }
    }

    void add_rows_of(const std::vector<f64>& table, const Code* labels, i64 first, i64 last, f64* sums) const {
        f64 row_sums[TABLED] = {};
        std::copy(sums, sums + n_columns, row_sums);
        for (i64 m = first; m < last; ++m) {
            if (labels[m] == MISSING(Code)) continue;
            const f64* row = table.data() + (offsets[m] - offsets[first] + labels[m]) * TABLED;
            for (i64 j = 0; j < TABLED; ++j) row_sums[j] += row[j];
        }
        std::copy(row_sums, row_sums + n_columns, sums);
    }

    void add_each() const {
        for (i64 i = top; i < bottom; ++i) {
            look();
            for (i64 m = 0; m < rows.columns; ++m)
                if (rows[i][m] != MISSING(Code)) look_up(m, rows[i][m], tile[i] + left);
        }
    }
};

}  // namespace

void coupled_tile(Codes<Matrix> rows, Codes<Matrix> cols, Vector<const i64> offsets, ClusterBlocks blocks,
                  Matrix<f64> tile) {
    i64 largest = 0;
    for (i64 m = 1; m < offsets.size; ++m) largest = std::max(largest, offsets[m] - offsets[m - 1]);
    bool tabled = READ * largest <= std::min(ROWS, tile.rows) && blocks.values.size <= TABLED_VALUES;
    i64 n_columns = tabled ? TABLED : LOOKED_UP, across = (tile.columns + n_columns - 1) / n_columns;
    i64 down = (tile.rows + ROWS - 1) / ROWS;
    f64 all_ns = (f64)(tile.rows * tile.columns * (offsets.size - 1)) * SIMILARITY_NS;
    std::visit([&]<typename Code>(Matrix<const Code> of) {
        auto column_codes = std::get<Matrix<const Code>>(cols);
        in_threads(down * across, all_ns / (f64)(down * across), [&](Ranges& ranges) {
            std::vector<f64> table(tabled ? TABLE_CLUSTERS * TABLED : 0);
            while (Range range = ranges.next())
                for (i64 at = range.start; at < range.stop; ++at) {
                    i64 top = at / across * ROWS, left = at % across * n_columns;
                    Part<Code> part{of, column_codes, offsets, blocks, tile, top, std::min(top + ROWS, tile.rows), left,
                                    std::min(n_columns, tile.columns - left)};
                    for (i64 i = top; i < part.bottom; ++i) std::fill_n(tile[i] + left, part.n_columns, 0.0);
                    tabled ? part.add_by_table(table) : part.add_each();
                    for (i64 i = top; i < part.bottom; ++i)
                        for (i64 j = left; j < left + part.n_columns; ++j) tile[i][j] /= (f64)of.columns;
                }
        });
    }, rows);
}

}  // namespace gpuens

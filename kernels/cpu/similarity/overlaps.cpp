// Numbers of common neighbours, from planes of bits (kernels/overlaps.cu).
#include "runtime/lanes.h"
#include "runtime/parallel.h"
#include "similarity/primitives.h"

#include <algorithm>

namespace gpuens {

namespace {

constexpr i64 ROWS = 64, COLUMNS = 512;  // rows and columns of a tile: a cache holds the rows while the columns pass
constexpr i64 AT_ONCE = 4;                // columns compared at once
constexpr f64 WORD_NS = 0.03, BIT_NS = 0.6;

void count_tile(Matrix<const u64> rows, Matrix<const u64> cols, Vector<const i64> runs, Range tile_rows,
                Range tile_columns,
                Matrix<i64> common) {
    for (i64 i = tile_rows.start; i < tile_rows.stop; ++i)
        std::fill(common[i] + tile_columns.start, common[i] + tile_columns.stop, 0);
    for (i64 run = 0; run + 1 < runs.size; ++run) {
        i64 first = runs[run], n = runs[run + 1] - first;
        for (i64 j = tile_columns.start; j < tile_columns.stop; j += AT_ONCE) {
            look();
            i64 n_columns = std::min(AT_ONCE, tile_columns.stop - j), counts[2 * AT_ONCE];
            const u64* columns[AT_ONCE];
            for (i64 c = 0; c < AT_ONCE; ++c) columns[c] = cols[j + std::min(c, n_columns - 1)] + first;
            for (i64 i = tile_rows.start; i < tile_rows.stop; i += 2) {
                i64 n_rows = std::min((i64)2, tile_rows.stop - i);
                const u64* pair[] = {rows[i] + first, rows[i + n_rows - 1] + first};
                count_common_of_two(pair, columns, n, counts);
                for (i64 r = 0; r < n_rows; ++r)
                    for (i64 c = 0; c < n_columns; ++c) common[i + r][j + c] += counts[r * AT_ONCE + c] << run;
            }
        }
    }
}

}  // namespace

void overlaps(Matrix<const u64> rows, Matrix<const u64> cols, Vector<const i64> runs, Matrix<i64> common) {
    i64 across = (cols.rows + COLUMNS - 1) / COLUMNS, down = (rows.rows + ROWS - 1) / ROWS;
    over_ranges(down * across, (f64)((rows.columns + 16) * ROWS * COLUMNS) * WORD_NS, [&](i64 start, i64 stop) {
        for (i64 tile = start; tile < stop; ++tile) {
            i64 i = tile / across * ROWS, j = tile % across * COLUMNS;
            count_tile(rows, cols, runs, {i, std::min(i + ROWS, rows.rows)}, {j, std::min(j + COLUMNS, cols.rows)},
                       common);
        }
    });
}

void leave_out_themselves(Matrix<i64> common, Matrix<const u64> bits, Vector<const i64> rows, Vector<const i64> cols,
                          Vector<const i64> place, Vector<const bool> are_neighbors, Vector<const i64> counts) {
    std::vector<i64> places(cols.size), own_cols(cols.size);
    for (i64 j = 0; j < cols.size; ++j) places[j] = place[cols[j]], own_cols[j] = are_neighbors[cols[j]];
    over_ranges(rows.size, (f64)cols.size * BIT_NS, [&](i64 start, i64 stop) {
        for (i64 i = start; i < stop; ++i) {
            look();
            i64 row = rows[i], own_row = are_neighbors[row];
            for (i64 j = 0; j < cols.size; ++j) {
                i64 is_neighbor = (i64)(bits[i][places[j] / 64] >> (places[j] % 64) & 1);
                common[i][j] -= is_neighbor * (own_row + own_cols[j]);
            }
            if (own_row && counts[row] == 1)  // the pair of an object with itself was subtracted twice
                for (i64 j = 0; j < cols.size; ++j) common[i][j] += row == cols[j];
        }
    });
}

}  // namespace gpuens

#include "linkage/units.h"

#include <algorithm>
#include <cmath>

#include "linkage/row_search.h"
#include "runtime/parallel.h"

namespace gpuens {

namespace {

constexpr f64 COMPARISON_NS = 1e-2;  // time to compare one label
constexpr f64 ROW_NS = 1.0;          // time per label of a row
// subtracted from a label's units, so that rounding never lifts them above a whole number
constexpr f64 TRIFLE = 0x1p-20;

// Units of the table: those of a label (N_c,), `to_worth` of them for each of these numbers, whether bytes hold the
// sums of labels, those of a sum of labels for each of its units, and what is added to a sum above 0.
struct Scale {
    std::vector<f64> worth;
    f64 to_worth;
    bool in_bytes;
    f64 to_units, up;
};

// Comparison of 64 regions at a time with the rows of these and of all later regions.
template <typename Unit>
class PairUnits {
public:
    PairUnits(const RowsOfRegions& with_, const RowIndex& index_, const RegionTables<f64>& tables_, const Scale& scale_)
        : with(with_), index(index_), tables(tables_), chunks(tables_.chunks), scale(scale_),
          n_batch(chunks.rows_in_batch(with.n_rows())), table(chunks.rows_of_tables() * LANES), sums(n_batch * LANES) {}

    // Write the units of the regions of a block of columns, on the diagonal and below.
    void fill(i64 block, Matrix<u16> units) {
        i64 region = block * LANES, begin = with.begin(region);
        width = std::min((i64)LANES, with.n_regions() - region);
        row_units = &with.regions[region];
        alignas(LINE) f32 total[LANES] = {};  // local, so that it stays in registers
        bool fresh = true;
        for (i64 at = begin; at < with.n_rows(); at += n_batch, fresh = false) {
            look();
            i64 n = std::min(n_batch, with.n_rows() - at);
            score_rows(at, n, fresh);
            for (i64 i = 0; i < n; ++i) {
                f32 weight = (f32)with.sizes[at + i];
                const u32* row = &sums[i * LANES];
                for (i64 j = 0; j < LANES; ++j) total[j] += weight * (f32)row[j];
                if (at + i + 1 < with.ends[region]) continue;
                write(total, region, at + i + 1 - begin, units[region] + block * LANES);
                std::fill(total, total + LANES, 0.0f);
                ++region;
                begin = at + i + 1;
            }
        }
    }

private:
    void score_rows(i64 at, i64 n, bool fresh) {
        for (i64 t = 0; t < chunks.n_tables(); ++t) {
            Chunk part = chunks.table(t);
            if (chunks.n_tables() > 1 || fresh) {
                std::fill(&table[0], &table[0] + (chunks.starts[part.end] - part.base) * LANES, (Unit)0);
                for (i64 j = 0; j < width; ++j) tables.lay(row_units[j], scale.to_worth, part, &table[j]);
            }
            std::visit([&](auto labels) {
                auto row = [&](i64 i) { return (decltype(&labels[0][0]))labels[with.places[at + i]]; };
                chunks.each(t, [&](Chunk chunk) {
                    label_scores(n, row, chunks.starts.data, chunk, table.data(), sums.data());
                });
            }, index.rows);
        }
    }

    // Write the units of a region of n_rows rows from its totals.
    void write(const f32* total, i64 region, i64 n_rows, u16* units) const {
        f64 factor = scale.to_units / (f64)tables.of.size[with.regions[region]];
        if (scale.up >= 1.0) factor *= above_rounding(n_rows);
        f32 each = (f32)factor, up = (f32)scale.up;
        for (i64 j = 0; j < LANES; ++j)
            units[j] = (u16)(i32)(total[j] * each + (total[j] > 0.0f ? up : 0.0f));
    }

    const RowsOfRegions& with;
    const RowIndex& index;
    const RegionTables<f64>& tables;
    const Chunks& chunks;
    const Scale& scale;
    i64 n_batch, width = 0;
    const i64* row_units = nullptr;
    Aligned<Unit> table;
    Aligned<u32> sums;
};

// Copy the units below the diagonal to those above it, for rows of some blocks.
void mirror(i64 begin, i64 end, Matrix<u16> units) {
    i64 n = units.rows;
    for (i64 block = begin; block < end; ++block) {
        look();
        i64 low = block * LANES, high = std::min(low + LANES, n);
        for (i64 first = high; first < n; first += LANES) {
            u16 turned[LANES][LANES];  // rows far apart would compete for the same place in a cache
            i64 last = std::min(first + LANES, n);
            for (i64 q = first; q < last; ++q)
                for (i64 p = low; p < high; ++p) turned[p - low][q - first] = units[q][p];
            for (i64 p = low; p < high; ++p) std::copy_n(turned[p - low], last - first, units[p] + first);
        }
    }
}

// The largest sum over the labels of a row.
f64 largest_row(const RowIndex& index, const std::vector<f64>& of_clusters) {
    return std::visit([&]<typename Code>(Matrix<const Code> rows) {
        std::vector<f64> totals(rows.rows);
        over_ranges(rows.rows, ROW_NS * (f64)rows.columns, [&](i64 begin, i64 end) {
            for (i64 i = begin; i < end; ++i)
                for (i64 m = 0; m < rows.columns; ++m) {
                    i64 cluster = index.offsets[m] + rows[i][m];
                    if (cluster < index.offsets[m + 1]) totals[i] += of_clusters[cluster];
                }
        });
        return *std::max_element(totals.begin(), totals.end());
    }, index.rows);
}

// Largest excess and deficit of the units of a row's labels against the exact number.
struct Errors {
    f64 above, below;
};

// Round to the nearest whole number above 0. Bounds on similarities of single rows are then a fourth as far apart as
// with units that are all rounded up.
Errors round_to_nearest(const RowIndex& index, std::vector<f64>& worth) {
    std::vector<f64> above, below;
    for (f64& units : worth) {
        f64 integer = std::max(std::nearbyint(units), 1.0);
        above.push_back(std::max(integer - units, 0.0));
        below.push_back(std::max(units - integer, 0.0));
        units = integer - TRIFLE;
    }
    return {largest_row(index, above), largest_row(index, below)};
}

// The largest weight of each clustering.
template <typename Weight>
std::vector<f64> largest_weights(const RowIndex& index, const Weight* weights) {
    std::vector<f64> largest;
    for (i64 m = 0; m < index.n_clusterings(); ++m)
        largest.push_back((f64)*std::max_element(weights + index.offsets[m], weights + index.offsets[m + 1]));
    return largest;
}

// Choose the scale, as fine as 16 bits allow; regions have at most so many rows.
template <typename Weight>
Scale scale_of(const RowIndex& index, const Diagonal<Weight>& by, i64 most_rows, Units& units) {
    Scale scale{{by.weights.begin(), by.weights.end()}, 1.0,
                by.unit_weights() && most_rows == 1 && by.n_clusterings <= UNITS,
                0.0, 0.5};
    f64 n = (f64)by.n_clusterings, each = 1.0;
    if (scale.in_bytes) {  // units of whole sums are exact
        scale.to_units = (f64)(UNITS / by.n_clusterings);
    } else {
        std::vector<f64> largest = largest_weights(index, by.weights.data);
        const Vector<const i64>& chunks = index.of_words.chunks;
        i64 longest = 0;
        f64 largest_chunk = 0.0, total = std::accumulate(largest.begin(), largest.end(), 0.0);
        for (i64 c = 0; c + 1 < chunks.size; ++c) {
            longest = std::max(longest, chunks[c + 1] - chunks[c]);
            f64 chunk = std::accumulate(&largest[chunks[c]], &largest[0] + chunks[c + 1], 0.0);
            largest_chunk = std::max(largest_chunk, chunk);
        }
        // the sum of a chunk's units must fit 16 bits, and the sum of all units must fit 32 bits
        each = std::min((f64)(UNITS - longest) / largest_chunk * (1.0 - 1e-9), 0x1p31 / total);
        scale.to_worth = each;
        Errors errors{n, 0.0};
        if (most_rows == 1) {
            scale.to_worth = 1.0;
            for (f64& worth : scale.worth) worth *= each;
            errors = round_to_nearest(index, scale.worth);
        }
        f64 rounding = 2e-6 + 2.4e-7 * (f64)most_rows;
        scale.to_units = 65'533 / (total * each * (1.0 + rounding) + 2.0 * n);
        scale.up = 1.0 + 1.001 * scale.to_units * errors.below;
        units.slack = 2.0 + scale.to_units * (errors.above + errors.below) + UNITS * rounding;
    }
    units.unit = scale.to_units * each * n * (1.0 - 1e-9);
    return scale;
}

}  // namespace

template <typename Weight>
Units units_of(const std::vector<i64>& active, const Members& members, const RowIndex& index, const Regions& regions,
               const Diagonal<Weight>& by) {
    i64 n = (i64)active.size(), n_blocks = (n + LANES - 1) / LANES, most_rows = 0;
    for (i64 a : active) most_rows = std::max(most_rows, members.n_rows[a]);
    Units units{n, n_blocks * LANES, nullptr};
    units.pairs.reset(new u16[n * units.n_columns]);
    Matrix<u16> pairs = units.of_pairs();
    Scale scale = scale_of(index, by, most_rows, units);
    RowsOfRegions with(active, members, index);
    RegionTables<f64> tables{regions, scale.worth.data(), index.offsets,
                             scale.in_bytes ? index.of_bytes : index.of_words};
    auto fill = [&]<typename Unit>(Unit) {
        f64 nanoseconds = COMPARISON_NS * 0.5 * (f64)LANES * (f64)with.n_rows() * (f64)index.n_clusterings();
        in_threads(n_blocks, nanoseconds, [&](Ranges& ranges) {
            PairUnits<Unit> block_units(with, index, tables, scale);
            while (Range range = ranges.next())
                for (i64 block = range.start; block < range.stop; ++block) block_units.fill(block, pairs);
        });
    };
    scale.in_bytes ? fill((u8)0) : fill((u16)0);
    over_ranges(n_blocks, (f64)LANES * (f64)n, [&](i64 begin, i64 end) { mirror(begin, end, pairs); });
    return units;
}

template Units units_of(const std::vector<i64>&, const Members&, const RowIndex&, const Regions&, const Diagonal<i64>&);
template Units units_of(const std::vector<i64>&, const Members&, const RowIndex&, const Regions&, const Diagonal<f64>&);

}  // namespace gpuens

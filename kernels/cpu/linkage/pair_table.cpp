// The mean similarity of all pairs of regions, in small units (gpuens/partition/linkage/pair_table.py).
#include <algorithm>

#include "linkage/primitives.h"
#include "linkage/row_regions.h"
#include "parallel.h"

namespace gpuens {

namespace {

constexpr f64 COMPARISON_NS = 1e-2;  // of one label

// 64 regions at a time are compared with the rows of these and of all later regions.
template <typename Unit, typename Weight>
class PairUnits {
public:
    PairUnits(const RowsOfRegions& with_, const RowIndex& index_, const RegionTables<Weight>& tables_, UnitScale scale_)
        : with(with_), index(index_), tables(tables_), chunks(tables_.chunks), scale(scale_),
          n_batch(chunks.rows_in_batch(with.n_rows())), table(chunks.rows_of_tables() * LANES), sums(n_batch * LANES) {}

    // Write the units of the regions of a block of columns, on the diagonal and below.
    void fill(i64 block, Matrix<u16> units) {
        i64 region = block * LANES, begin = with.begin(region);
        width = std::min((i64)LANES, with.n_regions() - region);
        own = &with.regions[region];
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
                for (i64 j = 0; j < width; ++j) tables.lay(own[j], scale.to_worth, part, &table[j]);
            }
            std::visit([&](auto labels) {
                auto row = [&](i64 i) { return (decltype(&labels[0][0]))labels[with.places[at + i]]; };
                chunks.each(t, [&](Chunk chunk) {
                    label_scores(n, row, chunks.starts.data, chunk, table.data(), sums.data());
                });
            }, index.rows);
        }
    }

    // Write the units of a region of so many rows from its totals.
    void write(const f32* total, i64 region, i64 n_rows, u16* units) const {
        f64 factor = scale.to_units / (f64)tables.of.size[with.regions[region]];
        if (scale.up >= 1.0) factor *= above_rounding(n_rows);
        f32 each = (f32)factor, up = (f32)scale.up;
        for (i64 j = 0; j < LANES; ++j)
            units[j] = (u16)(i32)(total[j] * each + (total[j] > 0.0f ? up : 0.0f));
    }

    const RowsOfRegions& with;
    const RowIndex& index;
    const RegionTables<Weight>& tables;
    const Chunks& chunks;
    UnitScale scale;
    i64 n_batch, width = 0;
    const i64* own = nullptr;
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

}  // namespace

void fill_units(Vector<const i64> active, Members members, RowIndex index, Regions regions,
                Numbers<Vector> weights, UnitScale scale, Matrix<u16> units) {
    RowsOfRegions with({active.begin(), active.end()}, members, index);
    i64 n_blocks = (with.n_regions() + LANES - 1) / LANES;
    const Chunks& chunks = scale.in_bytes ? index.of_bytes : index.of_words;
    std::visit([&]<typename Weight>(Vector<const Weight> worth) {
        RegionTables<Weight> tables{regions, worth.data, index.offsets, chunks};
        auto fill = [&]<typename Unit>(Unit) {
            f64 nanoseconds = COMPARISON_NS * 0.5 * (f64)LANES * (f64)with.n_rows() * (f64)index.n_clusterings();
            in_threads(n_blocks, nanoseconds, [&](Ranges& ranges) {
                PairUnits<Unit, Weight> pairs(with, index, tables, scale);
                while (Range range = ranges.next())
                    for (i64 block = range.start; block < range.stop; ++block) pairs.fill(block, units);
            });
        };
        scale.in_bytes ? fill((u8)0) : fill((u16)0);
    }, weights);
    over_ranges(n_blocks, (f64)LANES * (f64)units.rows, [&](i64 begin, i64 end) { mirror(begin, end, units); });
}

}  // namespace gpuens

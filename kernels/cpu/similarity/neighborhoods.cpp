// Neighbourhoods as rows of bits (kernels/neighborhoods.cu).
//
// A table has the similarities, in whole units, of each cluster of the rows to the labels of 64 columns, one in each
// lane: a row of labels adds up rows of the table, 64 pairs at a time. The few similarities that these sums do not
// decide are computed one by one.
#include "runtime/lanes.h"
#include "runtime/parallel.h"
#include "similarity/primitives.h"

namespace gpuens {

namespace {

constexpr i64 AT_ONCE = 64;  // rows between looks
constexpr f64 LABEL_NS = 1.5;

// The clusters of the rows, and the table's row of each of their labels; row 0, all zeros, stands for a missing label.
struct Present {
    std::vector<i64> clusters;
    std::vector<u32> places;

    template <typename Code>
    Present(Matrix<const Code> rows, Vector<const i64> offsets) : places(rows.rows * rows.columns) {
        std::vector<u32> place(offsets[rows.columns]);
        auto each = [&](auto&& work) {
            for (i64 i = 0, at = 0; i < rows.rows; ++i)
                for (i64 m = 0; m < rows.columns; ++m, ++at)
                    if (rows[i][m] != MISSING(Code)) work(at, place[offsets[m] + rows[i][m]]);
        };
        each([](i64, u32& of) { of = 1; });
        for (i64 c = 0; c < (i64)place.size(); ++c)
            if (place[c]) {
                clusters.push_back(c);
                place[c] = (u32)clusters.size();
            }
        each([&](i64 at, u32 of) { places[at] = of; });
    }
};

template <typename Code>
struct Compared {
    Matrix<const Code> rows, cols;
    Vector<const i64> offsets;
    ClusterBlocks blocks;
    Threshold threshold;

    // Write the units of the present clusters for n columns from `first` on. The units of few clusters are computed
    // once for all columns.
    void fill(const Present& present, i64 first, i64 n, u32* table) const {
        u32 rounded[LANES + 1];
        for (i64 t = 0, m = 0; t < (i64)present.clusters.size(); ++t) {
            i64 cluster = present.clusters[t];
            while (cluster >= offsets[m + 1]) ++m;
            const f64* row = blocks.row(offsets, m, cluster - offsets[m]);
            const Code* labels = cols[m] + first;
            u32* units = table + (t + 1) * LANES;
            if (i64 k = offsets[m + 1] - offsets[m]; k <= LANES) {
                for (i64 label = 0; label < k; ++label) rounded[label] = (u32)(row[label] * threshold.scale);
                rounded[k] = 0;
                for (i64 j = 0; j < n; ++j) units[j] = rounded[std::min((i64)labels[j], k)];
                continue;
            }
            for (i64 j = 0; j < n; ++j)
                units[j] = labels[j] == MISSING(Code) ? 0 : (u32)(row[labels[j]] * threshold.scale);
        }
    }

    bool are_near(i64 i, i64 j) const {
        f64 sum = coupled_sum(rows[i], cols.data + j, cols.columns, offsets.data, blocks.starts.data,
                              blocks.values.data,
                              rows.columns);
        return sum / (f64)rows.columns >= threshold.theta;
    }

    u64 bits(i64 i, i64 first, u64 columns, const u32* places, const u32* table) const {
        alignas(LINE) u32 sums[LANES];
        Lanes<u32, LANES> total = {};
        for (i64 m = 0; m < rows.columns; ++m) total.plus(table + (i64)places[m] * LANES);
        total.store(sums);
        u64 unsure = at_least<LANES>(sums, threshold.hardly) & columns;
        if (!unsure) return 0;
        u64 near = at_least<LANES>(sums, threshold.surely) & columns;
        each_bit(unsure & ~near, [&](i64 j) { near |= (u64)are_near(i, first + j) << j; });
        return near;
    }
};

}  // namespace

void neighborhood_bits(Codes<Matrix> rows, Codes<Matrix> cols, Vector<const i64> offsets, ClusterBlocks blocks,
                       Threshold threshold, Matrix<u64> bits) {
    std::visit([&]<typename Code>(Matrix<const Code> of) {
        Compared<Code> compared{of, std::get<Matrix<const Code>>(cols), offsets, blocks, threshold};
        Present present(of, offsets);
        i64 n_labels = of.rows * of.columns + LANES * (i64)present.clusters.size();
        in_threads(bits.columns, (f64)n_labels * LABEL_NS, [&](Ranges& ranges) {
            Aligned<u32> table((i64)(present.clusters.size() + 1) * LANES);
            while (Range range = ranges.next())
                for (i64 w = range.start; w < range.stop; ++w) {
                    i64 first = w * LANES, n = std::min((i64)LANES, compared.cols.columns - first);
                    look();
                    compared.fill(present, first, n, table.data());
                    for (i64 i = 0; i < of.rows; ++i) {
                        if (i % AT_ONCE == 0) look();
                        bits[i][w] = compared.bits(i, first, ~0ull >> (LANES - n),
                                                   present.places.data() + i * of.columns,
                                                   table.data());
                    }
                }
        });
    }, rows);
}

}  // namespace gpuens

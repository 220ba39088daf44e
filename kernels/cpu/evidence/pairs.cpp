// Histograms of pairs of objects by the clusterings that put both into one cluster (kernels/pairs.cu).
//
// A table has, for 64 rows, one in each lane, what each label adds to the bin of a pair of rows: a row of labels that
// adds up rows of the table finds the bins of 64 pairs at a time.
#include "evidence/primitives.h"
#include "linkage/comparisons.h"
#include "runtime/parallel.h"

#include <mutex>

namespace gpuens {

namespace {

constexpr i64 ROWS = 512;      // rows that are compared with a block of 64 rows before their pairs are counted
constexpr i64 TURNS = 4;       // histograms in turn, so that no addition waits for the one before to the same bin
constexpr i64 DRAWN = 32'768;  // pairs whose bins a cache holds while one clustering is compared
constexpr f64 LABEL_NS = 1.5, DRAWN_NS = 1.5;

using u128 = unsigned __int128;  // pairs of more than 3e9 objects

constexpr int LOW_BITS = 62;  // bits of a wide number in the first row of a histogram; the others are in the second

// Histograms of threads are added to that of all.
class Histogram {
public:
    explicit Histogram(Matrix<i64> counted_) : counted(counted_) {}

    template <typename CountOf>
    void add(CountOf&& count_of) {
        std::lock_guard<std::mutex> lock(adding);
        for (i64 bin = 0; bin < counted.columns; ++bin) add_to(bin, count_of(bin));
    }

private:
    void add_to(i64 bin, i64 number) { counted[0][bin] += number; }

    void add_to(i64 bin, u128 number) {
        number += (u128)counted[0][bin] + ((u128)counted[1][bin] << LOW_BITS);
        counted[0][bin] = (i64)(number & (((u128)1 << LOW_BITS) - 1));
        counted[1][bin] = (i64)(number >> LOW_BITS);
    }

    Matrix<i64> counted;
    std::mutex adding;
};

// Counts the pairs of rows within a block of 64 rows, and between the block and all later ones.
template <typename Unit, typename Sum, typename Count>
class Counter {
public:
    Counter(Matrix<const u32> rows_, Chunks chunks_, Vector<const i64> counts_, i64 step_, i64 n_bins)
        : rows(rows_), chunks(chunks_), counts(counts_), step(step_), table(chunks_.starts[rows_.columns] * LANES),
          sums(ROWS * LANES), bins(n_bins * TURNS) {}

    void count_block(i64 block) {
        begin = block * LANES;
        width = std::min((i64)LANES, rows.rows - begin);
        fill((Unit)step, (Unit)(step + 1));
        for (i64 at = begin; at < rows.rows; at += ROWS) {
            look();
            i64 n = std::min(ROWS, rows.rows - at), own = std::min(n, std::max((i64)0, begin + width - at));
            for (i64 c = 0; c + 1 < chunks.chunks.size; ++c)
                label_scores(n, [&](i64 i) { return rows[at + i]; }, chunks.starts.data,
                             {chunks.chunks[c], chunks.chunks[c + 1], 0}, table.data(), sums.data());
            for (i64 i = 0; i < own; ++i) add_within(sums.data() + i * LANES, at + i - begin);
            for (i64 i = own; i < n; ++i) add(sums.data() + i * LANES, counts[at + i]);
        }
        fill(0, 0);
    }

    Count counted(i64 bin) const {
        const Count* turns = bins.data() + bin * TURNS;
        return (turns[0] + turns[1]) + (turns[2] + turns[3]);
    }

private:
    // Write the addends of each row: `equal` at its label, `other` at further labels of the clusterings that label it.
    void fill(Unit other, Unit equal) {
        for (i64 m = 0; m < rows.columns; ++m) {
            i64 first = chunks.starts[m], missing = chunks.starts[m + 1] - 1;
            if (step > 0) {
                Unit unequal[LANES] = {};
                for (i64 j = 0; j < width; ++j) unequal[j] = first + rows[begin + j][m] == missing ? 0 : other;
                for (i64 cluster = first; cluster < missing; ++cluster)
                    std::copy(unequal, unequal + LANES, table.data() + cluster * LANES);
            }
            for (i64 j = 0; j < width; ++j)
                if (i64 cluster_of_row = first + rows[begin + j][m]; cluster_of_row != missing)
                    table[cluster_of_row * LANES + j] = equal;
        }
    }

    // Add the pairs of row j of the block with the rows up to itself.
    void add_within(const Sum* bin_of, i64 j) {
        const i64* sizes = counts.data + begin;
        auto n_objects = (Count)sizes[j];
        bins[bin_of[j] * TURNS] += n_objects * (n_objects - 1) / 2;
        for (i64 earlier = 0; earlier < j; ++earlier)
            bins[bin_of[earlier] * TURNS] += (Count)sizes[earlier] * n_objects;
    }

    // Add the pairs of a later row with all rows of the block; only full blocks have later rows.
    void add(const Sum* bin_of, i64 count) {
        const i64* sizes = counts.data + begin;
        for (i64 j = 0; j < LANES; j += TURNS)
            for (i64 turn = 0; turn < TURNS; ++turn)
                bins[(u64)bin_of[j + turn] * TURNS + turn] += (Count)sizes[j + turn] * (Count)count;
    }

    Matrix<const u32> rows;
    Chunks chunks;
    Vector<const i64> counts;
    i64 step, begin = 0, width = 0;
    Aligned<Unit> table;
    Aligned<Sum> sums;
    std::vector<Count> bins;
};

template <typename Unit, typename Sum, typename Count>
void count_turns(Matrix<const u32> rows, Chunks chunks, Vector<const i64> counts, Range turns, i64 step,
                 Matrix<i64> counted) {
    i64 n_blocks = (rows.rows + LANES - 1) / LANES;
    Histogram histogram(counted);
    f64 turn_ns = (f64)((rows.rows + LANES) * (rows.columns + LANES)) * LABEL_NS;
    in_threads(turns.stop - turns.start, turn_ns, [&](Ranges& ranges) {
        Counter<Unit, Sum, Count> counter(rows, chunks, counts, step, counted.columns);
        while (Range range = ranges.next())
            for (i64 turn = turns.start + range.start; turn < turns.start + range.stop; ++turn) {
                counter.count_block(turn);
                if (turn != n_blocks - 1 - turn) counter.count_block(n_blocks - 1 - turn);
            }
        histogram.add([&](i64 bin) { return counter.counted(bin); });
    });
}

}  // namespace

void pair_histogram(Matrix<const u32> rows, std::tuple<Vector<const i64>, Vector<const i64>> parts,
                    Vector<const i64> counts, std::tuple<i64, i64> turns, i64 step, Matrix<i64> counted) {
    auto [starts, chunks] = parts;
    auto [start, stop] = turns;
    bool narrow = counted.columns <= 1 << 16;
    auto choose = [&]<typename Count>(Count) {
        return step ? (narrow ? count_turns<u16, u16, Count> : count_turns<u32, u32, Count>)
                    : (narrow ? count_turns<u8, u16, Count> : count_turns<u8, u32, Count>);
    };
    auto count = counted.rows > 1 ? choose(u128{}) : choose(i64{});
    count(rows, {starts, chunks, {}}, counts, {start, stop}, step, counted);
}

void drawn_histogram(Codes<Matrix> codes, Vector<const i64> first, Vector<const i64> second, i64 step,
                     Vector<i64> counted) {
    Histogram histogram({counted.data, 1, counted.size});
    std::visit([&]<typename Code>(Matrix<const Code> of) {
        in_threads(first.size, (f64)of.rows * DRAWN_NS, [&](Ranges& ranges) {
            std::vector<i64> counts(counted.size);
            std::vector<u32> bin_of(DRAWN);
            while (Range range = ranges.next())
                for (i64 begin = range.start; begin < range.stop; begin += DRAWN) {
                    i64 n = std::min(DRAWN, range.stop - begin);
                    std::fill_n(bin_of.begin(), n, 0);
                    for (i64 m = 0; m < of.rows; ++m) {
                        look();
                        for (i64 i = 0; i < n; ++i) {
                            Code a = of[m][first[begin + i]], b = of[m][second[begin + i]];
                            bool are_labelled = (a != MISSING(Code)) & (b != MISSING(Code));
                            bin_of[i] += are_labelled ? (u32)(step + (a == b)) : 0;
                        }
                    }
                    for (i64 i = 0; i < n; ++i) ++counts[bin_of[i]];
                }
            histogram.add([&](i64 bin) { return counts[bin]; });
        });
    }, codes);
}

}  // namespace gpuens

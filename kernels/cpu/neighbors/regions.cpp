// Regions of a graph: in each round, adjacent regions that are each other's most similar neighbour merge.
//
// The similarity of two regions is the cosine of their mean rows of shares. Means are rounded to whole units, so that
// products are exact; they steer the merges and serve nothing else.
#include "neighbors/primitives.h"
#include "runtime/parallel.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace gpuens {

namespace {

constexpr f64 ENTRY_NS = 2;      // a share of one neighbour, or of one member
constexpr f64 FEW_MERGES = 1 / 64.0;  // the least share of the regions that a round should merge

// The regions of a round, with the numbers of their objects.
struct Regions : GrownRegions {
    std::vector<i64> sizes;

    i64 n() const { return (i64)starts.size() - 1; }
};

// The input of a round; the leaves of the first round are the caller's.
struct View {
    const i64 *sizes, *starts, *row_starts;
    const i32 *heads, *columns;
    const u16* values;
    i64 n;
};

View view_of(const Regions& of) {
    return {of.sizes.data(), of.starts.data(), of.row_starts.data(), of.heads.data(), of.columns.data(),
            of.values.data(), of.n()};
}

struct Best {
    i64 head = -1;
    f64 similarity = -1.0;
};

// The most similar neighbour of each region; of equal ones, that of the pair with the smallest hash.
void find_best(const View& of, i64 n_columns, std::vector<f64>& squares, std::vector<Best>& best) {
    over_ranges(of.n, 20, [&](i64 start, i64 stop) {
        for (i64 i = start; i < stop; ++i) {
            i64 sum = 0;
            for (i64 e = of.row_starts[i]; e < of.row_starts[i + 1]; ++e) sum += (i64)of.values[e] * of.values[e];
            squares[i] = (f64)std::max(sum, (i64)1);
        }
    });
    f64 entries = (f64)of.row_starts[of.n] / (f64)std::max(of.n, (i64)1);
    f64 degree = (f64)of.starts[of.n] / (f64)std::max(of.n, (i64)1);
    in_threads(of.n, ENTRY_NS * entries * (1 + degree), [&](Ranges& ranges) {
        std::vector<i32> row(n_columns);
        while (Range range = ranges.next()) {
            for (i64 i = range.start; i < range.stop; ++i) {
                for (i64 e = of.row_starts[i]; e < of.row_starts[i + 1]; ++e) row[of.columns[e]] = of.values[e];
                Best nearest;
                for (i64 at = of.starts[i]; at < of.starts[i + 1]; ++at) {
                    i64 j = of.heads[at], product = 0;
                    for (i64 e = of.row_starts[j]; e < of.row_starts[j + 1]; ++e) {
                        product += (i64)row[of.columns[e]] * of.values[e];
                    }
                    f64 cosine = (f64)product / std::sqrt(squares[i] * squares[j]);
                    if (cosine > nearest.similarity ||
                        (cosine == nearest.similarity && pair_hash(i, j) < pair_hash(i, nearest.head))) {
                        nearest = {j, cosine};
                    }
                }
                for (i64 e = of.row_starts[i]; e < of.row_starts[i + 1]; ++e) row[of.columns[e]] = 0;
                best[i] = nearest;
            }
        }
    });
}

// The pairs that are each other's best, named by their smaller region: all of them, or the `most` first ones in the
// total order.
std::vector<i64> mutual_pairs(const std::vector<Best>& best, i64 n_merges) {
    std::vector<i64> pairs;
    for (i64 i = 0; i < (i64)best.size(); ++i) {
        if (best[i].head > i && best[best[i].head].head == i) pairs.push_back(i);
    }
    if ((i64)pairs.size() <= n_merges) return pairs;
    std::nth_element(pairs.begin(), pairs.begin() + n_merges, pairs.end(), [&](i64 a, i64 b) {
        return comes_before(best[a].similarity, pair_hash(a, best[a].head), best[b].similarity,
                            pair_hash(b, best[b].head));
    });
    pairs.resize(n_merges);
    return pairs;
}

// Write the mean of two rows, weighted by the sizes of their regions; return its number of entries.
i64 merge_rows(const View& of, i64 a, i64 b, i32* columns, u16* values) {
    i64 weight_a = of.sizes[a], weight_b = of.sizes[b], total = weight_a + weight_b, n = 0;
    i64 p = of.row_starts[a], p_end = of.row_starts[a + 1], q = of.row_starts[b], q_end = of.row_starts[b + 1];
    while (p < p_end || q < q_end) {
        bool from_a = q == q_end || (p < p_end && of.columns[p] <= of.columns[q]);
        bool from_b = p == p_end || (q < q_end && of.columns[q] <= of.columns[p]);
        i32 column = from_a ? of.columns[p] : of.columns[q];
        i64 sum = (from_a ? weight_a * of.values[p++] : 0) + (from_b ? weight_b * of.values[q++] : 0);
        i64 mean = (sum + total / 2) / total;
        if (mean > 0) {
            columns[n] = column;
            values[n++] = (u16)mean;
        }
    }
    return n;
}

// Move the parts of an array from their `bounds` to adjacent places, starts (n + 1,).
template <typename T>
void close_gaps(Grown<T>& array, const std::vector<i64>& bounds, const Grown<i64>& starts) {
    for (i64 i = 0; i + 1 < (i64)starts.size(); ++i) {  // moves go to the left, never over a later part
        std::copy_n(array.begin() + bounds[i], starts[i + 1] - starts[i], array.begin() + starts[i]);
    }
    array.resize(starts.back());
}

// The regions after the merges of pairs; number (n,): the new region of each old one.
Regions unite(const View& of, const std::vector<Best>& best, const std::vector<i64>& pairs, std::vector<i64>& number) {
    std::vector<i64> partner(of.n, -1);
    for (i64 a : pairs) partner[a] = best[a].head;
    std::vector<bool> absorbed(of.n, false);
    for (i64 a : pairs) absorbed[best[a].head] = true;
    i64 n = of.n - (i64)pairs.size();
    std::vector<i64> first;
    first.reserve(n);
    for (i64 i = 0; i < of.n; ++i) {
        if (absorbed[i]) continue;
        number[i] = (i64)first.size();
        first.push_back(i);
    }
    for (i64 a : pairs) number[best[a].head] = number[a];

    Regions united;
    united.sizes.resize(n);
    std::vector<i64> heads_at(n + 1, 0), row_at(n + 1, 0);
    for (i64 r = 0; r < n; ++r) {
        i64 a = first[r], b = partner[a];
        united.sizes[r] = of.sizes[a] + (b < 0 ? 0 : of.sizes[b]);
        heads_at[r + 1] = heads_at[r] + of.starts[a + 1] - of.starts[a] + (b < 0 ? 0 : of.starts[b + 1] - of.starts[b]);
        row_at[r + 1] =
            row_at[r] + of.row_starts[a + 1] - of.row_starts[a] + (b < 0 ? 0 : of.row_starts[b + 1] - of.row_starts[b]);
    }
    united.heads.resize(heads_at[n]);
    united.columns.resize(row_at[n]);
    united.values.resize(row_at[n]);
    united.starts.assign(n + 1, 0);
    united.row_starts.assign(n + 1, 0);
    f64 entries = (f64)(heads_at[n] + row_at[n]) / (f64)std::max(n, (i64)1);
    over_ranges(n, ENTRY_NS * entries, [&](i64 start, i64 stop) {
        for (i64 r = start; r < stop; ++r) {
            i64 a = first[r], b = partner[a];
            i32* heads = united.heads.data() + heads_at[r];
            i32* end = heads;
            for (i64 member : {a, b}) {
                if (member < 0) continue;
                for (i64 at = of.starts[member]; at < of.starts[member + 1]; ++at) {
                    i64 head = number[of.heads[at]];
                    if (head != r) *end++ = (i32)head;
                }
            }
            std::sort(heads, end);
            united.starts[r + 1] = std::unique(heads, end) - heads;
            i32* columns = united.columns.data() + row_at[r];
            u16* values = united.values.data() + row_at[r];
            if (b < 0) {
                i64 begin = of.row_starts[a], length = of.row_starts[a + 1] - begin;
                std::copy_n(of.columns + begin, length, columns);
                std::copy_n(of.values + begin, length, values);
                united.row_starts[r + 1] = length;
            } else {
                united.row_starts[r + 1] = merge_rows(of, a, b, columns, values);
            }
        }
    });
    std::partial_sum(united.starts.begin(), united.starts.end(), united.starts.begin());
    std::partial_sum(united.row_starts.begin(), united.row_starts.end(), united.row_starts.begin());
    close_gaps(united.heads, heads_at, united.starts);
    close_gaps(united.columns, row_at, united.row_starts);
    close_gaps(united.values, row_at, united.row_starts);
    return united;
}

}  // namespace

GrownRegions pair_neighbors(Vector<const i64> starts, Vector<const i32> heads, const WalkShares& shares, i64 n_regions,
                            Vector<i64> regions) {
    i64 n = starts.size - 1;
    std::iota(regions.begin(), regions.end(), 0);
    std::vector<i64> ones(n, 1), number(n);
    View now{ones.data(), starts.data, shares.starts.data, heads.data, shares.columns.data, shares.values.data, n};
    std::vector<f64> squares(n);
    std::vector<Best> best;
    Regions merged_regions;
    while (now.n > n_regions) {
        best.assign(now.n, {});
        find_best(now, shares.n_columns, squares, best);
        std::vector<i64> pairs = mutual_pairs(best, now.n - n_regions);
        if ((f64)pairs.size() < FEW_MERGES * (f64)std::min(now.n, now.n - n_regions)) break;
        Regions united = unite(now, best, pairs, number);
        for (i64& region : regions) region = number[region];
        merged_regions = std::move(united);
        now = view_of(merged_regions);
        look();
    }
    return merged_regions;
}

}  // namespace gpuens

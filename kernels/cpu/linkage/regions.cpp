#include "linkage/regions.h"

#include <algorithm>
#include <numeric>

#include "runtime/parallel.h"

namespace gpuens {

namespace {

constexpr i64 AT_ONCE = 32;    // rows laid out together: a clustering's labels are adjacent in memory
constexpr f64 ENTRY_NS = 1.0;  // an entry that is merged

}  // namespace

Regions::Regions(Codes<Matrix> columns, Vector<const i64> offsets, Vector<const i64> sizes)
    : start(sizes.size), length(sizes.size), size(sizes.begin(), sizes.end()) {
    std::visit([&]<typename Code>(Matrix<const Code> codes) {
        for (i64 m = 0; m < codes.rows; ++m)
            for (i64 i = 0; i < codes.columns; ++i) length[i] += codes[m][i] != MISSING(Code);
    }, columns);
    std::exclusive_scan(length.begin(), length.end(), start.begin(), (i64)0);
    used = start.back() + length.back();
    capacity = 2 * used;
    clusters.reset(new i32[capacity]);
    counts.reset(new i32[capacity]);
    lay_out(columns, offsets);
}

void Regions::lay_out(Codes<Matrix> columns, Vector<const i64> offsets) {
    std::visit([&]<typename Code>(Matrix<const Code> codes) {
        over_ranges(codes.columns, 2.0 * (f64)codes.rows, [&](i64 begin, i64 end) {
            for (i64 low = begin; low < end; low += AT_ONCE) {
                i64 n = std::min(AT_ONCE, end - low), at[AT_ONCE];
                std::copy_n(start.data() + low, n, at);
                for (i64 m = 0; m < codes.rows; ++m) {
                    const Code* labels = codes[m] + low;
                    for (i64 i = 0; i < n; ++i) {
                        if (labels[i] == MISSING(Code)) continue;
                        clusters[at[i]] = (i32)(offsets[m] + labels[i]);
                        counts[at[i]++] = (i32)size[low + i];
                    }
                }
            }
        });
    }, columns);
}

void Regions::unite(Vector<const i64> kept, Vector<const i64> absorbed) {
    i64 needed = entries_of(length.data(), kept) + entries_of(length.data(), absorbed);
    if (used + needed > capacity) compact();
    std::vector<i64> begins(kept.size + 1, used);
    for (i64 p = 0; p < kept.size; ++p) begins[p + 1] = begins[p] + length[kept[p]] + length[absorbed[p]];
    f64 each = 2.0 * ENTRY_NS * (f64)(needed / std::max(kept.size, (i64)1) + 8);
    over_ranges(kept.size, each, [&](i64 first, i64 last) {
        for (i64 p = first; p < last; ++p) {
            i64 a = kept[p], b = absorbed[p];
            length[a] = merge(a, b, begins[p]);
            start[a] = begins[p];
            size[a] += size[b];
            length[b] = 0;
        }
    });
    // a union can be shorter than the room made for it; only the room after the last union is used again
    if (kept.size) used = begins[kept.size - 1] + length[kept[kept.size - 1]];
}

// Move all histograms to the beginning of the arena, in their order there, so that none is overwritten before it moves.
void Regions::compact() {
    std::vector<i64> sorted;
    for (i64 r = 0; r < (i64)length.size(); ++r)
        if (length[r]) sorted.push_back(r);
    std::sort(sorted.begin(), sorted.end(), [&](i64 a, i64 b) { return start[a] < start[b]; });
    i64 at = 0;
    for (std::size_t i = 0; i < sorted.size(); ++i) {
        i64 r = sorted[i];
        std::copy_n(&clusters[start[r]], length[r], &clusters[at]);
        std::copy_n(&counts[start[r]], length[r], &counts[at]);
        start[r] = at;
        at += length[r];
        if (i % 1024 == 0) look();
    }
    used = at;
}

// Write the union of regions a and b from entry `begin` on; return its length.
i64 Regions::merge(i64 a, i64 b, i64 begin) {
    const i32 *cluster = clusters.get(), *count = counts.get();
    i32 *to = clusters.get() + begin, *counted = counts.get() + begin;
    i64 i = start[a], j = start[b], at = 0, end_a = i + length[a], end_b = j + length[b];
    while (i < end_a && j < end_b) {  // the loop has no branches, because processors could not predict them
        bool of_a = cluster[i] <= cluster[j], of_b = cluster[j] <= cluster[i];
        to[at] = std::min(cluster[i], cluster[j]);
        counted[at] = of_a * count[i] + of_b * count[j];
        i += of_a, j += of_b, ++at;
    }
    i64 rest = at + end_a - i;
    std::copy(cluster + i, cluster + end_a, to + at);
    std::copy(count + i, count + end_a, counted + at);
    std::copy(cluster + j, cluster + end_b, to + rest);
    std::copy(count + j, count + end_b, counted + rest);
    return rest + end_b - j;
}

}  // namespace gpuens

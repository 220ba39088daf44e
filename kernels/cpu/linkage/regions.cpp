// Histograms of growing regions: laid out, moved and merged (kernels/regions.cu).
#include "linkage/regions.h"

#include <algorithm>

#include "linkage/primitives.h"
#include "parallel.h"

namespace gpuens {

namespace {

constexpr i64 AT_ONCE = 32;    // rows laid out together: a clustering's labels are adjacent in memory
constexpr f64 ENTRY_NS = 1.0;  // an entry that is moved or merged

f64 nanoseconds(const Regions& regions, Vector<const i64> some) {
    return ENTRY_NS * (f64)(entries_of(regions.length.data, some) / std::max(some.size, (i64)1) + 1);
}

void copy(const Regions& from, i64 begin, const Regions& to, i64 at, i64 length) {
    std::copy_n(from.clusters.data + begin, length, to.clusters.data + at);
    std::copy_n(from.counts.data + begin, length, to.counts.data + at);
}

// Write the union of regions a and b from entry `at` on; return its length.
i64 merge(const Regions& regions, i64 a, i64 b, i64 begin) {
    const i32* cluster = regions.clusters.data;
    const i32* count = regions.counts.data;
    i32* to = regions.clusters.data + begin;
    i32* counted = regions.counts.data + begin;
    i64 i = regions.start[a], j = regions.start[b], at = 0;
    i64 end_a = i + regions.length[a], end_b = j + regions.length[b];
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

}  // namespace

void lay_out_rows(Codes<Matrix> columns, Vector<const i64> offsets, Regions regions) {
    std::visit([&]<typename Code>(Matrix<const Code> codes) {
        over_ranges(codes.columns, 2.0 * (f64)codes.rows, [&](i64 begin, i64 end) {
            for (i64 low = begin; low < end; low += AT_ONCE) {
                i64 n = std::min(AT_ONCE, end - low), at[AT_ONCE];
                std::copy_n(regions.start.data + low, n, at);
                for (i64 m = 0; m < codes.rows; ++m) {
                    const Code* labels = codes[m] + low;
                    for (i64 i = 0; i < n; ++i) {
                        if (labels[i] == MISSING(Code)) continue;
                        regions.clusters[at[i]] = (i32)(offsets[m] + labels[i]);
                        regions.counts[at[i]++] = (i32)regions.size[low + i];
                    }
                }
            }
        });
    }, columns);
}

void move_histograms(const Regions& regions, const Regions& roomy, Vector<const i64> live) {
    i64 at = roomy.used[0];
    for (i64 r : live) {
        roomy.start[r] = at;
        roomy.length[r] = regions.length[r];
        at += regions.length[r];
    }
    roomy.used[0] = at;
    over_ranges(live.size, nanoseconds(regions, live), [&](i64 begin, i64 end) {
        for (i64 i = begin; i < end; ++i)
            copy(regions, regions.start[live[i]], roomy, roomy.start[live[i]], regions.length[live[i]]);
    });
}

void compact(const Regions& regions, Vector<const i64> live) {
    // in the order of the arena, so that no histogram is overwritten before it moves
    std::vector<i64> sorted(live.begin(), live.end()), lengths;
    std::sort(sorted.begin(), sorted.end(), [&](i64 a, i64 b) { return regions.start[a] < regions.start[b]; });
    for (i64 r : sorted) lengths.push_back(regions.length[r]);
    std::fill(regions.length.begin(), regions.length.end(), 0);
    i64 at = 0;
    for (size_t i = 0; i < sorted.size(); ++i) {
        i64 r = sorted[i];
        copy(regions, regions.start[r], regions, at, lengths[i]);
        regions.start[r] = at;
        regions.length[r] = lengths[i];
        at += lengths[i];
        if (i % 1024 == 0) look();
    }
    regions.used[0] = at;
}

void merge_histograms(const Regions& regions, Vector<const i64> kept, Vector<const i64> absorbed) {
    std::vector<i64> begins(kept.size + 1, regions.used[0]);
    for (i64 p = 0; p < kept.size; ++p)
        begins[p + 1] = begins[p] + regions.length[kept[p]] + regions.length[absorbed[p]];
    f64 each = 2.0 * ENTRY_NS * (f64)((begins.back() - begins[0]) / std::max(kept.size, (i64)1) + 8);
    over_ranges(kept.size, each, [&](i64 first, i64 last) {
        for (i64 p = first; p < last; ++p) {
            i64 a = kept[p], b = absorbed[p];
            i64 length = merge(regions, a, b, begins[p]);
            regions.start[a] = begins[p];
            regions.length[a] = length;
            regions.size[a] += regions.size[b];
            regions.length[b] = 0;
        }
    });
    // a union can be shorter than the room made for it; only the room after the last union is used again
    if (kept.size) regions.used[0] = begins[kept.size - 1] + regions.length[kept[kept.size - 1]];
}

}  // namespace gpuens

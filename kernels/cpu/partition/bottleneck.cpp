// LIMBO: repeated merges of the two clusters whose union loses the least information (gpuens/partition/bottleneck.py).
//
// A region is a cluster of rows: how many of its objects have each label, labels ascending. A union is the region of
// its first row. loss[a][b], a < b, is what a merge loses; sums over labels are ascending, whatever the threads.
#include "runtime/extremes.h"
#include "runtime/parallel.h"
#include "partition/primitives.h"

#include <limits>
#include <memory>
#include <numeric>

namespace gpuens {

namespace {

constexpr f64 INFINITE = std::numeric_limits<f64>::infinity();
constexpr f64 LABEL_NS = 0.2;  // time to compare two rows at one label
constexpr f64 ENTRY_NS = 2;    // time to look up one label of a region

struct Entry {
    i64 label, count;
};

struct Region {
    std::vector<Entry> entries;
    f64 size = 0;    // objects
    f64 total = 0;   // labels of the objects
    f64 inside = 0;  // F of the module's equations
};

class Regions {
public:
    Regions(i64 n_rows, i64 n_labels, Vector<const f64> of_whole_)
        : of_whole(of_whole_), n(n_rows), regions(n), memory(new f64[n * n]), partner(n), smallest_loss(n, INFINITE),
          label_counts(n_labels), logs(n_labels), alive(n) {
        std::iota(alive.begin(), alive.end(), 0);
    }

    template <typename Code>
    void fill(Matrix<const Code> codes, Vector<const i64> offsets, Vector<const i64> counts) {
        for (i64 g = 0; g < n; ++g) {
            Region& region = regions[g];
            for (i64 m = 0; m < codes.rows; ++m)
                if (codes[m][g] != MISSING(Code)) region.entries.push_back({offsets[m] + codes[m][g], counts[g]});
            region.entries.shrink_to_fit();
            region.size = (f64)counts[g];
            region.total = (f64)region.entries.size() * region.size;
        }
    }

    // Write the losses of all pairs of rows, from the number of their common labels.
    template <typename Code>
    void compare_rows(Matrix<const Code> codes) {
        Sizes sizes = distinct_sizes();
        in_threads(n, (f64)(n * (codes.rows + 4) / 2) * LABEL_NS, [&](Ranges& ranges) {
            std::vector<i32> shared(n);
            std::vector<f64> own_log(sizes.values.size()), other_log(sizes.values.size());
            while (Range range = ranges.next())
                for (i64 i = range.start; i < range.stop; ++i) {
                    count_shared(codes, i, shared.data());
                    f64 size = regions[i].size, total = regions[i].total, *row = loss(i);
                    for (size_t s = 0; s < sizes.values.size(); ++s) {
                        f64 union_size = size + sizes.values[s];
                        own_log[s] = logarithm(union_size / size);
                        other_log[s] = logarithm(union_size / sizes.values[s]);
                    }
                    for (i64 j = i + 1; j < n; ++j) {
                        i64 s = sizes.of_row[j];
                        f64 in_both = (f64)shared[j];
                        f64 own_part = total - in_both * size;
                        f64 other_part = regions[j].total - in_both * regions[j].size;
                        row[j] = own_part * own_log[s] + other_part * other_log[s];
                    }
                    find_partner(i);
                }
        });
    }

    // Merge the pair that loses least, the first of equals; return the loss.
    f64 merge() {
        i64 a = place_of_least(smallest_loss.data(), n - 1), b = partner[a];
        f64 lost = smallest_loss[a];
        smallest_loss[b] = INFINITE;
        alive.erase(std::lower_bound(alive.begin(), alive.end(), b));
        merged.push_back({a, b});
        unite(a, b);
        over_ranges((i64)alive.size(), (f64)(4 + regions[alive.back()].entries.size()) * ENTRY_NS,
                    [&](i64 start, i64 stop) {
                        for (i64 x = start; x < stop; ++x) update(alive[x], a, b);
                    });
        find_partner(a);
        for (const Entry& entry : regions[a].entries) label_counts[entry.label] = 0, logs[entry.label] = 0.0;
        return lost;
    }

    // Number the remaining regions in the order of their first rows; labels (G,) become the region numbers of rows.
    void number(Vector<i64> labels) const {
        std::fill(labels.begin(), labels.end(), -1);
        for (auto [a, b] : merged) labels[b] = a;
        for (i64 g = 0, next = 0; g < n; ++g) labels[g] = labels[g] < 0 ? next++ : labels[labels[g]];
    }

private:
    struct Sizes {
        std::vector<f64> values;  // ascending
        std::vector<i64> of_row;
    };

    f64* loss(i64 row) const { return memory.get() + row * n; }

    f64 times_log(i64 count) const {
        return count < of_whole.size ? of_whole[count] : (f64)count * logarithm((f64)count);
    }

    // The distinct sizes of the rows: they are few, so that a logarithm, which is slow, is taken once for each.
    Sizes distinct_sizes() const {
        Sizes sizes;
        for (const Region& region : regions) sizes.values.push_back(region.size);
        std::sort(sizes.values.begin(), sizes.values.end());
        sizes.values.erase(std::unique(sizes.values.begin(), sizes.values.end()), sizes.values.end());
        for (const Region& region : regions)
            sizes.of_row.push_back(std::lower_bound(sizes.values.begin(), sizes.values.end(), region.size) -
                                   sizes.values.begin());
        return sizes;
    }

    // Write how many labels row i shares with each later row.
    template <typename Code>
    void count_shared(Matrix<const Code> codes, i64 i, i32* shared) const {
        std::fill(shared + i + 1, shared + n, 0);
        for (i64 m = 0; m < codes.rows; ++m) {
            const Code* labels = codes[m];
            Code label = labels[i];
            if (label == MISSING(Code)) continue;
#pragma GCC ivdep
            for (i64 j = i + 1; j < n; ++j) shared[j] += labels[j] == label;
        }
    }

    // Find the later region whose merge with region i loses least.
    void find_partner(i64 i) {
        if (i == n - 1) return;
        partner[i] = i + 1 + place_of_least(loss(i) + i + 1, n - i - 1);
        smallest_loss[i] = loss(i)[partner[i]];
    }

    // Replace region a by the union with region b; `label_counts`, `logs` and `sum_logs` are those of the union.
    void unite(i64 a, i64 b) {
        Region &into = regions[a], from = std::move(regions[b]);
        std::vector<Entry> entries;
        entries.reserve(into.entries.size() + from.entries.size());
        auto one = into.entries.begin(), one_end = into.entries.end();
        for (const Entry& other : from.entries) {
            while (one != one_end && one->label < other.label) entries.push_back(*one++);
            if (one != one_end && one->label == other.label)
                entries.push_back({other.label, one++->count + other.count});
            else
                entries.push_back(other);
        }
        entries.insert(entries.end(), one, one_end);
        entries.shrink_to_fit();
        into.entries = std::move(entries);
        into.size += from.size;
        into.total += from.total;
        sum_logs = 0.0;
        for (auto [label, count] : into.entries) {
            label_counts[label] = count;
            sum_logs += logs[label] = times_log(count);
        }
        into.inside = sum_logs - into.total * logarithm(into.size);
        regions[b] = {};
    }

    // Write the loss of a merge of region i with the new union a, and find the best partner of i.
    void update(i64 i, i64 a, i64 b) {
        if (i < b) loss(i)[b] = INFINITE;
        if (i == a) return;
        const Region &region = regions[i], &other = regions[a];
        f64 together = sum_logs;
        for (auto [label, count] : region.entries) together += times_log(label_counts[label] + count) - logs[label];
        together -= (other.total + region.total) * logarithm(other.size + region.size);
        f64 lost = other.inside + region.inside - together;
        f64& at = loss(std::min(a, i))[std::max(a, i)];
        at = lost > 0.0 ? lost : 0.0;
        if (partner[i] == a || partner[i] == b) {
            find_partner(i);
        } else if (i < a && at < smallest_loss[i]) {
            partner[i] = a;
            smallest_loss[i] = at;
        }
    }

    Vector<const f64> of_whole;  // x log2 x for whole numbers x
    i64 n;
    std::vector<Region> regions;
    std::unique_ptr<f64[]> memory;  // owner of the losses
    std::vector<i64> partner;       // best partner of each region but the last
    // loss of a merge with the partner; infinite for the last region and merged ones
    std::vector<f64> smallest_loss;
    std::vector<i64> label_counts;          // objects of the union with each label
    std::vector<f64> logs;          // x log2 x of `label_counts`
    f64 sum_logs = 0.0;
    std::vector<i64> alive;  // regions, ascending
    std::vector<std::pair<i64, i64>> merged;
};

}  // namespace

void merge_by_information(Codes<Matrix> codes, Vector<const i64> offsets, Vector<const i64> counts,
                          Vector<const f64> of_whole, Vector<i64> labels, Vector<f64> losses) {
    Regions regions(labels.size, offsets[offsets.size - 1], of_whole);
    std::visit([&](auto of) {
        regions.fill(of, offsets, counts);
        regions.compare_rows(of);
    }, codes);
    for (f64& lost : losses) {
        look();
        lost = regions.merge();
    }
    regions.number(labels);
}

}  // namespace gpuens

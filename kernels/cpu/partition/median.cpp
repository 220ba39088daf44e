// A partition with a small expected loss to weighted clusterings (gpuens/partition/median.py). Rows without a label are
// allocated one after the other to the best cluster; then rows move, clusters merge, and clusters are taken apart and
// allocated anew, as long as this lowers the loss.
//
//   phi(x) = x (x - 1) for pairs, x log2 x for information
//   spread = sum_r phi(n_r),  shared[m] = sum_r,c phi(n_rc) over the clusters c of m,  own[m] = sum_c phi(n_c)
//   Binder, VI: sum_m w_m (a phi_sums[m] + (2 - a) spread - 2 shared[m])
//   omARI:      sum_m w_m (1 - ARI(shared[m], spread, phi_sums[m]))
//
// With links, rows of a must-link group are one block, named by its first row; each cannot-link between two blocks of a
// cluster adds a penalty to the loss.
//
// phi(0) = phi(1) = 0, so that an object without a label, which is alone in that clustering, adds nothing.
#include "runtime/parallel.h"
#include "partition/primitives.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>

namespace gpuens {

namespace {

constexpr f64 LEAST_GAIN = 1e-12;  // a share of the largest terms; smaller gains are rounding errors
constexpr i64 BETWEEN_LOOKS = 1 << 17;  // entries of tables
constexpr f64 ENTRY_NS = 0.5;
constexpr i64 SWEEPS_OF_PIECES = 3;  // sweeps over the rows of a dissolved cluster
constexpr i64 SPARE_COLUMNS = 6;  // empty columns for new clusters in narrowed tables
constexpr f64 INFINITE = std::numeric_limits<f64>::infinity();

struct Pairs {
    f64 of(f64 x) const { return x * (x - 1); }
    f64 slope(f64 x) const { return 2 * x; }
};

struct Information {
    Vector<const f64> of_whole;
    f64 of(f64 x) const { return x < (f64)of_whole.size ? of_whole[(i64)x] : x * logarithm(x); }
    f64 slope(f64 x) const { return logarithm(x) + 2; }
};

// Rows that move together, as numbers of objects in clusters, and the blocks from which links part them.
struct Block {
    struct Entry {
        i64 clustering, cluster;
        f64 n;
    };
    i64 first = -1;
    std::vector<i64> rows;  // empty for a single row, which needs no entries
    std::vector<Entry> entries;
    f64 n_objects = 0.0;
    std::vector<i64> apart_from;
};

// Clusterings that all starts share, and the terms of the loss that no partition changes.
struct Clusterings {
    Codes<Matrix> codes;
    i64 n_clusterings, n_rows;
    Vector<const i64> offsets, counts, times;
    f64 n_objects, weight, a;
    std::vector<f64> phi_sums, shares;  // phi of each clustering's clusters, and its share of phi(N)
    std::vector<Block> blocks;
    f64 penalty = 0.0;                  // loss of a cannot-link within a cluster

    template <typename Phi>
    Clusterings(const MedianEnsemble& of, f64 a_, const Phi& phi)
        : codes(of.codes), n_clusterings(of.offsets.size - 1), n_rows(of.counts.size), offsets(of.offsets),
          counts(of.counts), times(of.times), a(a_), phi_sums(n_clusterings), shares(n_clusterings) {
        n_objects = (f64)std::accumulate(counts.begin(), counts.end(), (i64)0);
        weight = (f64)std::accumulate(times.begin(), times.end(), (i64)0);
        std::vector<f64> sizes;
        for (i64 m = 0; m < n_clusterings; ++m) {
            look();
            sizes.assign(offsets[m + 1] - offsets[m], 0.0);
            std::visit([&]<typename Code>(Matrix<const Code> labels) {
                for (i64 g = 0; g < n_rows; ++g)
                    if (labels[m][g] != MISSING(Code)) sizes[labels[m][g]] += (f64)counts[g];
            }, codes);
            for (f64 n : sizes) phi_sums[m] += phi.of(n);
            shares[m] = phi_sums[m] / std::max(phi.of(n_objects), 1.0);
        }
    }

    // Join rows to blocks, and note which blocks should be apart.
    void link(const MedianLinks& links) {
        penalty = links.penalty;
        numbers.assign(n_rows, -1);
        for (i64 g = 0; g < n_rows; ++g)
            if (links.group[g] != g) {
                Block& block = made_block(links.group[g]);
                if (block.rows.empty()) block.rows.push_back(block.first);
                block.rows.push_back(g);
            }
        std::vector<i64> clusters(n_clusterings);
        for (Block& block : blocks) {
            look();
            std::map<std::pair<i64, i64>, f64> sums;
            for (i64 g : block.rows) {
                read_row(g, clusters.data());
                block.n_objects += (f64)counts[g];
                for (i64 m = 0; m < n_clusterings; ++m)
                    if (clusters[m] >= 0) sums[{m, clusters[m]}] += (f64)counts[g];
            }
            for (auto [place, n] : sums) block.entries.push_back({place.first, place.second, n});
        }
        for (i64 i = 0; i < links.first.size; ++i) {
            made_block(links.first[i]).apart_from.push_back(links.second[i]);
            made_block(links.second[i]).apart_from.push_back(links.first[i]);
        }
    }

    // The block whose first row is g, null for a row without links.
    const Block* block_of(i64 g) const {
        return numbers.empty() || numbers[g] < 0 ? nullptr : &blocks[numbers[g]];
    }

    f64 n_objects_of(i64 g) const {
        const Block* block = block_of(g);
        return block && !block->rows.empty() ? block->n_objects : (f64)counts[g];
    }

    // Write the cluster of row g in each clustering, -1 where its label is missing.
    void read_row(i64 g, i64* clusters) const {
        std::visit([&]<typename Code>(Matrix<const Code> labels) {
            for (i64 m = 0; m < n_clusterings; ++m)
                clusters[m] = labels[m][g] == MISSING(Code) ? -1 : offsets[m] + (i64)labels[m][g];
        }, codes);
    }

private:
    Block& made_block(i64 first) {
        if (numbers[first] < 0) {
            numbers[first] = (i32)blocks.size();
            blocks.emplace_back().first = first;
        }
        return blocks[numbers[first]];
    }

    std::vector<i32> numbers;  // (G,): the block that begins with each row, -1 for none; empty without links
};

// A partition of the rows, and its overlaps with each cluster. RATIO: the loss is a ratio of phi, the adjusted Rand
// index.
template <typename Phi, bool RATIO>
class Search {
public:
    Search(const Clusterings& of_, Phi phi_, const MedianBounds& bounds_, i64* labels_)
        : of(of_), phi(phi_), bounds(bounds_), n_rows(of.n_rows), labels(labels_), shared(of.n_clusterings),
          clusters(of.n_clusterings) {
        i64 largest = *std::max_element(labels, labels + n_rows);
        widen(std::min(bounds.most, std::max<i64>(8, largest + largest / 4 + 2)));
        for (i64 g = 0; g < n_rows; ++g)
            if (labels[g] >= 0) change_place(g, -1, labels[g]);
    }

    // Return the number of sweeps, negative if max_iter ended them.
    i64 descend(const i64* order, i64 n_movable) {
        std::vector<i64> rows(order, order + n_movable);
        allocate(rows);
        fill(rows);
        for (i64 n = 1; n <= bounds.max_iter; ++n) {
            if (sweep(rows, true) > bounds.settled || merge() || (bounds.settled == 0 && rebuild(rows))) continue;
            return n;
        }
        return -bounds.max_iter;
    }

    // Visit all partitions of rows rows[i] ... into clusters numbered by their first rows; keep the first of the best.
    void try_all(const std::vector<i64>& rows, std::size_t i, std::vector<i64>& best, f64& smallest_loss) {
        if (i == rows.size()) {
            f64 loss_of_labels = loss();
            if (n_used < bounds.least || !(loss_of_labels < smallest_loss - LEAST_GAIN)) return;
            smallest_loss = loss_of_labels;
            best.assign(labels, labels + n_rows);
            return;
        }
        for (i64 s = 0, last = std::min(n_used + 1, bounds.most); s < last; ++s) {
            put(rows[i], s);
            try_all(rows, i + 1, best, smallest_loss);
            put(rows[i], -1);
        }
    }

    // The expected loss, between 0 and 1 for pairs, in bits for information.
    f64 loss() const {
        f64 sum = 0.0;
        for (i64 m = 0; m < of.n_clusterings; ++m) {
            f64 w = (f64)of.times[m];
            if constexpr (RATIO) sum += w * (1 - index(shared[m], spread, m));
            else sum += w * (of.a * of.phi_sums[m] + (2 - of.a) * spread - 2 * shared[m]);
        }
        if constexpr (RATIO) return sum / of.weight + penalties();
        f64 mean = sum / of.weight / (std::is_same_v<Phi, Pairs> ? of.n_objects * of.n_objects : of.n_objects);
        return mean + penalties();
    }

private:
    // The unit of the loss in the sums over clusterings, of a ratio or of phi.
    f64 scale(bool ratio) const {
        if (ratio) return of.weight;
        return of.weight * (std::is_same_v<Phi, Pairs> ? of.n_objects * of.n_objects : of.n_objects);
    }

    // The penalties of cannot-links within clusters.
    f64 penalties() const {
        i64 n_violated = 0;
        for (const Block& block : of.blocks)
            for (i64 other : block.apart_from)
                n_violated += labels[other] >= 0 && labels[other] == labels[block.first];
        return of.penalty * (f64)(n_violated / 2);
    }

    f64* overlap_of(i64 cluster) { return overlap.data() + cluster * width; }
    f64* worth_in(i64 cluster) { return worth.data() + cluster * width; }
    f64 rise(f64 x, f64 n) const { return phi.of(x + n) - phi.of(x); }

    // The adjusted Rand index from phi of intersections, of the partition's clusters, and of clustering m.
    f64 index(f64 together, f64 spread_, i64 m) const {
        f64 chance = spread_ * of.shares[m], beyond = (spread_ + of.phi_sums[m]) / 2 - chance;
        return beyond > 0 ? (together - chance) / beyond : 1.0;
    }

    void count_work() {
        work += of.n_clusterings * width;
        if (work < BETWEEN_LOOKS) return;
        look();
        work = 0;
    }

    // --- the cost of each cluster for a row
    // ---------------------------------------------------------------------------

    // Write to `cost` the loss, up to a constant, with row g in each cluster instead of its own.
    void weigh(i64 g) {
        count_work();
        i64 cluster = labels[g];
        f64 n = (f64)of.counts[g];
        bool by_index = RATIO && cluster >= 0;
        std::fill(cost.begin(), cost.end(), 0.0);
        const Block* block = of.block_of(g);
        if (block && !block->rows.empty()) {
            weigh_block(*block, cluster, by_index);
        } else {
            of.read_row(g, clusters.data());
            if (by_index) weigh_indices(cluster, n);
            else weigh_sums(cluster, n);
        }
        if (!block) return;
        for (i64 other : block->apart_from)
            if (labels[other] >= 0) cost[labels[other]] += of.penalty * scale(by_index);
    }

    // The costs of a block, which is out of its cluster while they are added up.
    void weigh_block(const Block& block, i64 cluster, bool by_index) {
        for (i64 g : block.rows) change_place(g, cluster, -1);
        std::vector<f64> gain(width);
        f64 b = (RATIO ? 1.0 : 2 - of.a) * of.weight;
        for (i64 s = 0; s < width; ++s) {
            spreads[s] = spread + rise(objects[s], block.n_objects);
            if (!by_index) cost[s] = b * rise(objects[s], block.n_objects);
        }
        auto entry = block.entries.begin();
        for (i64 m = 0; m < of.n_clusterings; ++m) {
            f64 w = (f64)of.times[m];
            std::fill(gain.begin(), gain.end(), 0.0);
            for (; entry != block.entries.end() && entry->clustering == m; ++entry) {
                const f64* in = overlap_of(entry->cluster);
                for (i64 s = 0; s < width; ++s) gain[s] += rise(in[s], entry->n);
            }
            for (i64 s = 0; s < width; ++s)
                cost[s] -= by_index ? w * index(shared[m] + gain[s], spreads[s], m) : 2 * w * gain[s];
        }
        for (i64 g : block.rows) change_place(g, -1, cluster);
    }

    // Sums over clusterings, which allocate rows for a ratio as well: the ratio of few rows says little.
    void weigh_sums(i64 cluster, f64 n) {
        f64 total = 0.0, of_own = 0.0;  // weights of clusterings that label row g; overlap with its own cluster
        for (i64 m = 0; m < of.n_clusterings; ++m) {
            if (clusters[m] < 0) continue;
            f64 w = (f64)of.times[m], *in = overlap_of(clusters[m]), *sums = cost.data();
            total += w;
            if constexpr (std::is_same_v<Phi, Pairs>) {
                for (i64 s = 0; s < width; ++s) sums[s] += w * in[s];
            } else if (n == 1) {
                const f64* worth_of_cluster = worth_in(clusters[m]);
                for (i64 s = 0; s < width; ++s) sums[s] += worth_of_cluster[s];
            } else {
                for (i64 s = 0; s < width; ++s) sums[s] += w * rise(in[s], n);
            }
            if (cluster >= 0 && !std::is_same_v<Phi, Pairs>) of_own += w * rise(in[cluster] - n, n);
        }
        if constexpr (std::is_same_v<Phi, Pairs>) {
            if (cluster >= 0) cost[cluster] -= total * n;
            for (f64& sum : cost) sum = n * (2 * sum + (n - 1) * total);
        } else if (cluster >= 0) {
            cost[cluster] = of_own;
        }
        f64 b = (RATIO ? 1.0 : 2 - of.a) * of.weight;
        for (i64 s = 0; s < width; ++s) cost[s] = b * rise(objects[s] - (s == cluster ? n : 0), n) - 2 * cost[s];
    }

    void weigh_indices(i64 cluster, f64 n) {
        f64 without = spread - rise(objects[cluster] - n, n), of_own = 0.0;
        for (i64 s = 0; s < width; ++s) spreads[s] = without + rise(objects[s] - (s == cluster ? n : 0), n);
        for (i64 m = 0; m < of.n_clusterings; ++m) {
            bool is_labelled = clusters[m] >= 0;
            const f64* in = is_labelled ? overlap_of(clusters[m]) : nothing.data();
            f64 w = (f64)of.times[m], times = is_labelled ? n : 0.0, *sums = cost.data();
            f64 base = shared[m] - times * (2 * in[cluster] - n - 1);
            for (i64 s = 0; s < width; ++s) sums[s] -= w * index(base + times * (2 * in[s] + n - 1), spreads[s], m);
            of_own -= w * index(shared[m], spreads[cluster], m);
        }
        cost[cluster] = of_own;
    }

    // The cluster of least cost for row g: its own, unless another one is better by more than rounding.
    i64 best_for(i64 g) {
        weigh(g);
        i64 cluster = labels[g];
        f64 n = of.n_objects_of(g);
        bool alone = cluster >= 0 && objects[cluster] == n;
        if (alone && n_used <= bounds.least) return cluster;
        bool may_open = !alone && n_used < bounds.most;
        i64 best = cluster;
        f64 smallest_cost = cluster >= 0 ? cost[cluster] - rounding(n) : INFINITE;
        for (i64 s = 0; s < width; ++s) {
            if (!(cost[s] < smallest_cost) || s == cluster || (objects[s] == 0 && !may_open)) continue;
            best = s;
            smallest_cost = cost[s];
        }
        return best;
    }

    f64 rounding(f64 n) const { return LEAST_GAIN * of.weight * (RATIO ? 1.0 : n * phi.slope(of.n_objects)); }

    // --- moves
    // --------------------------------------------------------------------------------------------------------

    void put(i64 g, i64 to) {
        if (const Block* block = of.block_of(g); block && !block->rows.empty()) {
            i64 from = labels[g];
            for (i64 row : block->rows) {
                change_place(row, from, to);
                labels[row] = to;
            }
        } else {
            change_place(g, labels[g], to);
            labels[g] = to;
        }
        if (n_used == width && width < bounds.most) widen(std::min(bounds.most, width + width / 2 + 1));
    }

    void change_place(i64 g, i64 from, i64 to) {
        of.read_row(g, clusters.data());
        f64 n = (f64)of.counts[g];
        for (i64 m = 0; m < of.n_clusterings; ++m) {
            if (clusters[m] < 0) continue;
            if (from >= 0) add(m, clusters[m], from, -n);
            if (to >= 0) add(m, clusters[m], to, n);
        }
        if (from >= 0) resize(from, -n);
        if (to >= 0) resize(to, n);
    }

    void add(i64 m, i64 cluster, i64 s, f64 n) {
        f64 &in = overlap[cluster * width + s], before = in;
        in += n;
        shared[m] += phi.of(in) - phi.of(before);
        if constexpr (!std::is_same_v<Phi, Pairs>) worth[cluster * width + s] = (f64)of.times[m] * rise(in, 1);
    }

    void resize(i64 s, f64 n) {
        f64 before = objects[s];
        objects[s] += n;
        spread += phi.of(objects[s]) - phi.of(before);
        n_used += (objects[s] > 0) - (before > 0);
    }

    void widen(i64 wider) {
        std::vector<i64> all(width);
        std::iota(all.begin(), all.end(), 0);
        lay_out(all, wider);
    }

    // Drop empty columns if most are empty, as after an allocation to many small clusters; the others stay in order,
    // because the first of equally good columns is taken. Return the new place of a column.
    i64 narrow(i64 column = 0) {
        i64 narrower = std::min(bounds.most, n_used + n_used / 4 + SPARE_COLUMNS), n_empty = narrower - n_used;
        if (2 * narrower > width) return column;
        std::vector<i64> columns, places(width + 1);
        for (i64 s = 0; s < width; ++s) {
            places[s] = (i64)columns.size();
            if (objects[s] > 0 || n_empty-- > 0) columns.push_back(s);
        }
        places[width] = (i64)columns.size();
        for (i64 g = 0; g < n_rows; ++g) labels[g] = places[labels[g]];
        i64 place = places[column];
        lay_out(columns, narrower);
        return place;
    }

    // Lay the tables out anew: first these columns, then empty ones.
    void lay_out(const std::vector<i64>& columns, i64 new_width) {
        auto laid_out = [&](const std::vector<f64>& table, i64 n_lines) {
            std::vector<f64> new_table(n_lines * new_width);
            for (i64 c = 0; c < n_lines; ++c)
                for (std::size_t s = 0; s < columns.size(); ++s)
                    new_table[c * new_width + s] = table[c * width + columns[s]];
            return new_table;
        };
        i64 n_clusters = of.offsets[of.n_clusterings];
        overlap = laid_out(overlap, n_clusters);
        if constexpr (!std::is_same_v<Phi, Pairs>) worth = laid_out(worth, n_clusters);
        objects = laid_out(objects, 1);
        width = new_width;
        for (auto* of_columns : {&cost, &spreads, &nothing}) of_columns->resize(width);
    }

    void allocate(const std::vector<i64>& rows) {
        for (i64 g : rows)
            if (labels[g] < 0) put(g, best_for(g));
    }

    // Move the rows of least cost to new clusters of their own, until there are enough clusters.
    void fill(const std::vector<i64>& rows) {
        while (n_used < bounds.least) {
            std::vector<std::pair<f64, i64>> changes;
            for (i64 g : rows) {
                i64 cluster = labels[g], empty = std::find(objects.begin(), objects.end(), 0.0) - objects.begin();
                if (objects[cluster] == of.n_objects_of(g)) continue;
                weigh(g);
                changes.push_back({cost[empty] - cost[cluster], g});
            }
            if (changes.empty()) return;
            std::sort(changes.begin(), changes.end());
            for (auto [change, g] : changes) {
                if (n_used == bounds.least) return;
                if (objects[labels[g]] > of.n_objects_of(g))
                    put(g, std::find(objects.begin(), objects.end(), 0.0) - objects.begin());
            }
        }
    }

    // Try to move each row; return how many have moved. `narrows`: empty columns may be dropped.
    i64 sweep(const std::vector<i64>& rows, bool narrows) {
        i64 moved = 0;
        for (i64 g : rows) {
            if (narrows) narrow();
            i64 best = best_for(g);
            if (best == labels[g]) continue;
            put(g, best);
            ++moved;
        }
        return moved;
    }

    // --- merges
    // -------------------------------------------------------------------------------------------------------

    // Merge the two clusters whose union lowers the loss most, as long as one does; return whether some have merged.
    bool merge() {
        bool merged = false;
        while (n_used > std::max<i64>(bounds.least, 1)) {
            weigh_unions();
            f64 smallest_change = -rounding(of.n_objects);
            i64 kept = -1, absorbed = -1;
            for (i64 r = 0; r < width; ++r)
                for (i64 s = r + 1; s < width; ++s)
                    if (objects[r] > 0 && objects[s] > 0 && changes[r * width + s] < smallest_change) {
                        kept = r;
                        absorbed = s;
                        smallest_change = changes[r * width + s];
                    }
            if (kept < 0) return merged;
            unite(kept, absorbed);
            merged = true;
        }
        return merged;
    }

    // Write the change of the loss by each union r < s to `changes` (width, width), up to the factor of `cost`.
    void weigh_unions() {
        changes.assign(width * width, 0.0);
        gains.assign(width * width, 0.0);
        std::vector<i64> shared_with;
        for (i64 m = 0; m < of.n_clusterings; ++m) {
            count_work();
            f64 w = (f64)of.times[m];
            for (i64 c = of.offsets[m]; c < of.offsets[m + 1]; ++c) {
                const f64* in = overlap.data() + c * width;
                shared_with.clear();
                for (i64 s = 0; s < width; ++s)
                    if (in[s] > 0) shared_with.push_back(s);
                for (std::size_t i = 0; i < shared_with.size(); ++i)
                    for (std::size_t j = i + 1; j < shared_with.size(); ++j)
                        gains[shared_with[i] * width + shared_with[j]] +=
                            (RATIO ? 1 : w) * joint(in[shared_with[i]], in[shared_with[j]]);
            }
            if constexpr (RATIO) {
                f64 before = index(shared[m], spread, m);
                for (i64 r = 0; r < width; ++r)
                    for (i64 s = r + 1; s < width; ++s) {
                        f64 together = shared[m] + gains[r * width + s], wider = spread + joint(objects[r], objects[s]);
                        changes[r * width + s] -= w * (index(together, wider, m) - before);
                    }
                std::fill(gains.begin(), gains.end(), 0.0);
            }
        }
        if constexpr (!RATIO)
            for (i64 r = 0; r < width; ++r)
                for (i64 s = r + 1; s < width; ++s)
                    changes[r * width + s] =
                        (2 - of.a) * of.weight * joint(objects[r], objects[s]) - 2 * gains[r * width + s];
        for (const Block& block : of.blocks)
            for (i64 other : block.apart_from)
                if (i64 s = labels[block.first]; s < labels[other])
                    changes[s * width + labels[other]] += of.penalty * scale(RATIO);
    }

    f64 joint(f64 x, f64 y) const { return phi.of(x + y) - phi.of(x) - phi.of(y); }

    void unite(i64 kept, i64 absorbed) {
        for (i64 m = 0; m < of.n_clusterings; ++m)
            for (i64 c = of.offsets[m]; c < of.offsets[m + 1]; ++c) {
                f64 n = overlap[c * width + absorbed];
                if (n == 0) continue;
                add(m, c, absorbed, -n);
                add(m, c, kept, n);
            }
        f64 n = objects[absorbed];
        resize(absorbed, -n);
        resize(kept, n);
        std::replace(labels, labels + n_rows, absorbed, kept);
    }

    // --- clusters taken apart
    // -----------------------------------------------------------------------------------------

    // Dissolve each cluster and allocate its rows anew, to any clusters; keep the result if it lowers the loss.
    bool rebuild(const std::vector<i64>& order) {
        bool better = false;
        for (i64 r = 0; r < width; r = narrow(r + 1)) {
            if (objects[r] == 0) continue;
            std::vector<i64> rows;
            for (i64 g : order)
                if (labels[g] == r) rows.push_back(g);
            f64 before = loss();
            for (i64 g : rows) put(g, -1);
            allocate(rows);
            fill(rows);
            for (i64 n = 0; n < SWEEPS_OF_PIECES && sweep(rows, false) > 0; ++n) {}
            if (n_used >= bounds.least && loss() < before - LEAST_GAIN * (1 + before)) {
                better = true;
                continue;
            }
            for (i64 g : rows)
                if (labels[g] != r) put(g, r);
        }
        return better;
    }

    const Clusterings& of;
    Phi phi;
    MedianBounds bounds;
    i64 n_rows;
    i64* labels;                        // (G,), -1: not allocated
    i64 width = 0, n_used = 0, work = 0;  // columns of the tables, and clusters with rows
    f64 spread = 0.0;
    std::vector<f64> shared;       // (M,)
    std::vector<i64> clusters;     // (M,): clusters of the current row
    std::vector<f64> overlap, worth;  // (N_c, width): objects, and the rise of w phi by one more
    std::vector<f64> objects, cost, spreads, nothing;  // (width,)
    std::vector<f64> changes, gains;                   // (width, width)
};

// Call `work` with the clusterings, phi, and whether the loss is a ratio.
template <typename Work>
void with_loss(const MedianEnsemble& ensemble, const MedianLoss& loss, const std::optional<MedianLinks>& links,
               Work&& work) {
    auto with_phi = [&](auto phi, auto ratio) {
        Clusterings of(ensemble, loss.a, phi);
        if (links) of.link(*links);
        work(of, phi, ratio);
    };
    if (loss.kind == 0) with_phi(Pairs{}, std::false_type());
    else if (loss.kind == 1) with_phi(Information{loss.of_whole}, std::false_type());
    else with_phi(Pairs{}, std::true_type());
}

}  // namespace

void search_medians(const MedianEnsemble& ensemble, const MedianLoss& loss, const MedianBounds& bounds,
                    Matrix<const i64> orders, Matrix<i64> labels, Vector<f64> losses, Vector<i64> sweeps,
                    const std::optional<MedianLinks>& links) {
    with_loss(ensemble, loss, links, [&](const auto& of, auto phi, auto ratio) {
        f64 a_start = (f64)(of.n_clusterings * of.n_rows) * 100 * ENTRY_NS;
        over_ranges(labels.rows, a_start, [&](i64 start, i64 stop) {
            for (i64 i = start; i < stop; ++i) {
                Search<decltype(phi), ratio.value> search(of, phi, bounds, labels[i]);
                sweeps[i] = search.descend(orders[i], orders.columns);
                losses[i] = search.loss();
            }
        });
    });
}

f64 median_of_all(const MedianEnsemble& ensemble, const MedianLoss& loss, const MedianBounds& bounds,
                  Vector<i64> labels, const std::optional<MedianLinks>& links) {
    f64 smallest_loss = INFINITE;
    with_loss(ensemble, loss, links, [&](const auto& of, auto phi, auto ratio) {
        std::fill(labels.begin(), labels.end(), -1);
        std::vector<i64> best, rows;
        for (i64 g = 0; g < of.n_rows; ++g)
            if (!links || links->group[g] == g) rows.push_back(g);
        Search<decltype(phi), ratio.value>(of, phi, bounds, labels.data).try_all(rows, 0, best, smallest_loss);
        std::copy(best.begin(), best.end(), labels.begin());
    });
    return smallest_loss;
}

}  // namespace gpuens

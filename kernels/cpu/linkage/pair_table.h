// Nearest regions by a table of all pairs of regions (rounds.h), for ensembles of many clusterings whose bounds exclude
// little.
//
// If bounds exclude few tiles, every search compares a region with all rows, and a region is searched several times. A
// table of the mean similarity of every two regions needs only one comparison of every two rows: the sums of a union
// follow from the sums of its parts, |A u B| s(A u B, R) = |A| s(A, R) + |B| s(B, R).
//
// The table (n, n) holds 16-bit numbers of units, similarities rounded up (units.h), in 2 n^2 bytes. A region that has
// not merged keeps its own table row. When two regions merge, their two table rows together hold the 32-bit sums of the
// union, half of the columns in each row. Columns always belong to the n initial regions; a search adds up, for each
// region, the columns of the initial regions in it (pair_sums.h).
//
// The number of units bounds a similarity from above and, minus `slack` and the rounding of sums, from below. Each
// region has a list of the regions nearest by units, and a bound on all regions outside the list. If more than one
// candidate for the nearest region is left, exact similarities from histograms decide, so that no bit of a result
// depends on the table. A candidate is skipped if its upper bound is below an exact similarity already computed.
#pragma once

#include "runtime/lanes.h"
#include "linkage/pair_sums.h"
#include "linkage/rounds.h"
#include "linkage/units.h"

namespace gpuens {

namespace tabled {

constexpr i64 LAID = 1 << 22;  // largest number of counts in dense histograms
constexpr f32 LEAST = 1.17549435e-38f;  // the smallest normal number

using Flags = std::vector<char>;  // flags that several threads set; chars, because bits would share bytes

// Lists, per place, of the places of the nearest regions with upper bounds on the similarities, and an upper bound for
// all other regions.
struct NearLists {
    i64 n_listed;
    std::vector<i32> near;   // (n, n_listed), -1 for none
    std::vector<f64> reach;  // (n, n_listed)
    std::vector<f64> bound;  // (n,)

    NearLists(i64 n, i64 n_listed_)
        : n_listed(n_listed_), near(n * n_listed, -1), reach(n * n_listed), bound(n, __builtin_inf()) {}
};

// The list of one region while all others are searched: one entry more than is kept, whose bound is that of all others.
class NewList {
public:
    explicit NewList(i64 n_listed_) : n_listed(n_listed_), near(n_listed + 1), reach(n_listed + 1) {}

    void begin() { listed = 0; }
    bool full() const { return listed > n_listed; }
    f32 last() const { return reach[n_listed]; }

    void take(i64 q, f32 upper) {
        if (!full())
            ++listed;
        else if (upper <= last())
            return;
        i64 s = listed - 1;
        for (; s > 0 && reach[s - 1] < upper; --s) {
            near[s] = near[s - 1];
            reach[s] = reach[s - 1];
        }
        near[s] = (i32)q;
        reach[s] = upper;
    }

    void write(i64 p, NearLists& lists) const {
        lists.bound[p] = full() ? last() : 0.0;
        for (i64 s = 0; s < n_listed; ++s) {
            lists.near[p * n_listed + s] = s < listed ? near[s] : -1;
            lists.reach[p * n_listed + s] = reach[s];
        }
    }

private:
    i64 n_listed, listed = 0;
    std::vector<i32> near;
    std::vector<f32> reach;
};

// Dense histograms of long unions, which are near many regions.
class LongUnions {
public:
    LongUnions(i64 n, i64 n_clusters_) : n_clusters(n_clusters_), at(n, -1), counts(std::min(n, LAID / n_clusters)) {
        for (i64 row = (i64)counts.size() - 1; row >= 0; --row) free.push_back(row);
    }

    // The dense histogram of the region at place p, null if it has none.
    const i32* operator[](i64 p) const { return at[p] < 0 ? nullptr : counts[at[p]].data(); }

    // Region a at place p has taken in the region at place q: write its dense histogram, if it has more than
    // `lower_bound` entries and there is room.
    void unite(i64 p, i64 q, const Histograms& of, i64 a, i64 smallest_length) {
        if (at[q] >= 0 && at[p] < 0) {
            at[p] = at[q];
        } else if (at[q] >= 0) {
            std::fill(counts[at[q]].begin(), counts[at[q]].end(), (i32)0);
            free.push_back(at[q]);
        }
        at[q] = -1;
        if (at[p] < 0 && !free.empty() && of.length[a] > smallest_length) {
            at[p] = free.back();
            free.pop_back();
        }
        if (at[p] < 0) return;
        auto& histogram = counts[at[p]];
        histogram.resize(n_clusters);
        for (i64 e = of.start[a]; e < of.start[a] + of.length[a]; ++e) histogram[of.clusters[e]] = of.counts[e];
    }

private:
    i64 n_clusters;
    std::vector<i64> at;    // the histogram of the region at each place, -1 for none
    std::vector<i64> free;  // unused histograms, all zeros
    std::vector<std::vector<i32>> counts;
};

// The data that all threads read while regions are searched.
template <typename Weight>
struct Table {
    PairSums sums;
    Similarities<Weight> exact;
    LongUnions longest;
    std::vector<i64> place, ids;  // the place of each region, and the region at each place
    f64 unit;                     // the least number of units of a similarity of 1
    i64 n_clusters;
};

// Choice of the nearest region by exact similarities, computed only where bounds leave several candidates.
template <typename Weight>
class Chooser {
public:
    explicit Chooser(const Table<Weight>& table_) : table(table_), query_dense(0) {}

    // Begin with region a, whose nearest region has a similarity of at least so many units.
    void begin(i64 a_, f64 least_) {
        a = a_;
        lower_bound = least_;
        nearest_region = RETIRED;
        best = 0.0;
        best_tie = NO_HASH;
    }

    void offer(i64 r, f64 upper) {
        if (upper < lower_bound) return;
        f64 similarity = similarity_with(r);
        u64 tie = pair_hash(a, r);
        if (!comes_before(similarity, tie, best, best_tie)) return;
        nearest_region = r;
        best = similarity;
        best_tie = tie;
        lower_bound = std::max(lower_bound, similarity * table.unit);
    }

    i64 end() {
        if (laid) query_dense.clear(table.exact.of, a);
        laid = false;
        return nearest_region;
    }

private:
    // The exact similarity, with equal bits whichever histogram is dense.
    f64 similarity_with(i64 r) {
        const auto& of = table.exact.of;
        const i32* dense = table.longest[table.place[r]];
        if (dense && of.length[a] <= of.length[r])
            return table.exact.mean(shared_with(of, a, dense, table.exact.weights), a, r);
        if (!laid) {
            if (!query_dense) query_dense = DenseHistogram(table.n_clusters);
            query_dense.lay(of, a);
            laid = true;
        }
        return table.exact.with(query_dense, a, r);
    }

    const Table<Weight>& table;
    DenseHistogram query_dense;
    bool laid = false;
    i64 a = -1, nearest_region = RETIRED;
    f64 lower_bound = 0.0, best = 0.0;
    u64 best_tie = NO_HASH;
};

// The nearest region of region a if its list decides it, else UNKNOWN.
template <typename Weight>
i64 decide(i64 a, const Table<Weight>& table, const NearLists& lists, Chooser<Weight>& chooser) {
    i64 p = table.place[a], n = 0;
    const i32* near = &lists.near[p * lists.n_listed];
    const f64* reach = &lists.reach[p * lists.n_listed];
    f64 lower_bound = -__builtin_inf();
    for (; n < lists.n_listed && near[n] >= 0; ++n)
        lower_bound = std::max(lower_bound, table.sums.lower(reach[n], p, near[n]));
    if (lists.bound[p] > 0.0 && lists.bound[p] >= lower_bound) return UNKNOWN;
    i64 candidates = 0, nearest = RETIRED;
    for (i64 s = 0; s < n; ++s)
        if (reach[s] >= lower_bound) {
            ++candidates;
            nearest = table.ids[near[s]];
        }
    if (candidates < 2) return nearest;
    chooser.begin(a, lower_bound);
    for (i64 s = 0; s < n; ++s) chooser.offer(table.ids[near[s]], reach[s]);
    return chooser.end();
}

// Searches the nearest of all active regions.
template <typename Weight>
class TableSearch {
public:
    TableSearch(const Table<Weight>& table_, const std::vector<i64>& places_, const PairSums::Columns& columns_,
                NearLists& lists_)
        : table(table_), places(places_), columns(columns_), lists(lists_), chooser(table), list(lists.n_listed),
          uppers(table.sums.n_columns()) {}

    // Rebuild the list of region a; return its nearest region.
    i64 search(i64 a) {
        i64 p = table.place[a];
        table.sums.bound_all(p, table.exact.of.size[a], columns, uppers.data());
        list.begin();
        f32 limit = LEAST;
        for (i64 first = 0; first < uppers.n(); first += FLOAT_LANES)
            each_bit(at_least<FLOAT_LANES>(&uppers[first], limit), [&](i64 lane) {
                list.take(first + lane, uppers[first + lane]);
                if (list.full()) limit = list.last();
            });
        list.write(p, lists);
        i64 nearest = decide(a, table, lists, chooser);
        return nearest == UNKNOWN ? best_of_all(a, p) : nearest;
    }

private:
    // More regions may be the nearest than fit into a list.
    i64 best_of_all(i64 a, i64 p) {
        f64 lower_bound = 0.0;
        for (i64 s = p * lists.n_listed; s < (p + 1) * lists.n_listed && lists.near[s] >= 0; ++s)
            lower_bound = std::max(lower_bound, table.sums.lower(lists.reach[s], p, lists.near[s]));
        chooser.begin(a, lower_bound);
        for (i64 q : places)
            if (uppers[q] > 0.0f) chooser.offer(table.ids[q], uppers[q]);
        i64 nearest = chooser.end();
        return nearest == RETIRED ? UNKNOWN : nearest;
    }

    const Table<Weight>& table;
    const std::vector<i64>& places;
    const PairSums::Columns& columns;
    NearLists& lists;
    Chooser<Weight> chooser;
    NewList list;
    Aligned<f32> uppers;
};

}  // namespace tabled

template <typename Weight>
class PairTable {
public:
    // A table of the regions left, in the order of these; known nearest regions are kept.
    PairTable(State& state_, Regions& regions_, const Members& members, const RowIndex& index,
              const Diagonal<Weight>& by,
              i64 n_listed)
        : state(state_), regions(regions_), merged(state.n_left()),
          units(units_of(state.left(), members, index, regions, by)),
          table{PairSums(units.of_pairs(), units.slack, sizes()), {regions, by.weights.data, by.n_clusterings},
                tabled::LongUnions(state.n_left(), by.n_clusters()), std::vector<i64>(state.into.size(), -1),
                state.left(),
                units.unit, by.n_clusters()},
          lists(state.n_left(), n_listed) {
        for (std::size_t p = 0; p < table.ids.size(); ++p) table.place[table.ids[p]] = (i64)p;
    }

    i64 searches = 0;

    i64 find() {
        const std::vector<i64>& active = state.left();
        tabled::Flags unknown(active.size());
        in_threads((i64)active.size(), LOOK_UP_NS, [&](Ranges& ranges) {
            tabled::Chooser<Weight> chooser(table);
            while (Range range = ranges.next())
                for (i64 i = range.start; i < range.stop; ++i) unknown[i] = look_up(active[i], chooser);
        });
        std::vector<i64> queries;
        for (std::size_t i = 0; i < active.size(); ++i)
            if (unknown[i]) queries.push_back(active[i]);
        if (!queries.empty()) search(queries);
        std::fill(merged.begin(), merged.end(), 0);
        searches += (i64)queries.size();
        return (i64)queries.size();
    }

    const std::vector<i64>& updated_regions() { return state.left(); }

    void settle(Vector<const i64> queries) {
        over_ranges(queries.size, SIMILARITY_NS, [&](i64 begin, i64 end) {
            for (i64 i = begin; i < end; ++i) {
                i64 a = queries[i];
                if (state.nearest[a] >= 0) state.nearest_similarity[a] = table.exact(a, state.nearest[a]);
            }
        });
    }

    void retire(i64 a) { regions.retire(a); }

    void unite() {
        Vector<const i64> kept = state.last_kept(), absorbed = state.last_absorbed();
        regions.unite(kept, absorbed);
        table.exact.of = regions;
        for (i64 i = 0; i < kept.size; ++i) {
            i64 p = table.place[kept[i]], q = table.place[absorbed[i]];
            merged[p] = merged[q] = 1;
            table.longest.unite(p, q, table.exact.of, kept[i], 2 * table.exact.n_clusterings);
        }
        over_ranges(kept.size, COLUMN_NS * (f64)table.sums.n_columns(), [&](i64 begin, i64 end) {
            for (i64 i = begin; i < end; ++i) table.sums.unite(table.place[kept[i]], table.place[absorbed[i]]);
        });
    }

private:
    static constexpr f64 LOOK_UP_NS = 500, COLUMN_NS = .5, SIMILARITY_NS = 500;

    // The numbers of objects of the regions left.
    std::vector<i64> sizes() {
        std::vector<i64> sizes;
        for (i64 a : state.left()) sizes.push_back(Histograms(regions).size[a]);
        return sizes;
    }

    // Update the list of region a by the last round's merges. Returns whether it does not tell the nearest region.
    bool look_up(i64 a, tabled::Chooser<Weight>& chooser) {
        i64 p = table.place[a], n = lists.n_listed, kept = 0;
        i64& nearest = state.nearest[a];
        if (nearest == UNKNOWN || merged[p]) {
            nearest = UNKNOWN;
            return true;
        }
        i32* near = &lists.near[p * n];
        f64* reach = &lists.reach[p * n];
        bool has_merged = merged[table.place[nearest]], changed = false;
        for (i64 s = 0; s < n; ++s) changed |= near[s] >= 0 && merged[near[s]];
        if (!has_merged && !changed) return false;
        for (i64 s = 0; s < n && near[s] >= 0; ++s) {
            i64 q = near[s];
            f64 upper = reach[s];
            if (merged[q]) {
                i64 r = state.into[table.ids[q]];
                q = table.place[r];
                if (std::find(near, near + kept, (i32)q) != near + kept) continue;
                const i64* size = table.exact.of.size;
                upper = table.sums.upper(p, q, size[a], size[r]);
            }
            near[kept] = (i32)q;
            reach[kept++] = upper;
        }
        std::fill(near + kept, near + n, -1);
        if (!has_merged) return false;
        nearest = kept ? tabled::decide(a, table, lists, chooser) : UNKNOWN;
        return nearest == UNKNOWN;
    }

    void search(const std::vector<i64>& queries) {
        std::vector<i64> places;
        for (i64 a : state.left()) places.push_back(table.place[a]);
        PairSums::Columns columns = table.sums.columns_of(places, sizes());
        in_threads((i64)queries.size(), COLUMN_NS * (f64)table.sums.n_columns(), [&](Ranges& ranges) {
            tabled::TableSearch<Weight> search(table, places, columns, lists);
            while (Range range = ranges.next())
                for (i64 i = range.start; i < range.stop; ++i) {
                    look();
                    state.nearest[queries[i]] = search.search(queries[i]);
                }
        });
    }

    State& state;
    Regions& regions;
    tabled::Flags merged;  // places whose region has merged since lists were updated
    Units units;
    tabled::Table<Weight> table;
    tabled::NearLists lists;
};

}  // namespace gpuens

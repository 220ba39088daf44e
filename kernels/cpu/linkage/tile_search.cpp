#include "linkage/tile_search.h"

#include <atomic>
#include <cmath>
#include <memory>
#include <numeric>

namespace gpuens {

namespace {

constexpr f64 LOWERED = 1.0 - 1e-9;  // factor that keeps a rounded limit at or below the scores that tie with it
constexpr f64 QUERY_NS = 20'000;

// The first small region of each tile, and the end; a tile of several regions has at most `most_rows` rows.
std::vector<i64> first_regions(const std::vector<i64>& ends, i64 most_rows) {
    std::vector<i64> bounds{0};
    i64 begin = 0;
    for (i64 i = 0; i < (i64)ends.size(); ++i)
        if (ends[i] - begin > most_rows && i > bounds.back()) {
            bounds.push_back(i);
            begin = ends[i - 1];
        }
    if (!ends.empty()) bounds.push_back((i64)ends.size());
    return bounds;
}

std::vector<i64> bounds_of(const RowsOfRegions& rows, i64 n_clusters, TileSizes sizes) {
    i64 most_rows = sizes.rows / 2 * sizes.most_ceilings;
    i64 times = std::max((i64)1, (rows.n_rows() * n_clusters + most_rows - 1) / most_rows);
    return first_regions(rows.ends, sizes.rows * times);
}

// A large region is a tile of its own; the last group of tiles is padded with empty tiles.
Ceilings ceilings_of(const std::vector<i64>& small, const std::vector<i64>& large, std::vector<i64> bounds,
                     const Regions& regions, i64 n_clusters) {
    std::vector<i64> all_regions(small);
    for (i64 r : large) {
        all_regions.push_back(r);
        bounds.push_back((i64)all_regions.size());
    }
    while ((bounds.size() - 1) % FLOAT_LANES) bounds.push_back(bounds.back());
    return Ceilings(regions, {all_regions.data(), (i64)all_regions.size()}, {bounds.data(), (i64)bounds.size()},
                    n_clusters);
}

Ceilings over_groups_of(const Ceilings& ceilings, i64 n_clusters) {
    Ceilings over(n_clusters, ceilings.n_tiles / FLOAT_LANES);
    over_ranges(n_clusters, (f64)ceilings.n_tiles, [&](i64 begin, i64 end) {
        for (i64 c = begin; c < end; ++c)
            for (i64 g = 0; g < over.n_tiles; ++g)
                over[c][g] = *std::max_element(ceilings[c] + g * FLOAT_LANES, ceilings[c] + (g + 1) * FLOAT_LANES);
    });
    return over;
}

TileLabels labels_of(const RowsOfRegions& rows, const std::vector<i64>& rows_to, const std::vector<i64>& blocks,
                     const RowIndex& index) {
    return std::visit([&]<typename Code>(Matrix<const Code> of) {
        i64 n_clusterings = of.columns;
        Aligned<Code> labels(blocks.back() * n_clusterings * LANES);
        over_ranges((i64)rows_to.size() - 1, (f64)(LANES * n_clusterings), [&](i64 begin, i64 end) {
            for (i64 t = begin; t < end; ++t)
                for (i64 p = rows_to[t]; p < rows_to[t + 1]; ++p) {
                    i64 i = p - rows_to[t];
                    const Code* row = of[rows.places[p]];
                    Code* to = labels.data() + (blocks[t] + i / LANES) * n_clusterings * LANES + i % LANES;
                    for (i64 m = 0; m < n_clusterings; ++m) to[m * LANES] = row[m];
                }
        });
        return TileLabels(std::move(labels));
    }, index.rows);
}

// The entries of a region, as the labels of tiles are compared with them.
struct Entry {
    i64 clustering, label;
    u16 units;  // units of an object with that label, rounded up
};

template <typename Code>
void add_units(const Code* labels, i64 n_clusterings, i64 n_blocks, const std::vector<Entry>& entries, u16* sums) {
    for (i64 block = 0; block < n_blocks; ++block, labels += n_clusterings * LANES) {
        Lanes<u16, LANES> total = {};
        for (const Entry& entry : entries)
            total.plus_where(labels + entry.clustering * LANES, (Code)entry.label, entry.units);
        total.store(sums + block * LANES);
    }
}

template <typename Weight>
class TileSearch {
public:
    TileSearch(const RegionTiles& tiles_, const State& state_, const RowIndex& index_, const Longest& large_,
               const Histograms& of_, const Diagonal<Weight>& by_, const Shortlists& lists, Marks& marks_)
        : tiles(tiles_), state(state_), offsets(index_.offsets), large(large_), of(of_), by(by_),
          exact{of, by.weights.data, by.n_clusterings}, dense(by.n_clusters()), list(lists), best(lists.n_listed()),
          met(marks_), of_groups(tiles.n_groups()), reached(new bool[tiles.n_groups()]),
          reach(tiles.n_groups() * FLOAT_LANES), worth(by.n_clusters()) {
        i64 most_blocks = 0;
        for (i64 t = 0; t < tiles.n_tiles(); ++t)
            most_blocks = std::max(most_blocks, tiles.blocks[t + 1] - tiles.blocks[t]);
        sums = Aligned<u16>(most_blocks * LANES);
        candidates.reserve(CANDIDATES);
    }

    // Rebuild the list of a region; return the number of comparisons.
    i64 rebuild(i64 region) {
        a = region;
        n_entries = of.length[a];
        compared = 0;
        prepare();
        f32 low = (f32)0.75 * reach_tiles(of.clusters + of.start[a], worth.data(), n_entries, tiles.over_groups,
                                              of_groups.data());
        compared += n_entries * tiles.n_groups();
        std::fill(reached.get(), reached.get() + tiles.n_groups(), false);
        for (bool is_open = true; is_open; low *= (f32)0.75) {
            visit_band(low);
            is_open = low > limit_of_list();
        }
        list_candidates(kth_best * to_score);
        dense.clear(of, a);
        list.end();
        return compared;
    }

private:
    void prepare() {
        kth_best = list.begin(a);
        candidates.clear();
        best.forget();
        met.begin(a);
        dense.lay(of, a);
        all_exact = are_exact(of.size[a], by.n_clusterings, by.unit_weights());
        scale = write_entries();
        to_score = (f64)by.n_clusterings * scale * LOWERED;
        to_reach = (f64)by.n_clusterings * by.unit * lowered_by_rounding(n_entries);
        set_floor();
        be_worth(of, a, by, worth.data());
    }

    // The smallest sum of units at which a row is a candidate.
    void set_floor() { floor = (u16)std::max(1.0, std::min(kth_best * to_score, (f64)UNITS)); }

    // The smallest reach of a tile whose regions can enter the list.
    f32 limit_of_list() const { return std::max(SMALLEST, (f32)(kth_best * to_reach)); }

    // Cases that a search skips, because K regions surely have a similarity of at least `kth_best`:
    // case 1: a group of tiles whose reach is below the limit. In this band, the most promising one, other groups come
    //         first, whose regions may raise `kth_best`; for ever, once the bands are below the limit of the list;
    // case 2: a tile whose reach is below the limit, in the same two senses;
    // case 3: a row with fewer units than the floor: no region is more similar than its most similar row;
    // case 4: a region whose rows have fewer units than `kth_best` in the mean: their sums are upper bounds;
    // case 5: a candidate whose upper bound is below the `kth_best` of the end.
    void visit_band(f32 low) {
        f32 limit = std::max(low, limit_of_list());
        for (i64 g = 0; g < tiles.n_groups(); ++g) {
            if (of_groups[g] < limit) continue;  // case 1
            if (!reached[g]) reach_group(g);
            f32* tile_reach = &reach[g * FLOAT_LANES];
            each_bit(at_least<FLOAT_LANES>(tile_reach, limit), [&](i64 i) {  // case 2
                if (tile_reach[i] < limit) return;  // case 2, as the limit has risen meanwhile
                tile_reach[i] = -1;                 // a tile is visited only once
                visit(g * FLOAT_LANES + i);
                if (prove()) limit = std::max(low, limit_of_list());
            });
        }
    }

    // Bounds of the tiles of a group.
    void reach_group(i64 g) {
        reached[g] = true;
        compared += n_entries * FLOAT_LANES;
        Lanes<f32, FLOAT_LANES> even = {}, odd = {};  // two sums, so that consecutive additions are independent
        const i32* clusters = of.clusters + of.start[a];
        i64 at = g * FLOAT_LANES, i = 0;
        for (; i + 1 < n_entries; i += 2) {
            even.plus_bytes(tiles.ceilings[clusters[i]] + at, worth[i]);
            odd.plus_bytes(tiles.ceilings[clusters[i + 1]] + at, worth[i + 1]);
        }
        if (i < n_entries) even.plus_bytes(tiles.ceilings[clusters[i]] + at, worth[i]);
        even.plus(odd);
        even.store(&reach[at]);
    }

    void visit(i64 t) {
        if (t >= tiles.n_tiles()) return visit_large(state.now(tiles.large[t - tiles.n_tiles()]));
        compared += n_entries * (tiles.rows_to[t + 1] - tiles.rows_to[t]);
        std::visit([&](const auto& labels) {
            add_units(labels.data() + tiles.blocks[t] * by.n_clusterings * LANES, by.n_clusterings,
                      tiles.blocks[t + 1] - tiles.blocks[t], entries, sums.data());
        }, tiles.labels);
        f64 enough = kth_best * to_score * LOWERED;  // units an object
        i64 at = tiles.rows_to[t], n_rows = tiles.rows_to[t + 1] - at;
        u16 floor_here = floor;
        for (i64 first = 0; first < n_rows; first += LANES) {
            u64 hits = at_least<LANES>(&sums[first], floor_here);  // case 3
            if (n_rows - first < LANES) hits &= (1ull << (n_rows - first)) - 1;
            each_bit(hits, [&](i64 i) { look_at(tiles.part_of[at + first + i], at, enough); });
        }
    }

    void visit_large(i64 r) {
        if (met.has(r)) return;
        met.add(r);
        f64 similarity = similarity_with(r);
        best.take((u32)(similarity * to_score));
        list.add_similar(r, similarity);
    }

    // A part is near if at least one of its rows reaches the floor and the mean of its rows is enough. If its region
    // has grown since the tiles were built, the similarity is computed immediately, from its histogram.
    void look_at(i64 part, i64 at, f64 enough) {
        i64 r = state.now(tiles.rows.regions[part]), size = tiles.part_sizes[part];
        if (met.has(r)) return;
        f64 total = total_units(part, at);
        if (total < enough * (f64)size) return;  // case 4
        met.add(r);
        bool grown = size != of.size[r];
        if (grown || all_exact) {
            f64 similarity = grown ? similarity_with(r) : exact.mean((Weight)(i64)total, a, r);
            // if sums are exact, all near regions are listed, and the list's last entry gives a better floor
            if (!all_exact) best.take((u32)(similarity * to_score));
            list.add_similar(r, similarity);
            return;
        }
        u32 score = (u32)(total / (f64)size + 1.0);
        candidates.push_back({r, score});
        if (score > best.last()) best.take(score);
        if ((i64)candidates.size() == CANDIDATES) list_candidates(enough);
    }

    f64 total_units(i64 part, i64 at) const {
        f64 total = 0.0;
        for (i64 p = tiles.rows.begin(part); p < tiles.rows.ends[part]; ++p)
            total += (f64)tiles.rows.sizes[p] * (f64)sums[p - at];
        return total;
    }

    // Raise `kth_best` to the similarity that K regions surely reach, where K is the length of the list; return whether
    // it has risen.
    bool prove() {
        f64 rounding = (f64)(by.n_clusterings + 2);  // largest excess of a score, in units
        f64 proven = ((f64)best.last() - rounding) / ((f64)by.n_clusterings * scale) * LOWERED;
        if (list.full()) proven = std::max(proven, list.last());
        if (proven <= kth_best) return false;
        kth_best = proven;
        set_floor();
        return true;
    }

    // Insert the candidates with at least `enough` units.
    void list_candidates(f64 enough) {
        for (const Candidate& candidate : candidates)
            // the remaining candidates: case 5
            if ((f64)candidate.score >= enough) list.add_similar(candidate.region, similarity_with(candidate.region));
        candidates.clear();
    }

    f64 similarity_with(i64 r) const {
        const i32* laid = large[r];
        return laid ? exact.of_laid(dense, a, laid, r) : exact.with(dense, a, r);
    }

    // Write the entries of the region. Return the number of units in a similarity of 1 / M: as large as possible, but
    // any row's sum must fit 16 bits. If sums are exact, an object has one unit, so that the number is the size of the
    // region.
    f64 write_entries() {
        i64 begin = of.start[a], m = 0;
        f64 per_object = 1.0 / (f64)of.size[a], most = 0.0, highest = 0.0;
        entries.resize(n_entries);
        for (i64 i = 0; i < n_entries; ++i) {
            i64 cluster = of.clusters[begin + i];
            for (; cluster >= offsets[m + 1]; ++m) {
                most += highest;
                highest = 0.0;
            }
            entries[i] = {m, cluster - offsets[m], (u16)of.counts[begin + i]};
            highest = std::max(highest, share_of(begin + i, per_object));
        }
        most += highest;
        if (all_exact) return (f64)of.size[a];
        f64 scale_of_region = most > 0.0 ? (f64)(UNITS - offsets.size) / most * LOWERED : 1.0;
        for (i64 i = 0; i < n_entries; ++i)
            entries[i].units = (u16)std::ceil(share_of(begin + i, per_object) * scale_of_region);
        return scale_of_region;
    }

    f64 share_of(i64 e, f64 per_object) const {
        return (f64)by.weights[of.clusters[e]] * ((f64)of.counts[e] * per_object);
    }

    struct Candidate {
        i64 region;
        u32 score;
    };

    const RegionTiles& tiles;
    const State& state;
    Vector<const i64> offsets;
    const Longest& large;
    Histograms of;
    Diagonal<Weight> by;
    Similarities<Weight> exact;

    i64 a = -1, n_entries = 0, compared = 0;
    f64 scale = 1, to_score = 0, to_reach = 0;  // units in 1 / M; from a similarity to a score, and to a reach
    f64 kth_best = 0;                           // lower bound of the K-th best similarity
    u16 floor = 0;
    bool all_exact = false;
    DenseHistogram dense;
    Shortlist list;
    BestScores<u32> best;
    std::vector<Candidate> candidates;  // regions whose scores are upper bounds
    std::vector<Entry> entries;
    Marks& met;
    std::vector<f32> of_groups;
    std::unique_ptr<bool[]> reached;
    Aligned<f32> reach;  // (groups, 16)
    std::vector<f32> worth;
    Aligned<u16> sums;
};

std::vector<i64> now(const std::vector<i64>& regions, const State& state) {
    std::vector<i64> present;
    for (i64 r : regions) present.push_back(state.now(r));
    std::sort(present.begin(), present.end());
    present.erase(std::unique(present.begin(), present.end()), present.end());
    return present;
}

}  // namespace

RegionTiles::RegionTiles(Vector<const i64> active, const Members& members, const RowIndex& index,
                         const Regions& regions, const AnyDiagonal& diagonal, TileSizes sizes)
    : RegionTiles(Apart(active, members, std::visit([](const auto& by) { return by.n_clusters(); }, diagonal)), active,
                  members, index, regions, std::visit([](const auto& by) { return by.n_clusters(); }, diagonal),
                  sizes) {}

RegionTiles::RegionTiles(Apart apart, Vector<const i64> active, const Members& members, const RowIndex& index,
                         const Regions& regions, i64 n_clusters, TileSizes sizes)
    : n_parts(active.size), rows(std::move(apart.small), members, index), large(std::move(apart.large)),
      n_clusterings(index.n_clusterings()), ceilings(0, 0), over_groups(0, 0) {
    std::vector<i64> bounds = bounds_of(rows, n_clusters, sizes);
    blocks.push_back(0);
    for (i64 i : bounds) {
        rows_to.push_back(rows.begin(i));
        if (rows_to.size() > 1)
            blocks.push_back(blocks.back() + (rows_to.back() - rows_to[rows_to.size() - 2] + LANES - 1) / LANES);
    }
    for (i64 i = 0; i < rows.n_regions(); ++i) {
        part_sizes.push_back(Histograms(regions).size[rows.regions[i]]);
        part_of.insert(part_of.end(), rows.ends[i] - rows.begin(i), i);
    }
    labels = labels_of(rows, rows_to, blocks, index);
    ceilings = ceilings_of(rows.regions, large, std::move(bounds), regions, n_clusters);
    over_groups = over_groups_of(ceilings, n_clusters);
}

std::unique_ptr<Marks> TileMemory::take() {
    std::lock_guard lock(mutex);
    if (unused.empty()) return std::make_unique<Marks>(n_regions);
    std::unique_ptr<Marks> marks = std::move(unused.back());
    unused.pop_back();
    return marks;
}

void TileMemory::give_back(std::unique_ptr<Marks> marks) {
    std::lock_guard lock(mutex);
    unused.push_back(std::move(marks));
}

i64 search_tiles(const RegionTiles& tiles, Vector<const i64> queries, const State& state, const RowIndex& index,
                 const Regions& regions, const AnyDiagonal& diagonal, const Shortlists& lists, TileMemory& memory) {
    memory.large.lay(regions, now(tiles.large, state));
    return std::visit([&]<typename Weight>(const Diagonal<Weight>& by) {
        std::atomic<i64> compared{0};
        in_threads(queries.size, QUERY_NS, [&](Ranges& ranges) {
            std::unique_ptr<Marks> marks = memory.take();
            TileSearch<Weight> search(tiles, state, index, memory.large, regions, by, lists, *marks);
            while (Range range = ranges.next())
                for (i64 i = range.start; i < range.stop; ++i) {
                    look();
                    compared += search.rebuild(queries[i]);
                }
            memory.give_back(std::move(marks));
        });
        return compared.load();
    }, diagonal);
}

}  // namespace gpuens

#include "linkage/searches.h"

#include "linkage/row_search.h"

namespace gpuens {

namespace {

constexpr f64 LAYING = 40.0;   // layout of one label in tiles
constexpr f64 ROW = 12.0;      // comparison of a label of a row with 64 queries
constexpr f64 LARGE = 3.0;     // comparison of an entry of a region of many rows with a query, in a search by rows
constexpr i64 MOST = 1 << 12;  // clusterings of a search by tiles; with more, 16-bit sums would be too coarse
constexpr f64 NEVER = __builtin_inf();

i64 n_clusters_of(const AnyDiagonal& diagonal) {
    return std::visit([](const auto& by) { return by.n_clusters(); }, diagonal);
}

}  // namespace

Searches::Searches(const RowIndex& index_, const AnyDiagonal& diagonal_, const Shortlists& lists_, f64 left_, TileSizes sizes_,
                   std::optional<Kind> only_)
    : index(index_), diagonal(diagonal_), lists(lists_), left(left_), sizes(sizes_), only(only_),
      memory(lists.ids.rows, n_clusters_of(diagonal)) {}

i64 Searches::search(Vector<const i64> queries, State& state, const Regions& regions, const Members& members) {
    const std::vector<i64>& active = state.left();
    Costs costs = this->costs(queries, active, Histograms(regions).length, members);
    if (pays(costs, active, members)) {
        tiles.reset();
        tiles.emplace(span(active), members, index, regions, diagonal, sizes);
        missed = costs.tiles = 0.0;
    }
    if (tiles && costs.tiles <= costs.rows) {
        i64 compared = search_tiles(*tiles, queries, state, index, regions, diagonal, lists, memory);
        f64 n_entries = (f64)entries_of(Histograms(regions).length, queries) * (f64)tiles->rows.n_rows();
        left = std::min(1.0, (f64)compared / std::max(1.0, n_entries));
        return compared;
    }
    return search_rows(queries, span(active), members, index, regions, diagonal, lists);
}

Searches::Costs Searches::costs(Vector<const i64> queries, const std::vector<i64>& active, const i64* length,
                                const Members& members) const {
    if (only == Kind::ROWS || index.n_clusterings() > MOST) return {NEVER, 0.0};
    if (only == Kind::TILES) return {0.0, NEVER};
    f64 n_entries = (f64)entries_of(length, queries), n_blocks = (f64)((queries.size + LANES - 1) / LANES);
    if (tiles) {  // exact costs are not needed if tiles are cheaper even when all regions have one row
        f64 by_tiles = left * n_entries * (f64)tiles->rows.n_rows();
        f64 by_rows = n_blocks * ROW * (f64)((i64)active.size() * index.n_clusterings());
        if (by_tiles <= by_rows) return {by_tiles, by_rows};
    }
    i64 n_few = 0, of_many = 0;
    for (i64 a : active)
        if (members.n_rows[a] <= LANES)
            n_few += members.n_rows[a];
        else
            of_many += length[a];
    f64 n_rows = (f64)(tiles ? tiles->rows.n_rows() : n_few), n_labels = (f64)(n_few * index.n_clusterings());
    return {left * n_entries * n_rows, n_blocks * ROW * n_labels + (f64)queries.size * LARGE * (f64)of_many};
}

// Add the savings that new tiles would have given; return whether the sum, since tiles were last built, reaches the cost of
// building tiles.
bool Searches::pays(const Costs& costs, const std::vector<i64>& active, const Members& members) {
    f64 anew = costs.tiles, without = costs.rows, n_rows = 0.0;
    if (!tiles) {
        for (i64 a : active) n_rows += (f64)members.n_rows[a];
    } else {
        f64 share = (f64)active.size() / (f64)tiles->n_parts;
        n_rows = share * (f64)tiles->rows.n_rows();
        without = std::min(anew, without);
        anew *= share;
    }
    missed += std::max(0.0, without - anew);
    return anew < without && missed > LAYING * n_rows * (f64)index.n_clusterings();
}

}  // namespace gpuens

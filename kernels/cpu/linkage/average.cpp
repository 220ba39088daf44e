#include "linkage/average.h"

#include "linkage/all_pairs.h"
#include "linkage/diagonal.h"
#include "linkage/pair_matrix.h"
#include "linkage/pair_table.h"

namespace gpuens {

namespace {

void sort(const State& state, const Merges& sorted) {
    sort_merges(span(state.kept), span(state.absorbed), span(state.similarities), sorted);
}

std::vector<i64> first_numbers(i64 n) {
    std::vector<i64> numbers(n);
    std::iota(numbers.begin(), numbers.end(), (i64)0);
    return numbers;
}

template <typename Weight>
Effort link(const LabelRows& rows, const RowIndex& index, const AnyDiagonal& any, const Shortlists& lists,
            const Conduct& conduct, const Links& links, const Merges& sorted, const Report& report) {
    const auto& by = std::get<Diagonal<Weight>>(any);
    State state(index.place);
    CannotLinks cannot(links);
    MustLinks must(links.group);
    Regions regions(rows.columns, rows.offsets, rows.counts);
    DiagonalScorer<Weight> scorer(index, regions, by, any, lists, conduct);
    i64 searches = 0, comparisons = 0;
    if (lists.n_listed()) {
        Listed listed(state, regions, scorer, cannot, lists, conduct.n_nodes, true);
        merge_in_rounds(state, listed, report, [&] { return must.next_pairs(); });
        searches = listed.searches;
        comparisons = listed.comparisons;
    }
    if (state.n_left()) {
        PairTable<Weight> table(state, regions, scorer.members, index, by, conduct.table.n_listed);
        merge_in_rounds(state, table, report);
        searches += table.searches;
        comparisons += index.place.size * index.place.size / 2 * by.n_clusterings;
    }
    if (links.first.size) join_retired(state, cannot);
    sort(state, sorted);
    return {state.rounds, searches, comparisons};
}

// Rounds that begin with an uncounted search for all rows. scorer_of(regions, lists): the similarity.
template <typename ScorerOf>
Effort link_all_pairs(const LabelRows& rows, i64 n_listed, const Merges& sorted, const Report& report,
                      ScorerOf&& scorer_of) {
    i64 n = rows.counts.size;
    State state(span(first_numbers(n)));
    Regions regions(rows.columns, rows.offsets, rows.counts);
    OwnShortlists memory(n, n_listed);
    Shortlists lists = memory;
    auto scorer = scorer_of(regions, lists);
    CannotLinks cannot;
    Listed listed(state, regions, scorer, cannot, lists, 2 * n, false);
    merge_in_rounds(state, listed, report);
    sort(state, sorted);
    return {state.rounds, listed.searches - n, listed.comparisons};
}

template <typename Similarity>
Effort link_by_matrix(State& state, matrices::Sums& sums, std::vector<i64>& size, Similarity similarity, i64 n_clusters,
                      const Merges& sorted) {
    i64 n = (i64)size.size();
    PairMatrix nearest(state, sums, size, similarity, 16 * (n_clusters + n + 8));
    merge_in_rounds(state, nearest, [](i64) {});
    sort(state, sorted);
    return {state.rounds, nearest.searches - n, 0};
}

}  // namespace

Effort link_few(LabelRows rows, Vector<const f64> weights, bool exact, const Merges& sorted) {
    i64 n_clusterings = rows.offsets.size - 1, n = rows.counts.size;
    State state(span(first_numbers(n)));
    std::vector<i64> size(rows.counts.begin(), rows.counts.end());
    matrices::Sums sums(n);
    std::visit([&](auto codes) { sums.add_labels(codes, rows.offsets, weights, rows.counts); }, rows.columns);
    if (exact) return link_by_matrix(state, sums, size, OfWholeSums{size, n_clusterings}, weights.size, sorted);
    Regions regions(rows.columns, rows.offsets, rows.counts);
    return link_by_matrix(state, sums, size, OfHistograms{regions, weights, n_clusterings}, weights.size, sorted);
}

Effort link_diagonal(Codes<Matrix> columns, RowIndex index, AnyDiagonal diagonal, Shortlists lists, Conduct conduct,
                     const Merges& sorted, const Report& report) {
    return link_constrained(columns, index, diagonal, lists, conduct, Links{}, sorted, report);
}

Effort link_constrained(Codes<Matrix> columns, RowIndex index, AnyDiagonal diagonal, Shortlists lists, Conduct conduct,
                        Links links, const Merges& sorted, const Report& report) {
    LabelRows rows{columns, index.offsets, index.sizes};
    return std::visit([&]<typename Weight>(const Diagonal<Weight>&) {
        return link<Weight>(rows, index, diagonal, lists, conduct, links, sorted, report);
    }, diagonal);
}

Effort link_general(LabelRows rows, Matrix<f64> affinities, f64 margin, i64 n_listed, const Merges& sorted,
                    const Report& searched, const Report& report) {
    return link_all_pairs(rows, n_listed, sorted, report, [&](const Regions& regions, const Shortlists& lists) {
        return GeneralScorer(regions, affinities, rows.offsets.size - 1, margin, lists, searched);
    });
}

Effort link_observed(LabelRows rows, Numbers<Matrix> weights, Vector<const f32> bounding, i64 n_listed,
                     const Merges& sorted,
                     const Report& searched, const Report& report) {
    return std::visit([&]<typename Weight>(Matrix<const Weight> weight_pair) {
        return link_all_pairs(rows, n_listed, sorted, report, [&](const Regions& regions, const Shortlists& lists) {
            return ObservedScorer<Weight>(regions, weight_pair, bounding, (rows.offsets.size - 1) / 2, lists, searched);
        });
    }, weights);
}

}  // namespace gpuens

// Searches over all pairs of regions, for two similarities whose bounds would exclude too few tiles.
//
// Any symmetric S. The average similarity of regions A and R is p_A' S p_R. Every region keeps its affinities V_R = M S n_R, which
// add up when regions merge; the similarity is sum_c n_A[c] V_R[c] / (|A| |R| M), one look-up for each entry of A, the region
// with fewer entries.
//
// Observed clusterings. The similarity is sum_c w_c n_A[c] n_R[c] / sum_m lambda_m p_A[m] p_R[m], where p_A[m] counts the objects of A
// that clustering m labels; 0 if no clustering labels both objects of any pair. That with a union is the mediant of those with its
// parts and lies between them, so that average linkage stays reducible. A clustering more for each has one cluster, of all
// objects that it labels: a histogram holds n_A and then p_A, and histograms merge as for other similarities.
//
// A region is read once for up to 64 queries: the float32 tables of the queries lie side by side, so that an entry of a region is
// used in up to four vectors. If a region may come before the last entry of a query's list, its similarity is computed again,
// exactly and in a fixed order of summation.
#pragma once

#include "linkage/listed.h"

namespace gpuens {

// Similarities of a region with those of its list, one after the other (ListUpdate).
template <typename Weight>
struct PairScores {
    Histograms of;
    Weighting<Weight> by;

    f64 similarity(i64 a, i64 b) const { return similarity_of(of, by, a, b); }
    void lay(i64) {}
    template <typename Count>
    void lay_if(i64, Count&&) {}
    void clear(i64) {}
    bool quick(i64) const { return false; }
    bool waits(i64, i64) const { return false; }
    template <typename Write>
    void wait(i64, i64, i64, Write&&) {}
    template <typename Write>
    void end(Write&&) {}
};

// The part that both searches share.
class AllPairs {
public:
    static constexpr bool PATIENT = false;
    bool gives_up(const State&, i64) const { return false; }

protected:
    AllPairs(const Shortlists& lists_, const Report& searched_) : lists(lists_), searched(searched_) {}

    // Search for many queries in runs, between which Python hears of the progress of the first search, which is the longest.
    template <typename Search>
    i64 in_runs(Vector<const i64> queries, Search&& search) {
        i64 compared = 0, length = std::max((i64)4096, (queries.size + 99) / 100);
        for (i64 first = 0; first < queries.size; first += length) {
            i64 n = std::min(length, queries.size - first);
            compared += search(Vector<const i64>{queries.data + first, n});
            if (n_searched < lists.ids.rows) call_python(searched, n_searched += n);
        }
        return compared;
    }

    Shortlists lists;

private:
    const Report& searched;
    i64 n_searched = 0;
};

class GeneralScorer : public AllPairs {
public:
    static constexpr bool RATIO = false;

    GeneralScorer(const Regions& regions_, Matrix<f64> affinities_, i64 n_clusterings, f64 margin, const Shortlists& lists_,
                  const Report& searched_);

    Tolerance tolerance;

    f64 similarity(i64 a, i64 b) const { return similarity_of(Histograms(regions), weighting, a, b); }
    auto scores_of_updates(const State&, i64) const {
        return [this] { return PairScores<f64>{regions, weighting}; };
    }
    i64 search(Vector<const i64> queries, State& state);
    void unite(const State& state);

private:
    const Regions& regions;
    Matrix<f64> affinities;  // (G, N_c)
    Weighting<f64> weighting;
};

template <typename Weight>
class ObservedScorer : public AllPairs {
public:
    static constexpr bool RATIO = true;

    // weights (2, N_c + M): those of the numerator, 0 for the last M, and those of the denominator, 0 for the first N_c; bounding
    // (N_c + M,): no smaller in the numerator, no larger in the denominator.
    ObservedScorer(const Regions& regions_, Matrix<const Weight> weights_, Vector<const f32> bounding_, i64 n_clusterings_,
                   const Shortlists& lists_, const Report& searched_);

    Tolerance tolerance;

    f64 similarity(i64 a, i64 b) const { return similarity_of(Histograms(regions), weighting(), a, b); }
    auto scores_of_updates(const State&, i64) const {
        return [this] { return PairScores<Weight>{regions, weighting()}; };
    }
    i64 search(Vector<const i64> queries, State& state);
    void unite(const State&) {}

private:
    Weighting<Weight> weighting() const { return {weights.data, weights.columns, 0}; }

    const Regions& regions;
    Matrix<const Weight> weights;
    Vector<const f32> bounding;
    i64 n_clusterings;
};

}  // namespace gpuens

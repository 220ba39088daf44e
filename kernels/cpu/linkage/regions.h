// Regions (sets of objects) as histograms over clusters: exact similarities, the one arithmetic that all searches end
// with (common/histograms.h).
#pragma once

#include <limits>
#include <memory>
#include <variant>
#include <vector>

#include "runtime/arrays.h"
#include "runtime/records.h"

namespace gpuens {

// The number of entries of some regions.
inline i64 entries_of(const i64* length, Vector<const i64> regions) {
    i64 n = 0;
    for (i64 r : regions) n += length[r];
    return n;
}

// The histograms of growing regions, in an arena of twice the entries of all rows: the unions of a round have at most
// as many entries as the regions before, so that there is always room, once the arena is compacted. The id of a region
// is its smallest row.
class Regions {
public:
    // A region for each row: columns (M, G), offsets (M + 1,), and numbers of objects, sizes (G,).
    Regions(Codes<Matrix> columns, Vector<const i64> offsets, Vector<const i64> sizes);

    operator Histograms() const { return {clusters.get(), counts.get(), start.data(), length.data(), size.data()}; }

    // Write the union of each pair in place of the kept region. Absorbed regions have no entries then.
    void unite(Vector<const i64> kept, Vector<const i64> absorbed);

    // Leave out a region that will never merge.
    void retire(i64 r) { length[r] = 0; }

private:
    void lay_out(Codes<Matrix> columns, Vector<const i64> offsets);
    void compact();
    i64 merge(i64 a, i64 b, i64 begin);

    std::vector<i64> start, length, size;
    std::unique_ptr<i32[]> clusters, counts;
    i64 capacity, used;  // entries of the arena, and those in use
};

// Whole weights are 1 and not read from memory.
template <typename Weight>
Weight weight_of(const Weight* weights, i64 cluster) {
    if constexpr (std::is_same_v<Weight, i64>)
        return 1;
    else
        return weights[cluster];
}

// `total` plus sum_c w_c n_A[c] n_R[c], term after term, from the dense histogram `held` of A and entries of R.
template <typename Weight>
Weight plus_shared(Weight total, const Histograms& of, i64 begin, i64 end, const i32* dense,
                   const Weight* weights) {
    const i32* clusters = of.clusters;
    const i32* counts = of.counts;
    for (i64 e = begin; e < end; ++e)
        total += weight_of(weights, clusters[e]) * (Weight)((i64)dense[clusters[e]] * (i64)counts[e]);
    return total;
}

// sum_c w_c n_A[c] n_R[c] of the dense histogram of A and region r.
template <typename Weight>
Weight shared_with(const Histograms& of, i64 r, const i32* dense, const Weight* weights) {
    return plus_shared((Weight)0, of, of.start[r], of.start[r] + of.length[r], dense, weights);
}

// The dense histogram (N_c,) of one region at a time; zeros in between.
class DenseHistogram {
public:
    explicit DenseHistogram(i64 n_clusters) : counts(n_clusters) {}

    void lay(const Histograms& of, i64 a) {
        for (i64 e = of.start[a]; e < of.start[a] + of.length[a]; ++e) counts[of.clusters[e]] = of.counts[e];
    }
    void clear(const Histograms& of, i64 a) {
        for (i64 e = of.start[a]; e < of.start[a] + of.length[a]; ++e) counts[of.clusters[e]] = 0;
    }
    const i32* data() const { return counts.data(); }
    explicit operator bool() const { return !counts.empty(); }

private:
    std::vector<i32> counts;
};

// Weights of a diagonal S, exact, and for bounds: apart from rounding, a bounding weight is at least `unit` times the
// true one.
template <typename Weight>
struct Diagonal {
    RECORD(Diagonal,
           (Vector<const Weight>, weights),  // (N_c,): all 1 if Weight is an integer
           (Vector<const f32>, bounding),    // (N_c,)
           (f64, unit),
           (i64, n_clusterings));

    i64 n_clusters() const { return weights.size; }
    bool unit_weights() const { return std::is_same_v<Weight, i64>; }

    // The relative rounding error of a similarity.
    f64 slack() const {
        return unit_weights() ? 0.0 : 4.0 * std::numeric_limits<f64>::epsilon() * (f64)(weights.size + 8);
    }
};

using AnyDiagonal = std::variant<Diagonal<i64>, Diagonal<f64>>;

// Exact similarities of regions under a diagonal S.
template <typename Weight>
struct Similarities {
    Histograms of;
    const Weight* weights;
    i64 n_clusterings;

    f64 mean(Weight total, i64 a, i64 b) const { return (f64)total / (f64)(of.size[a] * of.size[b] * n_clusterings); }

    f64 operator()(i64 a, i64 b) const { return similarity_of(of, Weighting<Weight>{weights, 0, n_clusterings}, a, b); }

    // Equal bits by the dense histogram of region a, unless a search in the longer histogram is quicker.
    f64 with(const DenseHistogram& dense, i64 a, i64 b) const {
        if (!dense || of.length[b] > 8 * of.length[a]) return (*this)(a, b);
        return mean(shared_with(of, b, dense.data(), weights), a, b);
    }

    // Equal bits by the dense histograms of both regions, with one look-up per entry of the shorter one.
    f64 of_laid(const DenseHistogram& dense, i64 a, const i32* laid, i64 b) const {
        bool shorter = of.length[a] < of.length[b];
        return mean(shared_with(of, shorter ? a : b, shorter ? laid : dense.data(), weights), a, b);
    }
};

// Dense histograms (n, N_c) of some large regions, which are in many comparisons.
class DenseHistograms {
public:
    DenseHistograms(const Histograms& of, std::vector<i64> some_, i64 n_clusters_)
        : regions(std::move(some_)), n_clusters(n_clusters_), counts(regions.size() * n_clusters_) {
        for (std::size_t i = 0; i < regions.size(); ++i)
            for (i64 e = of.start[regions[i]]; e < of.start[regions[i]] + of.length[regions[i]]; ++e)
                counts[i * n_clusters + of.clusters[e]] = of.counts[e];
    }
    i64 n() const { return (i64)regions.size(); }
    i64 region(i64 i) const { return regions[i]; }
    const i32* operator[](i64 i) const { return counts.data() + i * n_clusters; }

private:
    std::vector<i64> regions;
    i64 n_clusters;
    std::vector<i32> counts;
};

// Dense histograms of some large regions, looked up by region; `lay` exchanges the regions.
class Longest {
public:
    Longest(i64 n_regions, i64 n_clusters_) : n_clusters(n_clusters_), laid({}, {}, n_clusters_), at(n_regions, -1) {}

    void lay(const Histograms& of, std::vector<i64> regions) {
        for (i64 i = 0; i < laid.n(); ++i) at[laid.region(i)] = -1;
        laid = DenseHistograms(of, std::move(regions), n_clusters);
        for (i64 i = 0; i < laid.n(); ++i) at[laid.region(i)] = (i32)i;
    }

    // The dense histogram of region r, null if it has none.
    const i32* operator[](i64 r) const { return at[r] < 0 ? nullptr : laid[at[r]]; }

private:
    i64 n_clusters;
    DenseHistograms laid;
    std::vector<i32> at;
};

}  // namespace gpuens

// k-means in label space: nearest centroids, and sums over clusters (kernels/label_space.cu).
#include "kmeans/primitives.h"
#include "runtime/least.h"
#include "runtime/parallel.h"
#include "labels/primitives.h"

namespace gpuens {

namespace {

// The nearest centroid of a row. Its distances to some centroids stay in registers while its labels are looked up.
template <int WIDE, typename Code>
class Search {
    using Pack = Native<f64, WIDE>;

public:
    Search(Matrix<const Code> codes_, Vector<const i64> offsets_, Matrix<const f64> cost_, Vector<const f64> constant_)
        : codes(codes_), offsets(offsets_), cost(cost_), constant(constant_) {}

    void find(i64 g, i64& label, f64& distance) const {
        Least<WIDE> minimum;
        in_groups(Least<WIDE>::n_vectors(constant.size), [&]<int N>(i64 first) __attribute__((always_inline)) {
            add<N>(g, first, minimum);
        });
        minimum.write(distance, label);
    }

private:
    template <int N>
    [[gnu::always_inline]] inline void add(i64 g, i64 first, Least<WIDE>& minimum) const {
        Pack sums[N];
        i64 begins[N];
#pragma GCC unroll 4
        for (int v = 0; v < N; ++v) {
            begins[v] = Least<WIDE>::begin(first + v, constant.size);
            sums[v] = loaded<Pack>(constant.data + begins[v]);
        }
        for (i64 m = 0; m < codes.rows; ++m) {
            Code label = codes[m][g];
            if (label == MISSING(Code)) continue;
            const f64* costs = cost[offsets[m] + label];
#pragma GCC unroll 4
            for (int v = 0; v < N; ++v) sums[v] += loaded<Pack>(costs + begins[v]);
        }
#pragma GCC unroll 4
        for (int v = 0; v < N; ++v) minimum.add(sums[v], begins[v]);
    }

    Matrix<const Code> codes;
    Vector<const i64> offsets;
    Matrix<const f64> cost;
    Vector<const f64> constant;
};

}  // namespace

void nearest_centroids(Codes<Matrix> codes, Vector<const i64> offsets, Matrix<const f64> cost,
                       Vector<const f64> constant, Vector<i64> labels, Vector<f64> distances) {
    std::visit([&]<typename Code>(Matrix<const Code> of) {
        f64 nanoseconds = (f64)(of.rows * (2 + constant.size / 8));
        by_width(constant.size, [&]<int WIDE>() {
            Search<WIDE, Code> search(of, offsets, cost, constant);
            over_ranges(labels.size, nanoseconds, [&](i64 start, i64 stop) {
                for (i64 g = start; g < stop; ++g) search.find(g, labels[g], distances[g]);
            });
        });
    }, codes);
}

// The cells of one clustering, a row of them for each of its clusters.
template <typename Code>
static void count_labels(const Code* codes, const i64* weights, const i64* labels, i64 n, i64 n_labels, i64* cells) {
    for (i64 g = 0; g < n; ++g)
        if (codes[g] != MISSING(Code)) cells[codes[g] * n_labels + labels[g]] += weights[g];
}

void label_histograms(Codes<Matrix> codes, Vector<const i64> offsets, Vector<const i64> weights,
                      Vector<const i64> labels, Matrix<i64> counted) {
    std::visit([&](auto of) {
        over_ranges(of.rows, (f64)of.columns, [&](i64 start, i64 stop) {
            for (i64 m = start; m < stop; ++m)
                count_labels(of[m], weights.data, labels.data, of.columns, counted.columns, counted[offsets[m]]);
        });
    }, codes);
}

}  // namespace gpuens

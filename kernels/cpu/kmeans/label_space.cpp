// k-means in label space: the nearest centroid of a row, by the costs of its labels (kernels/label_space.cu).
//
// A row's distances to some centroids stay in registers while its labels are looked up.
#include "kmeans/primitives.h"
#include "lanes.h"
#include "parallel.h"

#include <algorithm>
#include <array>
#include <limits>

namespace gpuens {

namespace {

constexpr int AT_ONCE = 4;  // vectors of distances that stay in registers

// Distances of rows to at least WIDE centroids. Where the last vector of distances would end behind the last centroid, it
// begins earlier, and has some distances twice.
template <int WIDE, typename Code>
class Search {
    using Some = Native<f64, WIDE>;
    using Places = Native<i64, WIDE>;

public:
    Search(Matrix<const Code> codes_, Vector<const i64> offsets_, Matrix<const f64> cost_, Vector<const f64> const_)
        : codes(codes_), offsets(offsets_), cost(cost_), constant(const_) {}

    void find(i64 start, i64 stop, i64* labels, f64* distances) const {
        i64 n_vectors = (constant.size + WIDE - 1) / WIDE;
        for (i64 g = start; g < stop; ++g) {
            Nearest nearest;
            i64 v = 0;
            for (; v + AT_ONCE <= n_vectors; v += AT_ONCE) add<AT_ONCE>(g, v, nearest);
            if (i64 left = n_vectors - v; left == 3) add<3>(g, v, nearest);
            else if (left == 2) add<2>(g, v, nearest);
            else if (left == 1) add<1>(g, v, nearest);
            nearest.write(labels[g], distances[g]);
        }
    }

private:
    static Places lanes() {
        Places numbers = {};
        for (int lane = 0; lane < WIDE; ++lane) numbers[lane] = lane;
        return numbers;
    }

    struct Nearest {
        Some distance = Some{} + std::numeric_limits<f64>::infinity();
        Places centroid = lanes();

        // Of equal distances, the first centroid.
        void write(i64& label, f64& least) const {
            std::array<f64, WIDE> distances;
            std::array<i64, WIDE> centroids;
            std::memcpy(distances.data(), &distance, sizeof distance);
            std::memcpy(centroids.data(), &centroid, sizeof centroid);
            for (int half = WIDE / 2; half > 0; half /= 2)
                for (int lane = 0; lane < half; ++lane) {
                    f64 own = distances[lane], other = distances[lane + half];
                    bool take = other < own || (other == own && centroids[lane + half] < centroids[lane]);
                    distances[lane] = take ? other : own;
                    centroids[lane] = take ? centroids[lane + half] : centroids[lane];
                }
            label = centroids[0], least = distances[0];
        }
    };

    i64 begin(i64 vector) const { return std::min(vector * WIDE, constant.size - WIDE); }

    template <int N>
    [[gnu::always_inline]] inline void add(i64 g, i64 first, Nearest& nearest) const {
        Some sums[N];
        i64 begins[N];
#pragma GCC unroll 4
        for (int v = 0; v < N; ++v) {
            begins[v] = begin(first + v);
            sums[v] = loaded<Some>(constant.data + begins[v]);
        }
        for (i64 m = 0; m < codes.rows; ++m) {
            Code label = codes[m][g];
            if (label == MISSING(Code)) continue;
            const f64* costs = cost[offsets[m] + label];
#pragma GCC unroll 4
            for (int v = 0; v < N; ++v) sums[v] += loaded<Some>(costs + begins[v]);
        }
#pragma GCC unroll 4
        for (int v = 0; v < N; ++v) {
            Places nearer = sums[v] < nearest.distance;
            nearest.distance = nearer ? sums[v] : nearest.distance;
            nearest.centroid = nearer ? lanes() + begins[v] : nearest.centroid;
        }
    }

    Matrix<const Code> codes;
    Vector<const i64> offsets;
    Matrix<const f64> cost;
    Vector<const f64> constant;
};

template <int WIDE, typename Code>
void find(Matrix<const Code> codes, Vector<const i64> offsets, Matrix<const f64> cost, Vector<const f64> constant,
          Vector<i64> labels, Vector<f64> distances) {
    Search<WIDE, Code> search(codes, offsets, cost, constant);
    over_ranges(labels.size, (f64)(codes.rows * (2 + constant.size / 8)), [&](i64 start, i64 stop) {
        search.find(start, stop, labels.data, distances.data);
    });
}

}  // namespace

void nearest_centroids(Codes<Matrix> codes, Vector<const i64> offsets, Matrix<const f64> cost,
                       Vector<const f64> constant, Vector<i64> labels, Vector<f64> distances) {
    constexpr int WIDEST = VECTOR_BYTES / sizeof(f64);
    std::visit([&](auto of) {
        if constexpr (WIDEST >= 8)
            if (constant.size >= 8) return find<8>(of, offsets, cost, constant, labels, distances);
        if constexpr (WIDEST >= 4)
            if (constant.size >= 4) return find<4>(of, offsets, cost, constant, labels, distances);
        if (constant.size >= 2) return find<2>(of, offsets, cost, constant, labels, distances);
        find<1>(of, offsets, cost, constant, labels, distances);
    }, codes);
}

}  // namespace gpuens

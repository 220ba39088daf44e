// The graph of objects and landmarks: its edges, and its products (kernels/landmarks.cu).
#include "generate/landmarks.h"

#include "generate/primitives.h"
#include "runtime/parallel.h"

#include <numeric>
#include <vector>

namespace gpuens {

namespace {

constexpr i64 BETWEEN_LOOKS = 256;  // objects

// The points of each list, in their order: those of list b are order[begins[b]] ... order[begins[b + 1] - 1].
struct ByList {
    std::vector<i64> order, begins;

    ByList(Vector<const i64> of, i64 n_lists) : order(of.size), begins(n_lists + 2) {
        for (i64 list : of) ++begins[list + 2];
        std::partial_sum(begins.begin(), begins.end(), begins.begin());
        for (i64 i = 0; i < of.size; ++i) order[begins[of[i] + 1]++] = i;
    }
};

// The landmarks of a list side by side, one feature after the other; beyond them, landmarks far away.
struct TurnedList {
    std::vector<f32> memory;
    Matrix<const f32> fill(Matrix<const f32> landmarks, const i64* listed, i64 n) {
        i64 d = landmarks.columns, lanes = filled_up(n);
        memory.resize(d * lanes);
        for (i64 c = 0; c < lanes; ++c) {
            const f32* landmark = c < n ? landmarks[listed[c]] : nullptr;
            for (i64 j = 0; j < d; ++j) memory[j * lanes + c] = landmark ? landmark[j] : FAR;
        }
        return {memory.data(), d, lanes};
    }
};

// Add the edges of object i to the rows start ... stop - 1 of the products.
template <typename Code>
struct Products {
    Matrix<const Code> ids;
    Matrix<const f32> squares;
    EdgeWeights edges;
    Matrix<f64> products;
    std::vector<f64> weights = std::vector<f64>(ids.columns);

    void add(i64 i, i64 start, i64 stop) {
        const Code* neighbors = ids[i];
        i64 n = ids.columns;
        if (std::none_of(neighbors, neighbors + n, [&](i64 a) { return start <= a && a < stop; })) return;
        f64 largest = edges.write(squares[i], n, weights.data()), total = 0.0;
        for (f64 weight : weights) total += weight;
        for (i64 s = 0; s < n; ++s) {
            if (neighbors[s] < start || neighbors[s] >= stop) continue;
            f64 of_object = largest * weights[s] / total, *row = products[neighbors[s]];
            for (i64 t = 0; t < n; ++t) row[neighbors[t]] += of_object * weights[t];
        }
    }
};

}  // namespace

void nearest_landmarks(Matrix<const f32> points, Lists lists, Vector<const i64> of, Matrix<const f32> landmarks,
                       Matrix<i64> ids, Matrix<f32> squares) {
    Vector<const i64> listed = std::get<0>(lists), list_begins = std::get<1>(lists);  // Clang 14 captures no bindings
    i64 n_lists = list_begins.size - 1;
    ByList sorted(of, n_lists);
    f64 comparisons = n_lists ? (f64)of.size * (f64)listed.size / (f64)n_lists : 0.0;
    f64 nanoseconds = n_lists ? comparisons * (f64)(landmarks.columns + 8) / 16 / (f64)n_lists : 0.0;
    in_threads(n_lists, nanoseconds, [&](Ranges& ranges) {
        TurnedList list;
        std::vector<f32> apart;
        while (Range range = ranges.next())
            for (i64 b = range.start; b < range.stop; ++b) {
                if (sorted.begins[b] == sorted.begins[b + 1]) continue;
                const i64* candidates = listed.data + list_begins[b];
                Matrix<const f32> turned = list.fill(landmarks, candidates, list_begins[b + 1] - list_begins[b]);
                apart.resize(turned.columns);
                for (i64 at = sorted.begins[b]; at < sorted.begins[b + 1]; ++at) {
                    if (at % BETWEEN_LOOKS == 0) look();
                    i64 i = sorted.order[at];
                    squared_distances(points[i], turned, apart.data());
                    take_nearest(apart.data(), turned.columns, candidates, ids.columns, ids[i], squares[i]);
                }
            }
    });
}

void landmark_products(Codes<Matrix> ids, Matrix<const f32> squares, f64 sigma, i64 n_ranges, Matrix<f64> products) {
    std::visit([&]<typename Code>(Matrix<const Code> of) {
        over_ranges(n_ranges, 1e9, [&](i64 first, i64 last) {
            Products<Code> part{of, squares, EdgeWeights(sigma), products};
            i64 start = products.rows * first / n_ranges, stop = products.rows * last / n_ranges;
            for (i64 i = 0; i < of.rows; ++i) {
                if (i % BETWEEN_LOOKS == 0) look();
                part.add(i, start, stop);
            }
        });
    }, ids);
}

}  // namespace gpuens

// The nearest landmarks of objects with sparse features (gpuens/generate/sparse_landmarks.py): a distance is that of an
// object without stored features, and a difference for each stored one.
#include "generate/landmarks.h"
#include "generate/primitives.h"
#include "runtime/parallel.h"

#include <vector>

namespace gpuens {

namespace {

constexpr i64 AT_ONCE = LINE / sizeof(f32);  // features in a cache line, which is read once
constexpr i64 BETWEEN_LOOKS = 64;  // objects

}  // namespace

void turn_landmarks(Matrix<const f32> landmarks, Vector<const f32> base, Matrix<f32> columns, Vector<f64> squares) {
    std::fill(squares.begin(), squares.end(), 0.0);
    for (i64 first = 0; first < base.size; first += AT_ONCE) {
        look();
        for (i64 c = 0; c < landmarks.rows; ++c)
            for (i64 j = first; j < std::min(first + AT_ONCE, base.size); ++j) {
                f64 apart = (f64)landmarks[c][j] - base[j];
                columns[j][c] = landmarks[c][j];
                squares[c] += apart * apart;
            }
    }
}

void nearest_of_stored(StoredPoints points, Lists lists, Vector<const i64> of, TurnedLandmarks landmarks,
                       Matrix<i64> ids, Matrix<f32> squares) {
    auto [begins, all_features, values, base] = points;
    auto [listed, list_begins] = lists;
    auto [columns, from_base] = landmarks;
    i64 longest = 0;
    for (i64 b = 0; b + 1 < list_begins.size; ++b) longest = std::max(longest, list_begins[b + 1] - list_begins[b]);
    f64 nanoseconds = of.size ? (f64)longest * (2 + (f64)values.size / (f64)of.size) : 0.0;
    std::visit([&, begins = begins, values = values, base = base, listed = listed, list_begins = list_begins,
                columns = columns, from_base = from_base](auto features) {
        in_threads(of.size, nanoseconds, [&](Ranges& ranges) {
            std::vector<f64> exact(longest);
            std::vector<f32> apart(longest);
            while (Range range = ranges.next())
                for (i64 i = range.start; i < range.stop; ++i) {
                    if (i % BETWEEN_LOOKS == 0) look();
                    const i64* candidates = listed.data + list_begins[of[i]];
                    i64 n = list_begins[of[i] + 1] - list_begins[of[i]];
                    for (i64 c = 0; c < n; ++c) exact[c] = from_base[candidates[c]];
                    for (i64 s = begins[i]; s < begins[i + 1]; ++s) {
                        f64 x = values[s], b = base[features[s]], difference = x - b, sum = x + b, *sums = exact.data();
                        const f32* column = columns[features[s]];
#pragma GCC ivdep
                        for (i64 c = 0; c < n; ++c) sums[c] += difference * (sum - 2.0 * column[candidates[c]]);
                    }
                    // a negative squared distance is a rounding error
                    for (i64 c = 0; c < n; ++c) apart[c] = (f32)std::max(exact[c], 0.0);
                    take_nearest(apart.data(), n, candidates, ids.columns, ids[i], squares[i]);
                }
        });
    }, all_features);
}

}  // namespace gpuens

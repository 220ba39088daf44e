// Distances of a point to landmarks in a list, and the weights of its edges to them.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "runtime/arrays.h"
#include "runtime/lanes.h"

namespace gpuens {

constexpr i64 LISTED_AT_ONCE = 16;  // landmarks; lists are padded to multiples of this number
constexpr f32 FAR = std::numeric_limits<f32>::infinity();

inline i64 filled_up(i64 n) { return (n + LISTED_AT_ONCE - 1) / LISTED_AT_ONCE * LISTED_AT_ONCE; }

template <int N_VECTORS>
[[gnu::always_inline]] inline void some_distances(const f32* point, Matrix<const f32> turned, i64 first, f32* apart) {
    constexpr int WIDE = VECTOR_BYTES / sizeof(f32);
    using Pack = Native<f32, WIDE>;
    Pack sums[N_VECTORS] = {};
    i64 d = turned.rows, step = turned.columns, j = 0;
    const f32* column = turned.data + first;
    auto apart_by = [&](i64 feature, int v) {
        return point[feature] - loaded<Pack>(column + feature * step + v * WIDE);
    };
    for (; j + 4 <= d; j += 4)
#pragma GCC unroll 4
        for (int v = 0; v < N_VECTORS; ++v)
            sums[v] += sum_of_squares(apart_by(j, v), apart_by(j + 1, v), apart_by(j + 2, v), apart_by(j + 3, v));
    for (; j < d; ++j)
#pragma GCC unroll 4
        for (int v = 0; v < N_VECTORS; ++v) {
            Pack e = apart_by(j, v);
            sums[v] += e * e;
        }
    std::memcpy(apart + first, sums, sizeof sums);
}

// Write the squared distances of a point to turned landmarks (d, lanes).
inline void squared_distances(const f32* point, Matrix<const f32> turned, f32* apart) {
    constexpr i64 WIDE = VECTOR_BYTES / sizeof(f32);
    i64 c = 0;
    for (; c + 4 * WIDE <= turned.columns; c += 4 * WIDE) some_distances<4>(point, turned, c, apart);
    for (; c < turned.columns; c += WIDE) some_distances<1>(point, turned, c, apart);
}

// The place of the least of n distances; of equal ones, the first. The bits of numbers >= 0 are ordered like them, and
// behind them is room for the place.
inline i64 least_of(const f32* apart, i64 n) {
    i64 smallest = std::numeric_limits<i64>::max();
    for (i64 c = 0; c < n; ++c) smallest = std::min(smallest, (i64)std::bit_cast<i32>(apart[c]) << 32 | c);
    return smallest & ~0u;
}

// Write the nearest of n listed landmarks, nearest first; their distances are lost.
inline void take_nearest(f32* apart, i64 n, const i64* listed, i64 n_kept, i64* ids, f32* squares) {
    for (i64 s = 0; s < n_kept; ++s) {
        i64 c = least_of(apart, n);
        ids[s] = listed[c];
        squares[s] = apart[c];
        apart[c] = FAR;
    }
}

// The weights of an object's edges, exp(-d² / 2 σ²), divided by the largest of them. The quotients are right even if
// the largest weight underflows.
struct EdgeWeights {
    f64 half;

    explicit EdgeWeights(f64 sigma) : half(sigma > 0.0 ? 0.5 / (sigma * sigma) : 0.0) {}

    // Write the quotients; return the largest weight.
    f64 write(const f32* squares, i64 n, f64* weights) const {
        f64 smallest = squares[0];
        for (i64 s = 0; s < n; ++s) weights[s] = exponential((smallest - squares[s]) * half);
        return exponential(-smallest * half);
    }
};

}  // namespace gpuens

// The n-th largest number of each row (gpuens/similarity/propagated.py), by comparisons: zeros and ties, of which there are
// many, would make a selection slow.
#include "runtime/parallel.h"
#include "similarity/primitives.h"

#include <algorithm>
#include <limits>

namespace gpuens {

namespace {

constexpr i64 AT_ONCE = 16;  // numbers compared with the n-th largest so far before any is inserted
constexpr f64 NUMBER_NS = 0.5;

bool any_above(const f64* values, i64 n, f64 limit) {
    i64 above = 0;
    for (i64 j = 0; j < n; ++j) above |= values[j] > limit;
    return above;
}

// Write the n largest numbers, descending, and return the last of them.
f64 nth_largest(const f64* values, i64 n_values, f64* largest, i64 n) {
    f64 limit = -std::numeric_limits<f64>::infinity();
    std::fill_n(largest, n, limit);
    for (i64 first = 0; first < n_values; first += AT_ONCE) {
        i64 n_chunk = std::min(AT_ONCE, n_values - first);
        if (!any_above(values + first, n_chunk, limit)) continue;
        for (i64 j = first; j < first + n_chunk; ++j) {
            f64 value = values[j];
            if (!(value > limit)) continue;
            i64 place = n - 1;
            for (; place > 0 && value > largest[place - 1]; --place) largest[place] = largest[place - 1];
            largest[place] = value;
            limit = largest[n - 1];
        }
    }
    return limit;
}

}  // namespace

void nth_largest(Matrix<const f64> tile, i64 n, Vector<f64> thresholds) {
    in_threads(tile.rows, (f64)tile.columns * NUMBER_NS, [&](Ranges& ranges) {
        std::vector<f64> largest(n);
        while (Range range = ranges.next())
            for (i64 i = range.start; i < range.stop; ++i) {
                if (i % 16 == 0) look();
                thresholds[i] = nth_largest(tile[i], tile.columns, largest.data(), n);
            }
    });
}

}  // namespace gpuens

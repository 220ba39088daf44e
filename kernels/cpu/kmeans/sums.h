// Sums in the order of NumPy's sum(), which the versions for a GPU share.
#pragma once

#include "runtime/common.h"

namespace gpuens {

constexpr i64 PARTIAL_SUMS = 8, AT_MOST = 128;  // numbers that are added by partial sums; more are halved first

// The sum of value(first) ... value(first + n - 1).
template <typename T, typename Value>
T pairwise_sum(i64 first, i64 n, Value&& value) {
    if (n > AT_MOST) {
        i64 half = n / 2 / PARTIAL_SUMS * PARTIAL_SUMS;
        return pairwise_sum<T>(first, half, value) + pairwise_sum<T>(first + half, n - half, value);
    }
    T sum = 0;
    i64 i = 0;
    if (n >= PARTIAL_SUMS) {
        T of[PARTIAL_SUMS];
        for (i64 s = 0; s < PARTIAL_SUMS; ++s) of[s] = value(first + s);
        for (i = PARTIAL_SUMS; i + PARTIAL_SUMS <= n; i += PARTIAL_SUMS)
            for (i64 s = 0; s < PARTIAL_SUMS; ++s) of[s] += value(first + i + s);
        sum = ((of[0] + of[1]) + (of[2] + of[3])) + ((of[4] + of[5]) + (of[6] + of[7]));
    }
    for (; i < n; ++i) sum += value(first + i);
    return sum;
}

}  // namespace gpuens

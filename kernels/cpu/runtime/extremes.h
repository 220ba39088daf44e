// The least and the largest of many numbers >= 0. Their bits, read as integers, have the same order, and compilers
// vectorise the comparison of integers.
#pragma once

#include <algorithm>
#include <bit>

#include "runtime/common.h"

namespace gpuens {

inline i64 bits_of(f64 number) { return std::bit_cast<i64>(number); }

// The first place of the least of n numbers.
inline i64 place_of_least(const f64* numbers, i64 n) {
    constexpr i64 AT_ONCE = 512;
    i64 smallest = bits_of(numbers[0]), block = 0;
    for (i64 first = 0; first < n; first += AT_ONCE) {
        i64 block_smallest = smallest, last = std::min(first + AT_ONCE, n);
        for (i64 i = first; i < last; ++i) block_smallest = std::min(block_smallest, bits_of(numbers[i]));
        if (block_smallest < smallest) block = first;
        smallest = block_smallest;
    }
    while (bits_of(numbers[block]) != smallest) ++block;
    return block;
}

// The bits of the largest of n numbers; -1 if all are negative.
inline i64 bits_of_largest(const f64* numbers, i64 n) {
    i64 largest = -1;
    for (i64 i = 0; i < n; ++i) largest = std::max(largest, bits_of(numbers[i]));
    return largest;
}

}  // namespace gpuens

// What a processor does with several numbers at once. The only file that asks which processor it is compiled for.
#pragma once

#include <cstring>

#include "common.h"

namespace gpuens {

#if defined(__AVX512F__)
constexpr i64 VECTOR_BYTES = 64;
#elif defined(__AVX2__)
constexpr i64 VECTOR_BYTES = 32;
#else
constexpr i64 VECTOR_BYTES = 16;
#endif

// As many numbers as the processor adds at once: they have the operators of numbers.
template <typename T>
struct VectorOf {
    typedef T type __attribute__((vector_size(VECTOR_BYTES)));
};
template <typename T>
using Lanes = typename VectorOf<T>::type;
template <typename T>
constexpr i64 LANES = VECTOR_BYTES / (i64)sizeof(T);

template <typename T>
inline Lanes<T> load(const T* from) {
    Lanes<T> lanes;
    std::memcpy(&lanes, from, sizeof lanes);
    return lanes;
}

template <typename T>
inline void store(Lanes<T> lanes, T* into) {
    std::memcpy(into, &lanes, sizeof lanes);
}

// Write how many bits each of four arrays of n words shares with `own`.
void count_common(const u64* own, const u64* const others[4], i64 n, i64 counts[4]);

}  // namespace gpuens

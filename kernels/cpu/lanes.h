// What a processor does with several numbers at once. The only file that asks which processor it is compiled for.
#pragma once

#include <cstring>
#include <type_traits>

#include "common.h"

#if defined(__x86_64__) || defined(_M_X64)
#include <immintrin.h>
#endif

namespace gpuens {

#if defined(__AVX512BW__)
constexpr int VECTOR_BYTES = 64, VECTORS = 32;  // of a vector, and their number
#elif defined(__AVX2__)
constexpr int VECTOR_BYTES = 32, VECTORS = 16;
#else
constexpr int VECTOR_BYTES = 16, VECTORS = 16;
#endif

template <typename T, int N>
struct VectorOf {
    typedef T type __attribute__((vector_size(N * sizeof(T))));
};

template <typename T, int N>
using Native = typename VectorOf<T, N>::type;

template <typename V, typename T>
[[gnu::always_inline]] inline V loaded(const T* from) {
    V vector;
    std::memcpy(&vector, from, sizeof vector);
    return vector;
}

// A sum rounded once where the processor can, else twice: for bounds only.
template <typename V, typename T>
[[gnu::always_inline]] inline V plus_product(V sum, V vector, T factor) {
#if defined(__AVX512F__)
    if constexpr (std::is_same_v<T, f32> && sizeof(V) == 64)
        return (V)_mm512_fmadd_ps((__m512)vector, _mm512_set1_ps(factor), (__m512)sum);
    if constexpr (std::is_same_v<T, f64> && sizeof(V) == 64)
        return (V)_mm512_fmadd_pd((__m512d)vector, _mm512_set1_pd(factor), (__m512d)sum);
#endif
#if defined(__FMA__)
    if constexpr (std::is_same_v<T, f32> && sizeof(V) == 32)
        return (V)_mm256_fmadd_ps((__m256)vector, _mm256_set1_ps(factor), (__m256)sum);
    if constexpr (std::is_same_v<T, f64> && sizeof(V) == 32)
        return (V)_mm256_fmadd_pd((__m256d)vector, _mm256_set1_pd(factor), (__m256d)sum);
#endif
    return sum + vector * factor;
}

// Write how many bits each of four arrays of n words shares with `own`.
void count_common(const u64* own, const u64* const others[4], i64 n, i64 counts[4]);

}  // namespace gpuens

// Operations on several numbers at once. The only file that asks which processor it is compiled for.
//
// Lanes<T, N> are N numbers in as many of the processor's vectors as they fill: one loop over tables of 64 columns is
// written once, and stays in registers on every level.
#pragma once

#include <algorithm>
#include <cstring>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>

#include "runtime/common.h"

#if defined(__x86_64__) || defined(_M_X64)
#include <immintrin.h>
#endif

namespace gpuens {

#if defined(__AVX512BW__)
constexpr int VECTOR_BYTES = 64, VECTORS = 32;  // bytes of a vector register, and number of registers
#elif defined(__AVX2__)
constexpr int VECTOR_BYTES = 32, VECTORS = 16;
#else
constexpr int VECTOR_BYTES = 16, VECTORS = 16;
#endif

constexpr int LANES = 64;        // whole numbers in a row of lanes
constexpr int FLOAT_LANES = 16;  // real numbers in a row of lanes
constexpr int TAKEN = 16;        // sorted scores into which one instruction inserts another
constexpr int LINE = 64;         // bytes of a cache line

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

// A vector register of the processor, with the operators of numbers.
template <typename T>
constexpr i64 IN_REGISTER = VECTOR_BYTES / (i64)sizeof(T);
template <typename T>
using Register = Native<T, IN_REGISTER<T>>;

template <typename T>
[[gnu::always_inline]] inline Register<T> load(const T* from) {
    return loaded<Register<T>>(from);
}

template <typename T>
[[gnu::always_inline]] inline void store(Register<T> vector, T* to) {
    std::memcpy(to, &vector, sizeof vector);
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

#if defined(__AVX512BW__)
namespace bits {

// The lanes of a row of labels that have the label, bit j for lane j.
template <typename Code>
[[gnu::always_inline]] inline u64 equal(const Code* labels, Code label) {
    if constexpr (sizeof(Code) == 1) {
        return _mm512_cmpeq_epi8_mask(_mm512_loadu_si512(labels), _mm512_set1_epi8((char)label));
    } else {
        constexpr int n = 64 / sizeof(Code);
        u64 hits = 0;
        for (int lane = 0; lane < LANES; lane += n) {
            __m512i vector = _mm512_loadu_si512(labels + lane);
            if constexpr (sizeof(Code) == 2)
                hits |= (u64)_mm512_cmpeq_epi16_mask(vector, _mm512_set1_epi16((short)label)) << lane;
            else
                hits |= (u64)_mm512_cmpeq_epi32_mask(vector, _mm512_set1_epi32((int)label)) << lane;
        }
        return hits;
    }
}

// Add `unit` in the lanes of a vector whose bit is set.
template <typename V, typename T>
[[gnu::always_inline]] inline V plus_at(V vector, u64 lanes, T unit) {
    if constexpr (std::is_same_v<T, f64>)
        return (V)_mm512_mask_add_pd((__m512d)vector, (__mmask8)lanes, (__m512d)vector, _mm512_set1_pd(unit));
    else if constexpr (sizeof(T) == 1)
        return (V)_mm512_mask_add_epi8((__m512i)vector, lanes, (__m512i)vector, _mm512_set1_epi8((char)unit));
    else if constexpr (sizeof(T) == 2)
        return (V)_mm512_mask_add_epi16((__m512i)vector, (__mmask32)lanes, (__m512i)vector,
                                        _mm512_set1_epi16((short)unit));
    else
        return (V)_mm512_mask_add_epi32((__m512i)vector, (__mmask16)lanes, (__m512i)vector,
                                        _mm512_set1_epi32((int)unit));
}

}  // namespace bits
#endif

template <typename T, int N>
struct Lanes {
    static constexpr int IN_ONE = std::min<int>(N, VECTOR_BYTES / sizeof(T)), N_VECTORS = N / IN_ONE;
    using Pack = Native<T, IN_ONE>;
    Pack of[N_VECTORS];

    static Lanes zeros() { return {}; }

    [[gnu::always_inline]] static Lanes load(const T* from) {
        Lanes lanes;
        for (int v = 0; v < N_VECTORS; ++v) lanes.of[v] = loaded<Pack>(from + v * IN_ONE);
        return lanes;
    }

    [[gnu::always_inline]] void store(T* to) const {
        for (int v = 0; v < N_VECTORS; ++v) std::memcpy(to + v * IN_ONE, &of[v], sizeof(Pack));
    }

    // Numbers of a type with as many bits or fewer.
    template <typename Narrow>
    [[gnu::always_inline]] static Lanes widened(const Lanes<Narrow, N>& from) {
        if constexpr (std::is_same_v<Narrow, T>) {
            return from;
        } else {
            alignas(LINE) Narrow narrow[N];
            from.store(narrow);
            if constexpr (VECTOR_BYTES == 32) {  // compilers widen halves of these well, and larger loops of the others
                Lanes lanes;
                for (int v = 0; v < N_VECTORS; ++v)
                    lanes.of[v] = __builtin_convertvector(loaded<Native<Narrow, IN_ONE>>(narrow + v * IN_ONE), Pack);
                return lanes;
            } else {
                alignas(LINE) T wide[N];
                for (int j = 0; j < N; ++j) wide[j] = narrow[j];
                return load(wide);
            }
        }
    }

    // Whole numbers wrap around.
    [[gnu::always_inline]] void plus(const T* row) {
        for (int v = 0; v < N_VECTORS; ++v) of[v] += loaded<Pack>(row + v * IN_ONE);
    }

    [[gnu::always_inline]] void plus(const Lanes& other) {
        for (int v = 0; v < N_VECTORS; ++v) of[v] += other.of[v];
    }

    // Real numbers; the sum is a bound.
    [[gnu::always_inline]] void plus_times(const T* row, T factor) {
        for (int v = 0; v < N_VECTORS; ++v) of[v] = plus_product(of[v], loaded<Pack>(row + v * IN_ONE), factor);
    }

    // Add bytes times a factor.
    [[gnu::always_inline]] void plus_bytes(const u8* bytes, T factor) {
        using Integer = std::conditional_t<sizeof(T) == 4, i32, i64>;
        for (int v = 0; v < N_VECTORS; ++v) {
            auto vector = loaded<Native<u8, IN_ONE>>(bytes + v * IN_ONE);
            auto integers = __builtin_convertvector(vector, Native<Integer, IN_ONE>);
            of[v] = plus_product(of[v], __builtin_convertvector(integers, Pack), factor);
        }
    }

    [[gnu::always_inline]] void times(T factor) {
        for (int v = 0; v < N_VECTORS; ++v) of[v] *= factor;
    }

    // Add `unit` in each lane where a row of labels has the label.
    template <typename Code>
    [[gnu::always_inline]] void plus_where(const Code* labels, Code label, T unit) {
#if defined(__AVX512BW__)
        if constexpr (N == LANES) {
            u64 equal = bits::equal(labels, label);
            for (int v = 0; v < N_VECTORS; ++v) of[v] = bits::plus_at(of[v], equal >> (v * IN_ONE), unit);
            return;
        }
#endif
        for (int v = 0; v < N_VECTORS; ++v) {
            auto vector = loaded<Native<Code, IN_ONE>>(labels + v * IN_ONE);
            if constexpr (std::is_floating_point_v<T>) {
                using Integer = Native<std::conditional_t<sizeof(T) == 4, i32, i64>, IN_ONE>;
                of[v] += (Pack)(__builtin_convertvector(vector == label, Integer) & (Integer)(Pack{} + unit));
            } else if constexpr (sizeof(Code) < sizeof(T)) {
                auto wide = __builtin_convertvector(vector, Pack);
                of[v] += (Pack)(wide == (T)label) & unit;
            } else if constexpr (sizeof(Code) == sizeof(T)) {
                of[v] += (Pack)(vector == label) & unit;
            } else {
                of[v] += (Pack)__builtin_convertvector(vector == label, Native<std::make_signed_t<T>, IN_ONE>) & unit;
            }
        }
    }
};

// --- 64 bits, one for each lane
// ---------------------------------------------------------------------------------------

namespace bits {

#if defined(__AVX512BW__)

template <typename T>
[[gnu::always_inline]] inline u64 at_least(Native<T, 64 / sizeof(T)> row, Native<T, 64 / sizeof(T)> limit) {
    if constexpr (std::is_same_v<T, f32>) return _mm512_cmp_ps_mask((__m512)row, (__m512)limit, _CMP_GE_OQ);
    else if constexpr (std::is_same_v<T, f64>) return _mm512_cmp_pd_mask((__m512d)row, (__m512d)limit, _CMP_GE_OQ);
    else if constexpr (sizeof(T) == 1) return _mm512_cmpge_epu8_mask((__m512i)row, (__m512i)limit);
    else if constexpr (sizeof(T) == 2) return _mm512_cmpge_epu16_mask((__m512i)row, (__m512i)limit);
    else return _mm512_cmpge_epu32_mask((__m512i)row, (__m512i)limit);
}

#elif defined(__SSE2__)

// Bits of the lanes with row >= limit, 16 lanes at a time, whose comparisons are narrowed to bytes.
template <typename T>
[[gnu::always_inline]] inline u64 at_least(Native<T, 16> row, Native<T, 16> limit) {
    auto bytes = __builtin_convertvector(row >= limit, Native<signed char, 16>);
    return (u32)_mm_movemask_epi8((__m128i)bytes);
}

#else

template <typename T>
inline u64 at_least(Native<T, 16> row, Native<T, 16> limit) {
    u64 lanes = 0;
    for (int lane = 0; lane < 16; ++lane) lanes |= (u64)(row[lane] >= limit[lane]) << lane;
    return lanes;
}

#endif

#if defined(__AVX512BW__)
template <typename T>
constexpr int AT_ONCE = 64 / sizeof(T);
#else
template <typename T>
constexpr int AT_ONCE = 16;
#endif

}  // namespace bits

// The lanes of a row that reach a limit, bit j for lane j; unsigned or real numbers.
template <int N, typename T>
[[gnu::always_inline]] inline u64 at_least(const T* row, T limit) {
    constexpr int n = bits::AT_ONCE<T>;
    using Pack = Native<T, n>;
    u64 lanes = 0;
    Pack limits = Pack{} + limit;
    for (int lane = 0; lane < N; lane += n) lanes |= bits::at_least<T>(loaded<Pack>(row + lane), limits) << lane;
    return lanes;
}

// The lanes of a row that reach each a limit of its own.
template <int N, typename T>
[[gnu::always_inline]] inline u64 reaching(const T* row, const T* limits) {
    constexpr int n = bits::AT_ONCE<T>;
    using Pack = Native<T, n>;
    u64 lanes = 0;
    for (int lane = 0; lane < N; lane += n)
        lanes |= bits::at_least<T>(loaded<Pack>(row + lane), loaded<Pack>(limits + lane)) << lane;
    return lanes;
}

// Call `work(lane)` for each bit that is set, lowest first.
template <typename Work>
[[gnu::always_inline]] inline void each_bit(u64 of, Work&& work) {
    for (; of; of &= of - 1) work((i64)__builtin_ctzll(of));
}

// --- sorted scores
// ----------------------------------------------------------------------------------------------------

// Insert a score into TAKEN sorted scores, highest first, and drop the last; `before` is the score in front of them:
// where the new one is higher, it comes first.
template <typename T>
[[gnu::always_inline]] inline void take_among(T* sorted, T before, T score) {
    using Pack = Native<T, TAKEN>;
    Pack scores = loaded<Pack>(sorted), inserted = Pack{} + score, moved;
#if defined(__clang__)
    moved = __builtin_shufflevector(scores, Pack{} + before, 16, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14);
#else
    moved = __builtin_shuffle(scores, Pack{} + before, Pack{16, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14});
#endif
    Pack lower = moved < inserted ? moved : inserted;
    scores = scores > lower ? scores : lower;
    std::memcpy(sorted, &scores, sizeof scores);
}

// --- memory
// -----------------------------------------------------------------------------------------------------------

// Numbers whose first begins a cache line: a row of a table that crosses more lines than it must loads more slowly.
template <typename T>
class Aligned {
public:
    explicit Aligned(i64 n = 0) : memory(n ? new (std::align_val_t{LINE}) T[n]() : nullptr), size(n) {}
    T* data() const { return memory.get(); }
    T& operator[](i64 i) const { return memory[i]; }
    i64 n() const { return size; }

private:
    struct Free {
        void operator()(T* p) const { ::operator delete[](p, std::align_val_t{LINE}); }
    };
    std::unique_ptr<T[], Free> memory;
    i64 size;
};

// --- words
// ------------------------------------------------------------------------------------------------------------

// Write how many bits each of four arrays of n words shares with `own`.
void count_common(const u64* row, const u64* const columns[4], i64 n, i64 counts[4]);

// Count the common bits of two rows with four columns, the counts of the first row before those of the second.
void count_common_of_two(const u64* const rows[2], const u64* const columns[4], i64 n, i64 counts[8]);

}  // namespace gpuens

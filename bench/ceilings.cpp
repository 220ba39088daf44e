// The loops whose rates are the ceilings of a machine. limits_ceilings.py compiles them for the level of x86-64 that
// gpuens uses, checks their results and takes their time. Quick ones repeat their work, so that calling takes no share.
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <type_traits>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

using u8 = std::uint8_t;
using u16 = std::uint16_t;
using u64 = std::uint64_t;
using i32 = std::int32_t;
using i64 = std::int64_t;

namespace {

#if defined(__AVX512BW__)
constexpr int VECTOR_BYTES = 64, N_VECTORS = 32;
#elif defined(__AVX2__)
constexpr int VECTOR_BYTES = 32, N_VECTORS = 16;
#else
constexpr int VECTOR_BYTES = 16, N_VECTORS = 16;
#endif

template <typename T>
constexpr int LANES = std::is_floating_point_v<T> ? 16 : 64;

// Keep the compiler from leaving out a repetition: it has to write its results before this, and to read anew after it.
inline void finish() { asm volatile("" ::: "memory"); }

// A row of a table, in as many of the processor's vectors as it fills: compilers keep these in registers.
template <typename T>
struct Row {
    static constexpr int IN_ONE = VECTOR_BYTES / sizeof(T), N = LANES<T> / IN_ONE;
    static constexpr int AT_ONCE = 8 * N <= N_VECTORS ? 4 : 4 * N <= N_VECTORS ? 2 : 1;  // sums that stay in registers
    using Small = std::conditional_t<sizeof(T) == 2, std::int16_t, std::int8_t>;
    using Number = std::conditional_t<sizeof(T) == 8, i64, Small>;  // a whole number of the same size
    typedef T One __attribute__((vector_size(VECTOR_BYTES)));
    typedef Number Whole __attribute__((vector_size(VECTOR_BYTES)));
    One of[N]{};

    [[gnu::always_inline]] void plus(const T* row) {
        for (int v = 0; v < N; ++v) of[v] += loaded(row + v * IN_ONE);
    }

    // Rounded once where the processor has such an instruction.
    [[gnu::always_inline]] void plus_times(const T* row, T factor) {
        for (int v = 0; v < N; ++v) of[v] += loaded(row + v * IN_ONE) * factor;
    }

    // Add the weight in the lanes of a row of labels that have the label.
    [[gnu::always_inline]] void plus_equal(const u8* labels, u8 label, T weight) {
#if defined(__AVX512BW__)
        if constexpr (std::is_same_v<T, double>) {
            __mmask16 same = _mm_cmpeq_epi8_mask(_mm_loadu_si128((const __m128i*)labels), _mm_set1_epi8((char)label));
            for (int v = 0; v < N; ++v) {
                auto own = (__m512d)of[v];
                of[v] = (One)_mm512_mask_add_pd(own, (__mmask8)(same >> 8 * v), own, _mm512_set1_pd(weight));
            }
        } else {
            __mmask64 same = _mm512_cmpeq_epi8_mask(_mm512_loadu_si512(labels), _mm512_set1_epi8((char)label));
            for (int v = 0; v < N; ++v) {
                auto own = (__m512i)of[v];
                if constexpr (sizeof(T) == 1)
                    of[v] = (One)_mm512_mask_add_epi8(own, same, own, _mm512_set1_epi8((char)weight));
                else
                    of[v] = (One)_mm512_mask_add_epi16(own, (__mmask32)(same >> 32 * v), own,
                                                       _mm512_set1_epi16((short)weight));
            }
        }
#else
        for (int v = 0; v < N; ++v) {
            Whole same = widened(labels + v * IN_ONE) == (Whole{} + (Number)label);
            of[v] += (One)(same & (Whole)(One{} + weight));
        }
#endif
    }

    void store(T* row) const {
        for (int v = 0; v < N; ++v) std::memcpy(row + v * IN_ONE, &of[v], VECTOR_BYTES);
    }

    [[gnu::always_inline]] static One loaded(const T* from) {
        One one;
        std::memcpy(&one, from, VECTOR_BYTES);
        return one;
    }

    // Labels in as many bits as the numbers have: compilers know the processor's instruction for it only by name.
    [[gnu::always_inline]] static Whole widened(const u8* labels) {
        typedef u8 Labels __attribute__((vector_size(IN_ONE)));
        Labels narrow;
        std::memcpy(&narrow, labels, sizeof narrow);
#if defined(__AVX2__)
        if constexpr (IN_ONE == 16) return (Whole)_mm256_cvtepu8_epi16((__m128i)narrow);
        if constexpr (IN_ONE == 4) return (Whole)_mm256_cvtepu8_epi64(_mm_loadu_si32(&narrow));
#elif defined(__SSE4_1__)
        if constexpr (IN_ONE == 8) return (Whole)_mm_cvtepu8_epi16(_mm_loadu_si64(&narrow));
        if constexpr (IN_ONE == 2) return (Whole)_mm_cvtepu8_epi64(_mm_loadu_si16(&narrow));
#endif
        return __builtin_convertvector(narrow, Whole);
    }
};

// Sums (n_tiles, n_queries, lanes) of a query's weights where the labels of a tile (n_labels, lanes) are the query's.
template <typename T>
void compare_tiles(const u8* tiles, const u8* queries, const T* weights, T* sums, i64 n_tiles, i64 n_queries,
                   i64 n_labels) {
    constexpr int AT_ONCE = Row<T>::AT_ONCE, WIDTH = LANES<T>;
    for (i64 t = 0; t < n_tiles; ++t) {
        const u8* tile = tiles + t * n_labels * WIDTH;
        for (i64 q = 0; q < n_queries; q += AT_ONCE) {
            Row<T> total[AT_ONCE];
            for (i64 m = 0; m < n_labels; ++m)
                for (int one = 0; one < AT_ONCE; ++one) {
                    i64 at = (q + one) * n_labels + m;
                    total[one].plus_equal(tile + m * WIDTH, queries[at], weights[at]);
                }
            for (int one = 0; one < AT_ONCE; ++one) total[one].store(sums + (t * n_queries + q + one) * WIDTH);
        }
    }
}

// Sums (n_rows, lanes) of the rows of a table that the labels of each row (n_rows, n_labels) name.
template <typename T>
void add_table(const u8* rows, const i64* starts, const T* table, T* sums, i64 n_rows, i64 n_labels) {
    constexpr int AT_ONCE = Row<T>::AT_ONCE, WIDTH = LANES<T>;
    for (i64 i = 0; i < n_rows; i += AT_ONCE) {
        Row<T> total[AT_ONCE];
        for (i64 m = 0; m < n_labels; ++m)
            for (int one = 0; one < AT_ONCE; ++one)
                total[one].plus(table + (starts[m] + rows[(i + one) * n_labels + m]) * WIDTH);
        for (int one = 0; one < AT_ONCE; ++one) total[one].store(sums + (i + one) * WIDTH);
    }
}

[[gnu::always_inline]] inline u64 common(const u64* one, const u64* other, i64 n) {
    u64 a = 0, b = 0, c = 0, d = 0;
    for (i64 p = 0; p < n; p += 4) {
        a += (u64)std::popcount(one[p] & other[p]);
        b += (u64)std::popcount(one[p + 1] & other[p + 1]);
        c += (u64)std::popcount(one[p + 2] & other[p + 2]);
        d += (u64)std::popcount(one[p + 3] & other[p + 3]);
    }
    return a + b + c + d;
}

u64 common_each(const u64* one, const u64* other, i64 n) { return common(one, other, n); }

#if defined(__AVX512F__)
// x86-64-v4 does not count the bits of several words at once, but nearly all of its processors do.
[[gnu::target("avx512vpopcntdq,avx512vl,prefer-vector-width=512")]] u64 common_at_once(
    const u64* one, const u64* other, i64 n) {
    return common(one, other, n);
}
#endif

}  // namespace

extern "C" {

// Numbers of a table at places, whose number is a multiple of 4.
i64 gather(const i64* table, const i32* places, i64 n) {
    i64 a = 0, b = 0, c = 0, d = 0;  // four chains of reads at the same time, because a processor can wait for several
    for (i64 i = 0; i < n; i += 4) {
        a += table[places[i]];
        b += table[places[i + 1]];
        c += table[places[i + 2]];
        d += table[places[i + 3]];
        asm("" : "+r"(a), "+r"(b), "+r"(c), "+r"(d));  // one by one: instructions that read several are slower
    }
    return a + b + c + d;
}

#define OF_EACH_TYPE(T, name)                                                                                         \
    void by_tiles_##name(const u8* tiles, const u8* queries, const T* weights, T* sums, i64 n_tiles, i64 n_queries,   \
                         i64 n_labels, i64 repeats) {                                                                 \
        for (; repeats > 0; --repeats, finish())                                                                      \
            compare_tiles(tiles, queries, weights, sums, n_tiles, n_queries, n_labels);                               \
    }                                                                                                                 \
    void by_table_##name(const u8* rows, const i64* starts, const T* table, T* sums, i64 n_rows, i64 n_labels,        \
                         i64 repeats) {                                                                               \
        for (; repeats > 0; --repeats, finish()) add_table(rows, starts, table, sums, n_rows, n_labels);              \
    }
OF_EACH_TYPE(u8, uint8)
OF_EACH_TYPE(u16, uint16)
OF_EACH_TYPE(double, float64)

// How often each pair of labels below 32 occurs, in four tables (4, 1024) that are added later.
void count(const u8* one, const u8* other, i64* tables, i64 n) {
    for (i64 i = 0; i < n; i += 4)
        for (u64 turn = 0; turn < 4; ++turn)  // in turn, so that equal cells in a row need not wait
            ++tables[1024 * turn + 32 * (u64)one[i + turn] + other[i + turn]];
}

// The sum (32,) of rows of a table (n, 32), whose number is even.
void add_rows(const u8* which, const double* table, double* sums, i64 n) {
    Row<double> total[4];
    for (i64 i = 0; i < n; i += 2)
        for (int part = 0; part < 4; ++part) total[part].plus(table + 32 * which[i + part / 2] + 16 * (part % 2));
    double own[4][16];
    for (int part = 0; part < 4; ++part) total[part].store(own[part]);
    for (int j = 0; j < 32; ++j) sums[j] = own[j / 16][j % 16] + own[2 + j / 16][j % 16];
}

// Four parts (4, 16) of the sum of rows of a table (n, 16), each times its factor; their number is a multiple of 4.
void multiply(const i32* which, const float* factors, const float* table, float* sums, i64 n) {
    Row<float> total[4];
    for (i64 i = 0; i < n; i += 4)
        for (int part = 0; part < 4; ++part) total[part].plus_times(table + 16 * which[i + part], factors[i + part]);
    for (int part = 0; part < 4; ++part) total[part].store(sums + 16 * part);
}

// How many bits two arrays share, in all repetitions together; their words are a multiple of 4.
i64 words(const u64* one, const u64* other, i64 n, i64 repeats) {
    auto count = common_each;
#if defined(__AVX512F__)
    if (__builtin_cpu_supports("avx512vpopcntdq")) count = common_at_once;
#endif
    u64 found = 0;
    for (; repeats > 0; --repeats, finish()) found += count(one, other, n);
    return (i64)found;
}

double logarithms(const double* values, i64 n) {
    double total = 0.0;
    for (i64 i = 0; i < n; ++i) total += std::log2(values[i]);
    return total;
}

}  // extern "C"

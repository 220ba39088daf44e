#include "runtime/lanes.h"

#include <bit>

namespace gpuens {

namespace {

// The common loop of the functions below, inlined so that each compiles it with its own instructions. A word of the
// columns is read once for all ROWS.
template <int ROWS>
[[gnu::always_inline]] inline void count(const u64* const row_words[ROWS], const u64* const column_words[4], i64 n,
                                         i64* counts) {
    u64 in[ROWS][4] = {};
    const u64 *a = column_words[0], *b = column_words[1], *c = column_words[2], *d = column_words[3];
    for (i64 p = 0; p < n; ++p)
        for (int row = 0; row < ROWS; ++row) {
            u64 word = row_words[row][p];
            in[row][0] += (u64)std::popcount(word & a[p]);
            in[row][1] += (u64)std::popcount(word & b[p]);
            in[row][2] += (u64)std::popcount(word & c[p]);
            in[row][3] += (u64)std::popcount(word & d[p]);
        }
    for (int row = 0; row < ROWS; ++row)
        for (int i = 0; i < 4; ++i) counts[row * 4 + i] = (i64)in[row][i];
}

#ifdef __AVX512F__
// x86-64-v4 does not count the bits of several words at once, but nearly all of its processors do.
template <int ROWS>
[[gnu::target("avx512vpopcntdq,avx512vl,prefer-vector-width=512")]] void count_at_once(
    const u64* const row_words[ROWS], const u64* const column_words[4], i64 n, i64* counts) {
    count<ROWS>(row_words, column_words, n, counts);
}
#endif

template <int ROWS>
void count_each(const u64* const row_words[ROWS], const u64* const column_words[4], i64 n, i64* counts) {
    count<ROWS>(row_words, column_words, n, counts);
}

template <int ROWS>
void count_of(const u64* const row_words[ROWS], const u64* const column_words[4], i64 n, i64* counts) {
#ifdef __AVX512F__
    static const bool at_once = __builtin_cpu_supports("avx512vpopcntdq");
    if (at_once) return count_at_once<ROWS>(row_words, column_words, n, counts);
#endif
    count_each<ROWS>(row_words, column_words, n, counts);
}

}  // namespace

void count_common(const u64* row_words, const u64* const column_words[4], i64 n, i64 counts[4]) {
    count_of<1>(&row_words, column_words, n, counts);
}

void count_common_of_two(const u64* const row_words[2], const u64* const column_words[4], i64 n, i64 counts[8]) {
    count_of<2>(row_words, column_words, n, counts);
}

}  // namespace gpuens

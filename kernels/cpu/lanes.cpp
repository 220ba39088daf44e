#include "lanes.h"

#include <bit>

namespace gpuens {

namespace {

// Within those below, with the instructions that each may use: every word of the others is read once for all ROWS.
template <int ROWS>
[[gnu::always_inline]] inline void count(const u64* const own[ROWS], const u64* const others[4], i64 n, i64* counts) {
    u64 in[ROWS][4] = {};
    const u64 *a = others[0], *b = others[1], *c = others[2], *d = others[3];
    for (i64 p = 0; p < n; ++p)
        for (int row = 0; row < ROWS; ++row) {
            u64 word = own[row][p];
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
    const u64* const own[ROWS], const u64* const others[4], i64 n, i64* counts) {
    count<ROWS>(own, others, n, counts);
}
#endif

template <int ROWS>
void count_each(const u64* const own[ROWS], const u64* const others[4], i64 n, i64* counts) {
    count<ROWS>(own, others, n, counts);
}

template <int ROWS>
void count_of(const u64* const own[ROWS], const u64* const others[4], i64 n, i64* counts) {
#ifdef __AVX512F__
    static const bool at_once = __builtin_cpu_supports("avx512vpopcntdq");
    if (at_once) return count_at_once<ROWS>(own, others, n, counts);
#endif
    count_each<ROWS>(own, others, n, counts);
}

}  // namespace

void count_common(const u64* own, const u64* const others[4], i64 n, i64 counts[4]) {
    count_of<1>(&own, others, n, counts);
}

void count_common_of_two(const u64* const own[2], const u64* const others[4], i64 n, i64 counts[8]) {
    count_of<2>(own, others, n, counts);
}

}  // namespace gpuens

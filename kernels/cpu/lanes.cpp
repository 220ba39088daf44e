#include "lanes.h"

#include <bit>

namespace gpuens {

namespace {

// Within the two below, with the instructions that each may use.
[[gnu::always_inline]] inline void count(const u64* own, const u64* const others[4], i64 n, i64 counts[4]) {
    const u64 *a = others[0], *b = others[1], *c = others[2], *d = others[3];
    u64 in_a = 0, in_b = 0, in_c = 0, in_d = 0;
    for (i64 p = 0; p < n; ++p) {
        u64 word = own[p];
        in_a += (u64)std::popcount(word & a[p]);
        in_b += (u64)std::popcount(word & b[p]);
        in_c += (u64)std::popcount(word & c[p]);
        in_d += (u64)std::popcount(word & d[p]);
    }
    counts[0] = (i64)in_a, counts[1] = (i64)in_b, counts[2] = (i64)in_c, counts[3] = (i64)in_d;
}

#ifdef __AVX512F__
// x86-64-v4 does not count the bits of several words at once, but nearly all of its processors do.
[[gnu::target("avx512vpopcntdq,avx512vl,prefer-vector-width=512")]] void count_at_once(
    const u64* own, const u64* const others[4], i64 n, i64 counts[4]) {
    count(own, others, n, counts);
}
#endif

void count_each(const u64* own, const u64* const others[4], i64 n, i64 counts[4]) { count(own, others, n, counts); }

}  // namespace

void count_common(const u64* own, const u64* const others[4], i64 n, i64 counts[4]) {
#ifdef __AVX512F__
    static const bool at_once = __builtin_cpu_supports("avx512vpopcntdq");
    if (at_once) return count_at_once(own, others, n, counts);
#endif
    count_each(own, others, n, counts);
}

}  // namespace gpuens

#include "lanes.h"

#include <bit>

#ifndef _WIN32
#include <sys/mman.h>
#endif

namespace gpuens {

namespace {

constexpr i64 MAPPED = 1 << 20;  // bytes from which memory comes from the system

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

#ifdef _WIN32
static bool is_mapped(i64) { return false; }
static void* map(i64) { return nullptr; }
static void unmap(void*, i64) {}
#else
static bool is_mapped(i64 n_bytes) { return n_bytes >= MAPPED; }

static void* map(i64 n_bytes) {
    void* pages = mmap(nullptr, (size_t)n_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return pages == MAP_FAILED ? throw std::bad_alloc() : pages;
}

static void unmap(void* pages, i64 n_bytes) { munmap(pages, (size_t)n_bytes); }
#endif

void* allocate_zeros(i64 n_bytes) {
    if (is_mapped(n_bytes)) return map(n_bytes);
    void* zeros = ::operator new(n_bytes, std::align_val_t{LINE});
    return std::memset(zeros, 0, n_bytes);
}

void free_zeros(void* zeros, i64 n_bytes) {
    if (is_mapped(n_bytes)) unmap(zeros, n_bytes);
    else ::operator delete(zeros, std::align_val_t{LINE});
}

}  // namespace gpuens

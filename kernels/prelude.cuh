// Put before every kernel file, as text: the names of the types, and the total order of pairs of regions.
//
// Indices are i64 throughout: a product of two sizes passes 2^31 at everyday sizes.

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef long long i64;
typedef double f64;

// A grid-stride loop over 0 ... n - 1.
#define FOR_EACH(i, n) \
    for (i64 i = (i64)blockIdx.x * blockDim.x + threadIdx.x; i < (n); i += (i64)gridDim.x * blockDim.x)

// A missing label is the largest value of the codes' type.
#define MISSING(type) ((type) ~(type)0)

#define NO_HASH (~0ull)  // comes after every pair of the same similarity

// gpuens/partition/order.py: the finaliser of splitmix64 on (min << 32 | max).
__device__ inline u64 pair_hash(i64 a, i64 b) {
    u64 x = ((u64)(a < b ? a : b) << 32) | (u64)(a < b ? b : a);
    x ^= x >> 30;
    x *= 0xBF58476D1CE4E5B9ull;
    x ^= x >> 27;
    x *= 0x94D049BB133111EBull;
    x ^= x >> 31;
    return x;
}

__device__ inline bool comes_before(f64 similarity, u64 tie, f64 other_similarity, u64 other_tie) {
    return similarity > other_similarity || (similarity == other_similarity && tie < other_tie);
}

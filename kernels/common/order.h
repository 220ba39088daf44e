// The total order of pairs of regions (gpuens/partition/linkage/nearest.py): larger similarities first; of equal ones,
// the smaller hash first.

#define NO_HASH (~0ull)  // hash that comes after the hashes of all pairs

// The tie-breaking hash of a pair: the finaliser of splitmix64 on (min << 32 | max), a bijection, so that no two pairs
// have the same hash.
BOTH u64 pair_hash(i64 a, i64 b) {
    u64 x = ((u64)(a < b ? a : b) << 32) | (u64)(a < b ? b : a);
    x ^= x >> 30;
    x *= 0xBF58476D1CE4E5B9ull;
    x ^= x >> 27;
    x *= 0x94D049BB133111EBull;
    x ^= x >> 31;
    return x;
}

BOTH bool comes_before(f64 similarity, u64 tie, f64 other_similarity, u64 other_tie) {
    return similarity > other_similarity || (similarity == other_similarity && tie < other_tie);
}

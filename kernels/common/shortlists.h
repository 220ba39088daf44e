// Shortlists of regions between rounds of average linkage (cpu/linkage/rounds.h): nearest regions, and bounds of all others.

constexpr i64 RETIRED = -1;  // id of the nearest region of a region that has similarity 0 with every other
constexpr i64 UNKNOWN = -2;  // id of the nearest region before it is computed

// The counts of a round that the host reads, on a GPU: active regions, those whose list does not decide which region is nearest,
// entries in histograms of active regions, pairs that merged in the last round (-1 before the first), merges, rounds, entries of the
// arena in use, label comparisons, and searches.
#define COUNTS ACTIVE, UNKNOWNS, ENTRIES, PAIRS, MERGES, ROUNDS, USED, COMPARED, SEARCHED

// A pair before which no region outside the list comes in the total order. A tie of 0 excludes no region as similar as the bound.
struct Bound {
    f64 similarity;
    u64 tie;
};

// Rounding tolerances of a similarity, relative and absolute, and the bound of a list that holds all regions.
struct Tolerance {
    f64 slack, margin, nothing;
};

// The bound of the union of two regions: a similarity with it is the mean of those with its parts, of which the first has this
// share; similarities that are ratios are between those with its parts.
BOTH Bound union_bound(Bound one, Bound other, f64 share, bool ratio, const Tolerance& tolerance) {
    if (ratio) {
        if (one.similarity != other.similarity || other.tie == 0) one.tie = 0;
        if (one.similarity < other.similarity) one.similarity = other.similarity;
    } else if (one.similarity != other.similarity) {
        one.similarity = (share * one.similarity + (1.0 - share) * other.similarity) * (1.0 + 1e-15) + tolerance.margin;
        one.tie = 0;
    }
    return one;
}

// The bound after an entry was dropped from the list.
BOTH Bound raised_bound(Bound bound, Bound entry, bool ratio, const Tolerance& tolerance) {
    if (ratio && bound.tie == 0) entry.tie = 0;
    if (tolerance.slack > 0.0 || tolerance.margin > 0.0) {
        entry.similarity = entry.similarity * (1.0 + tolerance.slack) + tolerance.margin;
        entry.tie = 0;
    }
    bool first = comes_before(entry.similarity, entry.tie, bound.similarity, bound.tie);
    return entry.similarity > tolerance.nothing && first ? entry : bound;
}

// A query's K best regions, and a bound of all others (kernels/prelude.cuh has it for a warp).
#pragma once

#include <algorithm>
#include <vector>

#include "runtime/arrays.h"
#include "runtime/records.h"

namespace gpuens {

// Lists, per region, of its K nearest other regions, best first in the total order (order.h), and a bound of all regions
// outside the list: they come after (bound, bound_hash). In unused places, ids are -1 and similarities 0.
struct Shortlists {
    RECORD(Shortlists,
           (Matrix<i32>, ids),           // (G, K)
           (Matrix<f64>, similarities),  // (G, K)
           (Vector<f64>, bound),         // (G,)
           (Vector<u64>, bound_hash));   // (G,)

    i64 n_listed() const { return ids.columns; }
};

// Empty lists, whose bounds exclude nothing.
class OwnShortlists {
public:
    OwnShortlists(i64 n, i64 n_listed)
        : ids(n * n_listed, -1), similarities(n * n_listed), bound(n, __builtin_inf()), bound_hash(n) {}

    operator Shortlists() {
        i64 n = (i64)bound.size(), n_listed = n ? (i64)ids.size() / n : 0;
        return {{ids.data(), n, n_listed}, {similarities.data(), n, n_listed}, {bound.data(), n}, {bound_hash.data(), n}};
    }

private:
    std::vector<i32> ids;
    std::vector<f64> similarities, bound;
    std::vector<u64> bound_hash;
};

// The list of one region while it is searched anew: begin, add, end.
class Shortlist {
public:
    explicit Shortlist(const Shortlists& of_) : of(of_), n_listed(of.n_listed()), ties(n_listed) {}

    // Empty the list of region a; return the smallest similarity that it had, or 0 if it was not full.
    f64 begin(i64 a_) {
        take(a_);
        f64 smallest = __builtin_inf();
        for (i64 s = 0; s < n_listed; ++s) {
            smallest = std::min(smallest, ids[s] >= 0 ? similarities[s] : 0.0);
            ids[s] = -1;
            similarities[s] = 0.0;
        }
        return smallest;
    }

    // Begin with the similarities left as they are: only ids tell which places are used.
    void begin_over(i64 a_) {
        take(a_);
        std::fill(ids, ids + n_listed, -1);
    }

    bool full() const { return listed == n_listed; }
    i64 size() const { return listed; }
    f64 last() const { return similarities[n_listed - 1]; }
    u64 last_tie() const { return ties[n_listed - 1]; }
    bool admits(f64 similarity, u64 tie) const { return !full() || comes_before(similarity, tie, last(), last_tie()); }

    // Insert a region; of a full list, the last entry is dropped.
    void add(i64 r, f64 similarity, u64 tie) {
        i64 place = listed;
        if (!full())
            ++listed;
        else if (comes_before(similarity, tie, last(), last_tie()))
            --place;
        else
            return;
        for (; place > 0 && comes_before(similarity, tie, similarities[place - 1], ties[place - 1]); --place) {
            ids[place] = ids[place - 1];
            similarities[place] = similarities[place - 1];
            ties[place] = ties[place - 1];
        }
        ids[place] = (i32)r;
        similarities[place] = similarity;
        ties[place] = tie;
    }

    // Most regions have nothing in common: they are not listed.
    void add_similar(i64 r, f64 similarity) {
        if (similarity > 0.0) add(r, similarity, pair_hash(a, r));
    }

    // Write the bound of all others: the last entry of a full list, otherwise `nothing`.
    void end(f64 nothing = 0.0) const {
        of.bound[a] = full() ? last() : nothing;
        of.bound_hash[a] = full() ? last_tie() : NO_HASH;
    }

    // After the end: pairs as similar as the bound are not excluded, whatever their hash.
    void leave_ties_open() const { of.bound_hash[a] = 0; }

private:
    void take(i64 a_) {
        a = a_;
        ids = of.ids[a];
        similarities = of.similarities[a];
        listed = 0;
    }

    Shortlists of;
    i64 n_listed, a = -1, listed = 0;
    i32* ids = nullptr;
    f64* similarities = nullptr;
    std::vector<u64> ties;
};

}  // namespace gpuens

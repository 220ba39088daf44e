// ROCK's greedy merges of the pair of clusters with the best goodness (gpuens/partition/rock.py).
//
// Links are the upper triangle of all pairs of clusters, row by row: at(i, j), i < j. A cluster knows its best
// partner among later clusters. If the partner has merged, the goodness is stale: an upper bound, and the cluster
// searches again once no other goodness exceeds it.
#include "runtime/extremes.h"
#include "runtime/parallel.h"
#include "partition/primitives.h"

#include <cmath>
#include <numeric>

namespace gpuens {

namespace {

constexpr f64 PAIR_NS = 2;

// The best later partner; goodness is -1 if no later cluster is left or if the cluster itself has merged.
struct Partner {
    i64 place = -1;
    f64 goodness = -1.0;
    u64 tie = NO_HASH;
};

class Clusters {
public:
    Clusters(Vector<i64> links_, Vector<const i64> sizes_, Vector<const f64> powers_, f64 exponent_)
        : links(links_), powers(powers_), exponent(exponent_), sizes(sizes_.begin(), sizes_.end()), names(sizes.size()),
          partner(sizes.size()), best(sizes.size()), ties(sizes.size()), stale(sizes.size()), alive(sizes.size(), 1) {
        std::iota(names.begin(), names.end(), 0);
        i64 total = std::accumulate(sizes.begin(), sizes.end(), (i64)0);
        while (total >> shift >> 32) ++shift;
        tabled = total < powers.size;
    }

    i64 size() const { return (i64)sizes.size(); }

    void find_partners() {
        in_threads(size(), (f64)size() / 2 * PAIR_NS, [&](Ranges& ranges) {
            std::vector<f64> values(size());
            while (Range range = ranges.next())
                for (i64 i = range.start; i < range.stop; ++i) keep(i, find_partner(i, values));
        });
    }

    struct Merge {
        i64 kept, absorbed;
        f64 goodness;
    };

    // Merge the best pair; the union takes the place of the first of both.
    Merge merge(std::vector<f64>& values, std::vector<i64>& of_b) {
        i64 a = best_cluster();
        while (stale[a]) {
            keep(a, find_partner(a, values));
            a = best_cluster();
        }
        i64 b = partner[a];
        Merge merged{names[a], names[b], best[a]};
        alive[b] = 0;
        best[b] = -1.0;
        sizes[a] += sizes[b];
        sizes[b] = 0;  // size 0: sums of two sizes stay within the number of objects
        join(a, b, values, of_b);
        keep(a, find_partner(a, values));
        return merged;
    }

    // Remove the clusters that have merged, whose pairs would be read in vain.
    void close_gaps() {
        std::vector<i64> left, place(size() + 1, -1);  // the last place stands for "no partner"
        for (i64 i = 0; i < size(); ++i)
            if (alive[i]) {
                place[i] = (i64)left.size();
                left.push_back(i);
            }
        i64 filled = 0;
        for (size_t x = 0; x < left.size(); ++x) {
            const i64* row = links.data + row_of(left[x]);
            look();
            for (size_t y = x + 1; y < left.size(); ++y) links[filled++] = row[left[y]];
        }
        auto keep_left = [&](auto& of) {
            for (size_t x = 0; x < left.size(); ++x) of[x] = of[left[x]];
            of.resize(left.size());
        };
        for (i64& of : partner) of = of < 0 ? -1 : place[of];
        keep_left(sizes), keep_left(names), keep_left(partner), keep_left(best), keep_left(ties), keep_left(stale);
        alive.assign(left.size(), 1);
    }

private:
    // The position of pair (i, j), j > i, minus j.
    i64 row_of(i64 i) const { return i * (2 * size() - i - 1) / 2 - i - 1; }

    f64 power_of(i64 size) const { return tabled ? powers[size] : std::pow((f64)size, exponent); }

    f64 goodness(i64 link, i64 size, i64 other) const {
        // the powers of the parts are added first, so that (A, B) and (B, A) give the same number
        return (f64)link / (power_of(size + other) - (power_of(size) + power_of(other)));
    }

    // The key of a pair among pairs of equal goodness, smallest first: a hash; without links, the union's size first.
    u64 tie(i64 i, i64 j, f64 value) const {
        u64 hash = pair_hash(names[i], names[j]);
        return value > 0.0 ? hash : (u64)(sizes[i] + sizes[j]) >> shift << 32 | hash >> 32;
    }

    Partner find_partner(i64 i, std::vector<f64>& values) const {
        i64 later = size() - i - 1, own = sizes[i];
        const i64 *link = links.data + row_of(i) + i + 1, *other = sizes.data() + i + 1;
        const u8* is_alive = alive.data() + i + 1;
        f64* into = values.data();
        for (i64 j = 0; j < later; ++j) {
            f64 value = goodness(link[j], own, other[j]);
            into[j] = is_alive[j] ? value : -1.0;
        }
        Partner best_partner;
        i64 largest = bits_of_largest(into, later);
        for (i64 j = 0; j < later; ++j) {
            if (bits_of(into[j]) != largest) continue;
            u64 own_tie = tie(i, i + 1 + j, into[j]);
            if (best_partner.place < 0 || own_tie < best_partner.tie) best_partner = {i + 1 + j, into[j], own_tie};
        }
        return best_partner;
    }

    void keep(i64 i, Partner best_partner) {
        partner[i] = best_partner.place;
        best[i] = best_partner.goodness;
        ties[i] = best_partner.tie;
        stale[i] = 0;
    }

    i64 best_cluster() const {
        i64 largest = bits_of_largest(best.data(), size()), found = -1;
        for (i64 i = 0; i < size(); ++i)
            if (bits_of(best[i]) == largest && (found < 0 || ties[i] < ties[found])) found = i;
        return found;
    }

    // Add the links of b to those of a, and offer the union to earlier clusters.
    void join(i64 a, i64 b, std::vector<f64>& values, std::vector<i64>& of_b) {
        // without branches, even for clusters that have merged, because these reads are far apart in memory
        for (i64 c = 0; c < b; ++c) of_b[c] = links[row_of(c) + b];
        for (i64 c = 0; c < a; ++c) of_b[c] = links[row_of(c) + a] += of_b[c];
        for (i64 c = 0; c < a; ++c) values[c] = goodness(of_b[c], sizes[c], sizes[a]);
        for (i64 c = 0; c < a; ++c)
            if (!offer(c, a, values[c])) stale[c] |= partner[c] == a || partner[c] == b;
        i64 *row_a = links.data + row_of(a), *row_b = links.data + row_of(b);
        for (i64 c = a + 1; c < b; ++c) {
            row_a[c] += of_b[c];
            stale[c] |= partner[c] == b;
        }
        for (i64 c = b + 1; c < size(); ++c) row_a[c] += row_b[c];
    }

    // Make the union a the partner of cluster c if it is at least as good.
    bool offer(i64 c, i64 a, f64 value) {
        if (!alive[c] || value < best[c]) return false;
        u64 own_tie = tie(c, a, value);
        if (value == best[c] && own_tie > ties[c]) return false;
        keep(c, {a, value, own_tie});
        return true;
    }

    Vector<i64> links;
    Vector<const f64> powers;  // size^p
    f64 exponent;              // p
    bool tabled = false;       // true if `powers` covers the sizes of all unions
    int shift = 0;             // binary places of a size that ties ignore
    std::vector<i64> sizes, names, partner;
    std::vector<f64> best;
    std::vector<u64> ties;
    std::vector<u8> stale, alive;
};

}  // namespace

void copy_links(i64 start, Matrix<const i64> rows, i64 n, Vector<i64> links) {
    for (i64 r = 0; r < rows.rows; ++r) {
        i64 i = start + r, first = i * (2 * n - i - 1) / 2;
        std::copy(rows[r] + r + 1, rows[r] + rows.columns, links.data + first);
    }
}

void merge_by_goodness(Vector<i64> links, Vector<const i64> sizes, std::tuple<Vector<const f64>, f64> powers,
                       f64 shrink_at, Vector<i64> kept, Vector<i64> absorbed, Vector<f64> goodness,
                       const std::function<void(i64)>& merged) {
    if (kept.size == 0) return;
    auto [of_small, exponent] = powers;
    Clusters clusters(links, sizes, of_small, exponent);
    clusters.find_partners();
    std::vector<f64> values(sizes.size);
    std::vector<i64> of_b(sizes.size);
    i64 n_left = sizes.size, told = 0;
    Pace pace;
    for (i64 m = 0; m < kept.size; ++m) {
        look();
        auto merge = clusters.merge(values, of_b);
        kept[m] = merge.kept, absorbed[m] = merge.absorbed, goodness[m] = merge.goodness;
        bool has_gaps = --n_left <= (i64)(shrink_at * (f64)clusters.size()), is_unfinished = m + 1 < kept.size;
        if (has_gaps && is_unfinished) clusters.close_gaps();
        if (pace.due() || !is_unfinished) {
            call_python(merged, m + 1 - told);
            told = m + 1;
        }
    }
}

}  // namespace gpuens

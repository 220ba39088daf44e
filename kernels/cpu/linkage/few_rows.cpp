// Average linkage of few rows by a matrix of all pairs of regions, in one thread (gpuens/partition/linkage/few_rows.py).
//
// Row a of the matrix has Σ_c w_c n_a[c] n_r[c] for each region r; the sums of a union are those of its parts. A region's row
// is brought up to date, by the merges since it was last, when it is searched or merges. Sums of whole numbers are exact. Other
// sums depend on the order in which they were added up: they choose candidates, whose similarities come from histograms.
#include <algorithm>
#include <bit>
#include <limits>
#include <memory>
#include <numeric>

#include "extremes.h"
#include "lanes.h"
#include "linkage/primitives.h"
#include "linkage/rounds.h"
#include "parallel.h"

namespace gpuens {

namespace {

constexpr i64 BLOCK = 64;                  // columns whose highest score is kept, and rows that are mirrored at a time
constexpr i64 VECTOR = 8;                  // columns scored together
constexpr i64 NEVER = std::numeric_limits<i64>::max() / 2;  // more than the bits of any score

// The matrix (G, G), whose rows are padded with zeros to whole blocks.
class Sums {
public:
    explicit Sums(i64 n_) : n(n_), width(width_for(n_)), sums(new f64[n_ * width]) {}

    f64* operator[](i64 a) const { return sums.get() + a * width; }
    i64 size() const { return n; }
    i64 blocks() const { return (n + BLOCK - 1) / BLOCK; }

    // Keep only the rows and columns `some`, ascending.
    void keep(const std::vector<i64>& some) {
        i64 fewer = (i64)some.size(), narrower = width_for(fewer);
        for (i64 a = 0; a < fewer; ++a) {
            f64 *to = sums.get() + a * narrower, *from = (*this)[some[a]];
            for (i64 c = 0; c < fewer; ++c) to[c] = from[some[c]];
            std::fill(to + fewer, to + narrower, 0.0);
        }
        n = fewer;
        width = narrower;
    }

    // Write the weight of the common labels of each two rows times the product of their sizes, and 0 on the diagonal.
    template <typename Code>
    void add_labels(Matrix<const Code> codes, Vector<const i64> offsets, Vector<const f64> weights,
                    Vector<const i64> sizes) {
        std::vector<Code> tiles = in_tiles(codes);
        std::vector<f64> worth(codes.rows);
        for (i64 low = 0; low < n; low += BLOCK) {
            look();
            i64 high = std::min(low + BLOCK, n);
            for (i64 i = low; i < high; ++i) {
                const Code* own = &tiles[low * codes.rows + i - low];
                for (i64 m = 0; m < codes.rows; ++m) {
                    Code label = own[m * BLOCK];
                    worth[m] = label == MISSING(Code) ? 0.0 : weights[offsets[m] + label];
                }
                f64* sums = (*this)[i];
                for (i64 first = 0; first <= low; first += BLOCK)
                    add_tile(own, &tiles[first * codes.rows], worth, sums + first);
                for (i64 j = 0; j < i; ++j) sums[j] *= (f64)(sizes[i] * sizes[j]);
                std::fill(sums + i, sums + width, 0.0);
            }
            mirror(low, high);
        }
    }

private:
    // Whole blocks, and a line more: rows one below the other would otherwise compete for the same place in a cache.
    static i64 width_for(i64 n) { return (n + BLOCK - 1) / BLOCK * BLOCK + VECTOR; }

    // The labels of BLOCK rows side by side, for each clustering and then for the next rows; the last rows are padded.
    template <typename Code>
    static std::vector<Code> in_tiles(Matrix<const Code> codes) {
        std::vector<Code> tiles((codes.columns + BLOCK - 1) / BLOCK * BLOCK * codes.rows, MISSING(Code));
        for (i64 first = 0; first < codes.columns; first += BLOCK)
            for (i64 m = 0; m < codes.rows; ++m)
                std::copy_n(codes[m] + first, std::min(BLOCK, codes.columns - first),
                            &tiles[first * codes.rows + m * BLOCK]);
        return tiles;
    }

    // Write the weights of the labels that a row has in common with the rows of a tile, added up.
    template <typename Code>
    static void add_tile(const Code* own, const Code* tile, const std::vector<f64>& worth, f64* sums) {
        Lanes<f64, BLOCK> totals = {};
        for (i64 m = 0; m < (i64)worth.size(); ++m) totals.plus_where(tile + m * BLOCK, own[m * BLOCK], worth[m]);
        totals.store(sums);
    }

    // Copy the sums of rows low ... high - 1 with earlier ones to these rows.
    void mirror(i64 low, i64 high) {
        for (i64 first = 0; first < high; first += BLOCK)
            for (i64 j = first; j < std::min(first + BLOCK, high); ++j)
                for (i64 i = std::max(low, j + 1); i < high; ++i) (*this)[j][i] = (*this)[i][j];
    }

    i64 n, width;
    std::unique_ptr<f64[]> sums;
};

// What a search finds: the nearest region, the similarity with it, and the bits of a bound of all other scores.
struct Nearest {
    i64 region = UNKNOWN;
    f64 similarity = 0.0;
    i64 bound = NEVER;
};

// Rounds of pairs of regions that are each other's nearest. Regions are numbered by their places in the matrix, from which
// those that are gone are removed once they are half of it; `name` has their smallest rows.
//
// `Similarity` has the exact similarity of two regions, and unites histograms where it needs them.
template <typename Similarity>
class FewRows {
public:
    FewRows(Sums& sums_, Vector<i64> size_, Similarity& similarity_, i64 slack_)
        : sums(sums_), size(size_), similarity(similarity_), slack(slack_), name(size.size), scores(sums.blocks() * BLOCK),
          highest(sums.blocks()) {
        std::iota(name.begin(), name.end(), (i64)0);
        nearest.resize(size.size);
        begin_anew();
        for (auto* of : {&kept, &absorbed}) of->reserve(size.size);
        heights.reserve(size.size);
    }

    void run() {
        for (bool paired = true; !active.empty(); paired = !pairs.empty()) {
            bool searched = search_unknown();
            if (!paired && !searched) pair_best();
            pair_up();
            unite();
            for (i64 c : active) look_up(c);
            for (auto [a, b] : pairs) merged[a] = merged[b] = false;
            if (2 * (i64)active.size() <= sums.size()) remove_gone();
        }
    }

    std::vector<i64> kept, absorbed;  // by name
    std::vector<f64> heights;
    i64 rounds = 0, searches = 0;

private:
    struct Pair {
        i32 a, b;
    };

    bool search_unknown() {
        i64 before = searches;
        for (i64 a : active) {
            if (nearest[a].region != UNKNOWN) continue;
            look();
            catch_up(a);
            nearest[a] = search(a);
            ++searches;
        }
        return searches > before;
    }

    // Add the columns of absorbed regions to those of kept regions in row a, by all merges before this round.
    void catch_up(i64 a) {
        f64* row = sums[a];
        for (std::size_t p = caught_up[a]; p < made.size(); ++p) row[made[p].a] += row[made[p].b];
        caught_up[a] = made.size();
    }

    Nearest search(i64 a) {
        i64 most = score(sums[a]);
        if (most == 0) return {RETIRED, 0.0, 0};  // no cluster in common with any other region
        Nearest found{RETIRED};
        i64 at_least = std::max((i64)1, most - slack);
        u64 best_tie = NO_HASH;
        for (i64 t = 0; t < sums.blocks(); ++t) {
            if (highest[t] < at_least) continue;
            for (i64 b = t * BLOCK; b < (t + 1) * BLOCK; ++b) {
                if (bits_of(scores[b]) < at_least) continue;
                f64 own = similarity_of(a, b);
                u64 tie = pair_hash(name[a], name[b]);
                if (found.region >= 0 && !comes_before(own, tie, found.similarity, best_tie)) continue;
                found.region = b;
                found.similarity = own;
                best_tie = tie;
            }
        }
        scores[found.region] = 0.0;
        highest[found.region / BLOCK] = highest_of(found.region / BLOCK);
        found.bound = *std::max_element(highest.begin(), highest.begin() + sums.blocks());
        return found;
    }

    // Write the score of each region from its sum, and the highest of each block; return the highest of all. Scores are
    // proportional to similarities, and 0 for absorbed regions.
    i64 score(const f64* row) {
        using Floats = Native<f64, VECTOR>;
        i64 most = 0;
        for (i64 t = 0; t < sums.blocks(); ++t) {
            Native<i64, VECTOR> high{};
            for (i64 b = t * BLOCK; b < (t + 1) * BLOCK; b += VECTOR) {
                Floats own = loaded<Floats>(row + b) * loaded<Floats>(&per_object[b]);
                std::memcpy(&scores[b], &own, sizeof own);
                auto bits = (Native<i64, VECTOR>)own;
                high = bits > high ? bits : high;
            }
            highest[t] = 0;
            for (i64 lane = 0; lane < VECTOR; ++lane) highest[t] = std::max(highest[t], (i64)high[lane]);
            most = std::max(most, highest[t]);
        }
        return most;
    }

    i64 highest_of(i64 t) const {
        i64 high = 0;
        for (i64 b = t * BLOCK; b < (t + 1) * BLOCK; ++b) high = std::max(high, bits_of(scores[b]));
        return high;
    }

    f64 similarity_of(i64 a, i64 b) const { return similarity(sums[a][b], name[a], name[b]); }

    // Rounding errors made the nearest regions form a cycle: pair the two most similar ones.
    void pair_best() {
        i64 best = active[0];
        for (i64 a : active)
            if (nearest[a].similarity > nearest[best].similarity) best = a;
        Nearest& other = nearest[nearest[best].region];
        other.region = best;
        other.similarity = nearest[best].similarity;
    }

    void pair_up() {
        pairs.clear();
        for (i64 a : active) {
            i64 b = nearest[a].region;
            if (a >= b || nearest[b].region != a) continue;
            pairs.push_back({(i32)a, (i32)b});
            kept.push_back(name[a]);
            absorbed.push_back(name[b]);
            heights.push_back(nearest[a].similarity);
        }
        rounds += !pairs.empty();
    }

    // Merge the pairs of this round.
    void unite() {
        i64 n = (i64)pairs.size(), first = (i64)kept.size() - n;
        similarity.unite({&kept[first], n}, {&absorbed[first], n});
        for (auto [a, b] : pairs) {
            merged[a] = merged[b] = true;
            into[b] = a;
            size[name[a]] += size[name[b]];
        }
        std::erase_if(active, [&](i64 a) { return nearest[a].region < 0 || into[a] != a; });
        for (auto [a, b] : pairs) add_rows(a, b);
        made.insert(made.end(), pairs.begin(), pairs.end());
    }

    // Write the sums of the union of regions a and b, up to date but for the merges of this round.
    void add_rows(i64 a, i64 b) {
        catch_up(a);
        catch_up(b);
        f64 *own = sums[a], *other = sums[b];
        for (i64 c = 0; c < sums.size(); ++c) own[c] += other[c];
        own[a] = own[b] = 0.0;
        per_object[a] = 1.0 / (f64)size[name[a]];
        per_object[b] = 0.0;
    }

    // Find what the merges of this round made of region c's nearest region.
    void look_up(i64 c) {
        Nearest& of = nearest[c];
        if (merged[c]) {
            of.region = UNKNOWN;
        } else if (merged[of.region]) {
            i64 all = into[of.region];
            bool sure = bits_of(sums[all][c] * per_object[all]) > of.bound + slack;  // no other region is nearer
            of.region = sure ? all : UNKNOWN;
            if (sure) of.similarity = similarity_of(all, c);
        }
    }

    void remove_gone() {
        std::vector<i64> place(sums.size(), -1);
        for (std::size_t i = 0; i < active.size(); ++i) {
            i64 a = active[i];
            catch_up(a);
            place[a] = (i64)i;
            name[i] = name[a];
            nearest[i] = nearest[a];
        }
        sums.keep(active);
        name.resize(active.size());
        nearest.resize(active.size());
        for (Nearest& of : nearest)
            if (of.region >= 0) of.region = place[of.region];
        begin_anew();
    }

    // Number the regions of the matrix, none of which is gone.
    void begin_anew() {
        i64 n = sums.size();
        made.clear();
        caught_up.assign(n, 0);
        merged.assign(n, false);
        active.resize(n);
        into.resize(n);
        std::iota(active.begin(), active.end(), (i64)0);
        std::iota(into.begin(), into.end(), (i64)0);
        per_object.assign(sums.blocks() * BLOCK, 0.0);
        for (i64 a = 0; a < n; ++a) per_object[a] = 1.0 / (f64)size[name[a]];
    }

    Sums& sums;
    Vector<i64> size;  // by name
    Similarity& similarity;
    i64 slack;  // units in the last place by which scores differ at most, added up in different orders
    std::vector<i64> name, active, into;
    std::vector<Pair> pairs, made;  // the merges of this round, and those before since the matrix was made
    std::vector<std::size_t> caught_up;  // merges that each row has added up
    std::vector<char> merged;       // whether each region has merged in this round
    std::vector<Nearest> nearest;
    std::vector<f64> per_object, scores;
    std::vector<i64> highest;
};

// Whole sums are exact.
struct OfWholeSums {
    Vector<i64> size;
    i64 n_clusterings;

    f64 operator()(f64 sum, i64 a, i64 b) const { return sum / (f64)(size[a] * size[b] * n_clusterings); }
    void unite(Vector<const i64>, Vector<const i64>) {}
};

struct OfHistograms {
    Regions& regions;
    Vector<const f64> weights;
    i64 n_clusterings;

    f64 operator()(f64, i64 a, i64 b) const { return Similarities<f64>{regions, weights.data, n_clusterings}(a, b); }
    void unite(Vector<const i64> kept, Vector<const i64> absorbed) { regions.unite(kept, absorbed); }
};

template <typename Similarity>
std::tuple<i64, i64> link(Sums& sums, Vector<i64> size, Similarity similarity, i64 slack, const Merges& sorted) {
    FewRows<Similarity> rows(sums, size, similarity, slack);
    rows.run();
    i64 n = (i64)rows.kept.size();
    sort_merges({rows.kept.data(), n}, {rows.absorbed.data(), n}, {rows.heights.data(), n}, sorted);
    return {rows.rounds, rows.searches};
}

}  // namespace

std::tuple<i64, i64> link_few(Codes<Matrix> columns, Vector<const i64> offsets, Vector<const f64> weights, bool whole,
                              Vector<const i64> counts, const Merges& sorted) {
    std::vector<i64> sizes(counts.begin(), counts.end());
    Vector<i64> size{sizes.data(), counts.size};
    Sums sums(size.size);
    i64 n_clusterings = offsets.size - 1, slack = 16 * (weights.size + size.size + 8);
    std::visit([&](auto of) { sums.add_labels(of, offsets, weights, counts); }, columns);
    if (whole) return link(sums, size, OfWholeSums{size, n_clusterings}, slack, sorted);
    Regions regions(columns, offsets, counts);
    return link(sums, size, OfHistograms{regions, weights, n_clusterings}, slack, sorted);
}

}  // namespace gpuens

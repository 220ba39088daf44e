// Nearest regions by a matrix of all pairs of regions (rounds.h), for few rows.
//
// Below about 1,500 rows, lists, threads and a NumPy call for each step cost more than the arithmetic. Row a of the
// matrix has sum_c w_c n_a[c] n_r[c] for each region r; the sums of a union are those of its parts. A region's row is
// brought up to date, by the merges since it was last, when it is searched or merges. Sums of whole numbers are exact.
// Other sums depend on the order in which they were added up: they choose candidates, whose similarities come from
// histograms.
//
// A table (pair_table.h) would do for few rows, too, in a fourth of the memory, but takes 1.1 to 3.7 times as long for
// 200 to 1,500 rows of 20 clusterings. A matrix of many rows would be filled too slowly: a label compared takes four
// times as long.
#pragma once

#include <bit>

#include "runtime/extremes.h"
#include "runtime/lanes.h"
#include "linkage/rounds.h"

namespace gpuens {

namespace matrices {

constexpr i64 BLOCK = 64;                  // columns whose highest score is kept, and rows that are mirrored at a time
constexpr i64 VECTOR = 8;                  // columns scored together

// The matrix (G, G), whose rows are padded with zeros to whole blocks.
class Sums {
public:
    explicit Sums(i64 n_) : n(n_), width(width_for(n_)), sums(new f64[n_ * width]) {}

    f64* operator[](i64 a) const { return sums.get() + a * width; }
    i64 size() const { return n; }
    i64 blocks() const { return (n + BLOCK - 1) / BLOCK; }

    // Keep only the rows and columns `places`, ascending.
    void keep(const std::vector<i64>& places) {
        i64 fewer = (i64)places.size(), narrower = width_for(fewer);
        for (i64 a = 0; a < fewer; ++a) {
            f64 *to = sums.get() + a * narrower, *from = (*this)[places[a]];
            for (i64 c = 0; c < fewer; ++c) to[c] = from[places[c]];
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
                const Code* labels = &tiles[low * codes.rows + i - low];
                for (i64 m = 0; m < codes.rows; ++m) {
                    Code label = labels[m * BLOCK];
                    worth[m] = label == MISSING(Code) ? 0.0 : weights[offsets[m] + label];
                }
                f64* sums = (*this)[i];
                for (i64 first = 0; first <= low; first += BLOCK)
                    add_tile(labels, &tiles[first * codes.rows], worth, sums + first);
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
    static void add_tile(const Code* labels, const Code* tile, const std::vector<f64>& worth, f64* sums) {
        Lanes<f64, BLOCK> totals = {};
        for (i64 m = 0; m < (i64)worth.size(); ++m) totals.plus_where(tile + m * BLOCK, labels[m * BLOCK], worth[m]);
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

}  // namespace matrices

// Whole sums are exact.
struct OfWholeSums {
    const std::vector<i64>& size;  // objects of each region
    i64 n_clusterings;

    f64 operator()(f64 sum, i64 a, i64 b) const { return sum / (f64)(size[a] * size[b] * n_clusterings); }
    void unite(const State&) {}
    void retire(i64) {}
};

struct OfHistograms {
    Regions& regions;
    Vector<const f64> weights;
    i64 n_clusterings;

    f64 operator()(f64, i64 a, i64 b) const { return Similarities<f64>{regions, weights.data, n_clusterings}(a, b); }
    void unite(const State& state) { regions.unite(state.last_kept(), state.last_absorbed()); }
    void retire(i64 a) { regions.retire(a); }
};

// Regions have places in the matrix, from which those that are gone are removed once they are half of it.
//
// `Similarity` has the exact similarity of two regions, and unites histograms where it needs them.
template <typename Similarity>
class PairMatrix {
public:
    // size (G,): numbers of objects; slack: units in the last place by which scores differ at most, added up in
    // different orders.
    PairMatrix(State& state_, matrices::Sums& sums_, std::vector<i64>& size_, Similarity similarity_, i64 slack_)
        : state(state_), sums(sums_), size(size_), similarity(similarity_), slack(slack_), place(size.size()),
          bound(size.size(), NEVER), changed(size.size()), stale(size.size()),
          scores(sums.blocks() * BLOCK), highest(sums.blocks()) {
        begin_anew();
    }

    i64 searches = 0;

    i64 find() {
        i64 before = searches;
        for (i64 a : state.left()) {
            if (state.nearest[a] != UNKNOWN) continue;
            look();
            catch_up(place[a]);
            search(a);
            ++searches;
        }
        return searches - before;
    }

    const std::vector<i64>& updated_regions() { return state.left(); }

    // Nearest regions are always current, but similarities are computed late, because few of them are needed.
    void settle(Vector<const i64> queries) {
        for (i64 a : queries) {
            if (!stale[a]) continue;
            catch_up(place[a]);
            state.nearest_similarity[a] = similarity_of(place[a], place[state.nearest[a]]);
            stale[a] = false;
        }
    }

    void retire(i64 a) { similarity.retire(a); }

    void unite() {
        similarity.unite(state);
        Vector<const i64> kept = state.last_kept(), absorbed = state.last_absorbed();
        for (i64 p = 0; p < kept.size; ++p) {
            i64 a = kept[p], b = absorbed[p];
            size[a] += size[b];
            changed[a] = changed[b] = true;
            add_rows(place[a], place[b], size[a]);
        }
        for (i64 p = 0; p < kept.size; ++p) merges.push_back({(i32)place[kept[p]], (i32)place[absorbed[p]]});
        for (i64 c : state.left()) look_up(c);
        for (i64 p = 0; p < kept.size; ++p) changed[kept[p]] = changed[absorbed[p]] = false;
        if (2 * state.n_left() <= sums.size()) remove_gone();
    }

private:
    static constexpr i64 BLOCK = matrices::BLOCK, VECTOR = matrices::VECTOR;
    static constexpr i64 NEVER = std::numeric_limits<i64>::max() / 2;  // above the bits of any score

    struct Pair {
        i32 kept, absorbed;
    };

    // Add the columns of absorbed regions to those of kept regions in a row, by all merges before this round.
    void catch_up(i64 p) {
        f64* row = sums[p];
        for (std::size_t i = caught_up[p]; i < merges.size(); ++i) row[merges[i].kept] += row[merges[i].absorbed];
        caught_up[p] = merges.size();
    }

    // Find the nearest region of region a, and the bits of a bound of all other scores.
    void search(i64 a) {
        i64 highest_bits = score(sums[place[a]]);
        state.nearest[a] = RETIRED;
        if (highest_bits == 0) return;  // isolated: shares no cluster with another region
        candidates.clear();
        i64 at_least = std::max((i64)1, highest_bits - slack);
        for (i64 t = 0; t < sums.blocks(); ++t) {
            if (highest[t] < at_least) continue;
            for (i64 p = t * BLOCK; p < (t + 1) * BLOCK; ++p)
                if (bits_of(scores[p]) >= at_least) candidates.push_back(p);
        }
        i64 nearest = candidates.size() == 1 ? candidates[0] : nearest_candidate(a);
        stale[a] = candidates.size() == 1;
        scores[nearest] = 0.0;
        highest[nearest / BLOCK] = highest_of(nearest / BLOCK);
        bound[a] = *std::max_element(highest.begin(), highest.begin() + sums.blocks());
        state.nearest[a] = name[nearest];
    }

    i64 nearest_candidate(i64 a) {
        i64 nearest = -1;
        Bound best = {0.0, NO_HASH};
        for (i64 p : candidates) {
            Bound entry = {similarity_of(place[a], p), pair_hash(a, name[p])};
            if (nearest >= 0 && !comes_before(entry.similarity, entry.tie, best.similarity, best.tie)) continue;
            nearest = p;
            best = entry;
        }
        state.nearest_similarity[a] = best.similarity;
        return nearest;
    }

    // Write the score of each region from its sum, and the highest of each block; return the highest of all. Scores are
    // proportional to similarities, and 0 for absorbed regions.
    i64 score(const f64* row) {
        using Floats = Native<f64, VECTOR>;
        i64 largest = 0;
        for (i64 t = 0; t < sums.blocks(); ++t) {
            Native<i64, VECTOR> high{};
            for (i64 b = t * BLOCK; b < (t + 1) * BLOCK; b += VECTOR) {
                Floats products = loaded<Floats>(row + b) * loaded<Floats>(&per_object[b]);
                std::memcpy(&scores[b], &products, sizeof products);
                auto bits = (Native<i64, VECTOR>)products;
                high = bits > high ? bits : high;
            }
            highest[t] = 0;
            for (i64 lane = 0; lane < VECTOR; ++lane) highest[t] = std::max(highest[t], (i64)high[lane]);
            largest = std::max(largest, highest[t]);
        }
        return largest;
    }

    i64 highest_of(i64 t) const {
        i64 high = 0;
        for (i64 b = t * BLOCK; b < (t + 1) * BLOCK; ++b) high = std::max(high, bits_of(scores[b]));
        return high;
    }

    // The similarity of the regions at two places; row p is up to date.
    f64 similarity_of(i64 p, i64 q) const { return similarity(sums[p][q], name[p], name[q]); }

    // Write the sums of the union of the regions at two places, up to date but for the merges of this round.
    void add_rows(i64 p, i64 q, i64 n_objects) {
        catch_up(p);
        catch_up(q);
        f64 *union_row = sums[p], *absorbed_row = sums[q];
        for (i64 c = 0; c < sums.size(); ++c) union_row[c] += absorbed_row[c];
        union_row[p] = union_row[q] = 0.0;
        per_object[p] = 1.0 / (f64)n_objects;
        per_object[q] = 0.0;
    }

    // Update region c's nearest region after the merges of this round.
    void look_up(i64 c) {
        i64& nearest = state.nearest[c];
        if (changed[c]) {
            nearest = UNKNOWN;
        } else if (changed[nearest]) {
            i64 region = state.now(nearest), p = place[region];
            // true if all other regions are surely farther
            bool sure = bits_of(sums[p][place[c]] * per_object[p]) > bound[c] + slack;
            nearest = sure ? region : UNKNOWN;
            stale[c] = true;
        }
    }

    void remove_gone() {
        std::vector<i64> places;
        for (i64 a : state.left()) {
            catch_up(place[a]);
            places.push_back(place[a]);
        }
        sums.keep(places);
        begin_anew();
    }

    // Give a place to each region that is left, the places of the matrix.
    void begin_anew() {
        name = state.left();
        merges.clear();
        caught_up.assign(name.size(), 0);
        per_object.assign(sums.blocks() * BLOCK, 0.0);
        for (std::size_t p = 0; p < name.size(); ++p) {
            place[name[p]] = (i64)p;
            per_object[p] = 1.0 / (f64)size[name[p]];
        }
    }

    State& state;
    matrices::Sums& sums;
    std::vector<i64>& size;
    Similarity similarity;
    i64 slack;
    std::vector<i64> name, place;        // the region at each place, and the place of each region
    std::vector<i64> bound;              // bits of a bound of the scores of all but the nearest region
    std::vector<char> changed;           // regions that have merged in this round
    std::vector<char> stale;             // regions whose similarity with the nearest one is outdated
    std::vector<i64> candidates;         // places of regions that may be the nearest of one region
    std::vector<Pair> merges;              // places of merges since the matrix was made
    std::vector<std::size_t> caught_up;  // merges that each row has added up
    std::vector<f64> per_object, scores;
    std::vector<i64> highest;
};

}  // namespace gpuens

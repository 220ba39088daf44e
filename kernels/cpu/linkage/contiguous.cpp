// Average linkage of neighbours: of all pairs of adjacent regions, the most similar pair merges, until no pair is left.
//
// A region A has n_A objects and sums a_c; the similarity of A and B is Σ_c w_c a_c b_c / (n_A n_B). Of equally similar
// pairs, that with the smaller (larger rank, smaller rank) merges first, where a region's rank is a fixed hash of its
// smallest leaf. For any fixed A, this is the order of the other regions' ranks (common/order.h has no such order).
//
// Only adjacent regions merge, so the union of two nearest neighbours can be nearer to a third than both of them were.
// Rounds of reciprocal neighbours would be wrong; a queue has the best pair instead. Each change of a region gives it a
// new stamp. A region offers its best pair among the neighbours with smaller stamps, so that the later of two
// neighbours answers for their pair. When an offered neighbour has changed, the region offers its next best pair; it
// need not look at neighbours that changed after it, and a region is at most once in the queue for each of its stamps.
//
// A hub, a region of many neighbours, changes often, and must not compute all similarities each time:
//   - similarities with neighbours are bounded. When A absorbs B, the sum of similarities of a neighbour C rises by
//     at most
//     Σ_c w_c b_c n_C max_c, where max_c is the largest value of an object, over the clusters c that occur outside A.
//     These
//     `drifts` are added up, and a bound is a constant minus what the drift was, so that the order of bounds never
//     changes.
//   - neighbours that are equal, in their number of objects and in their sums, have one bound.
// Bounds are whole numbers, so that their comparison is exact. Similarities of two hubs are computed at each change.
#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>
#include <span>
#include <unordered_map>

#include "linkage/primitives.h"
#include "linkage/union_find.h"
#include "runtime/parallel.h"

namespace gpuens {

namespace {

constexpr i64 MOST_NEIGHBORS = 64;       // neighbours beyond which a region is a hub
constexpr i64 MOST_LISTED = 1024;        // entries of a list of sums; longer ones become arrays of all clusters
constexpr i64 ARRAY_BYTES = 1ll << 28;   // bytes of all arrays of sums that replace long lists
constexpr f64 ROUNDED_UP = 1.0 + 1e-9;   // factor that covers the rounding errors of a similarity and its bound
constexpr f64 SCORE_NS = 50.0;           // time of a similarity
constexpr i32 GONE = -1;                 // stamp of a region that was absorbed

u32 rank_of(i32 name) {  // the finaliser of MurmurHash3, a bijection
    u32 x = (u32)name;
    x = (x ^ x >> 16) * 0x85EBCA6Bu;
    x = (x ^ x >> 13) * 0xC2B2AE35u;
    return x ^ x >> 16;
}

u64 tie_of(i32 a, i32 b) {
    u32 one = rank_of(a), other = rank_of(b);
    return (u64)std::max(one, other) << 32 | std::min(one, other);
}

// A region as it was at a stamp; leaves have the stamps 0 ... G - 1, and the union of merge i has G + i.
struct Version {
    i32 name, stamp;
};

// A pair of regions and its similarity.
struct Pair {
    f64 similarity;
    Version a, b;

    bool operator<(const Pair& other) const {  // the last one merges first
        if (similarity != other.similarity) return similarity < other.similarity;
        return tie_of(a.name, b.name) > tie_of(other.a.name, other.b.name);
    }
};

// Sums of a region's rows: a list of clusters, ascending, and their values, or for `columns` null an array of all
// clusters.
template <typename Value>
struct Sums {
    const i32* columns;
    const Value* values;
    i64 length;

    i64 column(i64 i) const { return columns ? columns[i] : i; }
};

// The sums of a union.
class Union {
public:
    Union() = default;
    explicit Union(i64 length_, bool listed) : length((i32)length_) {
        memory = std::make_unique_for_overwrite<std::byte[]>(length * (sizeof(i64) + (listed ? sizeof(i32) : 0)));
        first_column = listed ? (i32*)(values() + length) : nullptr;
    }

    i64* values() const { return (i64*)memory.get(); }
    i32* columns() const { return first_column; }
    operator Sums<i64>() const { return {first_column, values(), length}; }

private:
    std::unique_ptr<std::byte[]> memory;
    i32* first_column = nullptr;
    i32 length = 0;
};

// Equal neighbours of a hub.
struct Group {
    i64 n_objects;  // objects of each member
    f64 product;    // Σ_c w_c a_c b_c when the hub's drift was `drift`
    i64 drift;
    i64 bound;      // value of the group's only valid entry of the hub's bounds
    u32 rank;       // rank in that entry
    std::vector<std::pair<u32, Version>> members;  // heap, the smallest rank on top
};

// A bound of the products of a group, per object of its members and minus the drift.
struct Bound {
    i64 bound;
    u32 rank;
    i32 group;

    bool operator<(const Bound& other) const {  // the last one comes first
        return bound != other.bound ? bound < other.bound : rank > other.rank;
    }
};

struct Hub {
    std::vector<Version> arrivals;  // neighbours that are in no group yet
    std::vector<i32> hubs;          // the neighbours that are hubs, by names that may have been absorbed
    std::vector<Pair> pairs;        // heap of the pairs with them, since `paired`
    i32 paired = GONE;
    std::unordered_map<u64, i32> group_of;  // group of each hash of a number of objects and sums
    std::vector<Group> groups;
    std::vector<Bound> bounds;  // heap
    i64 drift = 0;
};

template <typename Item>
void push(std::vector<Item>& heap, Item item) {
    heap.push_back(item);
    std::push_heap(heap.begin(), heap.end());
}

template <typename Item>
Item pop(std::vector<Item>& heap) {
    std::pop_heap(heap.begin(), heap.end());
    Item item = heap.back();
    heap.pop_back();
    return item;
}

constexpr auto by_rank = [](const auto& one, const auto& other) { return one.first > other.first; };

// Products with `whole` weights, which are 1, are exact where int64 holds them. Others are added up in float64, in the
// order of the clusters.
template <typename Value, bool whole>
class Contiguous {
public:
    Contiguous(const Neighbors& graph_, Vector<const i64> counts, const SparseRows<Value>& rows_,
               Vector<const f64> weights_)
        : n_leaves(counts.size), graph(graph_), rows(rows_), weights(weights_), stamp(n_leaves),
          size(counts.begin(), counts.end()), unions(n_leaves), lists(n_leaves), hubs(n_leaves),
          collected_at(n_leaves, -1),
          names(n_leaves), spread(weights.size) {
        std::iota(stamp.begin(), stamp.end(), 0);
        measure_clusters();
    }

    // Merge until the arrays are full; return the number of merges.
    i64 run(const Merges& merges) {
        offer_leaves();
        Looks looks;
        i64 n = 0;
        while (n < merges.kept.size && !queue.empty()) {
            looks();
            Pair best = pop(queue);
            if (stamp[best.a.name] != best.a.stamp) continue;
            if (stamp[best.b.name] != best.b.stamp) {
                offer(best.a.name);
                continue;
            }
            i32 kept = std::min(best.a.name, best.b.name), absorbed = std::max(best.a.name, best.b.name);
            merge(kept, absorbed, (i32)(n_leaves + n));
            merges.kept[n] = kept;
            merges.absorbed[n] = absorbed;
            merges.heights[n++] = best.similarity;
            offer(kept);
        }
        return n;
    }

private:
    bool is_leaf(i32 a) const { return stamp[a] < n_leaves; }
    Version version(i32 a) const { return {a, stamp[a]}; }
    bool is_current(Version v) const { return stamp[v.name] == v.stamp; }

    Sums<Value> row(i32 leaf) const {
        i64 start = rows.starts[leaf];
        return {rows.columns.data + start, rows.values.data + start, rows.starts[leaf + 1] - start};
    }

    template <typename Function>
    auto with_sums(i32 a, const Function& function) const {
        return is_leaf(a) ? function(row(a)) : function((Sums<i64>)unions[a]);
    }

    // --- similarities
    // ---------------------------------------------------------------------------------------------------

    // The product of a list, or an array, and an array of regions that have so many pairs of objects.
    template <typename Other>
    f64 product(const Sums<Other>& sums, const i64* dense, f64 n_pairs) const {
        if (whole && n_pairs < most_pairs)
            return (f64)sum_over(sums, [&](i64 c, i64 value) { return dense[c] * value; });
        return sum_over(sums, [&](i64 c, i64 value) { return weights[c] * ((f64)dense[c] * (f64)value); });
    }

    template <typename Other, typename Term>
    static auto sum_over(const Sums<Other>& sums, const Term& term) {
        decltype(term(0, 0)) total = 0;
        if (sums.columns)
            for (i64 i = 0; i < sums.length; ++i) total += term(sums.columns[i], sums.values[i]);
        else
            for (i64 c = 0; c < sums.length; ++c) total += term(c, sums.values[c]);
        return total;
    }

    f64 similarity_at(f64 product, i64 n_a, i64 n_b) const { return product / ((f64)n_a * (f64)n_b); }

    // The sums of a region as an array of all clusters, for as long as this object lives.
    class Spread {
    public:
        Spread(const Contiguous& of, i32 a, std::vector<i64>& spread) : Spread(of, a, of.unions[a], spread) {}
        ~Spread() {
            if (!scratch) return;
            owner.with_sums(name, [&](const auto& sums) {
                for (i64 i = 0; i < sums.length; ++i) scratch[sums.columns[i]] = 0;
            });
        }
        Spread(const Spread&) = delete;
        i64 operator[](i64 c) const { return array[c]; }

        f64 product(i32 b) const {
            f64 n_pairs = (f64)owner.size[name] * (f64)owner.size[b];
            return owner.with_sums(b, [&](const auto& sums) {
                // a list and an array, or two arrays: the entries of the list, if there is one
                if (!sums.columns && scratch)
                    return owner.with_sums(name, [&](const auto& list) { return owner.product(list, array_of(sums),
                                                                                              n_pairs); });
                return owner.product(sums, array, n_pairs);
            });
        }

        Pair pair(i32 b) const {
            return {owner.similarity_at(product(b), owner.size[name], owner.size[b]), owner.version(name),
                    owner.version(b)};
        }

    private:
        Spread(const Contiguous& of, i32 a, const Union& region_sums, std::vector<i64>& spread) : owner(of), name(a) {
            if (!of.is_leaf(a) && !region_sums.columns()) {
                array = region_sums.values();
                return;
            }
            array = scratch = spread.data();
            of.with_sums(a, [&](const auto& sums) {
                for (i64 i = 0; i < sums.length; ++i) scratch[sums.columns[i]] = sums.values[i];
            });
        }

        static const i64* array_of(const Sums<i64>& sums) { return sums.values; }
        static const i64* array_of(const Sums<i32>&) { return nullptr; }  // leaves are lists

        const Contiguous& owner;
        i32 name;
        i64* scratch = nullptr;
        const i64* array;
    };

    // --- offers
    // ---------------------------------------------------------------------------------------------------------

    // Offer the best pair of each leaf.
    void offer_leaves() {
        std::vector<Pair> best(n_leaves, nothing());
        in_threads(n_leaves, (f64)graph.neighbors.size / (f64)std::max((i64)1, n_leaves) * SCORE_NS,
                   [&](Ranges& ranges) {
            std::vector<i64> scratch(weights.size);
            while (Range range = ranges.next())
                for (i64 g = range.start; g < range.stop; ++g)
                    if (degree(g) <= MOST_NEIGHBORS) best[g] = best_older((i32)g, scratch);
        });
        for (i64 g = 0; g < n_leaves; ++g)
            if (degree(g) > MOST_NEIGHBORS) hubs[g] = std::make_unique<Hub>();
        for (i64 g = 0; g < n_leaves; ++g)
            if (hubs[g])
                for (i64 i = graph.starts[g]; i < graph.starts[g + 1]; ++i) join((i32)g, graph.neighbors[i]);
        std::ranges::copy_if(best, std::back_inserter(queue), [](const Pair& pair) { return pair.b.name >= 0; });
        std::make_heap(queue.begin(), queue.end());
        for (i64 g = 0; g < n_leaves; ++g)
            if (hubs[g]) offer((i32)g);
    }

    static Pair nothing() { return {-1.0, {GONE, GONE}, {GONE, GONE}}; }
    i64 degree(i64 leaf) const { return graph.starts[leaf + 1] - graph.starts[leaf]; }

    std::span<const i32> neighbors(i32 a) const {
        if (!is_leaf(a)) return lists[a];
        return {graph.neighbors.data + graph.starts[a], (std::size_t)degree(a)};
    }

    // The best pair with a neighbour of a smaller stamp.
    Pair best_older(i32 a, std::vector<i64>& scratch) const {
        Pair best = nothing();
        // an absorbed one is in a later union
        auto is_older = [&](i32 b) { return stamp[b] >= 0 && stamp[b] < stamp[a]; };
        if (std::ranges::none_of(neighbors(a), is_older)) return best;
        Spread products(*this, a, scratch);
        for (i32 b : neighbors(a))
            if (is_older(b)) take_better(best, products.pair(b));
        return best;
    }

    static void take_better(Pair& best, const Pair& pair) {
        if (best.b.name < 0 || best < pair) best = pair;
    }

    void offer(i32 a) {
        Pair best = hubs[a] ? best_of_hub(a, *hubs[a]) : best_older(a, spread);
        if (best.b.name >= 0) push(queue, best);
    }

    // --- hubs
    // -----------------------------------------------------------------------------------------------------------

    // Make region b a neighbour of the hub a.
    void join(i32 a, i32 b) {
        if (hubs[b]) hubs[a]->hubs.push_back(b);
        else hubs[a]->arrivals.push_back(version(b));
    }

    Pair best_of_hub(i32 a, Hub& hub) {
        look();
        Spread products(*this, a, spread);
        for (Version arrival : hub.arrivals)
            if (is_current(arrival)) put_in_group(arrival, hub, products);
        hub.arrivals.clear();
        if (hub.paired != stamp[a]) pair_with_hubs(a, hub, products);
        while (!hub.pairs.empty() && !is_current(hub.pairs.front().b)) pop(hub.pairs);
        Pair best = hub.pairs.empty() ? nothing() : hub.pairs.front();

        std::vector<i32> scored;
        while (!hub.bounds.empty()) {
            Bound top = hub.bounds.front();
            Group& group = hub.groups[top.group];
            drop_changed(group);
            bool is_valid = top.bound == group.bound && top.rank == group.rank;
            if (!is_valid || group.members.empty() || group.members.front().first != top.rank) {
                pop(hub.bounds);
                // the group's best member has changed
                if (is_valid && !group.members.empty()) put_bound(hub, top.group);
                continue;
            }
            Version b = group.members.front().second;
            f64 at_most = largest_similarity(top.bound + hub.drift, size[a]);
            if (best.b.name >= 0 && (at_most < best.similarity ||
                                     (at_most == best.similarity && tie_of(a, b.name) > tie_of(a, best.b.name))))
                break;
            pop(hub.bounds);
            if (group.drift != hub.drift) {
                group.product = products.product(b.name);
                group.drift = hub.drift;
            }
            take_better(best, {similarity_at(group.product, size[a], group.n_objects), version(a), b});
            scored.push_back(top.group);
        }
        for (i32 group : scored) {
            set_bound(hub, hub.groups[group]);
            put_bound(hub, group);
        }
        return best;
    }

    void pair_with_hubs(i32 a, Hub& hub, const Spread& products) {
        collect(hub.hubs, a);
        hub.hubs.assign(collected.begin(), collected.end());
        hub.pairs.clear();
        for (i32 b : hub.hubs) hub.pairs.push_back(products.pair(b));
        std::make_heap(hub.pairs.begin(), hub.pairs.end());
        hub.paired = stamp[a];
    }

    void drop_changed(Group& group) const {
        auto& members = group.members;
        while (!members.empty() && !is_current(members.front().second)) {
            std::pop_heap(members.begin(), members.end(), by_rank);
            members.pop_back();
        }
    }

    void put_in_group(Version b, Hub& hub, const Spread& products) {
        i32 number = (i32)hub.groups.size();
        if (!is_leaf(b.name) && !unions[b.name].columns()) {
            hub.groups.emplace_back();
        } else {
            auto [place, is_new] = hub.group_of.try_emplace(hash_of(b.name), number);
            if (is_new) hub.groups.emplace_back();
            else number = place->second;
            drop_changed(hub.groups[number]);
            if (auto& members = hub.groups[number].members;
                !members.empty() && !are_equal(b.name, members.front().second.name)) {
                number = place->second = (i32)hub.groups.size();
                hub.groups.emplace_back();
            }
        }
        Group& group = hub.groups[number];
        bool was_empty = group.members.empty();
        group.members.emplace_back(rank_of(b.name), b);
        std::push_heap(group.members.begin(), group.members.end(), by_rank);
        if (was_empty) {
            group.n_objects = size[b.name];
            group.product = products.product(b.name);
            group.drift = hub.drift;
            set_bound(hub, group);
        }
        if (was_empty || group.members.front().first < group.rank) put_bound(hub, number);
    }

    void set_bound(const Hub& hub, Group& group) const {
        f64 per_object = group.product / (f64)group.n_objects * unit * ROUNDED_UP;
        group.bound = (group.product == 0.0 ? 0 : (i64)std::ceil(per_object) + 1) - hub.drift;
    }

    void put_bound(Hub& hub, i32 number) {
        Group& group = hub.groups[number];
        group.rank = group.members.front().first;
        push(hub.bounds, {group.bound, group.rank, number});
    }

    f64 largest_similarity(i64 per_object, i64 n_objects) const {
        return (f64)per_object / unit / (f64)n_objects * ROUNDED_UP;
    }

    u64 hash_of(i32 a) const {
        return with_sums(a, [&](const auto& sums) {
            u64 hash = pair_hash(size[a], sums.length);
            for (i64 i = 0; i < sums.length; ++i)
                hash = pair_hash((i64)(hash >> 32), (i64)(u32)hash) ^ pair_hash(sums.columns[i], sums.values[i]);
            return hash;
        });
    }

    bool are_equal(i32 a, i32 b) const {
        if (size[a] != size[b]) return false;
        return with_sums(a, [&](const auto& one) {
            return with_sums(b, [&](const auto& other) {
                return other.columns && one.length == other.length &&
                       std::equal(one.columns, one.columns + one.length, other.columns) &&
                       std::equal(one.values, one.values + one.length, other.values);
            });
        });
    }

    // --- merges
    // ---------------------------------------------------------------------------------------------------------

    void merge(i32 kept, i32 absorbed, i32 new_stamp) {
        listed.clear();
        for (i32 a : {kept, absorbed})
            if (!hubs[a]) listed.insert(listed.end(), neighbors(a).begin(), neighbors(a).end());
        std::unique_ptr<Hub> hub = united_hubs(kept, absorbed);
        unions[kept] = united(kept, absorbed);
        unions[absorbed] = {};
        size[kept] += size[absorbed];
        stamp[kept] = new_stamp;
        stamp[absorbed] = GONE;
        names.put(absorbed, kept);
        lists[kept] = lists[absorbed] = {};
        collect(listed, kept);
        if (!hub && (i64)collected.size() > MOST_NEIGHBORS) hub = std::make_unique<Hub>();
        if (!hub) lists[kept].assign(collected.begin(), collected.end());
        hubs[kept] = std::move(hub);
        for (i32 b : collected) {
            if (hubs[kept]) join(kept, b);
            if (hubs[b]) join(b, kept);
        }
    }

    // The hub of the union of two regions, null if neither is a hub: the hub with more neighbours takes over the
    // neighbours of the other.
    std::unique_ptr<Hub> united_hubs(i32 a, i32 b) {
        auto n_neighbors = [&](i32 of) {
            return hubs[of] ? (i64)(hubs[of]->groups.size() + hubs[of]->arrivals.size()) : -1;
        };
        if (n_neighbors(a) < n_neighbors(b)) std::swap(a, b);
        if (!hubs[a]) return nullptr;
        hubs[a]->drift += drift_by(a, b);
        std::unique_ptr<Hub> hub = std::move(hubs[a]), other = std::move(hubs[b]);
        if (other) {
            hub->hubs.insert(hub->hubs.end(), other->hubs.begin(), other->hubs.end());
            hub->arrivals.insert(hub->arrivals.end(), other->arrivals.begin(), other->arrivals.end());
            for (const Group& group : other->groups)
                for (auto [rank, member] : group.members) hub->arrivals.push_back(member);
        }
        return hub;
    }

    // Collect the regions that have the names now, each once and without region a, in `collected`.
    void collect(const std::vector<i32>& old_names, i32 a) {
        ++n_collections;
        collected.clear();
        for (i32 name : old_names) {
            i32 b = (i32)names.name_of(name);
            if (b == a || collected_at[b] == n_collections) continue;
            collected_at[b] = n_collections;
            collected.push_back(b);
        }
    }

    // The sums of the union of two regions.
    Union united(i32 a, i32 b) {
        for (auto [array, other] : {std::pair{a, b}, std::pair{b, a}}) {
            if (is_leaf(array) || unions[array].columns()) continue;
            i64* values = unions[array].values();
            with_sums(other, [&](const auto& sums) {
                for (i64 i = 0; i < sums.length; ++i) values[sums.column(i)] += sums.values[i];
            });
            if (!is_leaf(other) && !unions[other].columns()) n_arrays -= 1;
            return std::move(unions[array]);
        }
        listed_columns.clear();
        listed_values.clear();
        with_sums(a, [&](const auto& one) { with_sums(b, [&](const auto& other) { add_lists(one, other); }); });
        i64 length = (i64)listed_columns.size(), n_columns = weights.size;
        bool is_short = length <= MOST_LISTED || (n_arrays + 1) * n_columns * (i64)sizeof(i64) > ARRAY_BYTES;
        if (is_short && length * (i64)(sizeof(i64) + sizeof(i32)) < n_columns * (i64)sizeof(i64)) {
            Union list(length, true);
            std::copy(listed_values.begin(), listed_values.end(), list.values());
            std::copy(listed_columns.begin(), listed_columns.end(), list.columns());
            return list;
        }
        Union array(n_columns, false);
        std::fill_n(array.values(), n_columns, (i64)0);
        for (i64 i = 0; i < length; ++i) array.values()[listed_columns[i]] = listed_values[i];
        n_arrays += 1;
        return array;
    }

    template <typename One, typename Other>
    void add_lists(const Sums<One>& one, const Sums<Other>& other) {
        i64 i = 0, j = 0;
        while (i < one.length && j < other.length) {
            i32 c = std::min(one.columns[i], other.columns[j]);
            i64 value = 0;
            if (one.columns[i] == c) value += one.values[i++];
            if (j < other.length && other.columns[j] == c) value += other.values[j++];
            listed_columns.push_back(c);
            listed_values.push_back(value);
        }
        for (; i < one.length; ++i) append(one.columns[i], one.values[i]);
        for (; j < other.length; ++j) append(other.columns[j], other.values[j]);
    }

    void append(i32 column, i64 value) {
        listed_columns.push_back(column);
        listed_values.push_back(value);
    }

    // --- drifts
    // ---------------------------------------------------------------------------------------------------------

    // The totals of the clusters and their largest value per object, and a unit in which no bound overflows.
    void measure_clusters() {
        totals.assign(weights.size, 0);
        largest.assign(weights.size, 0.0);
        f64 largest_square = 1.0;  // the largest product of an object with itself, at least that of any two objects
        Looks looks;
        for (i64 g = 0; g < n_leaves; ++g) {
            looks();
            Sums<Value> leaf = row((i32)g);
            f64 square = (f64)size[g] * (f64)size[g];
            f64 product = sum_over(leaf, [&](i64, i64 value) { return (f64)value * (f64)value / square; });
            largest_square = std::max(largest_square, product);
            for (i64 i = 0; i < leaf.length; ++i) {
                totals[leaf.columns[i]] += leaf.values[i];
                f64& largest_value = largest[leaf.columns[i]];
                largest_value = std::max(largest_value, (f64)leaf.values[i] / (f64)size[g]);
            }
        }
        most_pairs = std::exp2(62) / largest_square;
        f64 largest_product = 0.0;
        for (i64 c = 0; c < weights.size; ++c) largest_product += weights[c] * (f64)totals[c] * largest[c];
        int exponent;
        std::frexp(largest_product, &exponent);  // largest_product < 2^exponent
        unit = largest_product > 0.0 ? std::ldexp(1.0, 60 - exponent) : 1.0;
    }

    // The largest rise of the hub's product with any neighbour, per object of the neighbour, when region a absorbs b.
    i64 drift_by(i32 a, i32 b) {
        Spread dense(*this, a, spread);
        return with_sums(b, [&](const auto& sums) {
            f64 rise = 0.0;
            for (i64 i = 0; i < sums.length; ++i) {
                i64 c = sums.column(i);
                if (dense[c] + sums.values[i] < totals[c]) rise += weights[c] * ((f64)sums.values[i] * largest[c]);
            }
            return rise == 0.0 ? (i64)0 : (i64)std::ceil(rise * unit * ROUNDED_UP) + 1;
        });
    }

    i64 n_leaves;
    Neighbors graph;
    SparseRows<Value> rows;
    Vector<const f64> weights;
    std::vector<i32> stamp;
    std::vector<i64> size;
    std::vector<Union> unions;                 // regions above the leaves
    // neighbours of each region but hubs, by names that may have been absorbed
    std::vector<std::vector<i32>> lists;
    std::vector<std::unique_ptr<Hub>> hubs;
    std::vector<i32> collected_at, collected, listed;  // scratch of `collect`
    i32 n_collections = 0;
    Sets names;
    std::vector<i64> spread;                   // scratch of `Spread`, all 0 while none is alive
    std::vector<i32> listed_columns;
    std::vector<i64> listed_values;
    i64 n_arrays = 0;
    std::vector<i64> totals;
    std::vector<f64> largest;
    f64 unit = 1.0;
    f64 most_pairs;                            // pairs of objects up to which int64 holds the products
    std::vector<Pair> queue;                   // heap
};

}  // namespace

i64 link_neighbors(Neighbors graph, Vector<const i64> counts, AnySparseRows rows, Vector<const f64> weights,
                   const Merges& merges) {
    return std::visit([&]<typename Value>(const SparseRows<Value>& of) {
        bool are_one = std::all_of(weights.begin(), weights.end(), [](f64 w) { return w == 1.0; });
        if (are_one) return Contiguous<Value, true>(graph, counts, of, weights).run(merges);
        return Contiguous<Value, false>(graph, counts, of, weights).run(merges);
    }, rows);
}

}  // namespace gpuens

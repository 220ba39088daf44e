// Merge lists (gpuens/partition/linkage/dendrogram.py). Merge i joins the regions kept[i] and absorbed[i] of n leaves; the
// union is named kept[i].
#include "linkage/dendrogram.h"

#include <algorithm>
#include <bit>

#include "linkage/primitives.h"
#include "linkage/union_find.h"
#include "runtime/parallel.h"

namespace gpuens {

namespace {

// A number that is ordered as a float is.
u64 ordered(f64 number) {
    u64 bits = std::bit_cast<u64>(number + 0.0);  // -0 is 0
    return bits >> 63 ? ~bits : bits | 1ull << 63;
}

// A merge in the order of a greedy algorithm: the most similar first; of equal ones, the smaller hash.
struct Merge {
    f64 height;  // similarity of the merge, at most the heights of its parts
    u64 largest_hash;    // the largest hash of the merge and of all merges within it at the same height, for which it waits
    i64 position;   // place in the caller's list of merges

    bool operator<(const Merge& other) const {
        u64 bits = ordered(height), other_bits = ordered(other.height);
        if (bits != other_bits) return bits > other_bits;
        return largest_hash != other.largest_hash ? largest_hash < other.largest_hash : position < other.position;
    }
};

}  // namespace

void sort_merges(Vector<const i64> kept, Vector<const i64> absorbed, Vector<const f64> similarities,
                 const Merges& sorted) {
    i64 n = kept.size, n_leaves = sorted.kept.size + 1;
    std::vector<Merge> merges(n);
    std::vector<i64> made_by(n_leaves, -1);  // the last merge that made each region
    std::vector<bool> is_root(n_leaves, true);
    Looks looks;
    for (i64 i = 0; i < n; ++i) {
        looks();
        i64 parts[] = {made_by[kept[i]], made_by[absorbed[i]]};
        Merge merge{similarities[i], pair_hash(kept[i], absorbed[i]), i};
        for (i64 part : parts)
            if (part >= 0) merge.height = std::min(merge.height, merges[part].height);
        for (i64 part : parts)
            if (part >= 0 && merges[part].height == merge.height) merge.largest_hash = std::max(merge.largest_hash, merges[part].largest_hash);
        merges[i] = merge;
        made_by[kept[i]] = i;
        is_root[absorbed[i]] = false;
    }
    std::sort(merges.begin(), merges.end(), [&](const Merge& one, const Merge& other) {
        looks();
        return one < other;
    });
    for (i64 i = 0; i < n; ++i) {
        looks();
        sorted.kept[i] = kept[merges[i].position];
        sorted.absorbed[i] = absorbed[merges[i].position];
        sorted.heights[i] = merges[i].height;
    }
    i64 first = std::find(is_root.begin(), is_root.end(), true) - is_root.begin();
    for (i64 root = first + 1; root < n_leaves; ++root) {
        if (!is_root[root]) continue;
        sorted.kept[n] = first;
        sorted.absorbed[n] = root;
        sorted.heights[n++] = 0.0;
    }
}

void cut_merges(Vector<const i64> kept, Vector<const i64> absorbed, Vector<i64> labels) {
    Sets regions(labels.size);
    Looks looks;
    for (i64 i = 0; i < kept.size; ++i) {
        looks();
        regions.put(absorbed[i], kept[i]);
    }
    std::vector<i64> label_of(labels.size, -1);
    i64 n_labels = 0;
    for (i64 leaf = 0; leaf < labels.size; ++leaf) {
        looks();
        i64 name = regions.name_of(leaf);
        if (label_of[name] < 0) label_of[name] = n_labels++;
        labels[leaf] = label_of[name];
    }
}

void count_large(Vector<const i64> kept, Vector<const i64> absorbed, Vector<const i64> counts, i64 smallest_size,
                 Vector<i64> n_large) {
    std::vector<i64> sizes(counts.begin(), counts.end());
    i64 large = 0;
    for (i64 size : sizes) large += size >= smallest_size;
    n_large[0] = large;
    Looks looks;
    for (i64 i = 0; i < kept.size; ++i) {
        looks();
        i64 a = sizes[kept[i]], b = sizes[absorbed[i]];
        large += (a + b >= smallest_size) - (a >= smallest_size) - (b >= smallest_size);
        n_large[i + 1] = large;
        sizes[kept[i]] = a + b;
    }
}

void number_nodes(Vector<const i64> kept, Vector<const i64> absorbed, Matrix<i64> children, Vector<i64> n_leaves) {
    i64 n = kept.size;
    std::vector<i64> node(n + 1), leaves(n + 1, 1);
    std::iota(node.begin(), node.end(), (i64)0);
    Looks looks;
    for (i64 i = 0; i < n; ++i) {
        looks();
        i64 a = kept[i], b = absorbed[i];
        children[i][0] = std::min(node[a], node[b]);
        children[i][1] = std::max(node[a], node[b]);
        n_leaves[i] = leaves[a] += leaves[b];
        node[a] = n + 1 + i;
    }
}

void name_merges(Vector<const i64> one, Vector<const i64> other, i64 n_leaves, Vector<i64> kept, Vector<i64> absorbed) {
    Sets regions(n_leaves + kept.size);
    Looks looks;
    for (i64 i = 0; i < kept.size; ++i) {
        looks();
        i64 a = regions.name_of(one[i]), b = regions.name_of(other[i]);
        kept[i] = std::min(a, b);
        absorbed[i] = std::max(a, b);
        regions.put(absorbed[i], kept[i]);
        regions.put(n_leaves + i, kept[i]);
    }
}

void find_apart(Vector<const i64> kept, Vector<const i64> absorbed, Matrix<bool> observed, Vector<bool> apart) {
    Looks looks;
    for (i64 i = 0; i < kept.size; ++i) {
        looks();
        bool *a = observed[kept[i]], *b = observed[absorbed[i]], common = false;
        for (i64 m = 0; m < observed.columns; ++m) {
            common |= a[m] & b[m];
            a[m] |= b[m];
        }
        apart[i] = !common;
    }
}

}  // namespace gpuens

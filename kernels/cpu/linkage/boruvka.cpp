// Rounds of Borůvka's algorithm (kernels/boruvka.cu): the best edge that leaves each component, in the total order, and the
// components that these edges join. A component is named by its smallest row.
#include <algorithm>

#include "linkage/primitives.h"
#include "linkage/union_find.h"
#include "runtime/parallel.h"

namespace gpuens {

namespace {

constexpr i64 AT_ONCE = 64;             // similarities that are compared with the best one before any edge is
constexpr i64 BETWEEN_LOOKS = 1 << 12;  // rows

void offer(const Edges& edges, i64 name, i64 tail, i64 head, f64 similarity) {
    u64 tie = pair_hash(tail, head);
    if (!comes_before(similarity, tie, edges.similarity[name], edges.tie[name])) return;
    edges.tail[name] = tail;
    edges.head[name] = head;
    edges.similarity[name] = similarity;
    edges.tie[name] = tie;
}

}  // namespace

void offer_tile(i64 start, Matrix<const f64> tile, Vector<const i64> component, const Edges& edges) {
    for (i64 i = 0; i < tile.rows; ++i) {
        look();
        i64 name = component[start + i];
        const f64* similarities = tile[i];
        for (i64 first = 0; first < tile.columns; first += AT_ONCE) {
            i64 end = std::min(first + AT_ONCE, tile.columns);
            f64 best = edges.similarity[name];
            bool any = false;
            for (i64 r = first; r < end; ++r) any |= (component[r] != name) & (similarities[r] >= best);
            if (!any) continue;
            for (i64 r = first; r < end; ++r)
                if (component[r] != name && similarities[r] >= edges.similarity[name]) offer(edges, name, start + i, r, similarities[r]);
        }
    }
}

void offer_listed(Vector<const i64> component, const Shortlists& lists, Vector<const i64> rows, const Edges& edges,
                  Vector<bool> unsure) {
    for (i64 i = 0; i < rows.size; ++i) {
        if (i % BETWEEN_LOOKS == 0) look();
        i64 q = rows[i], name = component[q];
        i32 s = first_elsewhere(lists.ids[q], (i32)lists.n_listed(), component.data, name);
        if (s >= 0) offer(edges, name, q, lists.ids[q][s], lists.similarities[q][s]);
        unsure[q] = s < 0 && lists.bound[q] > 0.0;
    }
}

void contract(Vector<i64> component, Vector<const i64> tail, Vector<const i64> head, Vector<bool> used) {
    Sets sets(component.size);
    for (i64 e = 0; e < tail.size; ++e) {
        i64 a = sets.name_of(component[tail[e]]), b = sets.name_of(component[head[e]]);
        used[e] = a != b;
        if (a != b) sets.put(std::max(a, b), std::min(a, b));
    }
    for (i64 q = 0; q < component.size; ++q) component[q] = sets.name_of(component[q]);
}

}  // namespace gpuens

// One round of Boruvka's algorithm for single linkage (gpuens/partition/linkage/single.py): the best edge that leaves
// each component, in the total order of the prelude, and new names for the components that these edges join.
//
// ids (G, K), similarities: lists, best first, -1 behind the last entry. similarity (G,): the bits of a float64 that is
// not negative; such bits have the same order as the numbers. Three passes find the edge of a component: its largest
// similarity, then the smallest hash among the edges of that similarity, then the edge with both.

// First pass: the largest similarity of each component. offer[i]: the place, in the list of rows[i], of the row's best
// edge that leaves its component, or -1. unsure[q]: row q offers no edge, but an edge outside its list may leave.
extern "C" __global__ void offer_similarity(const i64* rows, i64 n_rows, int n_listed, const i64* component,
                                            const i32* ids, const f64* similarities, const f64* bound, i32* offer,
                                            bool* unsure, u64* similarity) {
    FOR_EACH(i, n_rows) {
        i64 q = rows[i], name = component[q];
        i32 place = first_elsewhere(ids + q * n_listed, n_listed, component, name);
        offer[i] = place;
        unsure[q] = place < 0 && bound[q] > 0.0;
        if (place >= 0)
            atomicMax(&similarity[name], (u64)__double_as_longlong(similarities[q * n_listed + place]));
    }
}

// Second pass: the smallest hash of each component. The caller fills `tie` with NO_HASH for each component that the
// first pass has given a larger similarity.
extern "C" __global__ void offer_tie(const i64* rows, i64 n_rows, int n_listed, const i64* component, const i32* ids,
                                     const f64* similarities, const i32* offer, const f64* similarity, u64* tie) {
    FOR_EACH(i, n_rows) {
        i64 q = rows[i], name = component[q], at = q * n_listed + offer[i];
        if (offer[i] >= 0 && similarities[at] == similarity[name]) atomicMin(&tie[name], pair_hash(q, ids[at]));
    }
}

// Third pass: the edge of each component, from row tail[name] to row head[name]. Two rows of a component never have the
// same edge, so at most one row writes.
extern "C" __global__ void take_edge(const i64* rows, i64 n_rows, int n_listed, const i64* component, const i32* ids,
                                     const f64* similarities, const i32* offer, const f64* similarity, const u64* tie,
                                     i64* tail, i64* head) {
    FOR_EACH(i, n_rows) {
        i64 q = rows[i], name = component[q], at = q * n_listed + offer[i];
        if (offer[i] < 0 || similarities[at] != similarity[name] || pair_hash(q, ids[at]) != tie[name]) continue;
        tail[name] = q;
        head[name] = ids[at];
    }
}

// Writes smallest[root[name]]: the smallest name among the components that now share a root.
extern "C" __global__ void smallest_names(const i64* root, i64 n_names, u64* smallest) {
    FOR_EACH(name, n_names) atomicMin(&smallest[root[name]], (u64)name);
}

// A round of Boruvka's for single linkage (gpuens/partition/linkage/single.py): the best edge that leaves each component,
// in the total order of the prelude, and new names for the components that these edges join.
//
// ids (G, K), similarities: lists, best first, -1 behind the last entry. similarity holds the bits of numbers that are
// not negative, which order as they do. Rows offer their edges in three passes: the largest similarity of a component,
// then the smallest hash among those, then the edge that has both.

// First pass. offer[i]: the place in the list of rows[i] of its best edge that leaves its component, or -1; a row without
// one is unsure of what lies outside its list.
extern "C" __global__ void offer_similarity(const i64* rows, i64 n_rows, int n_listed, const i64* component,
                                            const i32* ids, const f64* similarities, const f64* bound, i32* offer,
                                            bool* unsure, u64* similarity) {
    FOR_EACH(i, n_rows) {
        i64 q = rows[i], name = component[q];
        i32 found = -1;
        for (i32 s = 0; s < n_listed && found < 0; ++s) {
            i32 r = ids[q * n_listed + s];
            if (r < 0) break;
            if (component[r] != name) found = s;
        }
        offer[i] = found;
        unsure[q] = found < 0 && bound[q] > 0.0;
        if (found >= 0)
            atomicMax(&similarity[name], (u64)__double_as_longlong(similarities[q * n_listed + found]));
    }
}

// Second pass: tie comes with NO_HASH for components whose similarity the first pass has raised.
extern "C" __global__ void offer_tie(const i64* rows, i64 n_rows, int n_listed, const i64* component, const i32* ids,
                                     const f64* similarities, const i32* offer, const f64* similarity, u64* tie) {
    FOR_EACH(i, n_rows) {
        i64 q = rows[i], name = component[q], at = q * n_listed + offer[i];
        if (offer[i] >= 0 && similarities[at] == similarity[name]) atomicMin(&tie[name], pair_hash(q, ids[at]));
    }
}

// Third pass: no two rows of a component have the same edge, so that one row at most writes.
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

// smallest[root[name]]: the smallest name of the components that have become one.
extern "C" __global__ void smallest_names(const i64* root, i64 n_names, u64* smallest) {
    FOR_EACH(name, n_names) atomicMin(&smallest[root[name]], (u64)name);
}

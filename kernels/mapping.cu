// Mapping coefficients of objects from their reference sets (gpuens/similarity/mapping.py; ECRMC, eqs 6, 10, 11).
//
//   lambda_t = 1 - d_t / sum d,   rho[c] = sum of lambda_t over the references t in cluster c,   value[c] = rho[c] / sum rho
//
// ids, distances (R, T): the references, nearest first; sums over references have this order. codes (M, N): labels.
// clusters, values (R, n_places): clustering m of an object has min(T, k_m) places, which begin at firsts[m].
// counts (R, M): the number of places in use, clusters ascending; the sum of rho has this order.
// One thread per object and clustering.
//
// variants: CODE = u8 u16 u32

extern "C" __global__ void mapping_coefficients(const i64* ids, const f64* distances, const CODE* codes,
                                                const i64* offsets, const i64* firsts, i32* clusters, f64* values,
                                                i32* counts, i64 n_rows, i64 n_neighbors, i64 n_objects,
                                                i64 n_clusterings, i64 n_places) {
    FOR_EACH(which, n_rows * n_clusterings) {
        i64 i = which / n_clusterings, m = which % n_clusterings;
        i32* cluster = clusters + i * n_places + firsts[m];
        f64* value = values + i * n_places + firsts[m];
        f64 far = 0.0;
        for (i64 t = 0; t < n_neighbors; ++t) far += distances[i * n_neighbors + t];
        i64 listed = 0;
        for (i64 t = 0; t < n_neighbors; ++t) {
            CODE label = codes[m * n_objects + ids[i * n_neighbors + t]];
            f64 weight = far > 0.0 && n_neighbors > 1 ? 1.0 - distances[i * n_neighbors + t] / far : 1.0;
            if (label == MISSING(CODE) || weight <= 0.0) continue;
            i64 c = offsets[m] + label, at = listed;
            while (at > 0 && cluster[at - 1] > c) --at;
            if (at > 0 && cluster[at - 1] == c) {
                value[at - 1] += weight;
                continue;
            }
            for (i64 later = listed; later > at; --later) {
                cluster[later] = cluster[later - 1];
                value[later] = value[later - 1];
            }
            cluster[at] = (i32)c;
            value[at] = weight;
            ++listed;
        }
        f64 total = 0.0;
        for (i64 at = 0; at < listed; ++at) total += value[at];
        for (i64 at = 0; at < listed; ++at) value[at] /= total;
        counts[which] = (i32)listed;
    }
}

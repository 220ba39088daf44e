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
        Shares shares = {clusters + i * n_places + firsts[m], values + i * n_places + firsts[m], 0};
        f64 total_distance = 0.0;
        for (i64 t = 0; t < n_neighbors; ++t) total_distance += distances[i * n_neighbors + t];
        for (i64 t = 0; t < n_neighbors; ++t) {
            CODE label = codes[m * n_objects + ids[i * n_neighbors + t]];
            f64 weight = reference_weight(distances[i * n_neighbors + t], total_distance, n_neighbors);
            if (label != MISSING(CODE) && weight > 0.0) shares.add((i32)(offsets[m] + label), weight);
        }
        shares.scale();
        counts[which] = (i32)shares.listed;
    }
}

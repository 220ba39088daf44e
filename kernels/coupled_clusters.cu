// The similarity of two clusters of one clustering, by how they spread over the clusters of the other clusterings (CCE,
// eqs 3-4):
//
//   out[v, w] = sum_m lambda_m sum_{u in m} min(P[u, v], P[u, w])
//
// P (N_c, k): the shares of the k clusters in all clusters; offsets (M + 1,). One thread per pair of clusters. Sums run
// in the order of the clusters and then of the clusterings, as on the CPU.

extern "C" __global__ void relative_similarities(const f64* spread, const i64* offsets, const f64* weights, f64* out,
                                                 i64 k, i64 n_clusterings) {
    FOR_EACH(at, k * k) {
        i64 v = at / k, w = at % k;
        f64 sum = 0.0;
        for (i64 m = 0; m < n_clusterings; ++m) {
            if (weights[m] == 0.0) continue;
            f64 of_one = 0.0;
            for (i64 u = offsets[m]; u < offsets[m + 1]; ++u) of_one += min(spread[u * k + v], spread[u * k + w]);
            sum += weights[m] * of_one;
        }
        out[at] = sum;
    }
}

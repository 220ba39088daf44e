// Regions compared over the clusterings that label both (gpuens/partition/linkage/all_pairs.py), by searches
// over all pairs.
//
//   similarity(A, R) = sum_c w_c n_A[c] n_R[c] / sum_m lambda_m p_A[m] p_R[m]
//
// A histogram holds n_A (N_c,), followed by p_A (M,), the number of objects that each clustering labels. weights (2,
// N_c + M): those of the numerator, then those of the denominator.
//
// variants: WEIGHT = i64 f64

// Makes a new list for each query: the nearest of all active regions with a similarity above 0. A list that holds all
// of them has the bound 0. Where no clustering labels both the query and some region, bound_hash is 0: ties are then
// open.
// numbers (2,): the numbers of active regions and of queries.
// One warp per query: each lane scores one region, and the lanes together hold the list. tables (warps, N_c + M):
// scratch for the histogram of the query, zeros before and after.
extern "C" __global__ void search_observed(const i64* queries, const i64* active, const i64* numbers,
                                           const i32* clusters, const i32* counts, const i64* start,
                                           const i64* length, const WEIGHT* weights, i64 n_columns, i64 n_clusters,
                                           int n_listed, i32* tables, i32* ids, f64* similarities, f64* bound,
                                           u64* bound_hash, u64* compared) {
    int lane = threadIdx.x % 32;
    i64 warp = ((i64)blockIdx.x * blockDim.x + threadIdx.x) / 32, n_warps = (i64)gridDim.x * blockDim.x / 32;
    i32* table = tables + warp * n_columns;
    i64 n_active = numbers[0], n_queries = numbers[1];
    u64 work = 0;
    for (i64 i = warp; i < n_queries; i += n_warps) {
        i64 a = queries[i], begin = start[a], end = begin + length[a];
        for (i64 e = begin + lane; e < end; e += 32) table[clusters[e]] = counts[e];
        __syncwarp();
        WarpList list(n_listed);
        bool apart = false;
        for (i64 first = 0; first < n_active; first += 32) {
            i64 r = first + lane < n_active ? active[first + lane] : a;
            WEIGHT together = 0, both = 0;
            for (i64 e = start[r]; e < start[r] + length[r]; ++e) {
                i32 c = clusters[e];
                WEIGHT pairs = (WEIGHT)((i64)table[c] * (i64)counts[e]);
                if (c < n_clusters)
                    together += weights[c] * pairs;
                else
                    both += weights[n_columns + c] * pairs;
            }
            if (first + lane < n_active) work += length[r];
            apart = apart || both == 0;
            bool passes = r != a && together > 0;
            f64 similarity = passes ? (f64)together / (f64)both : 0.0;
            u64 tie = pair_hash(a, r);
            bool admitted = list.admits(similarity, tie);
            list.insert_each(passes && admitted, r, similarity, tie);
        }
        list.write(a, ids, similarities, bound, bound_hash, 0.0);
        bool any_apart = __ballot_sync(ALL_LANES, apart) != 0;
        if (lane == 0 && any_apart) bound_hash[a] = 0;
        __syncwarp();  // a barrier between reads of the table and its clearing; a vote does not order memory
        for (i64 e = begin + lane; e < end; e += 32) table[clusters[e]] = 0;
        __syncwarp();
    }
    if (work) atomicAdd(compared, work);
}

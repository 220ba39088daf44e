// Regions under any symmetric S (gpuens/partition/linkage/all_pairs.py): affinities, which add up when regions
// merge, and searches over all pairs, because similarities may have any sign.
//
//   V_A = M S n_A (N_c,),   similarity(A, R) = sum_c n_A[c] V_R[c] / (|A| |R| M)    (common/histograms.h)

// Adds row absorbed[p] of affinities (G, N_c) to row kept[p], for the last n_pairs (1,) of the first n_merges (1,)
// pairs. One thread per element.
extern "C" __global__ void merge_affinities(const i64* kept, const i64* absorbed, const i64* n_pairs,
                                            const i64* n_merges, i64 n_clusters, f64* affinities) {
    FOR_EACH(at, *n_pairs * n_clusters) {
        i64 p = *n_merges - *n_pairs + at / n_clusters, c = at % n_clusters;
        affinities[kept[p] * n_clusters + c] += affinities[absorbed[p] * n_clusters + c];
    }
}

// Makes a new list for each query: the nearest of all active regions. A list that holds all of them has the bound
// `nothing`, minus infinity. numbers (2,): the numbers of active regions and of queries. One warp per query: each lane
// scores one region, and the lanes together hold the list.
extern "C" __global__ void search_general(const i64* queries, const i64* active, const i64* numbers,
                                          const i32* clusters, const i32* counts, const i64* start,
                                          const i64* length, const i64* size, const f64* affinities, i64 n_clusters,
                                          i64 n_clusterings, int n_listed, f64 nothing, i32* ids,
                                          f64* similarities, f64* bound, u64* bound_hash, u64* compared) {
    int lane = threadIdx.x % 32;
    i64 warp = ((i64)blockIdx.x * blockDim.x + threadIdx.x) / 32, n_warps = (i64)gridDim.x * blockDim.x / 32;
    Histograms histograms = {clusters, counts, start, length, size};
    Weighting<f64> weighting = {affinities, n_clusters, n_clusterings};
    i64 n_active = numbers[0], n_queries = numbers[1];
    u64 work = 0;
    for (i64 i = warp; i < n_queries; i += n_warps) {
        i64 a = queries[i];
        WarpList list(n_listed);
        for (i64 first = 0; first < n_active; first += 32) {
            i64 r = first + lane < n_active ? active[first + lane] : a;
            f64 similarity = 0.0;
            u64 tie = pair_hash(a, r);
            bool passes = r != a;
            if (passes) {
                similarity = similarity_of(histograms, weighting, a, r);
                work += min(length[a], length[r]);
            }
            bool admitted = list.admits(similarity, tie);
            list.insert_each(passes && admitted, r, similarity, tie);
        }
        list.write(a, ids, similarities, bound, bound_hash, nothing);
    }
    if (work) atomicAdd(compared, work);
}

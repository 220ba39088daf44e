// Histograms of regions and their similarities (gpuens/partition/linkage/regions.py).

// The histograms of all regions in one arena: that of region r has entries start[r] ... start[r] + length[r] - 1, clusters in
// ascending order and counts. Region r has size[r] objects.
struct Histograms {
    const i32* clusters;
    const i32* counts;
    const i64 *start, *length, *size;
};

// The first of the entries begin ... end - 1 whose cluster is not smaller than `cluster`, or end.
BOTH i64 first_from(const i32* clusters, i64 begin, i64 end, i32 cluster) {
    while (begin < end) {
        i64 middle = (begin + end) / 2;
        if (clusters[middle] < cluster)
            begin = middle + 1;
        else
            end = middle;
    }
    return begin;
}

// sum_c w_c n_a[c] n_b[c], over the clusters in ascending order. Region a must not have more entries than region b.
template <typename Weight>
BOTH Weight shared_total(const Histograms& of, const Weight* weights, i64 a, i64 b) {
    const i32* clusters = of.clusters;
    i64 i = of.start[a], j = of.start[b], end_a = i + of.length[a], end_b = j + of.length[b];
    bool leap = of.length[b] > 8 * of.length[a];
    Weight total = 0;
    for (; i < end_a && j < end_b; ++i) {
        i32 cluster = clusters[i];
        if (leap)
            j = first_from(clusters, j, end_b, cluster);
        else
            while (j < end_b && clusters[j] < cluster) ++j;
        if (j < end_b && clusters[j] == cluster) {
            total += weights[cluster] * (Weight)((i64)of.counts[i] * (i64)of.counts[j]);
            ++j;
        }
    }
    return total;
}

// The weights of similarities, of one of three kinds:
//   n_columns = 0       a diagonal S; w (N_c,):             sum_c w_c n_a[c] n_b[c] / (|a| |b| M)
//   n_clusterings > 0   any S; affinities V (G, n_columns): sum_c n_a[c] V_b[c] / (|a| |b| M)
//   n_clusterings = 0   the clusterings that label both regions; w (2, n_columns) of both sums of a ratio:
//                       sum_c w_0c n_a[c] n_b[c] / sum_c w_1c n_a[c] n_b[c], or 0 where no clustering labels both
template <typename Weight>
struct Weighting {
    const Weight* weights;
    i64 n_columns, n_clusterings;
};

// The average similarity of two regions, the same bits for a and b as for b and a: sums over the clusters in ascending order.
template <typename Weight>
BOTH f64 similarity_of(const Histograms& of, const Weighting<Weight>& by, i64 a, i64 b) {
    if (of.length[a] > of.length[b] || (of.length[a] == of.length[b] && a > b)) {
        i64 c = a;
        a = b;
        b = c;
    }
    if (by.n_columns && !by.n_clusterings) {
        Weight denominator = shared_total(of, by.weights + by.n_columns, a, b);
        return denominator > 0 ? (f64)shared_total(of, by.weights, a, b) / (f64)denominator : 0.0;
    }
    f64 pairs = (f64)(of.size[a] * of.size[b] * by.n_clusterings);
    if (!by.n_columns) return (f64)shared_total(of, by.weights, a, b) / pairs;
    f64 score = 0.0;
    for (i64 e = of.start[a]; e < of.start[a] + of.length[a]; ++e)
        score += (f64)of.counts[e] * (f64)by.weights[b * by.n_columns + of.clusters[e]];
    return score / pairs;
}

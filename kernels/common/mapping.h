// Mapping coefficients of an object from its reference set (gpuens/similarity/mapping.py; ECRMC, eqs 6, 10, 11).

// The weight of a reference at a distance, of n whose distances have the sum `far`.
BOTH f64 reference_weight(f64 distance, f64 total_distance, i64 n) { return total_distance > 0.0 && n > 1 ? 1.0 - distance / total_distance : 1.0; }

// The shares of a reference set in the clusters of one clustering, clusters ascending. There is room for all of them.
struct Shares {
    i32* clusters;
    f64* values;
    i64 listed;

    BOTH void add(i32 cluster, f64 weight) {
        i64 at = listed;
        while (at > 0 && clusters[at - 1] > cluster) --at;
        if (at > 0 && clusters[at - 1] == cluster) {
            values[at - 1] += weight;
            return;
        }
        for (i64 later = listed; later > at; --later) {
            clusters[later] = clusters[later - 1];
            values[later] = values[later - 1];
        }
        clusters[at] = cluster;
        values[at] = weight;
        ++listed;
    }

    // Divide by their sum, which has the order of the clusters.
    BOTH void scale() {
        f64 total = 0.0;
        for (i64 at = 0; at < listed; ++at) total += values[at];
        for (i64 at = 0; at < listed; ++at) values[at] /= total;
    }
};

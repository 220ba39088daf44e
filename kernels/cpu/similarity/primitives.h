// The primitives of gpuens/similarity. Label rows (R, M) are compared with columns (M, C), whose labels of one clustering
// are side by side; both have codes of one type.
#pragma once

#include "arrays.h"

namespace gpuens {

// Similarities of clusters within each clustering, gpuens.similarity.blocks.OnDevice: the k_m x k_m matrix of clustering m
// begins at values + starts[m].
struct ClusterBlocks {
    Vector<const i64> starts;
    Vector<const f64> values;

    const f64* row(Vector<const i64> offsets, i64 m, i64 label) const {
        return values.data + starts[m] + label * (offsets[m + 1] - offsets[m]);
    }
};

// coassociation.cpp. offsets (M + 1,), weights (N_c,); tile (R, C).
void coassociation_tile(Codes<Matrix> rows, Codes<Matrix> cols, Vector<const i64> offsets, Vector<const f64> weights,
                        Matrix<f64> tile);

// coupled_objects.cpp. tile (R, C).
void coupled_tile(Codes<Matrix> rows, Codes<Matrix> cols, Vector<const i64> offsets, ClusterBlocks blocks,
                  Matrix<f64> tile);

// coupled_clusters.cpp. shares (N_c, k) of the k clusters of one clustering in all clusters, weights (M,);
// similarities (k, k).
void relative_similarities(Matrix<const f64> shares, Vector<const i64> offsets, Vector<const f64> weights,
                           Matrix<f64> similarities);

}  // namespace gpuens

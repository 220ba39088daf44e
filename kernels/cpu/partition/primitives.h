// The primitives of gpuens/partition on the CPU, as Python calls them (bindings.cpp).
#pragma once

#include "arrays.h"

namespace gpuens {

// mirkin.cpp. codes (M, G), counts (G,); labels (G,), held (N_c, k) and objects (k,) are those of the partition, and change.
// Returns the number of sweeps, negative if max_iter ended them.
i64 descend_mirkin(Codes<Matrix> codes, Vector<const i64> offsets, Vector<const i64> counts, Vector<i64> labels,
                   Matrix<i64> held, Vector<i64> objects, i64 max_iter);

// mixture.cpp. sums (G, K) are overwritten; constant (K,), shares (G, K), bits (G,).
void posteriors(Matrix<f64> sums, Vector<const f64> constant, f64 scale, Matrix<i64> shares, Vector<f64> bits);

// ordered_products.cpp. pairs (R, T), table (T, k): their product is added to sums (R, k), in the order of the T terms.
void add_products(Matrix<const f64> pairs, Matrix<const f64> table, Matrix<f64> sums);

// The same with the transpose of soft (N, J): values (N, k); sums (blocks, J, k), one product for each `block_rows` rows.
void add_products_of_blocks(Matrix<const f64> soft, Matrix<const f64> values, i64 block_rows, Matrix<f64> sums);

// soft_correspondence.cpp. codes (M, G); table (N_c, k), of_missing (M, k), sums (G, k).
void label_memberships(Codes<Matrix> codes, Vector<const i64> offsets, Matrix<const f64> table,
                       Matrix<const f64> of_missing, Matrix<f64> sums);

// values (G, k); known (N_c, k), unknown (M, k).
void label_correspondences(Codes<Matrix> codes, Vector<const i64> offsets, Matrix<const i64> values, Matrix<i64> known,
                           Matrix<i64> unknown);

}  // namespace gpuens

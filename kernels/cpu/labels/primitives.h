// The primitives of gpuens/labels on the CPU, as Python calls them (bindings.cpp); kernels/README.md has the equations.
#pragma once

#include <optional>

#include "runtime/arrays.h"

namespace gpuens {

// rows.cpp. columns (M, N): word_of[m] is the word of clustering m, radices[m] its digits; words (n_words, N).
void pack_rows(Codes<Matrix> columns, Vector<const i64> word_of, Vector<const u64> radices, Matrix<u64> words);

// rows (G, M), sorted_rows (R, M) of one type; places (G,).
void find_rows(Codes<Matrix> rows, Codes<Matrix> sorted_rows, Vector<i64> places);

// words.cpp. The places of the distinct columns of words (n_words, N), the first of equal ones, ascending; row_of (N,):
// each column's number among the distinct ones. None if nearly all differ.
std::optional<Grown<i64>> distinct_rows(Matrix<const u64> words, Vector<i64> row_of);

// The order (N,) of columns of words; first (N,): true if a column in this order differs from its predecessor.
void lexicographic(Matrix<const u64> words, Vector<i64> order, Vector<bool> first);

// products.cpp. codes (M, G) and offsets (M + 1,) define the incidence matrix B (G, N_c) of rows and clusters.
void row_sums(Codes<Matrix> codes, Vector<const i64> offsets, Vector<const f64> values, Vector<f64> sums);
void row_lookups(Codes<Matrix> codes, Vector<const i64> offsets, Matrix<const f64> table, Matrix<f64> sums);
void unit_points(Codes<Matrix> codes, Vector<const i64> offsets, Matrix<const f64> table, Matrix<f32> points);
void cluster_sums(Codes<Matrix> codes, Vector<const i64> offsets, Numbers<Vector> values,
                  std::variant<Vector<i64>, Vector<f64>> sums);

// label_space.cpp. weights (G,), labels (G,); counted (N_c, n_labels), zeros before.
void label_histograms(Codes<Matrix> codes, Vector<const i64> offsets, Vector<const i64> weights,
                      Vector<const i64> labels, Matrix<i64> counted);

// codes.cpp. labels (M, N); table (M, slots): marks, zeros before, which become codes. values (N_c,), n_values (M,):
// the labels of each clustering, one after the other. Codes (M, N) of odd clusterings are not written.
void mark_slots(const Labels& labels, Matrix<u32> table);
void number_slots(Matrix<u32> table, Vector<i64> values, Vector<i64> n_values);
void write_codes(const Labels& labels, Matrix<const u32> table, Vector<const bool> is_odd,
                 std::variant<Matrix<u8>, Matrix<u16>, Matrix<u32>> codes);

}  // namespace gpuens

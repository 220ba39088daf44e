// The primitives of gpuens/contingency on the CPU, as Python calls them (bindings.cpp).
#pragma once

#include <functional>
#include <optional>
#include <tuple>

#include "contingency/intersections.h"
#include "runtime/arrays.h"

namespace gpuens {

// intersections.cpp. labels (M, N), k (M,) clusters of each clustering; a label of k or more is missing. `work` is called in
// several threads, and each pair of clusterings is in one call; bytes: the most for marking objects by bits.
void over_cells(Codes<Matrix> labels, Vector<const i64> k, std::optional<Numbers<Vector>> weights, i64 bytes,
                const std::function<void(const AnyCells&)>& work);

// The table of two columns (N,) of one type, with a cell more at its end; zeros before.
void count_table(Codes<Vector> a, Codes<Vector> b, std::tuple<i64, i64> k, std::optional<Numbers<Vector>> weights,
                 std::variant<Vector<i64>, Vector<f64>> flat);

// The shared objects (N_c, k_m) of all clusters and the clusters of clustering m, in this thread alone.
void count_with(Codes<Matrix> labels, i64 m, Vector<const i64> offsets, std::optional<Vector<const i64>> weights,
                Matrix<i64> shared);

// Rows, columns and counts of the non-empty cells of a table.
std::tuple<Grown<i64>, Grown<i64>, std::variant<Grown<i64>, Grown<f64>>> nonzero(Numbers<Matrix> table);

// Cells into shared (N_c, N_c), their numbers into n_cells (N_c, M), and cells into a CSR matrix: the cells of cluster r and
// clustering m from starts[r, m] on, which advance.
void place_in_square(AnyCells cells, Vector<const i64> offsets, std::variant<Matrix<i64>, Matrix<f64>> shared);
void count_in_rows(AnyCells cells, Vector<const i64> offsets, Matrix<i64> n_cells);
void place_in_rows(AnyCells cells, Vector<const i64> offsets, Matrix<i64> starts,
                   std::variant<Vector<i32>, Vector<i64>> indices, std::variant<Vector<i64>, Vector<f64>> counts);

// sums (tables, 7) for the adjusted Rand index of each table of whole numbers: numbers of non-empty cells, rows and columns,
// the total, and the sums of squares of cells, rows and columns. Zeros before. Squares of more than 3e9 objects need f64.
void sums_of_squares(AnyCells cells, std::variant<Matrix<i64>, Matrix<f64>> sums);

// scores.cpp. terms (tables, 3): mutual information, entropy of rows and entropy of columns of each table, in nats; 1, 1, 1 if
// the clusters correspond one to one, 0, 1, 1 if one clustering has a single cluster, and NaN without objects.
void informations(AnyCells cells, Matrix<f64> terms);

// results (tables, 2): sum of s (s - mean)^2 over the sizes s of rows and of columns; `mean`: the mean size over the objects.
void unevenness(AnyCells cells, Matrix<f64> results);

// means (tables,): mean over the objects of |A and B| / max(|A|, |B|); sums (N,): `one` times the sum for each object, times
// the numbers of clusterings (M,) that the two stand for; added to.
void shares_of_cells(AnyCells cells, Codes<Matrix> labels, Vector<const i64> k, Vector<const i64> times, f64 one,
                     Vector<f64> means, Vector<i64> sums);

// entropies.cpp. terms[total, count] of clusters of few objects; times (M,): how many clusterings each stands for; of_rows,
// of_columns: added to.
void entropy_terms(f64 one, Matrix<i64> terms);
void add_entropies(AnyCells cells, Vector<const i64> offsets, f64 one, Matrix<const i64> terms, Vector<const i64> times,
                   Vector<i64> of_rows, Vector<i64> of_columns);

// Entropies of clusters (n,) of at most 64 objects, a bit for each, in clusterings without missing labels; times (n,): how
// often each cluster occurs.
void entropies_of_words(Vector<const u64> words, Vector<const i64> times, Matrix<const i64> terms, Vector<i64> total);

void add_row_entropies(Vector<const i64> rows, Vector<const i64> columns, Numbers<Vector> counts,
                       Vector<const i64> offsets, f64 one, Vector<i64> total);

}  // namespace gpuens

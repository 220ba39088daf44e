// The primitives of the CPU, as Python calls them (module.cpp); their equations and shapes are in kernels/README.md.
#pragma once

#include <functional>
#include <optional>
#include <tuple>

#include "arrays.h"
#include "intersections.h"

namespace gpuens {

// rows.cpp. columns (M, N): word_of[m] is the word of clustering m, radices[m] its digits; words (n_words, N).
void pack_rows(Codes<Matrix> columns, Vector<const i64> word_of, Vector<const u64> radices, Matrix<u64> words);

// rows (G, M), others (R, M) of one type; places (G,).
void find_rows(Codes<Matrix> rows, Codes<Matrix> others, Vector<i64> places);

// words.cpp. The place of the first of equal columns of words (n_words, N), ascending; row_of (N,): which of these each
// equals. None if nearly all differ.
std::optional<Grown<i64>> distinct_rows(Matrix<const u64> words, Vector<i64> row_of);

// The order (N,) of columns of words, and whether there each differs from the one before (N,).
void lexicographic(Matrix<const u64> words, Vector<i64> order, Vector<bool> first);

// products.cpp. codes (M, G) and offsets (M + 1,) of B.
void row_sums(Codes<Matrix> codes, Vector<const i64> offsets, Vector<const f64> values, Vector<f64> sums);
void row_lookups(Codes<Matrix> codes, Vector<const i64> offsets, Matrix<const f64> table, Matrix<f64> sums);
void unit_points(Codes<Matrix> codes, Vector<const i64> offsets, Matrix<const f64> table, Matrix<f32> points);
void cluster_sums(Codes<Matrix> codes, Vector<const i64> offsets, Numbers<Vector> values,
                  std::variant<Vector<i64>, Vector<f64>> sums);

// label_space.cpp. weights (G,), labels (G,); counted (N_c, n_labels), zeros before.
void label_histograms(Codes<Matrix> codes, Vector<const i64> offsets, Vector<const i64> weights,
                      Vector<const i64> labels, Matrix<i64> counted);

// labels.cpp. labels (M, N); table (M, slots): marks, zeros before, which become codes. values (N_c,), n_values (M,): the
// labels of each clustering, one after the other. Codes (M, N) of odd clusterings are not written.
void mark_slots(const Labels& labels, Matrix<u32> table);
void number_slots(Matrix<u32> table, Vector<i64> values, Vector<i64> n_values);
void write_codes(const Labels& labels, Matrix<const u32> table, Vector<const bool> is_odd,
                 std::variant<Matrix<u8>, Matrix<u16>, Matrix<u32>> codes);

// intersections.cpp. labels (M, N), k (M,) clusters of each clustering; a label of k or more is missing. `work` is called in
// several threads, and each pair of clusterings is in one call; at most so many bytes are taken for marking objects by bits.
void over_cells(Codes<Matrix> labels, Vector<const i64> k, std::optional<Numbers<Vector>> weights, i64 bytes,
                const std::function<void(const AnyCells&)>& work);

// The table of two columns (N,) of one type, with a cell more at its end; zeros before.
void count_table(Codes<Vector> a, Codes<Vector> b, std::tuple<i64, i64> k, std::optional<Numbers<Vector>> weights,
                 std::variant<Vector<i64>, Vector<f64>> flat);

// The shared objects (N_c, k_m) of all clusters and those of clustering m, in this thread alone.
void count_with(Codes<Matrix> labels, i64 m, Vector<const i64> offsets, std::optional<Vector<const i64>> weights,
                Matrix<i64> shared);

// Rows, columns and counts of the cells of a table that are not 0.
std::tuple<Grown<i64>, Grown<i64>, std::variant<Grown<i64>, Grown<f64>>> nonzero(Numbers<Matrix> table);

// Cells into shared (N_c, N_c), into numbers of them for each cluster and clustering (N_c, M), and into a CSR matrix: those
// of cluster r and clustering m from starts[r, m] on, which advance.
void place_in_square(AnyCells cells, Vector<const i64> offsets, std::variant<Matrix<i64>, Matrix<f64>> shared);
void count_in_rows(AnyCells cells, Vector<const i64> offsets, Matrix<i64> n_cells);
void place_in_rows(AnyCells cells, Vector<const i64> offsets, Matrix<i64> starts,
                   std::variant<Vector<i32>, Vector<i64>> indices, std::variant<Vector<i64>, Vector<f64>> counts);

// What the adjusted Rand index of each table of whole numbers is made of (tables, 7): non-empty cells, rows and columns, the
// total, and the squares of cells, rows and columns. Zeros before. Squares of more than 3e9 objects need f64.
void sums_of_squares(AnyCells cells, std::variant<Matrix<i64>, Matrix<f64>> sums);

// scores.cpp. Of each table the mutual information and the entropies of rows and columns in nats (tables, 3), which are 1, 1, 1
// if the clusters correspond one to one, 0, 1, 1 if one clustering has a single cluster, and NaN without objects.
void informations(AnyCells cells, Matrix<f64> found);

// The sums of s (s - mean)^2 over the sizes s of rows and of columns (tables, 2); `mean` is that of the objects' sizes.
void unevenness(AnyCells cells, Matrix<f64> found);

// The mean (tables,) of |A and B| / max(|A|, |B|) over the objects, and `one` times its sum for each object (N,), times the
// numbers of clusterings (M,) for which the two stand; added to.
void shares_of_cells(AnyCells cells, Codes<Matrix> labels, Vector<const i64> k, Vector<const i64> times, f64 one,
                     Vector<f64> means, Vector<i64> sums);

// exponentials.cpp. e^exponents (n,), and log2 numbers (n,) for numbers >= 0, with the same bits on every processor.
void exponentials(Vector<const f64> exponents, Vector<f64> powers);
void logarithms(Vector<const f64> numbers, Vector<f64> bits);

// entropies.cpp. terms[total, count] of clusters of few objects; times (M,): how many clusterings each stands for; of_rows,
// of_columns: added to.
void entropy_terms(f64 one, Matrix<i64> terms);
void add_entropies(AnyCells cells, Vector<const i64> offsets, f64 one, Matrix<const i64> terms, Vector<const i64> times,
                   Vector<i64> of_rows, Vector<i64> of_columns);

// The same of clusters (n,) of at most 64 objects, a bit for each, in clusterings without missing labels; times (n,): how often
// each cluster occurs.
void entropies_of_words(Vector<const u64> words, Vector<const i64> times, Matrix<const i64> terms, Vector<i64> total);

void add_row_entropies(Vector<const i64> rows, Vector<const i64> columns, Numbers<Vector> counts,
                       Vector<const i64> offsets, f64 one, Vector<i64> total);

}  // namespace gpuens

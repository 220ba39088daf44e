// Steps of eq 10 and the objective of eq 3 of soft correspondence, one clustering after the other
// (gpuens/partition/soft_correspondence.py).
//
// A clustering's rows of all tables are copied side by side, with columns of zeros up to a whole number of vectors: a
// step leaves zeros as they are.
#include "runtime/lanes.h"
#include "runtime/parallel.h"
#include "partition/ordered_products.h"
#include "partition/primitives.h"

#include <algorithm>

namespace gpuens {

namespace {

constexpr f64 ENTRY_NS = 2;
constexpr i64 L = IN_REGISTER<f64>;

// Clusters first ... first + k_all - 1, of which `k` are there; the other ones have no objects.
struct Clustering {
    i64 first, k_all, k = 0;
    const bool* there;
    const f64* held;
    f64 shared, alpha, beta;
    const f64* gram;  // A^T A (k_all, k_all) of a soft clustering; of labels it follows from `held` and `shared`

    Clustering(const SoftTerms& terms, i64 h)
        : first(terms.bounds[h]), k_all(terms.bounds[h + 1] - first), there(terms.there.data + first),
          held(terms.held.data + first), shared(terms.shared[h]),
          gram(terms.gram_starts[h] < 0 ? nullptr : terms.grams.data + terms.gram_starts[h]) {
        k = std::count(there, there + k_all, true);
        alpha = terms.alpha / (f64)k;
        beta = terms.beta / (f64)k;
    }
};

// The rows of one clustering, in memory that is used again for the next.
class Rows {
public:
    Rows(i64 n, i64 n_columns_) : n_columns(n_columns_), width((n_columns + L - 1) / L * L), data(n * width) {}

    f64* operator[](i64 row) { return data.data() + row * width; }

    void copy(Matrix<const f64> from, i64 first, i64 n) {
        for (i64 row = 0; row < n; ++row) std::copy(from[first + row], from[first + row] + n_columns, (*this)[row]);
    }

    void copy_to(Matrix<f64> into, i64 first, i64 n) {
        for (i64 row = 0; row < n; ++row) std::copy((*this)[row], (*this)[row] + n_columns, into[first + row]);
    }

    i64 n_columns, width;

private:
    std::vector<f64> data;
};

class Descent {
public:
    Descent(const SoftTerms& terms_, i64 n_columns)
        : terms(terms_), max_clusters(largest(terms.bounds)), table(max_clusters, n_columns), products(max_clusters, n_columns),
          gram_times(max_clusters, n_columns), column_sums(1, n_columns) {}

    // Step until no correspondence of clustering h moves by more than `tol`.
    void step(i64 h, Matrix<const f64> all_products, Matrix<f64> all, const Stepping& by) {
        Clustering of = read(h, all_products, {all.data, all.rows, all.columns});
        for (i64 n = 0; n < by.n_steps; ++n) {
            if (n % 8 == 0) look();
            multiply(of);
            f64 moved = 0.0;
            for (i64 c = 0; c < of.k_all; ++c)
                if (of.there[c]) moved = std::max(moved, step_row(of, c, by.vanished));
            if (moved <= by.tol) break;
        }
        table.copy_to(all, of.first, of.k_all);
    }

    f64 objective(i64 h, Matrix<const f64> all_products, Matrix<const f64> all) {
        Clustering of = read(h, all_products, all);
        multiply(of);
        f64 apart = 0.0, sparse = 0.0, off = 0.0;
        for (i64 c = 0; c < of.k_all; ++c) {
            if (!of.there[c]) continue;
            f64 row_sum = 0.0;
            for (i64 d = 0; d < table.n_columns; ++d) {
                f64 entry = table[c][d], beyond = entry - column_sums[0][d] / (f64)of.k;
                row_sum += entry;
                apart += entry * (gram_times[c][d] - products[c][d]);
                sparse += beyond * beyond;
            }
            off += (row_sum - 1.0) * (row_sum - 1.0);
        }
        return apart - of.alpha * sparse + of.beta * (f64)table.n_columns * off;
    }

private:
    static i64 largest(Vector<const i64> bounds) {
        i64 largest_size = 0;
        for (i64 h = 0; h + 1 < bounds.size; ++h) largest_size = std::max(largest_size, bounds[h + 1] - bounds[h]);
        return largest_size;
    }

    Clustering read(i64 h, Matrix<const f64> all_products, Matrix<const f64> all) {
        Clustering of(terms, h);
        table.copy(all, of.first, of.k_all);
        products.copy(all_products, of.first, of.k_all);
        return of;
    }

    // Compute the sums of the columns, and A^T A S.
    void multiply(const Clustering& of) {
        f64* sums = column_sums[0];
        std::fill(sums, sums + table.width, 0.0);
        for (i64 c = 0; c < of.k_all; ++c)
            if (of.there[c])
                for (i64 d = 0; d < table.width; d += L) store(load(sums + d) + load(table[c] + d), sums + d);
        if (of.gram) {
            std::fill(gram_times[0], gram_times[of.k_all], 0.0);
            add_in_order({of.gram, of.k_all, of.k_all, of.k_all, 1}, {table[0], of.k_all, table.width},
                         {gram_times[0], of.k_all, table.width});
            return;
        }
        for (i64 c = 0; c < of.k_all; ++c)
            for (i64 d = 0; d < table.width; d += L)
                store(of.held[c] * load(table[c] + d) + of.shared * load(sums + d), gram_times[c] + d);
    }

    // Step with one row of the table; return how far its entries move at most.
    f64 step_row(const Clustering& of, i64 c, f64 vanished) {
        f64 penalty = of.beta * (f64)table.n_columns, row_sum = 0.0, *row = table[c];
        for (i64 d = 0; d < table.n_columns; ++d) row_sum += row[d];
        Register<f64> moved = {}, zero = {};
        for (i64 d = 0; d < table.width; d += L) {
            Register<f64> before = load(row + d), below = load(gram_times[c] + d) - of.alpha * before;
            below += of.alpha / (f64)of.k * load(column_sums[0] + d);
            below += penalty * row_sum;
            Register<f64> after = before * (load(products[c] + d) + penalty) / below;
            after = after < vanished ? zero : after;
            after = before == zero ? zero : after;
            Register<f64> change = after > before ? after - before : before - after;
            moved = change > moved ? change : moved;
            store(after, row + d);
        }
        f64 largest_move = 0.0;
        for (i64 lane = 0; lane < L; ++lane) largest_move = std::max(largest_move, moved[lane]);
        return largest_move;
    }

    const SoftTerms& terms;
    i64 max_clusters;  // clusters of a clustering
    Rows table, products, gram_times, column_sums;
};

f64 nanoseconds_of(const SoftTerms& terms, Matrix<const f64> table) {
    return (f64)(table.rows * table.columns) / (f64)(terms.bounds.size - 1) * ENTRY_NS;
}

}  // namespace

void step_correspondences(const SoftTerms& terms, Matrix<const f64> products, Matrix<f64> table, const Stepping& by) {
    in_threads(terms.bounds.size - 1, nanoseconds_of(terms, {table.data, table.rows, table.columns}) * (f64)by.n_steps,
               [&](Ranges& ranges) {
                   Descent descent(terms, table.columns);
                   while (Range range = ranges.next())
                       for (i64 h = range.start; h < range.stop; ++h) descent.step(h, products, table, by);
               });
}

void soft_objectives(const SoftTerms& terms, Matrix<const f64> products, Matrix<const f64> table, Vector<f64> parts) {
    in_threads(parts.size, nanoseconds_of(terms, table), [&](Ranges& ranges) {
        Descent descent(terms, table.columns);
        while (Range range = ranges.next())
            for (i64 h = range.start; h < range.stop; ++h) parts[h] = descent.objective(h, products, table);
    });
}

}  // namespace gpuens

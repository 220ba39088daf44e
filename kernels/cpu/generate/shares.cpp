// Points that are weighted sums of a few rows of a table, and are not stored (gpuens/generate/shares.py).
#include "generate/landmarks.h"
#include "generate/primitives.h"
#include "runtime/least.h"
#include "runtime/parallel.h"

#include <vector>

namespace gpuens {

namespace {

constexpr f64 VANISHES = 1e-7;      // length of a point of rounding errors, divided by that of its largest term
constexpr i64 POINTS = 8;           // points whose lengths are computed side by side
constexpr i64 BETWEEN_LOOKS = 256;  // objects

// Turns squared distances into shares, for several objects at once.
template <typename Code>
class Sharing {
public:
    Sharing(Matrix<const Code> ids_, EdgeWeights edges_, Vector<const f64> reach_, Matrix<const f64> rows_)
        : ids(ids_), edges(edges_), reach(reach_), rows(rows_), terms(POINTS * ids.columns),
          points(POINTS * rows.columns) {}

    void write(i64 first, i64 n_objects, Matrix<f32> squares) {
        f64 largest[POINTS] = {}, length[POINTS] = {};
        i64 n = ids.columns, d = rows.columns;
        for (i64 p = 0; p < n_objects; ++p) {
            const Code* neighbors = ids[first + p];
            f64* term = terms.data() + p * n;
            edges.write(squares[first + p], n, term);
            for (i64 s = 0; s < n; ++s) {
                term[s] *= reach[neighbors[s]];
                largest[p] = std::max(largest[p], term[s]);
            }
            add_rows(neighbors, term, points.data() + p * d);
        }
        for (i64 j = 0; j < d; ++j)
            for (i64 p = 0; p < n_objects; ++p) length[p] += points[p * d + j] * points[p * d + j];
        for (i64 p = 0; p < n_objects; ++p) {
            f64 norm = std::sqrt(length[p]);
            bool is_direction = norm > VANISHES * largest[p];
            for (i64 s = 0; s < n; ++s) squares[first + p][s] = is_direction ? (f32)(terms[p * n + s] / norm) : 0.0f;
        }
    }

private:
    void add_rows(const Code* neighbors, const f64* term, f64* point) const {
        i64 d = rows.columns;
        std::fill(point, point + d, 0.0);
        for (i64 s = 0; s < ids.columns; ++s) {
            const f64* row = rows[neighbors[s]];
            f64 weight = term[s];
#pragma GCC ivdep
            for (i64 j = 0; j < d; ++j) point[j] += weight * row[j];
        }
    }

    Matrix<const Code> ids;
    EdgeWeights edges;
    Vector<const f64> reach;
    Matrix<const f64> rows;
    std::vector<f64> terms, points;  // (POINTS, K), (POINTS, d)
};

// The search for the center with the largest score sum_s shares[s] towards[ids[s]] + lift; scores are negated.
template <int WIDE, typename Code>
struct Search {
    using Pack = Native<f64, WIDE>;
    Matrix<const Code> ids;
    Matrix<const f32> shares;
    Matrix<const f64> towards;
    Vector<const f64> lift;

    i64 nearest(i64 i) const {
        i64 center;
        f64 score;
        Least<WIDE> minimum;
        in_groups(Least<WIDE>::n_vectors(lift.size), [&]<int N>(i64 first) __attribute__((always_inline)) {
            add<N>(i, first, minimum);
        });
        minimum.write(score, center);
        return center;
    }

    template <int N>
    [[gnu::always_inline]] inline void add(i64 i, i64 first, Least<WIDE>& minimum) const {
        Pack sums[N] = {};
        i64 begins[N];
#pragma GCC unroll 4
        for (int v = 0; v < N; ++v) begins[v] = Least<WIDE>::begin(first + v, lift.size);
        for (i64 s = 0; s < ids.columns; ++s) {
            const f64* row = towards[ids[i][s]];
            f64 share = shares[i][s];
#pragma GCC unroll 4
            for (int v = 0; v < N; ++v) sums[v] += share * loaded<Pack>(row + begins[v]);
        }
#pragma GCC unroll 4
        for (int v = 0; v < N; ++v) minimum.add(-(sums[v] + loaded<Pack>(lift.data + begins[v])), begins[v]);
    }
};

// The sums of the shares of each center's objects (k, p), and the numbers of objects (k,).
struct Sums {
    std::vector<f64> shares;
    std::vector<i64> sizes;
    i64 n_changed = 0;
};

}  // namespace

void landmark_shares(Codes<Matrix> ids, Matrix<f32> squares, f64 sigma, Vector<const f64> reach,
                     Matrix<const f64> rows) {
    std::visit([&]<typename Code>(Matrix<const Code> of) {
        in_threads(of.rows, (f64)(of.columns * (20 + rows.columns / 4)), [&](Ranges& ranges) {
            Sharing<Code> sharing(of, EdgeWeights(sigma), reach, rows);
            while (Range range = ranges.next())
                for (i64 i = range.start; i < range.stop; i += POINTS)
                    sharing.write(i, std::min(POINTS, range.stop - i), squares);
        });
    }, ids);
}

i64 nearest_by_shares(Codes<Matrix> ids, Matrix<const f32> shares, Matrix<const f64> towards, Vector<const f64> lift,
                      Vector<i64> labels, i64 chunk, Matrix<f64> sums, Vector<i64> sizes) {
    i64 n = labels.size, k = sums.rows, p = sums.columns, n_chunks = (n + chunk - 1) / chunk, n_changed = 0;
    std::vector<Sums> of_chunks(n_chunks);
    std::visit([&]<typename Code>(Matrix<const Code> of) {
        by_width(k, [&]<int WIDE>() {
            Search<WIDE, Code> search{of, shares, towards, lift};
            f64 nanoseconds = (f64)chunk * (f64)(of.columns * (2 + k / 8));
            over_ranges(n_chunks, nanoseconds, [&](i64 start, i64 stop) {
                for (i64 c = start; c < stop; ++c) {
                    Sums& chunk_sums = of_chunks[c];
                    chunk_sums.shares.resize(k * p);
                    chunk_sums.sizes.resize(k);
                    for (i64 i = c * chunk; i < std::min(n, (c + 1) * chunk); ++i) {
                        if (i % BETWEEN_LOOKS == 0) look();
                        i64 center = search.nearest(i);
                        chunk_sums.n_changed += labels[i] != center;
                        labels[i] = center;
                        ++chunk_sums.sizes[center];
                        f64* into = chunk_sums.shares.data() + center * p;
                        for (i64 s = 0; s < of.columns; ++s) into[of[i][s]] += shares[i][s];
                    }
                }
            });
        });
    }, ids);
    std::fill(sums.data, sums.data + k * p, 0.0);
    std::fill(sizes.begin(), sizes.end(), 0);
    for (const Sums& chunk_sums : of_chunks) {
        for (i64 at = 0; at < k * p; ++at) sums.data[at] += chunk_sums.shares[at];
        for (i64 c = 0; c < k; ++c) sizes[c] += chunk_sums.sizes[c];
        n_changed += chunk_sums.n_changed;
    }
    return n_changed;
}

}  // namespace gpuens

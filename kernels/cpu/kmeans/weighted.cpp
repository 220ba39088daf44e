// k-means of weighted points (gpuens/kmeans/weighted.py).
//
// Blocks of points are turned, so that one vector instruction compares several points with a center for any number of
// dimensions and centers. Sums over clusters are added in order from chunks of a constant size, so that they do not
// depend on the number of threads.
#include "kmeans/lloyd.h"
#include "kmeans/primitives.h"
#include "runtime/lanes.h"
#include "runtime/parallel.h"

#include <atomic>
#include <limits>
#include <mutex>

namespace gpuens {

namespace {

constexpr i64 ADDED = 8192;  // points in a chunk, added one after the other
constexpr i64 BLOCK = 64;    // points that are turned at a time
constexpr int AT_ONCE = 4;   // centers, whose scores do not wait for each other

// Centers in the points' precision, as the products with them need them.
template <typename Point>
struct Centers {
    i64 k, d;
    std::vector<Point> own, half_square;

    explicit Centers(Matrix<const f64> of)
        : k(of.rows), d(of.columns), own(of.data, of.data + k * d), half_square(k) {
        for (i64 c = 0; c < k; ++c)
            half_square[c] = pairwise_sum<Point>(c * d, d, [&](i64 i) { return own[i] * own[i]; }) / 2;
    }
};

// The nearest centers of a block of points.
template <typename Point>
class Block {
    using Whole = std::conditional_t<sizeof(Point) == 4, i32, i64>;
    static constexpr int WIDE = VECTOR_BYTES / sizeof(Point);
    static constexpr int N_VECTORS = std::min(VECTORS / 8, (int)BLOCK / WIDE);  // compared at once, in registers
    using Pack = Native<Point, WIDE>;
    using Labels = Native<Whole, WIDE>;

public:
    Whole label[BLOCK];

    explicit Block(i64 d) : turned(d * BLOCK) {}

    void compare(Matrix<const Point> points, i64 first, i64 n, const Centers<Point>& centers) {
        for (i64 p = 0; p < n; ++p)
            for (i64 j = 0; j < centers.d; ++j) turned[j * BLOCK + p] = points[first + p][j];
        for (i64 p = 0; p < n; p += N_VECTORS * WIDE) {
            Pack best[N_VECTORS];
            Labels of_best[N_VECTORS] = {};
            for (Pack& score : best) score = Pack{} + std::numeric_limits<Point>::infinity();
            i64 c = 0;
            for (; c + AT_ONCE <= centers.k; c += AT_ONCE) compare_with<AT_ONCE>(p, centers, c, best, of_best);
            for (; c < centers.k; ++c) compare_with<1>(p, centers, c, best, of_best);
            std::memcpy(label + p, of_best, sizeof of_best);
        }
    }

private:
    // |c|² / 2 - c · x, by which centers are as near as by their distances.
    template <int CENTERS>
    [[gnu::always_inline]] inline void compare_with(i64 p, const Centers<Point>& centers, i64 first, Pack* best,
                                                    Labels* of_best) const {
        Pack score[CENTERS][N_VECTORS];
        i64 d = centers.d;
        const Point *own = centers.own.data() + first * d, *block = turned.data() + p;
#pragma GCC unroll 4
        for (int c = 0; c < CENTERS; ++c)
#pragma GCC unroll 4
            for (int v = 0; v < N_VECTORS; ++v) score[c][v] = Pack{} + centers.half_square[first + c];
        for (i64 j = 0; j < d; ++j) {
            Pack coordinate[N_VECTORS];
#pragma GCC unroll 4
            for (int v = 0; v < N_VECTORS; ++v) coordinate[v] = loaded<Pack>(block + j * BLOCK + v * WIDE);
#pragma GCC unroll 4
            for (int c = 0; c < CENTERS; ++c)
#pragma GCC unroll 4
                for (int v = 0; v < N_VECTORS; ++v) score[c][v] -= coordinate[v] * own[c * d + j];
        }
#pragma GCC unroll 4
        for (int c = 0; c < CENTERS; ++c)
#pragma GCC unroll 4
            for (int v = 0; v < N_VECTORS; ++v) {
                Labels nearer = score[c][v] < best[v];
                best[v] = nearer ? score[c][v] : best[v];
                of_best[v] = nearer ? Labels{} + (Whole)(first + c) : of_best[v];
            }
    }

    std::vector<Point> turned;  // (d, BLOCK)
};

template <typename Point>
class WeightedPoints {
public:
    WeightedPoints(Matrix<const Point> points_, Vector<const i64> counts_, Vector<i64> labels_)
        : points(points_), counts(counts_), of(labels_) {}

    i64 n() const { return points.rows; }
    i64* labels() const { return of.data; }
    f64 weight(i64 x) const { return (f64)counts[x]; }
    f64 coordinate(i64 x, i64 j) const { return points[x][j]; }
    f64 center(f64 sum, f64, i64) const { return sum; }

    f64 square(i64 x, Matrix<const f64> centers) const {
        const f64* center = centers[of[x]];
        return pairwise_sum<f64>(0, centers.columns, [&](i64 j) {
            f64 apart = points[x][j] - center[j];
            return apart * apart;
        });
    }

    f64 inertia(Matrix<const f64> centers) const {
        std::vector<f64> squares(n());
        for (i64 x = 0; x < n(); ++x) squares[x] = square(x, centers) * weight(x);
        return pairwise_sum<f64>(0, n(), [&](i64 x) { return squares[x]; });
    }

    i64 label(Matrix<const f64> centers, Matrix<f64> sums) {
        Centers<Point> rounded(centers);
        i64 cells = sums.rows * sums.columns, n_chunks = (n() + ADDED - 1) / ADDED;
        std::vector<f64> of_chunks(n_chunks > 1 ? n_chunks * cells : 0);
        std::atomic<i64> n_changed{0};
        std::fill(sums.data, sums.data + cells, 0.0);
        f64 nanoseconds = ADDED * (f64)(rounded.k * rounded.d) / 8;
        in_threads(n_chunks, nanoseconds, [&](Ranges& ranges) {
            Block<Point> block(rounded.d);
            while (Range range = ranges.next())
                for (i64 chunk = range.start; chunk < range.stop; ++chunk) {
                    f64* into = n_chunks > 1 ? of_chunks.data() + chunk * cells : sums.data;
                    n_changed += add(chunk * ADDED, std::min(n(), (chunk + 1) * ADDED), rounded, block, into);
                }
        });
        for (i64 chunk = 0; chunk < n_chunks && n_chunks > 1; ++chunk)
            for (i64 i = 0; i < cells; ++i) sums.data[i] += of_chunks[chunk * cells + i];
        return n_changed;
    }

private:
    // Label points start ... stop - 1 and add them to sums (k, d + 1); return how many labels changed.
    i64 add(i64 start, i64 stop, const Centers<Point>& centers, Block<Point>& block, f64* sums) {
        i64 d = centers.d, n_changed = 0;
        for (i64 first = start; first < stop; first += BLOCK) {
            look();
            i64 n_points = std::min(BLOCK, stop - first);
            block.compare(points, first, n_points, centers);
            for (i64 p = 0; p < n_points; ++p) {
                i64 x = first + p, c = block.label[p];
                n_changed += of[x] != c;
                of[x] = c;
                const Point* point = points[x];
                f64 point_weight = weight(x), *into = sums + c * (d + 1);
#pragma GCC ivdep
                for (i64 j = 0; j < d; ++j) into[j] += point_weight * point[j];
                into[d] += point_weight;
            }
        }
        return n_changed;
    }

    Matrix<const Point> points;
    Vector<const i64> counts;
    Vector<i64> of;
};

template <typename Point>
void iterate(WeightedPoints<Point> points, f64 enough, i64 most_iterations, Matrix<f64> centers) {
    std::fill(points.labels(), points.labels() + points.n(), -1);
    descend(points, centers, enough, most_iterations);
    std::vector<f64> sums(centers.rows * (centers.columns + 1));
    points.label(as_const(centers), {sums.data(), centers.rows, centers.columns + 1});
}

}  // namespace

i64 nearest_centers(Reals<Matrix> points, Vector<const i64> counts, Matrix<const f64> centers, Vector<i64> labels,
                    Matrix<f64> sums) {
    return std::visit([&]<typename Point>(Matrix<const Point> of) {
        return WeightedPoints<Point>(of, counts, labels).label(centers, sums);
    }, points);
}

void descend_weighted(Reals<Matrix> points, Vector<const i64> counts, f64 enough, i64 most_iterations,
                      Matrix<f64> centers, Vector<i64> labels) {
    std::visit([&]<typename Point>(Matrix<const Point> of) {
        iterate(WeightedPoints<Point>(of, counts, labels), enough, most_iterations, centers);
    }, points);
}

void best_of_starts(Reals<Matrix> points, Vector<const i64> counts, Matrix<const i64> first_centers, f64 enough,
                    i64 most_iterations, Matrix<f64> centers, Vector<i64> labels) {
    std::visit([&]<typename Point>(Matrix<const Point> of) {
        i64 n = of.rows, k = first_centers.columns, d = of.columns, best = -1;
        f64 best_inertia = 0.0;
        std::mutex best_mutex;
        in_threads(first_centers.rows, (f64)(n * k * d), [&](Ranges& ranges) {
            std::vector<i64> own_labels(n);
            std::vector<f64> memory(k * d);
            Matrix<f64> start_centers{memory.data(), k, d};
            WeightedPoints<Point> cloud(of, counts, {own_labels.data(), n});
            while (Range range = ranges.next())
                for (i64 b = range.start; b < range.stop; ++b) {
                    for (i64 c = 0; c < k; ++c) std::copy_n(of[first_centers[b][c]], d, start_centers[c]);
                    iterate(cloud, enough, most_iterations, start_centers);
                    f64 inertia = cloud.inertia(as_const(start_centers));
                    std::lock_guard<std::mutex> lock(best_mutex);
                    if (best >= 0 && !(inertia < best_inertia || (inertia == best_inertia && b < best))) continue;
                    best_inertia = inertia, best = b;
                    std::copy(own_labels.begin(), own_labels.end(), labels.data);
                    std::copy(memory.begin(), memory.end(), centers.data);
                }
        });
    }, points);
}

}  // namespace gpuens

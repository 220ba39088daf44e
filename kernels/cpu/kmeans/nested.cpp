// k-means of points without weights, in the frame of a sample of them (gpuens/kmeans/nested.py).
//
// The best of the float32 scores |c|² / 2 - c · x belongs to the nearest center, unless several centers may have the
// best one within the bound on rounding errors; then squared distances in float64 decide. So no label depends on the
// rounding of products, and they are summed by fused multiplications and additions where the processor has them.
#include "kmeans/lloyd.h"
#include "kmeans/primitives.h"
#include "runtime/lanes.h"
#include "runtime/parallel.h"

#include <atomic>
#include <cmath>
#include <limits>

namespace gpuens {

namespace {

constexpr i64 BLOCK = 64;   // points whose scores are computed together
constexpr int AT_ONCE = 4;  // centers, whose scores do not wait for each other
constexpr f32 INFINITE = std::numeric_limits<f32>::infinity();

// The bound on the rounding error of a score. u = 2^-24 is the rounding error of float32. A product of a point x and a
// center c with d features, summed in any order, has an error of at most (d + 1) u |x| |c|. The bound has d + 8 instead
// of d + 1 for the rounding errors of other operations, and 1e-30 for numbers too small for float32.
struct Rounding {
    f64 share;

    explicit Rounding(i64 d) : share((f64)(d + 8) * 0x1p-24) {}
    f64 of(f64 point, f64 center) const { return share * center * (point + center) + 1e-30; }
    bool decided(f64 gap, f64 point, f64 longest) const {
        return gap > 2 * share * longest * (point + longest) + 1e-30;
    }
};

struct Centers {
    Matrix<const f64> exact;
    std::vector<f32> around, half_square;  // centers minus the mean (k, d), half their squared lengths (k,)
    std::vector<f64> lengths;              // (k,): of the centers minus the mean
    f64 longest = 0.0;

    Centers(Matrix<const f64> of, Vector<const f64> mean)
        : exact(of), around(of.rows * of.columns), half_square(of.rows), lengths(of.rows) {
        for (i64 c = 0; c < of.rows; ++c) {
            f64 square = 0.0;
            for (i64 j = 0; j < of.columns; ++j) {
                f64 coordinate = of[c][j] - mean[j];
                around[c * of.columns + j] = (f32)coordinate;
                square += coordinate * coordinate;
            }
            lengths[c] = std::sqrt(square);
            half_square[c] = (f32)(lengths[c] * lengths[c] / 2);
            longest = std::max(longest, lengths[c]);
        }
    }
};

// The scores of all centers for a block of points.
class Scores {
    static constexpr int WIDE = VECTOR_BYTES / sizeof(f32);
    static constexpr int N_VECTORS = std::min(VECTORS / 8, (int)BLOCK / WIDE);  // compared at once, in registers
    using Pack = Native<f32, WIDE>;
    using Labels = Native<i32, WIDE>;

public:
    f32 best[BLOCK], second[BLOCK], square[BLOCK];  // scores, and |x|²
    i32 label[BLOCK];

    Scores(i64 k, i64 d) : turned(d * BLOCK), scores(k * BLOCK) {}
    f32 at(i64 center, i64 point) const { return scores[center * BLOCK + point]; }

    void compare(Matrix<const f32> around, i64 first, i64 n, const Centers& centers) {
        for (i64 j = 0; j < around.rows; ++j) std::copy_n(around[j] + first, n, turned.data() + j * BLOCK);
        for (i64 p = 0; p < n; p += N_VECTORS * WIDE) {
            BestTwo best_two;
            i64 c = 0;
            for (; c + AT_ONCE <= centers.exact.rows; c += AT_ONCE) compare_with<AT_ONCE>(p, centers, c, best_two);
            for (; c < centers.exact.rows; ++c) compare_with<1>(p, centers, c, best_two);
            std::memcpy(best + p, best_two.best, sizeof best_two.best);
            std::memcpy(second + p, best_two.second, sizeof best_two.second);
            std::memcpy(label + p, best_two.label, sizeof best_two.label);
            Pack squares[N_VECTORS] = {};
            for (i64 j = 0; j < around.rows; ++j)
                for (int v = 0; v < N_VECTORS; ++v) {
                    Pack coordinates = loaded<Pack>(turned.data() + j * BLOCK + p + v * WIDE);
                    squares[v] += coordinates * coordinates;
                }
            std::memcpy(square + p, squares, sizeof squares);
        }
    }

private:
    struct BestTwo {
        Pack best[N_VECTORS], second[N_VECTORS];
        Labels label[N_VECTORS] = {};

        BestTwo() {
            for (int v = 0; v < N_VECTORS; ++v) best[v] = second[v] = Pack{} + INFINITE;
        }
    };

    template <int CENTERS>
    [[gnu::always_inline]] inline void compare_with(i64 p, const Centers& centers, i64 first, BestTwo& best_two) {
        Pack product[CENTERS][N_VECTORS] = {};
        i64 d = centers.exact.columns;
        const f32 *rows = centers.around.data() + first * d, *block = turned.data() + p;
        for (i64 j = 0; j < d; ++j) {
            Pack coordinate[N_VECTORS];
#pragma GCC unroll 4
            for (int v = 0; v < N_VECTORS; ++v) coordinate[v] = loaded<Pack>(block + j * BLOCK + v * WIDE);
#pragma GCC unroll 4
            for (int c = 0; c < CENTERS; ++c)
#pragma GCC unroll 4
                for (int v = 0; v < N_VECTORS; ++v)
                    product[c][v] = plus_product(product[c][v], coordinate[v], rows[c * d + j]);
        }
#pragma GCC unroll 4
        for (int c = 0; c < CENTERS; ++c)
#pragma GCC unroll 4
            for (int v = 0; v < N_VECTORS; ++v) {
                Pack score = centers.half_square[first + c] - product[c][v], &best = best_two.best[v];
                Labels nearer = score < best;
                Pack higher = nearer ? best : score;
                best_two.second[v] = higher < best_two.second[v] ? higher : best_two.second[v];
                best = nearer ? score : best;
                best_two.label[v] = nearer ? Labels{} + (i32)(first + c) : best_two.label[v];
                std::memcpy(scores.data() + (first + c) * BLOCK + p + v * WIDE, &score, sizeof score);
            }
    }

    std::vector<f32> turned;  // (d, BLOCK)
    std::vector<f32> scores;  // (k, BLOCK)
};

template <typename Point>
class SampledPoints {
public:
    SampledPoints(Matrix<const Point> points_, Matrix<const f32> around_, Frame frame, Vector<i64> labels_)
        : points(points_), around(around_), scale(std::get<0>(frame)), mean(std::get<1>(frame)), of(labels_) {}

    i64 n() const { return points.rows; }
    i64* labels() const { return of.data; }
    f64 weight(i64) const { return 1.0; }
    f64 coordinate(i64 x, i64 j) const { return (f64)points[x][j] * scale - mean[j]; }
    f64 center(f64 sum, f64 weight, i64 j) const { return sum + weight * mean[j]; }

    f64 square(i64 x, Matrix<const f64> centers) const {
        const f64* center = centers[of[x]];
        return pairwise_sum<f64>(0, centers.columns, [&](i64 j) {
            f64 apart = (f64)points[x][j] * scale - center[j];
            return apart * apart;
        });
    }

    f64 inertia(Matrix<const f64> centers) const {
        f64 total = 0.0;
        between_looks([&](i64 start, i64 stop) { total = add_squares(start, stop, centers, total); });
        return total;
    }

    i64 label(Matrix<const f64> centers, Matrix<f64> sums) {
        i64 n_changed = label_by(centers), d = centers.columns;
        if (n_changed == 0) return 0;
        if (first_inertia < 0) first_inertia = inertia(centers);
        std::fill(sums.data, sums.data + sums.rows * sums.columns, 0.0);
        between_looks([&](i64 start, i64 stop) {
            for (i64 x = start; x < stop; ++x) {
                const Point* point = points[x];
                f64* into = sums[of[x]];
#pragma GCC ivdep
                for (i64 j = 0; j < d; ++j) into[j] += (f64)point[j] * scale - mean[j];
                into[d] += 1.0;
            }
        });
        return n_changed;
    }

    i64 label_by(Matrix<const f64> of_centers) {
        Centers centers(of_centers, mean);
        std::atomic<i64> n_changed{0};
        i64 n_blocks = (n() + BLOCK - 1) / BLOCK;
        f64 nanoseconds = BLOCK * (20.0 + (f64)(of_centers.rows * (of_centers.columns + 8)) / 16);
        in_threads(n_blocks, nanoseconds, [&](Ranges& ranges) {
            Scores scores(of_centers.rows, of_centers.columns);
            while (Range range = ranges.next())
                for (i64 b = range.start; b < range.stop; ++b) n_changed += decide(b * BLOCK, centers, scores);
        });
        return n_changed;
    }

    f64 first_inertia = -1.0;  // inertia of the initial centers

private:
    template <typename Work>
    void between_looks(Work&& work) const {
        for (i64 start = 0; start < n(); start += BETWEEN_LOOKS) {
            look();
            work(start, std::min(n(), start + BETWEEN_LOOKS));
        }
    }

    // noinline keeps the total in a register.
    [[gnu::noinline]] f64 add_squares(i64 start, i64 stop, Matrix<const f64> centers, f64 total) const {
        for (i64 x = start; x < stop; ++x) total = add_square(points[x], centers[of[x]], total);
        return total;
    }

    f64 add_square(const Point* point, const f64* center, f64 total) const {
        for (i64 j = 0; j < points.columns; ++j) {
            f64 apart = (f64)point[j] * scale - center[j];
            total += apart * apart;
        }
        return total;
    }

    i64 decide(i64 first, const Centers& centers, Scores& scores) {
        look();
        i64 n_changed = 0, some = std::min(BLOCK, n() - first);
        Rounding rounding(points.columns);
        scores.compare(around, first, some, centers);
        for (i64 p = 0; p < some; ++p) {
            f64 length = std::sqrt((f64)scores.square[p]);
            i64 label = scores.label[p];
            if (!rounding.decided(scores.second[p] - scores.best[p], length, centers.longest))
                label = nearest_in_doubt(points[first + p], p, length, centers, scores);
            n_changed += of[first + p] != label;
            of[first + p] = label;
        }
        return n_changed;
    }

    // The nearest, in float64, of the centers whose score may be the best; of equal ones, the first.
    i64 nearest_in_doubt(const Point* point, i64 p, f64 length, const Centers& centers, const Scores& scores) const {
        Rounding rounding(points.columns);
        f64 highest = INFINITE, least = INFINITE;
        i64 k = centers.exact.rows, label = 0;
        for (i64 c = 0; c < k; ++c) {
            f64 reached = scores.at(c, p) + rounding.of(length, centers.lengths[c]);
            highest = reached < highest ? reached : highest;
        }
        for (i64 c = 0; c < k; ++c) {
            if (scores.at(c, p) - rounding.of(length, centers.lengths[c]) > highest) continue;
            f64 square = add_square(point, centers.exact[c], 0.0);
            if (square < least) least = square, label = c;
        }
        return label;
    }

    Matrix<const Point> points;
    Matrix<const f32> around;
    f64 scale;
    Vector<const f64> mean;
    Vector<i64> of;
};

}  // namespace

i64 nearest_of_sample(Reals<Matrix> points, Matrix<const f32> around, Frame frame, Matrix<const f64> centers,
                      Vector<i64> labels) {
    return std::visit([&]<typename Point>(Matrix<const Point> of) {
        return SampledPoints<Point>(of, around, frame, labels).label_by(centers);
    }, points);
}

std::tuple<f64, f64> fit_sample(Reals<Matrix> points, Matrix<const f32> around, Frame frame, f64 enough,
                                i64 most_iterations, Matrix<f64> centers) {
    return std::visit([&]<typename Point>(Matrix<const Point> of) {
        std::vector<i64> labels(of.rows, -1);
        SampledPoints<Point> sample(of, around, frame, {labels.data(), of.rows});
        descend(sample, centers, enough, most_iterations);
        return std::tuple(sample.first_inertia, sample.inertia(as_const(centers)));
    }, points);
}

}  // namespace gpuens

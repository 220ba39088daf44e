// PAM (gpuens/partition/medoids.py): BUILD chooses medoids one after the other; then SWAP makes the best exchange, as
// long as it lowers the sum of weighted distances.
//
// Each thread has columns of the distances, candidates for medoids, of its own: sums over rows follow their order.
#include "runtime/parallel.h"
#include "partition/primitives.h"

#include <algorithm>
#include <limits>

namespace gpuens {

namespace {

constexpr f64 LEAST_GAIN = 1e-12;  // smallest gain over the sum of absolute distances; smaller ones are rounding errors
constexpr f64 DISTANCE_NS = 0.5;
constexpr f64 INFINITE = std::numeric_limits<f64>::infinity();

struct Exchange {
    i64 out, into;  // the medoid's place, and the row that replaces it
    f64 change;     // change of the sum of distances
};

class Medoids {
public:
    Medoids(Matrix<const f64> distances_, Vector<const f64> weights_, Vector<i64> medoids_)
        : distances(distances_), weights(weights_), medoids(medoids_), n(weights_.size), nearest(n), second(n),
          medoid_of(n) {}

    void build() {
        std::vector<f64> sums(n);
        std::vector<bool> is_medoid(n);
        std::fill(nearest.begin(), nearest.end(), INFINITE);
        for (i64& medoid : medoids) {
            over_ranges(n, (f64)n * DISTANCE_NS, [&](i64 start, i64 stop) { add_nearest(start, stop, sums.data()); });
            medoid = -1;
            for (i64 j = 0; j < n; ++j)
                if (!is_medoid[j] && (medoid < 0 || sums[j] < sums[medoid])) medoid = j;
            is_medoid[medoid] = true;
            for (i64 i = 0; i < n; ++i) nearest[i] = std::min(nearest[i], distances[i][medoid]);
        }
        std::sort(medoids.begin(), medoids.end());
    }

    // Exchange medoids until no exchange lowers the sum.
    void swap() {
        std::vector<f64> gains(n), memory(medoids.size * n);
        Matrix<f64> changes{memory.data(), medoids.size, n};
        while (true) {
            f64 size = find_nearest();
            over_ranges(n, (f64)n * 2 * DISTANCE_NS,
                        [&](i64 start, i64 stop) { add_changes(start, stop, gains.data(), changes); });
            Exchange best = best_exchange(gains, {memory.data(), medoids.size, n});
            if (!(best.change < -LEAST_GAIN * size)) return;
            medoids[best.out] = best.into;
            std::sort(medoids.begin(), medoids.end());
        }
    }

private:
    // Write the sums of distances if a candidate joined the medoids.
    void add_nearest(i64 start, i64 stop, f64* sums) const {
        std::fill(sums + start, sums + stop, 0.0);
        for (i64 i = 0; i < n; ++i) {
            const f64* row = distances[i];
            f64 weight = weights[i], least = nearest[i];
#pragma GCC ivdep
            for (i64 j = start; j < stop; ++j) sums[j] += weight * std::min(row[j], least);
        }
    }

    // Find the two nearest medoids of each row, and write how much the sum would rise without each medoid; return the
    // sum of absolute distances, because a distance is negative if its similarity is above 1.
    f64 find_nearest() {
        f64 size = 0.0;
        loss.assign(medoids.size, 0.0);
        for (i64 i = 0; i < n; ++i) {
            nearest[i] = second[i] = INFINITE;
            medoid_of[i] = 0;
            for (i64 q = 0; q < medoids.size; ++q) {
                f64 distance = distances[i][medoids[q]];
                if (distance < nearest[i]) {
                    second[i] = nearest[i];
                    nearest[i] = distance;
                    medoid_of[i] = q;
                } else if (distance < second[i]) {
                    second[i] = distance;
                }
            }
            size += weights[i] * std::abs(nearest[i]);
            loss[medoid_of[i]] += weights[i] * (second[i] - nearest[i]);
        }
        return size;
    }

    // Write each candidate's gain beside all medoids, and the change of this gain if it replaces a medoid.
    void add_changes(i64 start, i64 stop, f64* gains, Matrix<f64> changes) const {
        std::fill(gains + start, gains + stop, 0.0);
        for (i64 q = 0; q < changes.rows; ++q) std::fill(changes[q] + start, changes[q] + stop, 0.0);
        for (i64 i = 0; i < n; ++i) {
            const f64* row = distances[i];
            f64 weight = weights[i], first = nearest[i], other = second[i], *without = changes[medoid_of[i]];
#pragma GCC ivdep
            for (i64 j = start; j < stop; ++j) {
                gains[j] += weight * std::min(row[j] - first, 0.0);
                without[j] += weight * std::min(std::max(row[j], first) - other, 0.0);
            }
        }
    }

    // The best exchange; of equal ones, that of the first row and its first medoid.
    Exchange best_exchange(const std::vector<f64>& gains, Matrix<const f64> changes) const {
        std::vector<f64> change(n, INFINITE);
        std::vector<i64> out(n);
        for (i64 q = 0; q < medoids.size; ++q)
            for (i64 j = 0; j < n; ++j) {
                f64 of_pair = gains[j] + loss[q] + changes[q][j];
                out[j] = of_pair < change[j] ? q : out[j];
                change[j] = std::min(change[j], of_pair);
            }
        for (i64 medoid : medoids) change[medoid] = INFINITE;
        i64 into = std::min_element(change.begin(), change.end()) - change.begin();
        return {out[into], into, change[into]};
    }

    Matrix<const f64> distances;
    Vector<const f64> weights;
    Vector<i64> medoids;
    i64 n;
    std::vector<f64> nearest, second, loss;
    std::vector<i64> medoid_of;  // place of each row's nearest medoid
};

}  // namespace

void pam(Matrix<const f64> distances, Vector<const f64> weights, Vector<i64> medoids) {
    Medoids search(distances, weights, medoids);
    search.build();
    if (medoids.size > 1) search.swap();  // BUILD already finds the best single medoid
}

}  // namespace gpuens

// Local search for a partition with a small Mirkin distance to the clusterings (gpuens/partition/mirkin.py): one row
// after the other moves to the cluster that lowers the mean distance most. No cluster loses its last row.
#include "runtime/parallel.h"
#include "partition/primitives.h"

namespace gpuens {

namespace {

constexpr i64 BETWEEN_LOOKS = 64;  // rows

template <typename Code>
class Search {
public:
    Search(Matrix<const Code> codes_, Vector<const i64> offsets_, Vector<i64> labels_, Matrix<i64> held_,
           Vector<i64> objects_)
        : codes(codes_), offsets(offsets_), labels(labels_), overlap(held_), objects(objects_), change(objects_.size) {}

    // Try to move each row; return whether one has moved.
    bool sweep(Vector<const i64> counts) {
        bool moved = false;
        for (i64 g = 0; g < labels.size; ++g) {
            if (g % BETWEEN_LOOKS == 0) look();
            i64 cluster = labels[g], n = counts[g];
            if (objects[cluster] == n) continue;
            i64 best = best_for(g, n);
            if (best == cluster) continue;
            move(g, n, cluster, best);
            moved = true;
        }
        return moved;
    }

private:
    // Return the cluster where the n objects of row g change the distance least: its own, unless another one is better.
    i64 best_for(i64 g, i64 n) {
        i64 cluster = labels[g], k = objects.size, n_known = add_overlap(g);
        for (i64 s = 0; s < k; ++s) change[s] = codes.rows * objects[s] - 2 * change[s];
        change[cluster] -= n * (codes.rows - 2 * n_known);  // the cluster without the row itself
        i64 best = cluster;
        for (i64 s = 0; s < k; ++s)
            if (change[s] < change[best]) best = s;
        return best;
    }

    // Write to `change` how many objects of each cluster have the labels of row g, and return how many labels it has.
    i64 add_overlap(i64 g) {
        i64 n_known = 0, k = objects.size, *sums = change.data();
        std::fill(change.begin(), change.end(), 0);
        for (i64 m = 0; m < codes.rows; ++m) {
            Code label = codes[m][g];
            if (label == MISSING(Code)) continue;
            const i64* in = overlap[offsets[m] + label];
            ++n_known;
            for (i64 s = 0; s < k; ++s) sums[s] += in[s];
        }
        return n_known;
    }

    void move(i64 g, i64 n, i64 from, i64 to) {
        labels[g] = to;
        objects[from] -= n;
        objects[to] += n;
        for (i64 m = 0; m < codes.rows; ++m) {
            Code label = codes[m][g];
            if (label == MISSING(Code)) continue;
            i64* in = overlap[offsets[m] + label];
            in[from] -= n;
            in[to] += n;
        }
    }

    Matrix<const Code> codes;
    Vector<const i64> offsets;
    Vector<i64> labels;
    Matrix<i64> overlap;
    Vector<i64> objects;
    std::vector<i64> change;  // M n_s - 2 sum_m n_s,x_m for each cluster s
};

}  // namespace

i64 descend_mirkin(Codes<Matrix> codes, Vector<const i64> offsets, Vector<const i64> counts, Vector<i64> labels,
                   Matrix<i64> overlap, Vector<i64> objects, i64 max_iter) {
    return std::visit([&](auto of) {
        Search search(of, offsets, labels, overlap, objects);
        for (i64 n = 1; n <= max_iter; ++n)
            if (!search.sweep(counts)) return n;
        return -max_iter;
    }, codes);
}

}  // namespace gpuens

// Mean field of a mixture of label rows with a Potts prior on a graph (kernels/potts.cu).
#include "neighbors/primitives.h"
#include "runtime/parallel.h"

#include <algorithm>
#include <atomic>
#include <vector>

namespace gpuens {

namespace {

constexpr i64 AT_ONCE = 1024;    // numbers of a block of objects, which stay in the smallest cache
constexpr i64 WIDE = 8, NARROW = 2;  // classes whose sums are in registers
constexpr i64 AHEAD = 8;         // objects whose numbers the processor fetches before they are needed
constexpr f64 NEIGHBOR_NS = 10;  // time to read a neighbour's memberships from memory
constexpr f64 POWER_NS = 4;

// Write the sums over the neighbours of object i of weight times membership in V classes from `first` on, in registers.
template <i64 V>
void sum_classes(const GraphArrays& graph, Matrix<const f64> memberships, i64 i, i64 first, f64* fields) {
    f64 sums[V] = {};
    for (i64 e = graph.starts[i]; e < graph.starts[i + 1]; ++e) {
        const f64* shares = memberships[graph.heads[e]] + first;
        f64 weight = graph.weights[e];
        for (i64 k = 0; k < V; ++k) sums[k] += weight * shares[k];
    }
    std::copy_n(sums, V, fields + first);
}

// Write the neighbours' sums of all classes, fields (k,), each in the order of the graph.
void sum_neighbors(const GraphArrays& graph, Matrix<const f64> memberships, i64 i, f64* fields) {
    i64 first = 0, width = memberships.columns;
    for (; first + WIDE <= width; first += WIDE) sum_classes<WIDE>(graph, memberships, i, first, fields);
    for (; first + NARROW <= width; first += NARROW) sum_classes<NARROW>(graph, memberships, i, first, fields);
    for (; first < width; ++first) sum_classes<1>(graph, memberships, i, first, fields);
}

// Prefetch the input of `sum_neighbors`.
void prefetch_neighbors(const GraphArrays& graph, Matrix<const f64> memberships, i64 i) {
    for (i64 e = graph.starts[i]; e < graph.starts[i + 1]; ++e)
        __builtin_prefetch(memberships[graph.heads[e]]);
}

f64 nanoseconds_of(const GraphArrays& graph, i64 width) {
    f64 n_neighbors = (f64)graph.heads.size / std::max<f64>((f64)graph.starts.size - 1, 1);
    return n_neighbors * (NEIGHBOR_NS + (f64)width) + (f64)width * POWER_NS;
}

f64 largest(const f64* numbers, i64 n) {
    f64 largest_number = numbers[0];
    for (i64 k = 1; k < n; ++k) largest_number = numbers[k] > largest_number ? numbers[k] : largest_number;
    return largest_number;
}

// Write powers divided by their sum; return the class of the largest share, the first of equal ones.
i64 normalize(const f64* powers, i64 width, f64* shares) {
    f64 total = 0.0, most = -1.0;
    for (i64 k = 0; k < width; ++k) total += powers[k];
    for (i64 k = 0; k < width; ++k) shares[k] = powers[k] / total;
    i64 label = 0;
    for (i64 k = 0; k < width; ++k) {
        bool larger = shares[k] > most;
        most = larger ? shares[k] : most;
        label = larger ? k : label;
    }
    return label;
}

}  // namespace

i64 color_objects(Vector<const i64> starts, Vector<const i32> heads, Vector<i32> colors) {
    std::vector<i64> taken_by;  // the last object that has a neighbour of the color
    Looks looks;
    for (i64 i = 0; i < colors.size; ++i) {
        for (i64 e = starts[i]; e < starts[i + 1]; ++e, looks())
            if (heads[e] < i) taken_by[colors[heads[e]]] = i;
        i64 color = 0, n_colors = (i64)taken_by.size();
        while (color < n_colors && taken_by[color] == i) ++color;
        if (color == n_colors) taken_by.push_back(-1);
        colors[i] = (i32)color;
    }
    return (i64)taken_by.size();
}

void update_memberships(const GraphArrays& graph, Vector<const i64> objects, const RowTerms& terms, f64 beta,
                        Matrix<f64> memberships, Vector<i64> labels) {
    i64 width = memberships.columns, at_once = std::max(AT_ONCE / width, (i64)1);
    f64 tau = terms.tau[0];
    in_threads(objects.size, nanoseconds_of(graph, width), [&](Ranges& ranges) {
        std::vector<f64> memory(at_once * width);
        while (Range range = ranges.next())
            for (i64 first = range.start; first < range.stop; first += at_once) {
                i64 n = std::min(at_once, range.stop - first);
                for (i64 at = 0; at < n; ++at) {
                    if (first + at + AHEAD < range.stop) {
                        i64 later = objects[first + at + AHEAD];
                        prefetch_neighbors(graph, as_const(memberships), later);
                        __builtin_prefetch(terms.lookups[terms.row_of[later]]);
                    }
                    i64 i = objects[first + at];
                    f64* potentials = memory.data() + at * width;
                    const f64* likely = terms.lookups[terms.row_of[i]];
                    sum_neighbors(graph, as_const(memberships), i, potentials);
                    for (i64 k = 0; k < width; ++k) potentials[k] = tau * likely[k] + beta * potentials[k];
                    f64 largest_potential = largest(potentials, width);
                    for (i64 k = 0; k < width; ++k) potentials[k] -= largest_potential;
                }
                for (i64 at = 0; at < n * width; ++at) memory[at] = power_of_two(memory[at]);
                for (i64 at = 0; at < n; ++at) {
                    i64 i = objects[first + at];
                    labels[i] = normalize(memory.data() + at * width, width, memberships[i]);
                }
            }
    });
}

void sum_memberships(Matrix<const f64> memberships, Vector<const i64> members, Vector<const i64> starts, f64 scale,
                     Matrix<i64> shares) {
    i64 width = memberships.columns;
    f64 nanoseconds = (NEIGHBOR_NS + 2.0 * (f64)width) * (f64)members.size / std::max<f64>((f64)shares.rows, 1);
    over_ranges(shares.rows, nanoseconds, [&](i64 start, i64 stop) {
        for (i64 g = start; g < stop; ++g) {
            std::fill_n(shares[g], width, (i64)0);
            for (i64 at = starts[g]; at < starts[g + 1]; ++at) {
                const f64* row = memberships[members[at]];
                for (i64 k = 0; k < width; ++k) shares[g][k] += share_of(row[k], 1.0, scale);
            }
        }
    });
}

void pseudo_likelihood(const GraphArrays& graph, Vector<const i64> objects, Matrix<const f64> memberships, f64 beta,
                       f64 scale, Vector<i64> derivatives) {
    std::atomic<i64> slope{0}, curvature{0};
    in_threads(objects.size, nanoseconds_of(graph, memberships.columns), [&](Ranges& ranges) {
        i64 width = memberships.columns;
        std::vector<f64> fields(width), powers(width);
        i64 slopes = 0, curvatures = 0;
        while (Range range = ranges.next())
            for (i64 at = range.start; at < range.stop; ++at) {
                if (at + AHEAD < range.stop) prefetch_neighbors(graph, memberships, objects[at + AHEAD]);
                sum_neighbors(graph, memberships, objects[at], fields.data());
                Derivatives terms = derivatives_of(memberships[objects[at]], fields.data(), powers.data(), width, beta);
                slopes += in_units(terms.slope, scale);
                curvatures += in_units(terms.curvature, scale);
            }
        slope += slopes;
        curvature += curvatures;
    });
    derivatives[0] = slope;
    derivatives[1] = curvature;
}

void sum_squares(Matrix<const f64> residuals, Matrix<const i64> shares, f64 scale, Vector<i64> squares) {
    std::atomic<i64> total{0};
    over_ranges(residuals.rows, (f64)residuals.columns * 2, [&](i64 start, i64 stop) {
        i64 sum = 0;
        for (i64 at = start * residuals.columns; at < stop * residuals.columns; ++at)
            sum += in_units((f64)shares.data[at] * residuals.data[at] * residuals.data[at], scale);
        total += sum;
    });
    squares[0] = total;
}

}  // namespace gpuens

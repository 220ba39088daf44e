// The graph for METIS (gpuens/partition/metis.py), written row by row, and the repair of parts that METIS leaves empty.
#include "runtime/parallel.h"
#include "partition/primitives.h"

#include <algorithm>
#include <cmath>

namespace gpuens {

void append_edges(i64 start, Matrix<const f64> rows, Vector<i64> starts, Vector<i64> columns, Vector<f64> edges) {
    i64 filled = starts[start];
    for (i64 r = 0; r < rows.rows; ++r) {
        look();
        for (i64 j = 0; j < rows.columns; ++j)
            if (rows[r][j] > 0.0 && j != start + r) {
                columns[filled] = j;
                edges[filled++] = rows[r][j];
            }
        starts[start + r + 1] = filled;
    }
}

// Rows are visited in order, so that the mirror images of row j come in the order in which row j lists them.
std::tuple<i64, i64, f64, f64> symmetrize(Vector<const i64> starts, Vector<const i64> columns, Vector<f64> edges,
                                          f64 within) {
    i64 n = starts.size - 1;
    std::vector<i64> mirrored(starts.begin(), starts.end());  // the next entry of each row left of the diagonal
    for (i64 i = 0; i < n; ++i) {
        look();
        for (i64 e = mirrored[i]; e < starts[i + 1]; ++e) {
            i64 j = columns[e], back = mirrored[j];
            if (j < i) return {j, i, 0.0, edges[e]};  // the mirror image is missing
            if (back == starts[j + 1] || columns[back] != i) {
                i64 first = back < starts[j + 1] ? columns[back] : n;
                if (first < i) return {first, j, 0.0, edges[back]};
                return {i, j, edges[e], 0.0};
            }
            if (std::abs(edges[e] - edges[back]) > within * std::max(edges[e], edges[back]))
                return {i, j, edges[e], edges[back]};
            edges[back] = edges[e];
            ++mirrored[j];
        }
    }
    return {-1, -1, 0.0, 0.0};
}

namespace {

template <typename Edge>
struct Graph {
    Vector<const i64> starts, columns;
    Vector<const Edge> edges;
};

// The vertex of a part that is least similar to the rest of it.
template <typename Edge>
i64 least_similar(i64 part, Vector<const i64> labels, const Graph<Edge>& graph) {
    i64 vertex = -1, smallest = 0;
    for (i64 v = 0; v < labels.size; ++v) {
        if (labels[v] != part) continue;
        i64 to_the_rest = 0;
        for (i64 e = graph.starts[v]; e < graph.starts[v + 1]; ++e)
            if (labels[graph.columns[e]] == part) to_the_rest += graph.edges[e];
        if (vertex < 0 || to_the_rest < smallest) {
            vertex = v;
            smallest = to_the_rest;
        }
    }
    return vertex;
}

// The heaviest of the parts that have several vertices.
i64 heaviest(const std::vector<i64>& vertices, const std::vector<i64>& weight) {
    i64 heaviest_part = -1;
    for (i64 part = 0; part < (i64)vertices.size(); ++part)
        if (vertices[part] > 1 && (heaviest_part < 0 || weight[part] > weight[heaviest_part])) heaviest_part = part;
    return heaviest_part;
}

}  // namespace

void fill_empty_parts(Vector<i64> labels, Vector<const i64> weights, i64 n_parts, Vector<const i64> starts,
                      Vector<const i64> columns, std::variant<Vector<const i32>, Vector<const i64>> edges) {
    std::vector<i64> vertices(n_parts), weight(n_parts);
    for (i64 v = 0; v < labels.size; ++v) {
        ++vertices[labels[v]];
        weight[labels[v]] += weights[v];
    }
    std::visit([&]<typename Edge>(Vector<const Edge> of) {
        for (i64 empty = 0; empty < n_parts; ++empty) {
            if (vertices[empty] > 0) continue;
            look();
            i64 source = heaviest(vertices, weight);
            i64 moved = least_similar<Edge>(source, {labels.data, labels.size}, {starts, columns, of});
            labels[moved] = empty;
            --vertices[source];
            ++vertices[empty];
            weight[source] -= weights[moved];
            weight[empty] += weights[moved];
        }
    }, edges);
}

}  // namespace gpuens

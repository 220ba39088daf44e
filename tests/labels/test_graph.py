"""Graphs of the objects: equal edges from every kind of input, names, coordinates, grids, and refusals."""

from functools import partial

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array, random_array

import gpuens as ge
from gpuens.labels.edges import as_edges

EDGES = [[0, 1], [1, 2], [3, 4]]


def pairs_of(graph):
    return {(int(i), int(j)) for i, j in zip(graph.tails, graph.heads, strict=True) if i < j}


def dense(edges, n):
    matrix = np.zeros((n, n))
    for i, j in edges:
        matrix[i, j] = matrix[j, i] = 1.0
    return matrix


def igraph_of(edges):
    return pytest.importorskip("igraph").Graph(edges)


def networkx_of(edges):
    networkx = pytest.importorskip("networkx")
    graph = networkx.Graph()
    graph.add_nodes_from(range(5))
    graph.add_edges_from(edges)
    return graph


@pytest.mark.parametrize(
    "kind",
    [
        np.array,
        list,
        as_edges,
        lambda edges: csr_array(dense(edges, 5)),
        lambda edges: csr_array(dense(edges, 5)).tocoo(),
        ge.Graph.of,
        pd.DataFrame,
        igraph_of,
        networkx_of,
    ],
)
def test_every_kind_of_graph_gives_the_same(kind):
    graph = ge.Graph.of(kind(EDGES), n_objects=5)
    assert pairs_of(graph) == {(0, 1), (1, 2), (3, 4)}
    assert graph.starts.tolist() == [0, 1, 3, 4, 5, 6]
    assert graph.heads.tolist() == [1, 0, 2, 1, 4, 3]
    assert graph.weights.tolist() == [1.0] * 6
    assert graph.components.tolist() == [0, 0, 0, 1, 1]
    assert (graph.n_objects, graph.n_edges, graph.n_components) == (5, 3, 2)
    consensus = ge.graph_consensus(graph, [[0, 0, 0, 1, 1], [0, 0, 0, 1, 1]], final="components")
    assert consensus.labels.tolist() == [0, 0, 0, 1, 1]


def test_weights_have_a_mean_of_1_whatever_their_unit():
    for unit in (1.0, 1e-3, 1e300):
        graph = ge.Graph.of([[0, 1, unit], [1, 2, 3 * unit]])
        np.testing.assert_allclose(graph.weights, [0.5, 0.5, 1.5, 1.5])


def test_odd_graphs():
    """Loops, parallel edges and zeros are left out; an asymmetric matrix is mended with a warning."""
    graph = ge.Graph.of([[0, 0, 5.0], [0, 1, 1.0], [1, 0, 2.0], [1, 2, 0.0]])
    assert pairs_of(graph) == {(0, 1)}
    assert graph.n_objects == 3
    with pytest.warns(UserWarning, match="graph is not symmetric"):
        assert pairs_of(ge.Graph.of(csr_array(np.triu(dense(EDGES, 5))))) == {(0, 1), (1, 2), (3, 4)}
    graph = ge.Graph.of(csr_array((3, 3)))
    assert (graph.n_edges, graph.n_components) == (0, 3)
    assert ge.Graph.grid((1, 1)).n_objects == 1
    assert ge.Graph.neighbors([[1.0, 2.0]]).n_edges == 0


def test_objects_are_matched_by_name():
    edges = pd.DataFrame({"a": ["x", "y"], "b": ["y", "z"]})
    graph = ge.Graph.of(edges, 4, pd.Index(["z", "w", "y", "x"]))
    assert pairs_of(graph) == {(2, 3), (0, 2)}
    assert graph.names[1] == "w"
    again = ge.Graph.of(graph, 4, pd.Index(["x", "y", "z", "w"]))
    assert pairs_of(again) == {(0, 1), (1, 2)}
    places = pd.DataFrame({"x": [0, 1, 5], "y": [0, 0, 0]}, index=["a", "b", "c"])
    assert pairs_of(ge.Graph.of(ge.Graph.neighbors(places, k=1), 3, pd.Index(["c", "a", "b"]))) == {(1, 2), (0, 2)}


@pytest.mark.parametrize(
    ("make", "arguments", "sentence"),
    [
        (ge.Graph.of, (csr_array((2, 3)), 2), "graph has shape"),
        (ge.Graph.of, (csr_array(np.array([[0.0, np.nan], [np.nan, 0.0]])), 2), "below 0 or not finite"),
        (ge.Graph.of, (csr_array(np.array([[0.0, -1.0], [-1.0, 0.0]])), 2), "below 0 or not finite"),
        (ge.Graph.of, (csr_array(dense(EDGES, 5)), 2), "graph has 5 objects, but labels are of 2"),
        (ge.Graph.of, ([[0, 4]], 2), "labels are of 2 objects"),
        (ge.Graph.of, (ge.Graph.grid((2, 2)), 2), "graph has 4 objects, but labels are of 2"),
        (ge.Graph.of, (pd.DataFrame([["a", "b"]]), 2), "have no object 'a'"),
        (ge.Graph.neighbors, ([[0.0, np.nan], [1.0, 1.0]],), "coordinates of object 0"),
        (ge.Graph.neighbors, ([[0.0], [1.0]], 0), "k must be"),
        (partial(ge.Graph.neighbors, groups=[1]), ([[0.0], [1.0]],), "groups"),
        (partial(ge.Graph.neighbors, max_length=0), ([[0.0], [1.0]],), "max_length must be"),
        (ge.Graph.neighbors, ([1.0, 2.0],), "coordinates must be 2-D"),
        (ge.Graph.grid, ((0, 3),), "shape must be"),
        (ge.Graph.grid, (5,), "shape must be the lengths"),
        (ge.Graph.grid, ((2, 2), np.ones((2, 3))), "mask has shape"),
        (ge.Graph.grid, ((2, 2), np.zeros((2, 2))), "leaves out every cell"),
    ],
)
def test_bad_graphs_are_refused_in_one_sentence(make, arguments, sentence):
    with pytest.raises((ValueError, TypeError), match=sentence):
        make(*arguments)


def test_neighbors_are_those_of_all_distances():
    rng = np.random.default_rng(0)
    places = rng.normal(size=(80, 2))
    lengths = np.linalg.norm(places[:, None] - places, axis=2)
    nearest = np.argsort(lengths, axis=1)[:, 1:5]
    expected = {(min(i, j), max(i, j)) for i, near in enumerate(nearest.tolist()) for j in near}
    assert pairs_of(ge.Graph.neighbors(places, k=4)) == expected
    short = {(i, j) for i, j in expected if lengths[i, j] <= 0.3}
    assert pairs_of(ge.Graph.neighbors(places, k=4, max_length=0.3)) == short
    groups = np.array(["left", "right"])[(places[:, 0] > 0).astype(int)]
    apart = ge.Graph.neighbors(places, k=4, groups=groups)
    assert all(groups[i] == groups[j] for i, j in pairs_of(apart))
    assert apart.n_components >= 2


def test_objects_at_one_place_are_joined_with_each_other_and_with_others():
    graph = ge.Graph.neighbors([[0, 0]] * 20 + [[1, 0], [2, 0]], k=1)
    assert graph.n_components == 1
    assert {(0, j) for j in range(1, 20)} <= pairs_of(graph)


@pytest.mark.parametrize("shape", [(4, 5), (3, 2, 4), (6,)])
def test_grids_join_cells_that_differ_by_1_along_one_axis(shape):
    rng = np.random.default_rng(0)
    cells = np.argwhere(np.ones(shape))
    steps = np.abs(cells[:, None] - cells).sum(axis=2)
    assert pairs_of(ge.Graph.grid(shape)) == {(i, j) for i, j in np.argwhere(steps == 1).tolist() if i < j}
    mask = rng.random(shape) < 0.6
    inside = np.flatnonzero(mask)
    number = {old: new for new, old in enumerate(inside.tolist())}
    expected = {(number[i], number[j]) for i, j in np.argwhere(steps == 1).tolist() if i < j and {i, j} <= set(number)}
    assert pairs_of(ge.Graph.grid(shape, mask)) == expected


def test_a_subgraph_has_the_edges_among_its_objects():
    rng = np.random.default_rng(0)
    matrix = random_array((30, 30), density=0.2, rng=rng, data_sampler=lambda size: np.ones(size))
    graph = ge.Graph.of(csr_array(matrix.maximum(matrix.T)))
    objects = rng.permutation(30)[:12]
    expected = graph.matrix().toarray()[objects][:, objects] > 0
    np.testing.assert_array_equal(graph.subgraph(objects).matrix().toarray() > 0, expected)


def test_a_graph_knows_where_its_objects_are():
    rng = np.random.default_rng(6)
    places, order = rng.random((20, 2)), rng.permutation(20)
    names = pd.Index([f"cell {i}" for i in range(20)])
    graph = ge.Graph.neighbors(pd.DataFrame(places, index=names))
    np.testing.assert_array_equal(graph.layout[0], places)
    np.testing.assert_array_equal(graph.subgraph(order[:7]).layout[0], places[order[:7]])
    np.testing.assert_array_equal(ge.Graph.of(graph, 20, names[order]).layout[0], places[order])
    assert ge.Graph.grid((3, 4)).layout == (None, (3, 4))
    mask = np.array([[True, False], [False, True], [True, True]])
    assert ge.Graph.grid((3, 2), mask).layout[0].tolist() == [[0, 0], [1, 1], [0, 2], [1, 2]]
    assert ge.Graph.grid((3, 2)).subgraph(mask.ravel()).layout[0].tolist() == [[0, 0], [1, 1], [0, 2], [1, 2]]
    assert ge.Graph.of(EDGES).layout == ge.Graph.grid((2, 2, 2)).layout == (None, None)

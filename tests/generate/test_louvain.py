"""Louvain ensembles: local moves against the literal algorithm, levels, their choice, and error messages."""

import numpy as np
import oracles
import pandas as pd
import pytest
from conftest import refused
from scipy.sparse import coo_array, csr_array
from scipy.sparse.csgraph import connected_components
from sklearn.datasets import make_blobs

import gpuens as ge
from gpuens.generate import louvain_ensemble
from gpuens.labels.edges import as_edges
from gpuens.labels.graph import Graph
from gpuens.runtime.native import cpu


def random_matrix(n, share, rng, largest=1):
    """Return symmetric whole weights (n, n) with zeros in the diagonal."""
    upper = np.triu((rng.random((n, n)) < share) * rng.integers(1, largest + 1, size=(n, n)), 1)
    return (upper + upper.T).astype(float)


def planted(n, size, degree, mixing, rng):
    """Return edges (n_edges, 2) and communities (n,) of ``size`` objects, ``mixing`` of whose edges lead anywhere."""
    communities = np.arange(n) // size
    first = np.repeat(np.arange(n), degree // 2)
    within = communities[first] * size + rng.integers(size, size=len(first))
    return np.column_stack(
        [first, np.where(rng.random(len(first)) < mixing, rng.integers(n, size=len(first)), within)]
    ), communities


def move(matrix, strengths, resolution, orders):
    graph = csr_array(matrix)
    arrays = cpu.GraphArrays(graph.indptr.astype(np.int64), graph.indices.astype(np.int32), graph.data)
    labels = np.tile(np.arange(len(matrix), dtype=np.int32), (len(orders), 1))
    cpu.move_locally(arrays, strengths, resolution, np.ascontiguousarray(orders, dtype=np.int32), labels)
    return labels


# --- local moves ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(8))
def test_local_moves_are_those_of_the_definition(seed):
    rng = np.random.default_rng(seed)
    n, resolution = int(rng.integers(2, 30)), float(rng.choice([0.5, 1.0, 2.0]))
    matrix = random_matrix(n, rng.choice([0.1, 0.3, 0.6]), rng, largest=1 + 3 * (seed % 2))
    matrix[0, 1] = matrix[1, 0] = 1.0
    strengths = matrix.sum(axis=1) + (2.0 * rng.integers(3, size=n) if seed % 3 == 0 else 0.0)  # edges inside objects
    orders = [rng.permutation(n) for _ in range(3)]
    expected = [oracles.local_moves(matrix, strengths, resolution, order) for order in orders]
    assert move(matrix, strengths, resolution, orders).tolist() == expected


def test_clusterings_do_not_depend_on_the_number_of_threads(monkeypatch):
    edges, _ = planted(600, 10, 8, 0.3, np.random.default_rng(0))
    labels = {}
    for n_threads in ("1", "2", "5"):
        monkeypatch.setenv("GPUENS_THREADS", n_threads)
        labels[n_threads] = louvain_ensemble(as_edges(edges), (1.0, 2.0), 7, level="last").to_array().tolist()
    assert labels["1"] == labels["2"] == labels["5"]


# --- levels -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("largest_weight", [1, 3])
def test_the_last_level_joins_communities_of_the_first_and_no_two_of_its_own_gain_by_joining(largest_weight):
    matrix = random_matrix(80, 0.08, np.random.default_rng(3), largest=largest_weight)
    for resolution in (0.7, 1.5):
        first, last = (
            louvain_ensemble(csr_array(matrix), resolution, 4, level=level, random_state=5).to_array()
            for level in ("first", "last")
        )
        for fine, coarse in zip(first.T, last.T, strict=True):
            best = oracles.modularity(matrix, coarse, resolution)
            assert best > oracles.modularity(matrix, fine, resolution)
            if largest_weight == 1:
                assert len(set(zip(fine, coarse, strict=True))) == len(set(fine)) > len(set(coarse))
            for a in set(coarse):
                for b in set(coarse):
                    assert oracles.modularity(matrix, np.where(coarse == a, b, coarse), resolution) <= best + 1e-9


def test_first_levels_count_edges_and_not_their_weights():
    edges, communities = planted(3000, 20, 12, 0.3, np.random.default_rng(0))
    weights = np.random.default_rng(1).geometric(0.4, len(edges))
    weighted = louvain_ensemble(as_edges(np.column_stack([edges, weights])), n_seeds=3)
    assert weighted.names[0] == "first-level_1_0"
    np.testing.assert_array_equal(weighted.to_array(), louvain_ensemble(as_edges(edges), n_seeds=3).to_array())
    assert ge.metrics.ari(communities, weighted.to_array()[:, 0]) > 0.8


def test_weights_decide_where_edges_do_not():
    classes = np.repeat(np.arange(4), 15)
    matrix = 0.1 + 0.9 * (classes[:, None] == classes)  # all pairs have an edge
    ensemble = louvain_ensemble(csr_array(matrix))
    assert ensemble.names[0] == "louvain_1_0"
    assert {ge.metrics.ari(classes, column) for column in ensemble.to_array().T} == {1.0}


def test_runs_differ_by_their_seeds_and_repeat_with_them():
    edges, _ = planted(500, 10, 6, 0.4, np.random.default_rng(0))
    graph = as_edges(edges)
    labels = louvain_ensemble(graph, 1.0, 5, level="first", random_state=1).to_array()
    assert len({tuple(column) for column in labels.T}) == 5
    np.testing.assert_array_equal(louvain_ensemble(graph, 1.0, 5, level="first", rng=1).to_array(), labels)
    assert (louvain_ensemble(graph, 1.0, 5, level="first", random_state=2).to_array() != labels).any()


def test_auto_takes_the_level_on_which_the_runs_agree():
    edges, communities = planted(2000, 10, 8, 0.2, np.random.default_rng(1))
    small = louvain_ensemble(as_edges(edges))
    assert small.names == [f"first-level_1_{seed}" for seed in range(16)]
    last = louvain_ensemble(as_edges(edges), level="last")
    scores = [[ge.metrics.ari(communities, column) for column in ens.to_array().T] for ens in (small, last)]
    assert min(scores[0]) > 0.8 > 0.6 > max(scores[1])
    X, classes = make_blobs(1500, 5, centers=6, cluster_std=0.6, random_state=0)
    large = louvain_ensemble(X)
    assert large.names == [f"louvain_1_{seed}" for seed in range(16)]
    assert min(ge.metrics.ari(classes, column) for column in large.to_array().T) > 0.95
    np.testing.assert_array_equal(large.to_array(), louvain_ensemble(X, level="last").to_array())
    assert louvain_ensemble(X, n_seeds=1).names == ["first-level_1_0"]  # a single run agrees with no other


def test_objects_without_an_edge_are_alone_and_names_are_kept():
    graph = pd.DataFrame([["a", "b"], ["b", "c"], ["a", "c"], ["d", "e"]])
    for level in ("auto", "first", "last"):
        ensemble = louvain_ensemble(as_edges(graph), n_seeds=3, level=level)
        assert ensemble.index.tolist() == list("abcde")
        assert {tuple(column) for column in ensemble.to_array().T} == {(0, 0, 0, 1, 1)}
    lonely = csr_array(coo_array((np.ones(2), ([1, 3], [3, 1])), shape=(5, 5)))
    assert louvain_ensemble(lonely, n_seeds=1).to_array().ravel().tolist() == [0, 1, 2, 1, 3]


def test_resolutions_divide_and_names_tell_them():
    edges, _ = planted(1000, 20, 10, 0.2, np.random.default_rng(0))
    ensemble = louvain_ensemble(as_edges(edges), (0.5, 4.0), 2, level="last")
    assert ensemble.names == ["louvain_0.5_0", "louvain_0.5_1", "louvain_4_0", "louvain_4_1"]
    sizes = np.diff(ensemble.offsets)
    assert max(sizes[:2]) < min(sizes[2:])


def test_weights_count_and_their_unit_does_not():
    rng = np.random.default_rng(0)
    matrix = random_matrix(60, 0.2, rng, largest=9)
    labels = louvain_ensemble(csr_array(matrix), 1.0, 6, level="last").to_array()
    np.testing.assert_array_equal(
        louvain_ensemble(csr_array(matrix * 2.0**-60), 1.0, 6, level="last").to_array(), labels
    )
    assert (louvain_ensemble(csr_array((matrix > 0) * 1.0), 1.0, 6, level="last").to_array() != labels).any()
    assert np.mean([oracles.modularity(matrix, column) for column in labels.T]) > 0.1


def test_the_graph_of_communities_has_their_sums():
    from gpuens.generate.louvain import _merge

    rng = np.random.default_rng(0)
    matrix = random_matrix(40, 0.2, rng, largest=5)
    labels = np.unique(rng.integers(7, size=40), return_inverse=True)[1].astype(np.int32)
    indicator = np.eye(labels.max() + 1)[labels]
    graph = Graph.of(csr_array(matrix))
    arrays = cpu.GraphArrays(graph.starts, graph.heads, csr_array(matrix).data)
    merged, strengths = _merge(arrays, matrix.sum(axis=1), labels)
    sums = indicator.T @ matrix @ indicator
    assert strengths.tolist() == sums.sum(axis=1).tolist()
    found = csr_array((merged.weights, merged.heads, merged.starts), shape=sums.shape).toarray()
    assert found.tolist() == (sums - np.diag(np.diag(sums))).tolist()


def test_a_long_path_is_clustered_in_connected_pieces():
    n = 100_000
    edges = np.column_stack([np.arange(n - 1), np.arange(1, n)])
    labels = louvain_ensemble(as_edges(edges), 1.0, 1, level="last").to_array().ravel()
    inner = labels[:-1] == labels[1:]
    inside = coo_array((np.ones(inner.sum()), edges[inner].T), shape=(n, n))
    assert connected_components(inside, directed=False)[0] == labels.max() + 1 < n / 50


# --- refusals ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "kind", "mentioned"),
    [
        ({"level": "second"}, ValueError, ("level must be one of 'auto', 'first', 'last'",)),
        ({"n_seeds": 0}, ValueError, ("n_seeds must be at least 1",)),
        ({"resolutions": 0.0}, ValueError, ("resolutions must be above 0",)),
        ({"n_neighbors": 3}, ValueError, ("n_neighbors=3 is for features",)),
        ({"X": csr_array((5, 5))}, ValueError, ("X is a graph without edges",)),
        ({"X": [[0, 1], [1, 2]]}, ValueError, ("X looks like a list of edges",)),
    ],
)
def test_what_louvain_refuses(arguments, kind, mentioned):
    graph = csr_array(random_matrix(5, 0.9, np.random.default_rng(0)))
    refused(lambda: louvain_ensemble(**{"X": graph, **arguments}), kind, *mentioned)


def test_graphs_beyond_the_memory_budget_are_refused_before_work(monkeypatch):
    graph = as_edges([[0, 1], [1, 2]])
    monkeypatch.setenv("GPUENS_MEMORY", "500")
    refused(lambda: louvain_ensemble(graph), MemoryError, "a graph of 2 edges with n_seeds=16 needs")

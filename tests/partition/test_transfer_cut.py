"""The transfer cut compared with dense matrices; and its different algorithms compared with each other."""

import operator
import sys

import numpy as np
import oracles
import pytest
from conftest import peak_of, raising, refused, structured_labels
from scipy.sparse import linalg

import gpuens as ge
from gpuens.labels.rows import Rows
from gpuens.partition import embedding, transfer_cut
from gpuens.partition.embeddings import kmeans
from gpuens.reduction import core_groups
from gpuens.runtime.device import move, to_host

MODULE = sys.modules[transfer_cut.__module__]  # this is the module; the package exports a function of the same name


def embed(labels, weights, k, device="cpu"):
    reduced = core_groups(Rows(labels, device=device))
    w = np.ones(reduced.rows.n_clusters) if weights is None else weights
    points, values = embedding(reduced.rows, w, k)
    return to_host(points)[to_host(reduced.row_of)], values


@pytest.fixture(params=["dense", "sums over labels", "sparse products"])
def way(request, sizes):
    if request.param != "dense":
        sizes("partition.transfer_cut", DENSE_IN_MEMORY_UP_TO=0)
        sizes("partition.transfer_cut", FILLED={"sums over labels": 0.0, "sparse products": 1e9}[request.param])
    return request.param


def test_products_with_clusters_that_hardly_intersect_are_those_of_a_sparse_matrix(sizes):
    rows = core_groups(Rows(structured_labels(400, 8, 40, noise=0.01, seed=1)[0])).rows
    share, v = np.random.default_rng(0).random(len(rows)), np.random.default_rng(1).random(rows.n_clusters)
    expected = MODULE._gram_product(rows, share, v)
    for filled, kind in ((1e9, operator.matmul), (0.0, MODULE._gram_product)):
        sizes("partition.transfer_cut", FILLED=filled)
        product = MODULE._products(rows, share)
        assert product.func is kind
        np.testing.assert_allclose(product(v), expected, rtol=1e-13)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("missing", [0.0, 0.2])
def test_embedding_is_the_literal_one(way, weighted, missing, where):
    """Inner products of the rows are compared, because rotations among equal eigenvalues change the eigenvectors."""
    labels = structured_labels(150, 8, 4, noise=0.3, split=3, missing=missing, seed=2)[0]
    weights = oracles.eci(labels, 0.4) if weighted else None
    points, values = embed(labels, weights, 4, where)
    expected, expected_values = oracles.transfer_cut_embedding(labels, weights, 4)
    np.testing.assert_allclose(values, expected_values, atol=1e-8, rtol=0)
    np.testing.assert_allclose(points @ points.T, expected @ expected.T, atol=1e-6, rtol=0)


def test_more_clusters_than_eigenvectors(way):
    """Two clusterings of two clusters each distinguish four rows, but have at most four eigenvectors."""
    labels = np.array([[0, 0], [0, 1], [1, 0], [1, 1]] * 5)
    assert ge.HBGF(4).fit(labels).n_clusters_ == 4


def test_empty_clusters_are_left_out(way):
    every = Rows(structured_labels(100, 5, 3, seed=1)[0])
    rows = every.take(np.arange(30))
    assert (rows.cluster_sizes() == 0).any() or rows.n_clusters == every.n_clusters
    points, values = embedding(rows, np.ones(rows.n_clusters), 3)
    assert np.isfinite(points).all()
    assert np.isfinite(values).all()


def test_there_may_be_more_clusters_than_rows_that_starts_use(sizes, where):
    sizes("kmeans.weighted", RESTARTS_ON=50)
    points = np.random.default_rng(0).standard_normal((80, 3)).astype(np.float32)
    points, counts = move(points, "cuda" if where == "cuda" else "cpu"), np.ones(80, dtype=np.int64)
    for k in (50, 60, 80):
        assert kmeans(points, counts, k, 2, np.random.default_rng(0), where).n_clusters == k


@pytest.mark.parametrize(("n_rows", "k"), [pytest.param(10_001, 400, marks=pytest.mark.thorough), (200_000, 2)])
def test_points_and_their_labels_are_foreseen(n_rows, k, foreseen, sizes):
    """With slightly more points than the starts sample, copies of points take most memory.

    With few clusters, labels do.
    """
    rng = np.random.default_rng(0)
    rows = Rows(rng.integers(k, size=(n_rows, 2)).astype(np.uint16))
    table = rng.standard_normal((rows.n_clusters, k))

    def work(rows, table):
        points = MODULE._embed_rows(rows, table)
        kmeans(points, rows.counts, table.shape[1], 2, np.random.default_rng(0), "cpu")

    work(rows.take(slice(0, 10_001)), table[:, :2])  # the first call imports packages, which takes memory of its own
    foreseen.clear()
    MODULE._check_point_memory(rows, k, 2)
    assert 0.5 < peak_of(lambda: work(rows, table)) / foreseen[0] < 1.01


# --- equal eigenvalues ------------------------------------------------------------------------------------------------


def coinciding(n_components):
    """Return labels (8 n, 3) of objects in n components that share no cluster, and the component of each object."""
    component = np.repeat(np.arange(n_components), 8)
    rng = np.random.default_rng(n_components)
    columns = [2 * component + rng.integers(0, 2, len(component)) for _ in range(2)]
    return np.column_stack([component, *columns]), component


@pytest.mark.filterwarnings("ignore:constant clusterings")
@pytest.mark.parametrize("n", [40, 100])
@pytest.mark.parametrize("method", ["lwgp", "hbgf"])
@pytest.mark.parametrize("k", [2, 3])
def test_no_eigenvector_is_lost(n, method, k, way, where):
    """If n - 1 eigenvectors have equal eigenvalues, searches for a few eigenvectors (LAPACK's, Lanczos's) lose some."""
    labels = np.column_stack([np.arange(n), np.zeros(n, int)])
    assert ge.consensus(labels, k, method=method, device=where).max() == k - 1
    assert embed(labels, None, k, where)[0].shape == (n, k)


@pytest.mark.parametrize("n_components", [2, 12])
@pytest.mark.parametrize("method", ["lwgp", "hbgf"])
@pytest.mark.parametrize("more", [-1, 0, 1])
def test_clusters_are_made_of_components_or_components_of_clusters(n_components, method, more, way, where):
    labels, component = coinciding(n_components)
    found = ge.consensus(labels, n_components + more, method=method, device=where)
    pairs = np.unique(np.stack([found, component]), axis=1)
    assert len(np.unique(found)) == n_components + more
    assert pairs.shape[1] == n_components + max(0, more)


def test_clusters_beyond_the_dimensions_have_no_direction(monkeypatch):
    """LAPACK may return the indicators of only two of five components; rounding must not separate the others."""
    labels, component = coinciding(5)
    ensemble = ge.Ensemble(labels)
    degree = ensemble.sizes.astype(float)

    def indicators(gram, scale, n_dimensions, beside):
        own = np.concatenate([np.arange(5), np.repeat(np.arange(5), 2), np.repeat(np.arange(5), 2)])
        vectors = np.sqrt(degree)[:, None] * (own[:, None] == np.arange(n_dimensions))
        noise = 1e-17 * np.random.default_rng(0).standard_normal(vectors.shape)
        return np.ones(n_dimensions), vectors / np.sqrt((vectors**2).sum(axis=0)) + noise

    monkeypatch.setattr(MODULE, "_dense_eigenvectors", indicators)
    found = ge.HBGF(3).fit(labels).labels_
    assert all(len(np.unique(found[component == c])) == 1 for c in range(5))


def test_lanczos_that_does_not_converge(monkeypatch, sizes):
    labels = structured_labels(200, 6, 4, noise=0.2, split=3, seed=4)[0]
    sizes("partition.transfer_cut", FEW_ROWS=0)
    expected = embed(labels, None, 4)[0]
    stopped = linalg.ArpackNoConvergence("no", np.empty(0), np.empty((0, 0)))
    monkeypatch.setattr(linalg, "eigsh", raising(*[stopped] * 9))
    sizes("partition.transfer_cut", DENSE_IN_MEMORY_UP_TO=0)
    np.testing.assert_array_equal(embed(labels, None, 4)[0], expected)
    monkeypatch.setenv("GPUENS_MEMORY", "20kB")
    refused(lambda: embed(labels, None, 4), MemoryError, "needs all eigenvectors of", "fewer clusters")


class InPieces(Rows):
    """Rows in two pieces, in place of the many pieces of `gpuens.distributed`."""

    here = False

    def __init__(self, labels):
        whole = Rows(labels, device="cpu")
        half = len(whole) // 2
        self.parts = [whole.take(slice(0, half)), whole.take(slice(half, None))]
        self._hold(whole.ensemble.take(np.arange(0)), np.empty(0, dtype=np.int64), "cpu")

    @property
    def n_rows(self):
        return sum(map(len, self.parts))

    @property
    def n_objects(self):
        return sum(self.objects_of_pieces)

    @property
    def objects_of_pieces(self):
        return [part.n_objects for part in self.parts]

    def each(self, function, *args, piece_args=None):
        of_parts = [()] * 2 if piece_args is None else [(arg,) for arg in piece_args]
        return [function(part, *of_part, *args) for part, of_part in zip(self.parts, of_parts, strict=True)]

    def sum(self, function, *given):
        return sum(self.each(function, *given))


@pytest.mark.parametrize("n_components", [2, 5, 12])
def test_components_of_rows_in_pieces(n_components, way):
    labels, component = coinciding(n_components)
    rows = Rows(labels)
    found = transfer_cut(InPieces(labels), np.ones(rows.n_clusters), n_components)
    assert found.labels is None
    assert found.n_clusters == n_components
    assert ge.metrics.ari(found.rule(rows), component) == 1


def test_too_few_points_is_a_warning_of_one_sentence():
    """Both clusterings agree, so that the embedding has only one point for each of the two clusters."""
    rows = Rows([[0, 0, 0, 1, 1, 1], [0, 0, 0, 1, 1, 1]])
    with pytest.warns(UserWarning, match="found only 2 of 3 clusters"):
        transfer_cut(rows, np.ones(4), 3)

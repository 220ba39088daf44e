"""k-means on labels compared with k-means on dense features, which are small enough here to be built."""

import sys

import numpy as np
import pytest
from conftest import distinct_rows, random_labels, structured_labels
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score as ari

import gpuens as ge
from gpuens.labels.incidence import label_histograms
from gpuens.labels.rows import Rows
from gpuens.partition import label_kmeans, squared_euclidean
from gpuens.partition.label_kmeans import _lloyd, _LloydRun, centred_indicators, count_labels, nearest_centroids
from gpuens.runtime import device as devices

MODULE = sys.modules[label_kmeans.__module__]  # this is the module; the package exports a function of the same name

pytestmark = pytest.mark.filterwarnings("ignore:constant clusterings")

LABELS = {
    "one row": lambda: np.zeros((1, 3), dtype=np.int64),
    "two rows": lambda: np.array([[0, 0, 1], [0, 1, 1]]),
    "31 rows": lambda: distinct_rows(random_labels(200, 6, (2, 6)))[:31],
    "32 rows": lambda: distinct_rows(random_labels(200, 6, (2, 6), missing=0.2, seed=1))[:32],
    "33 rows": lambda: distinct_rows(random_labels(200, 6, (2, 6), missing=0.2, seed=2))[:33],
    "structured": lambda: distinct_rows(structured_labels(300, 8, 5, missing=0.1, seed=3)[0]),
    "many clusters": lambda: np.column_stack([np.arange(320) % 300, random_labels(320, 3, 4, missing=0.1, seed=4)]),
    "one clustering": lambda: np.arange(20)[:, None],
}


def tables_of(ens, kind="any", seed=0):
    """Return a table for each clustering: random and square, random with two columns, or centred unit vectors."""
    rng, k = np.random.default_rng(seed), np.diff(ens.offsets).tolist()
    if kind == "centred":
        return [np.eye(n) - 1 / n for n in k]
    return [rng.standard_normal((n, n if kind == "any" else 2)) for n in k]


def counts_for(n, seed=0):
    return np.random.default_rng(seed).integers(1, 9, n)


def search_of(ens, tables, weights, where="cpu"):
    return _LloydRun(Rows.of(ens, weights, where), squared_euclidean(tables))


def centroids_at(search, places):
    """Return the arrays cost and const of centroids placed at the given rows."""
    return search.divergence(search.rows.shares_at(search.codes_at(places)))


def step_of(search, cost, const, n_clusters):
    """Return the clusters after one iteration, and the labels of the rows."""
    (clusters,) = search.side_by_side([search.clusters(cost, const, n_clusters)])
    return clusters, clusters.rule(search.rows)


def run(ens, tables, weights, k, where="cpu", seed=0, **options):
    rows = Rows.of(ens, weights, where)
    return label_kmeans(rows, squared_euclidean(tables), k, rng=np.random.default_rng(seed), **options)


def centroids_of(partition, ens, tables, weights):
    """Return the arrays cost and const of the centroids of a partition."""
    histograms = label_histograms(ens.codes, ens.offsets, weights, partition.labels, partition.n_clusters)
    return squared_euclidean(tables)(histograms / np.bincount(partition.labels, weights=weights))


def same(partition, expected):
    """Check that two partitions are equal to the bit."""
    np.testing.assert_array_equal(partition.labels, expected.labels)
    assert (partition.n_clusters, partition.results) == (expected.n_clusters, expected.results)


class OnePiece(Rows):
    """Rows in a single piece, handled as pieces in Dask workers are."""

    here = False

    def __init__(self, ens, weights, where):
        self._hold(ens.take(np.arange(0)), np.empty(0, dtype=np.int64), where)
        self.piece = Rows.of(ens, weights, where)

    @property
    def n_rows(self):
        return self.piece.n_rows

    @property
    def objects_of_pieces(self):
        return [self.piece.n_objects]

    def each(self, function, *args, piece_args=None):
        return self.piece.each(function, *args, piece_args=piece_args)

    def sum(self, function, *given):
        return self.piece.sum(function, *given)


# --- the oracle -------------------------------------------------------------------------------------------------------


def features(ens, tables):
    """Return the features (G, D): the concatenated table rows of the labels of each row, zeros for missing labels."""
    padded = [np.vstack([table, np.zeros(table.shape[1])]) for table in tables]  # the label -1 is the last row
    return np.hstack([table[labels] for table, labels in zip(padded, ens.to_array().T, strict=True)])


def distances(X, centers):
    return np.stack([((X - center) ** 2).sum(axis=1) for center in centers], axis=1)


def means(X, weights, labels):
    return np.array([np.average(X[labels == k], axis=0, weights=weights[labels == k]) for k in range(labels.max() + 1)])


def objective(X, weights, labels):
    return weights @ ((X - means(X, weights, labels)[labels]) ** 2).sum(axis=1)


def step(X, weights, centers, n_clusters):
    """Assign each row to its nearest centroid; an empty cluster gets the farthest row and all equal rows."""
    labels = np.unique(distances(X, centers).argmin(axis=1), return_inverse=True)[1]
    while (k := labels.max() + 1) < n_clusters:
        to_nearest = distances(X, means(X, weights, labels)).min(axis=1)
        farthest = to_nearest.argmax()
        if to_nearest[farthest] < 1e-9:
            break
        labels[np.isclose(X, X[farthest]).all(axis=1)] = k
    return labels


def lloyd(X, weights, centers, n_clusters):
    labels = step(X, weights, centers, n_clusters)
    while not np.array_equal(labels, then := step(X, weights, means(X, weights, labels), n_clusters)):
        labels = then
    return labels


# --- primitives -------------------------------------------------------------------------------------------------------


def ensemble(n, dtype, seed=0):
    """Return codes (n, 5) of a dtype, stored column by column, and the offsets. A fifth of the codes is missing."""
    rng = np.random.default_rng(seed)
    k = rng.integers(2, 300 if dtype != "uint8" else 9, 5)
    codes = np.asfortranarray(rng.integers(0, k, (n, 5)).astype(dtype))
    codes[rng.random((n, 5)) < 0.2] = np.iinfo(dtype).max
    return codes, np.concatenate([[0], np.cumsum(k)])


def on(where, array):
    return devices.namespace(where).asarray(array.T).T


@pytest.mark.kernels
@pytest.mark.parametrize("n_centroids", [1, 7, 8, 9, 100])
@pytest.mark.parametrize("dtype", ["uint8", "uint16", "uint32"])
@pytest.mark.parametrize("n", [0, 1, 31, 32, 33, 1000])
def test_nearest_centroids(n, dtype, n_centroids, where):
    codes, offsets = ensemble(n, dtype)
    rng = np.random.default_rng(1)
    cost, const = rng.standard_normal((offsets[-1], n_centroids)), rng.random(n_centroids)
    labels, found = nearest_centroids(on(where, codes), offsets, cost, const, device=where)
    expected = np.tile(const, (n, 1))
    for m in range(5):
        known = codes[:, m] != np.iinfo(dtype).max
        expected[known] += cost[offsets[m] + codes[known, m]]
    assert devices.to_host(labels).dtype == np.int64
    np.testing.assert_array_equal(devices.to_host(labels), expected.argmin(axis=1))
    np.testing.assert_array_equal(devices.to_host(found), expected.min(axis=1))


@pytest.mark.kernels
def test_the_first_of_equally_near_centroids(where):
    codes, offsets = ensemble(50, "uint8")
    cost = np.repeat(np.random.default_rng(2).integers(0, 2, (offsets[-1], 6)), 3, axis=1).astype(float)
    labels, _ = nearest_centroids(on(where, codes), offsets, cost, np.zeros(18), device=where)
    assert set(devices.to_host(labels) % 3) == {0}


@pytest.mark.kernels
@pytest.mark.parametrize("shared_bytes", [0, 300, 48 * 1024])
@pytest.mark.parametrize("n_labels", [1, 7, 40])
@pytest.mark.parametrize("dtype", ["uint8", "uint16", "uint32"])
@pytest.mark.parametrize("n", [0, 1, 31, 32, 33, 1000])
def test_label_histograms(n, dtype, n_labels, shared_bytes, where, sizes):
    """Shared memory has room for the histograms of all clusters, of some clusters, or of none."""
    sizes("runtime.kernels", SHARED_BYTES=shared_bytes)
    codes, offsets = ensemble(n, dtype)
    rng = np.random.default_rng(3)
    weights, labels = rng.integers(1, 2**40, n), rng.integers(0, n_labels, n)
    on_device = devices.namespace(where).asarray(labels)
    histograms = label_histograms(on(where, codes), offsets, weights, on_device, n_labels, device=where)
    expected = np.zeros((offsets[-1], n_labels), dtype=np.int64)
    for g, m in np.argwhere(codes != np.iinfo(dtype).max):
        expected[offsets[m] + codes[g, m], labels[g]] += weights[g]
    np.testing.assert_array_equal(devices.to_host(histograms), expected, strict=True)


@pytest.mark.parametrize("kind", ["any", "flat", "centred"])
def test_squared_euclidean(kind):
    ens = ge.Ensemble(LABELS["33 rows"]())
    tables, weights, labels = tables_of(ens, kind), counts_for(33), np.arange(33) % 4
    X = features(ens, tables)
    search = search_of(ens, tables, weights)

    def rule(rows):
        return labels

    clusters = search.measure(rule, *count_labels(search.rows, rule, 4))
    expected = distances(X, means(X, weights, labels))
    for row, from_centers in zip(ens.to_array(), expected, strict=True):
        looked_up = clusters.const + clusters.cost[(ens.offsets[:-1] + row)[row >= 0]].sum(axis=0)
        np.testing.assert_allclose(looked_up, from_centers, rtol=0, atol=1e-12)
    np.testing.assert_allclose(clusters.objective, objective(X, weights, labels), rtol=1e-12)
    to_rows = search.distances_to(search.codes_at([[5, 5, 20]]))[:, 0]
    np.testing.assert_allclose(to_rows, distances(X, X[[5, 5, 20]]), rtol=0, atol=1e-12)
    assert (to_rows[[5, 20], [0, 2]] == 0).all()


# --- iterations -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", LABELS)
@pytest.mark.parametrize("n_clusters", [1, 2, 7, "all"])
def test_iterations_are_those_on_features(shape, n_clusters, where):
    labels = LABELS[shape]()
    ens = ge.Ensemble(list(labels.T))
    k = len(labels) if n_clusters == "all" else min(n_clusters, len(labels))
    tables, weights = tables_of(ens), counts_for(len(labels))
    X = features(ens, tables)
    search = search_of(ens, tables, weights, where)
    start = np.random.default_rng(5).choice(len(labels), k, replace=False)
    ((clusters, _, converged),) = search.side_by_side([_lloyd(search, *centroids_at(search, start), k, 100)])
    assert converged
    expected = lloyd(X, weights, X[start], k)
    others = KMeans(k, init=X[start], n_init=1, tol=0).fit(X, sample_weight=weights)
    for assigned, inertia in ((expected, objective(X, weights, expected)), (others.labels_, others.inertia_)):
        np.testing.assert_array_equal(clusters.rule(search.rows), assigned)
        np.testing.assert_allclose(clusters.objective, inertia, rtol=1e-10, atol=1e-10)


def test_no_other_row_goes_to_a_centroid_without_rows(where):
    rows = Rows.of(ge.Ensemble([[0, 1, 2]]), np.ones(3), where)
    search = _LloydRun(rows.take(slice(1, 3)), squared_euclidean([np.array([[0.0], [10.0], [20.0]])]))
    clusters, _ = step_of(search, *search.divergence(np.eye(3)), 2)
    assert clusters.rule(rows).tolist() == [0, 0, 1]


@pytest.mark.parametrize("kind", ["any", "centred"])
def test_the_objective_never_rises(kind, where):
    ens = ge.Ensemble(random_labels(400, 6, (2, 6), missing=0.1, seed=6))
    tables, weights = tables_of(ens, kind), counts_for(400)
    search, X = search_of(ens, tables, weights, where), features(ens, tables)
    cost, const, largest = *centroids_at(search, np.arange(9)), np.inf
    for _ in range(20):
        clusters, labels = step_of(search, cost, const, 9)
        assert clusters.objective <= largest * (1 + 1e-14)
        np.testing.assert_allclose(clusters.objective, objective(X, weights, labels), rtol=1e-12)
        cost, const, largest = clusters.cost, clusters.const, clusters.objective


def test_empty_clusters_begin_again_at_the_farthest_rows(where):
    """Of five centroids, three are equal, and one is far from all rows."""
    labels = LABELS["structured"]()
    ens = ge.Ensemble(labels)
    tables, weights = tables_of(ens), counts_for(len(labels))
    X = features(ens, tables)
    search = search_of(ens, tables, weights, where)
    cost, const = centroids_at(search, [3, 3, 40, 3, 40])
    const[4] += 1e6
    _, labels = step_of(search, cost, const, 5)
    np.testing.assert_array_equal(labels, step(X, weights, X[[3, 3, 40]], 5))
    assert np.bincount(labels).min() > 0


# --- the whole method -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["any", "flat", "centred"])
@pytest.mark.parametrize("shape", LABELS)
def test_every_device_finds_the_same(shape, kind, where):
    labels = LABELS[shape]()
    ens = ge.Ensemble(list(labels.T))
    assert ens.codes.dtype == (np.uint16 if shape == "many clusters" else np.uint8)
    k = min(6, len(labels))
    tables, weights = tables_of(ens, kind), counts_for(len(labels))
    partition = run(ens, tables, weights, k, where)
    same(partition, run(ens, tables, weights, k))
    assert isinstance(partition.labels, np.ndarray)
    assert partition.labels.dtype == np.int64
    first = np.unique(partition.labels, return_index=True)[1]
    assert (np.diff(first) > 0).all()
    assert len(first) == partition.n_clusters == k
    cost, const = centroids_of(partition, ens, tables, weights)
    nearest, _ = nearest_centroids(ens.codes_on(where), ens.offsets, cost, const, device=where)
    np.testing.assert_array_equal(devices.to_host(nearest), partition.labels)


@pytest.mark.parametrize("k", [3, 20])
def test_as_good_as_k_means_on_features(k):
    ens = ge.Ensemble(structured_labels(500, 8, 6, noise=0.3, split=3, seed=8)[0])
    tables, weights = tables_of(ens, "centred"), counts_for(500)
    found = run(ens, tables, weights, k)
    expected = KMeans(k, n_init=10, random_state=0).fit(features(ens, tables), sample_weight=weights)
    assert found.results["objective"] < 1.01 * expected.inertia_


def test_weights_are_repetitions():
    labels = LABELS["structured"]()
    weights = counts_for(len(labels))
    ens, repeated = ge.Ensemble(labels), ge.Ensemble(np.repeat(labels, weights, axis=0))
    tables = tables_of(ens)
    found = run(ens, tables, weights, 6)
    expected = run(repeated, tables, np.ones(weights.sum(), dtype=np.int64), 6)
    np.testing.assert_array_equal(np.repeat(found.labels, weights), expected.labels)
    np.testing.assert_allclose(found.results["objective"], expected.results["objective"], rtol=1e-12)


@pytest.mark.parametrize("n_clusters", [4, 5, 12])
def test_rows_of_the_same_features_stay_together(n_clusters, where):
    """The tables have repeated rows, so that only four of the twelve label rows differ in their features."""
    labels = np.array([[a, b] for a in range(4) for b in range(3)])
    tables = [np.array([[0.1, 0.3], [0.1, 0.3], [0.7, 0.2], [0.7, 0.2]]), np.array([[1 / 3], [1 / 7], [1 / 7]])]
    found = run(ge.Ensemble(labels), tables, counts_for(12), n_clusters, where)
    assert found.labels.tolist() == [0, 1, 1, 0, 1, 1, 2, 3, 3, 2, 3, 3]
    np.testing.assert_allclose(found.results["objective"], 0, atol=1e-12)
    assert found.n_clusters == 4


def test_all_rows_alike(where):
    ens = ge.Ensemble(np.tile([0, 1, 2], (3, 1)).T)
    found = run(ens, [np.ones((3, 2))] * 3, np.ones(3, dtype=np.int64), 3, where)
    assert found.labels.tolist() == [0, 0, 0]
    assert found.results["converged"]


def test_restarts_and_iterations_make_it_better():
    ens = ge.Ensemble(random_labels(300, 6, (2, 6), seed=9))
    args = ens, tables_of(ens), counts_for(300), 8
    restarts = [run(*args, n_init=n) for n in (1, 3, 10)]
    cut_short = [run(*args, n_init=1, max_iter=n) for n in (1, 2, 4, 100)]
    for partitions in (restarts, cut_short):
        objectives = [partition.results["objective"] for partition in partitions]
        assert objectives == sorted(objectives, reverse=True)
    assert [partition.results["n_iter"] for partition in cut_short[:2]] == [1, 2]
    assert [partition.results["converged"] for partition in cut_short] == [False, False, False, True]
    assert all(np.bincount(partition.labels, minlength=8).min() > 0 for partition in cut_short)


def test_other_rows_go_to_the_centroids_found(where):
    labels, truth = structured_labels(400, 10, 4, noise=0.2, split=2, seed=10)
    ens = ge.Ensemble(labels)
    seen, rest = ens.take(np.arange(150)), Rows(ens, device=where).take(np.arange(150, 400))
    tables, weights = tables_of(ens, "centred"), np.ones(150, dtype=np.int64)
    cost, const = centroids_of(run(seen, tables, weights, 4, where), seen, tables, weights)
    nearest, _ = nearest_centroids(rest.codes, ens.offsets, cost, const, device=where)
    assert ari(truth[150:], devices.to_host(nearest)) > 0.95
    rows = OnePiece(seen, weights, where)
    rule = label_kmeans(rows, squared_euclidean(tables), 4, rng=np.random.default_rng(0)).rule
    assert ari(truth[150:], rule(rest)) > 0.95


@pytest.mark.parametrize("shape", ["33 rows", "structured", "many clusters"])
def test_rows_elsewhere_are_cut_as_those_of_a_draw_are(shape, where, sizes):
    """Rows in pieces get the same draws and iterations as rows in memory; only the rule returns the labels."""
    labels = distinct_rows(LABELS[shape]())
    labels = labels[np.lexsort(np.where(labels < 0, 10**6, labels).T[::-1])]  # in the order of core groups
    ens = ge.Ensemble(list(labels.T))
    tables, weights = tables_of(ens), counts_for(ens.n_objects)
    sizes("partition.label_kmeans", RESTARTS_ON=30)
    expected = run(ens, tables, weights, 6, where)
    rows = OnePiece(ens, weights, where)
    partition = label_kmeans(rows, squared_euclidean(tables), 6, rng=np.random.default_rng(0))
    assert partition.labels is None
    assert (partition.n_clusters, partition.results) == (expected.n_clusters, expected.results)
    assert ari(partition.rule(rows.piece), expected.labels) == 1


def test_threads_do_not_matter(monkeypatch):
    ens = ge.Ensemble(random_labels(9000, 6, (2, 40), seed=11))
    args = ens, tables_of(ens), counts_for(9000), 12
    monkeypatch.setenv("GPUENS_THREADS", "1")
    expected = run(*args, n_init=1)
    monkeypatch.setenv("GPUENS_THREADS", "3")
    same(run(*args, n_init=1), expected)


@pytest.mark.kernels
@pytest.mark.parametrize("restarts_on", [100, 20_000])
def test_labels_stay_in_gpu_memory(restarts_on, fake_cupy, sizes):
    """Only sums over rows and the final labels are copied to the host, neither distances nor the label matrix."""
    sizes("partition.label_kmeans", RESTARTS_ON=restarts_on)
    ens = ge.Ensemble(fake_cupy.asarray(random_labels(1000, 20, (2, 4), missing=0.1, seed=12)))
    fake_cupy.traffic.to_host.sizes.clear()
    found = run(ens, tables_of(ens), counts_for(1000), 4, "cuda", n_init=2)
    assert fake_cupy.traffic.to_host.largest <= 8 * 1000 < ens.n_objects * ens.n_clusterings
    same(found, run(ens, tables_of(ens), counts_for(1000), 4, n_init=2))


@pytest.mark.parametrize("at_once", [1, 3])
def test_starts_do_not_know_of_each_other(at_once, sizes):
    """Starts that run together give the same results as alone, even if clusters of some starts become empty."""
    ens = ge.Ensemble(random_labels(60, 4, (2, 4), missing=0.1, seed=13))
    args = ens, tables_of(ens, "flat"), counts_for(60), 11, "emulated"
    expected = [run(*args, seed=seed, n_init=7) for seed in range(5)]
    sizes("partition.label_kmeans", MOST_STARTS=at_once)
    for seed, alone in enumerate(expected):
        same(run(*args, seed=seed, n_init=7), alone)


def test_centred_indicators_are_the_tables_that_are_not_built():
    offsets = np.array([0, 3, 4, 9])
    tables = [np.eye(size) - 1 / size for size in np.diff(offsets)]
    shares = np.random.default_rng(0).random((9, 5))
    for one, other in zip(centred_indicators(offsets)(shares), squared_euclidean(tables)(shares), strict=True):
        np.testing.assert_allclose(one, other, atol=1e-12, rtol=0)

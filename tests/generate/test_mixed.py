"""Base clusterings of mixed kinds: the Genie algorithm compared with its definition, and invariances."""

import numpy as np
import pytest
from conftest import refused
from scipy.sparse import csr_array
from sklearn.datasets import make_blobs, make_moons

import gpuens as ge
from gpuens.generate import landmark_cut, mixed_ensemble
from gpuens.generate.genie import genie
from gpuens.generate.mixed import landmarks_for
from gpuens.runtime.checks import recorded

X, y = make_blobs(300, 3, centers=4, cluster_std=0.7, random_state=0)
FEW = {"n_clusters": 4, "n_landmarks": 60}


def literal_genie(points, sizes, k, most_unequal):
    """Repeatedly merge the nearest pair that Genie allows, in O(n³) without a tree; return the clusters as sets."""
    clusters = [{int(i)} for i in np.flatnonzero(sizes)]
    apart = np.linalg.norm(points[:, None] - points[None], axis=2)
    while len(clusters) > k:
        weights = np.array([sum(sizes[i] for i in one) for one in clusters])
        n = len(clusters)
        unequal = np.abs(weights[:, None] - weights).sum() / 2 / ((n - 1) * weights.sum())
        pairs = [
            (min(apart[i, j] for i in clusters[a] for j in clusters[b]), a, b)
            for a in range(n)
            for b in range(a)
            if unequal <= most_unequal or min(weights[a], weights[b]) == weights.min()
        ]
        _, a, b = min(pairs)
        clusters[b] |= clusters.pop(a)
    return clusters


@pytest.mark.parametrize("most_unequal", [0.0, 0.1, 0.3, 0.7, 1.0])
@pytest.mark.parametrize("seed", range(4))
def test_genie_is_its_definition(seed, most_unequal):
    rng = np.random.default_rng(seed)
    points = rng.normal(size=(30, 2 + seed)).astype(np.float32)
    sizes = rng.integers(0, 6, 30) if seed % 2 else np.ones(30, dtype=np.int64)
    for k in (1, 2, 5, 12):
        labels = genie(points, sizes, k, most_unequal)
        found = {frozenset(np.flatnonzero((labels == label) & (sizes > 0))) for label in np.unique(labels)}
        assert found - {frozenset()} == {frozenset(one) for one in literal_genie(points, sizes, k, most_unequal)}


def test_genie_of_few_points():
    for points, sizes, k, expected in (
        ([0], [1], 3, [0]),
        ([0, 1, 2], [1, 1, 1], 5, [0, 1, 2]),
        ([0, 1, 2], [1, 1, 1], 1, [0, 0, 0]),
        ([0, 1, 2, 3], [2, 0, 3, 4], 3, [0, None, 1, 2]),  # nobody is at the second point
    ):
        labels = genie(np.array(points, dtype=np.float32)[:, None], np.array(sizes), k, 0.3)
        assert [x if y is not None else None for x, y in zip(labels.tolist(), expected, strict=True)] == expected
    assert np.unique(genie(np.zeros((6, 2), np.float32), np.ones(6, np.int64), 2, 0.3)).size == 2


def test_objects_follow_their_nearest_landmark(monkeypatch):
    labels, made = mixed_ensemble(X, 2, **FEW).to_array()[:, 1], []

    def kept(points, sizes, *given):
        made.append((points, sizes, genie(points, sizes, *given)))
        return made[-1][2]

    monkeypatch.setattr(landmark_cut, "genie", kept)
    mixed_ensemble(X, 2, **FEW)
    points, sizes, of_landmarks = made[0]
    assert len(points) == 60
    assert sizes.sum() == 300
    # the features were centered, and multiplied by a power of 2
    centered = X - X.mean(axis=0)
    apart = [np.linalg.norm(centered[:, None] * 2.0**power - points, axis=2) for power in range(-8, 3)]
    near = min(apart, key=lambda distances: distances.min(axis=1).sum()).argmin(axis=1)
    # a few objects differ, because their nearest landmark is searched only in the nearest group of landmarks
    assert np.mean(of_landmarks[near] == labels) > 0.95


def test_numbers_of_clusters_are_near_the_wanted_one_or_many():
    def numbers(*given):
        return np.diff(mixed_ensemble(X, *given, n_landmarks=100).offsets)

    of_cuts, of_trees = numbers(20, 4)[::2], numbers(20, 4)[1::2]
    many = np.delete(of_cuts, np.arange(0, 10, 4))
    for ks, least, most in (
        (of_cuts[::4], 4, 10),
        (of_trees, 4, 10),
        (many, 20, 60),
        (numbers(10), 20, np.inf),
        (numbers(6, 100), 90, 150),  # k-means may leave some clusters empty
    ):
        assert least <= ks.min() <= ks.max() <= most


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 8, 21])
def test_few_objects(n):
    points = np.random.default_rng(n).normal(size=(n, 2))
    for k in (None, 1, min(2, n), n):
        assert mixed_ensemble(points, 5, k).n_clusterings == 5
    assert ge.cluster(points, 1).n_clusters_ == 1
    assert ge.cluster(points, n).n_clusters_ == n
    with recorded():  # the number of clusters may be doubtful, which is a warning
        assert 1 <= ge.cluster(points).n_clusters_ <= max(1, n - 1)


def test_no_clustering_is_constant_where_one_cluster_is_asked_for():
    assert np.diff(mixed_ensemble(X, 12, 1, n_landmarks=60).offsets).min() >= 2


def test_a_clustering_depends_on_its_number_alone(monkeypatch, tmp_path):
    labels = mixed_ensemble(X, 7, **FEW).to_array()
    np.testing.assert_array_equal(mixed_ensemble(X, 4, **FEW).to_array(), labels[:, :4])
    monkeypatch.setenv("GPUENS_THREADS", "3")
    np.testing.assert_array_equal(mixed_ensemble(X, 3, **FEW, resume=tmp_path).to_array(), labels[:, :3])
    np.testing.assert_array_equal(mixed_ensemble(X, 7, **FEW, resume=tmp_path).to_array(), labels)
    assert (mixed_ensemble(X, 7, **FEW, random_state=1).to_array() != labels).any()
    refused(lambda: mixed_ensemble(X, 7, **FEW | {"n_clusters": 5}, resume=tmp_path), ValueError, "other work")


@pytest.mark.parametrize(
    ("points", "put", "device"),
    [(np.where(X > 2, X, 0.0).astype(np.float32), csr_array, "auto"), (X.astype(np.float32), np.asarray, "emulated")],
    ids=["sparse", "emulated"],
)
def test_sparse_features_and_emulated_clusterings_are_the_same(points, put, device):
    found = mixed_ensemble(put(points), 4, **FEW, device=device).to_array()
    np.testing.assert_array_equal(found, mixed_ensemble(points, 4, **FEW).to_array())


def test_chunks_are_clustered_where_they_are(tmp_path):
    da = pytest.importorskip("dask.array")
    chunks = da.from_array(X, chunks=(110, 3))
    found = mixed_ensemble(chunks, 5, **FEW, resume=tmp_path)
    expected = mixed_ensemble(X, 5, **FEW).to_array()
    assert found.chunks == ((110, 110, 80), (5,))
    np.testing.assert_array_equal(found.compute(), expected)
    np.testing.assert_array_equal(mixed_ensemble(chunks, 5, **FEW, resume=tmp_path).compute(), expected)


def test_clusters_of_any_shape_are_found():
    for shape, k in (
        (make_moons(800, noise=0.07, random_state=0), 2),
        (make_blobs(800, centers=5, random_state=1), 5),
    ):
        assert ge.metrics.ari(shape[1], ge.cluster(shape[0], k).labels_) > 0.9


@pytest.mark.parametrize(
    ("given", "kind", "mentioned"),
    [
        ({"n_clusters": 301}, ValueError, "n_clusters=301 is more than the 300 object(s) of X"),
        ({"n_clusters": 0}, ValueError, "n_clusters must be at least 1, but is 0"),
        ({"n_clusters": (2, 5)}, TypeError, "n_clusters must be a whole number"),
        ({"n_clusterings": 0}, ValueError, "n_clusterings must be at least 1"),
        ({"n_landmarks": 0}, ValueError, "n_landmarks must be at least 1"),
        ({"names": ["a"]}, ValueError, "names"),
        ({"random_state": None, "resume": "kept"}, ValueError, "resume repeats earlier draws"),
    ],
)
def test_what_is_refused(given, kind, mentioned):
    refused(lambda: mixed_ensemble(**{"X": X, "n_clusterings": 4, **FEW, **given}), kind, mentioned)


def test_a_quarter_of_the_objects_are_landmarks_and_nearly_all_of_few():
    of = {n: landmarks_for(n) for n in (1, 9, 10, 1111, 1112, 2000, 2400, 4000, 10**6)}
    assert of == {1: 1, 9: 9, 10: 9, 1111: 1000, 1112: 500, 2000: 500, 2400: 600, 4000: 1000, 10**6: 1000}


def test_a_number_of_landmarks_is_at_least_that_of_clusters(monkeypatch):
    clustered, seen = landmark_cut.clustered, []
    monkeypatch.setattr(
        landmark_cut, "clustered", lambda *given, **how: seen.append(how["n_landmarks"]) or clustered(*given, **how)
    )
    for k, p in ((4, 270), (200, 270), (290, 290)):
        assert mixed_ensemble(X, 2, k).n_clusterings == 2
        assert seen.pop() == p
    refused(lambda: mixed_ensemble(X, 2, 61, n_landmarks=60), ValueError, "n_landmarks=60 is too few for 61 clusters")

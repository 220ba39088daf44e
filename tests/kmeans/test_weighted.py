"""k-means of weighted points compared with scikit-learn's, and points that are embedded rows."""

import numpy as np
import pytest
from sklearn.cluster import KMeans

from gpuens.kmeans import weighted
from gpuens.labels.rows import Rows
from gpuens.partition.embeddings import unit_points, unit_points32
from gpuens.runtime.device import move, to_host


def points_of(n, d, k, dtype, seed=0):
    rng = np.random.default_rng(seed)
    points = rng.standard_normal((k, d))[rng.integers(k, size=n)] * 2 + rng.standard_normal((n, d))
    return points.astype(dtype), rng.integers(1, 5, size=n)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("n", "d", "k"), [(5_003, 3, 4), (4_000, 17, 9), (70, 2, 3)])
def test_starts_and_iterations_are_scikit_learns(n, d, k, dtype):
    points, counts = points_of(n, d, k, dtype)
    expected = KMeans(k, n_init=5, random_state=3, max_iter=100).fit(points, sample_weight=counts)
    labels, centers = weighted.restarts(points, counts, k, 5, 3)
    inertia = (counts * ((points - centers[labels]) ** 2).sum(axis=1)).sum()
    assert inertia < 1.001 * expected.inertia_
    if dtype == "float64":  # in float32, rounding decides some random draws, so that only float64 is compared
        np.testing.assert_allclose(centers, expected.cluster_centers_, atol=2e-3)
    found = weighted.lloyd(points, counts, centers)
    again = KMeans(k, n_init=1, init=centers.astype(dtype), max_iter=100).fit(points, sample_weight=counts)
    assert (found == again.labels_).mean() > 0.999


def test_an_empty_cluster_gets_the_farthest_points_as_scikit_learns_does(where):
    """Two centers lie beyond all points; as in scikit-learn's KMeans, they move to the two farthest points."""
    points = np.array([[0.0], [0.1], [0.2], [0.7], [1.0]])
    counts, centers = np.array([3, 1, 2, 1, 1]), np.array([[0.1], [50.0], [60.0]])
    theirs = KMeans(3, init=centers, n_init=1).fit(points, sample_weight=counts)
    given = move(points, "cuda" if where == "cuda" else "cpu")
    labels = to_host(weighted.lloyd(given, counts, centers, device=where))
    assert len(set(labels.tolist())) == 3
    pairs = set(zip(labels.tolist(), theirs.labels_.tolist(), strict=True))
    assert len(pairs) == 3


def test_fewer_distinct_points_than_clusters():
    points, counts = np.repeat(np.eye(2), 50, axis=0), np.ones(100, dtype=np.int64)
    labels, centers = weighted.restarts(points, counts, 3, 2, 0)
    assert centers.shape == (3, 2)
    assert len(set(labels[:50].tolist())) == len(set(labels[50:].tolist())) == 1
    assert labels[0] != labels[50]


@pytest.mark.parametrize("d", [1, 7, 16, 25])
def test_float32_points_are_the_rounded_ones(d, where):
    rng = np.random.default_rng(d)
    labels = rng.integers(-1, 6, size=(1000, 5))
    labels[:, 0] = rng.integers(4, size=1000)
    rows = Rows(labels, device=where)
    table = np.asfortranarray(rng.standard_normal((rows.n_clusters, d)))
    table[:4] = 0.0
    found = to_host(unit_points32(rows.codes, rows.offsets, table, device=rows.device))
    expected = to_host(unit_points(rows, table)[0])
    np.testing.assert_allclose(found, expected, atol=1e-7)

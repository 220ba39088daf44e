"""Compiled functions of points: k-means, landmarks, Genie. Sums in order, any number of threads, types, and signals."""

import signal

import numpy as np
import pytest
from conftest import interrupted

from gpuens.generate.landmark_cut import landmark_products
from gpuens.generate.landmark_graph import nearest_landmarks
from gpuens.generate.landmark_lists import LandmarkLists
from gpuens.generate.shares import LandmarkTable, landmark_shares, nearest_by_shares
from gpuens.kmeans import nested, weighted
from gpuens.kmeans.plus_plus import plus_plus
from gpuens.runtime.native import cpu

RNG = np.random.default_rng(0)


def points_of(n, d, dtype=np.float32):
    return RNG.standard_normal((n, d)).astype(dtype)


# --- results ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("n", "d", "k"), [(1, 1, 1), (63, 2, 2), (65, 3, 5), (200, 7, 4), (129, 17, 9)])
def test_a_pass_adds_points_in_their_order(n, d, k, dtype):
    points, counts, centers = points_of(n, d, dtype), RNG.integers(1, 9, n), points_of(k, d, np.float64)
    labels, own = np.full((1, n), -1), centers.astype(dtype)
    sums, weight, changed = weighted.nearest_centers(points, counts, centers[None], labels)
    assert changed == n
    expected = np.zeros((k, d + 1))
    for point, count in zip(points, counts.tolist(), strict=True):
        score = (own * own).sum(axis=1) / 2
        for j in range(d):
            score = score - own[:, j] * point[j]
        expected[score.argmin()] += count * np.append(point, 1.0)
    np.testing.assert_array_equal(np.concatenate([sums, weight], axis=2)[0], expected)


def runs():
    """Return functions that return arrays, none of which may depend on the number of threads."""
    points, counts = points_of(20_000, 8), RNG.integers(1, 5, 20_000)
    frame = nested.Frame.of(points)
    around, centers = frame.around_mean(points, np.float32), points[:60] * frame.scale
    labels, ids = np.full(20_000, -1), np.sort(RNG.integers(256, size=(20_000, 5)), axis=1).astype(np.uint8)
    squares = np.sort(RNG.random((20_000, 5), dtype=np.float32), axis=1)
    table = LandmarkTable.of(points_of(256, 9, np.float64))
    lists, of = LandmarkLists.of([np.arange(256)] * 30), RNG.integers(30, size=20_000)

    def by_shares():
        shares, own = squares.copy(), labels.copy()
        landmark_shares(ids, shares, 0.4, table.reach, table.rows)
        found = nearest_by_shares(ids, shares, *table.towards(np.eye(9)), own)
        return shares, own, *found

    def fitted():
        moved = centers.astype(float)
        return cpu.fit_sample(points, around, frame[:2], 0.0, 5, moved), moved

    def pass_over():
        own = np.full((1, 20_000), -1)
        return *weighted.nearest_centers(points, counts, points[None, :6].astype(float), own), own

    return {
        "pass": pass_over,
        "starts": lambda: weighted.restarts(points, counts, 12, 4, 0),
        "iterations": lambda: [weighted.lloyd(points, counts, points[:30])],
        "sample": fitted,
        "landmarks": lambda: nearest_landmarks(points, lists, of, points[:256], 5),
        "products": lambda: [landmark_products(ids, squares, 0.4, 256)],
        "shares": by_shares,
    }


@pytest.mark.parametrize("name", runs())
def test_any_number_of_threads_gives_the_same_bits(name, monkeypatch):
    run, found = runs()[name], []
    for threads in ("1", "2", "5"):
        monkeypatch.setenv("GPUENS_THREADS", threads)
        found.append([np.asarray(array).tobytes() for array in run()])
    assert found[0] == found[1] == found[2]


# --- signals ----------------------------------------------------------------------------------------------------------


def long_runs():
    """Return functions that take at least half a second on one thread."""
    points, counts = points_of(100_000, 30), np.ones(100_000, dtype=np.int64)
    turned, frame = np.ascontiguousarray(points.T), nested.Frame.of(points)
    around, weights, uniform = frame.around_mean(points, np.float32), np.ones(100_000), RNG.random((1, 399, 7))
    ids = RNG.integers(1000, size=(100_000, 40)).astype(np.uint16)
    squares = np.sort(RNG.random((100_000, 40), dtype=np.float32), axis=1)
    centers = points[:500].astype(float)
    return {
        "plus_plus": lambda: plus_plus(turned, weights, np.array([0]), uniform),
        "iterations": lambda: weighted.lloyd(points, counts, centers),
        "starts": lambda: weighted.best_of_starts(points, counts, RNG.integers(100_000, size=(8, 300)), 0.0),
        "sample": lambda: cpu.fit_sample(points, around, frame[:2], 0.0, 100, centers.copy()),
        "products": lambda: landmark_products(ids, squares, 0.4, 1000),
    }


@pytest.mark.parametrize("threads", ["1", "2"])
@pytest.mark.parametrize("name", ["plus_plus", "iterations", "starts", "sample", "products"])
@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no timers on this system")
def test_a_signal_ends_a_long_run(name, threads, monkeypatch):
    """Within .2 s of the signal (here of a machine that is busy)."""
    monkeypatch.setenv("GPUENS_THREADS", threads)
    after_due, _ = interrupted(long_runs()[name], after=0.1)
    assert after_due < 0.5

"""The graph of objects and landmarks: each object is tied to its K nearest of p landmarks, N × p is never held.

    a few objects ─▶ k-means ─▶ p landmarks ─▶ √p groups of landmarks
    an object ─▶ its nearest group ─▶ its nearest landmark there ─▶ the K nearest among that one and its 10 K nearest

So about √p + √p + 10 K distances an object stand for p. Each of the three steps is the same function: objects are
sorted by the list of landmarks that they are compared with, and one instruction compares an object with several.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from gpuens import device as devices
from gpuens.compiled import njit
from gpuens.generate.points import Points
from gpuens.partition.lloyd import descend
from gpuens.similarity.leaves import offer

ITERATIONS = 10  # of the k-means that finds landmarks
ITERATIONS_OF_GROUPS = 20
NEIGHBORHOOD = 10  # landmarks that K nearest are sought among, for each of K
PRODUCTS = 256  # points multiplied with all centers at once: 1,000 products in float64 of each stay in the cache
FEW_FEATURES = 64
POINTS_OF_A_LIST = 1024
LANES = 16  # landmarks that an object is compared with at once


@dataclass(frozen=True)
class Landmarks:
    """p landmarks and where to look for the nearest.

    ``points`` (p, d), float32, are landmarks as `Points` are, ``centers`` (q, d) those of their groups. ``groups`` and
    ``neighborhoods`` list landmarks in ascending order: those of each group, and those that the nearest are sought
    among if the nearest of its group is this one.
    """

    points: np.ndarray
    centers: np.ndarray
    groups: list[np.ndarray]
    neighborhoods: list[np.ndarray]

    @classmethod
    def of_sample(cls, sample: np.ndarray, n_landmarks: int, n_neighbors: int, rng: np.random.Generator) -> "Landmarks":
        """Return the landmarks of some objects (n, d), float32: centers of k-means."""
        points = _centers(sample, n_landmarks, ITERATIONS, rng)
        return cls.grouped(points, n_neighbors, rng)

    @classmethod
    def grouped(cls, points: np.ndarray, n_neighbors: int, rng: np.random.Generator) -> "Landmarks":
        """Return these landmarks (p, d) with their groups and neighborhoods."""
        centers = _centers(points, max(1, int(np.sqrt(len(points)))), ITERATIONS_OF_GROUPS, rng)
        of = _nearest_center(points, centers)
        used, of = np.unique(of, return_inverse=True)
        groups = np.split(np.argsort(of, kind="stable"), np.cumsum(np.bincount(of))[:-1])
        near = min(len(points), NEIGHBORHOOD * n_neighbors + 1)
        ids, _ = _nearest_of_all(points, points, near)
        own = np.arange(len(points))
        lost = ~(ids == own[:, None]).any(axis=1)  # among more than ``near`` equal ones
        ids[lost, -1] = own[lost]
        return cls(points, centers[used], groups, list(np.sort(ids, axis=1)))


@dataclass(frozen=True)
class Graph:
    """Objects tied to landmarks: ``ids`` (N, K), nearest first, their ``squares`` of distances (N, K), float32, and σ.

    The weight of an edge is exp(-d² / 2 σ²), with σ the mean of all N K distances.
    """

    ids: np.ndarray
    squares: np.ndarray
    sigma: float
    n_landmarks: int


def graph_of(points: Points, landmarks: Landmarks, n_neighbors: int) -> Graph:
    """Return the graph of all objects and the landmarks."""
    n_objects, p = points.shape[0], len(landmarks.points)
    n_neighbors = min(n_neighbors, min(map(len, landmarks.neighborhoods)))
    ids = np.empty((n_objects, n_neighbors), dtype=np.min_scalar_type(p - 1))
    squares = np.empty((n_objects, n_neighbors), dtype=np.float32)
    total = 0.0
    for start, some in points.blocks():
        stop = start + len(some)
        group, _ = _nearest_of_all(some, landmarks.centers, 1)
        first, _ = _nearest_of(some, landmarks.groups, group[:, 0], landmarks.points, 1)
        found = _nearest_of(some, landmarks.neighborhoods, first[:, 0], landmarks.points, n_neighbors)
        ids[start:stop], squares[start:stop] = found
        total += float(np.sqrt(found[1], dtype=np.float64).sum())
    return Graph(ids, squares, total / ids.size, p)


# --- k-means of landmarks ---------------------------------------------------------------------------------------------


def _centers(points: np.ndarray, k: int, max_iter: int, rng: np.random.Generator) -> np.ndarray:
    """Return the centers (k, d) of k-means that starts at k of the points; an empty cluster keeps its center."""
    before = np.full(len(points), -1)

    def sums_of(centers: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
        labels = _nearest_center(points, centers.astype(np.float32))
        if np.array_equal(labels, before):
            return None
        before[:] = labels
        sums = np.zeros((k, points.shape[1]))
        _add(points, labels, sums)
        return sums, np.bincount(labels, minlength=k)[:, None]

    start = points[np.sort(rng.choice(len(points), k, replace=False))]
    found: np.ndarray = descend(start, 0.0, sums_of, max_iter)
    return found.astype(np.float32)


def _nearest_center(points: np.ndarray, centers: np.ndarray) -> np.ndarray:
    """Return the nearest center of each point (n,), int64, by products; of equally near ones the first.

    Products are in float64 for few features, of which one may be far larger than what tells centers apart.
    """
    exact: Any = np.float64 if points.shape[1] <= FEW_FEATURES else np.float32
    turned = centers.T.astype(exact)
    half_square = (turned * turned).sum(axis=0) / 2
    labels = np.empty(len(points), dtype=np.int64)

    def work(start: int, stop: int) -> None:
        for first in range(start * PRODUCTS, stop * PRODUCTS, PRODUCTS):
            some = points[first : first + PRODUCTS].astype(exact, copy=False)
            labels[first : first + PRODUCTS] = (some @ turned - half_square).argmax(axis=1)

    devices.over_ranges(work, -(-len(points) // PRODUCTS))
    return labels


@njit(cache=True, nogil=True)
def _add(points, labels, sums):
    for i in range(len(points)):
        own = sums[labels[i]]
        for j in range(points.shape[1]):
            own[j] += points[i, j]


# --- nearest landmarks ------------------------------------------------------------------------------------------------


def _nearest_of_all(points: np.ndarray, landmarks: np.ndarray, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Return `_nearest_of` all landmarks, in one list for so many points as a thread takes."""
    of = np.arange(len(points)) // POINTS_OF_A_LIST
    return _nearest_of(points, [np.arange(len(landmarks))] * (int(of[-1]) + 1), of, landmarks, n)


def _nearest_of(
    points: np.ndarray, lists: list[np.ndarray], of: np.ndarray, landmarks: np.ndarray, n: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return the n nearest landmarks (points, n), int64, and the squares of their distances, float32, nearest first.

    Point i is compared with the landmarks of ``lists[of[i]]``, in ascending order; of equally near ones the first comes
    first.
    """
    order = np.argsort(of, kind="stable")
    begins = np.concatenate([[0], np.cumsum(np.bincount(of, minlength=len(lists)))])
    listed, list_begins = np.concatenate(lists), np.concatenate([[0], np.cumsum([len(some) for some in lists])])
    ids, squares = np.empty((len(points), n), dtype=np.int64), np.empty((len(points), n), dtype=np.float32)

    def work(start: int, stop: int) -> None:
        _compare(start, stop, points, order, begins, listed, list_begins, landmarks, ids, squares)

    devices.over_ranges(work, len(lists))
    return ids, squares


@njit(cache=True, nogil=True)
def _compare(start, stop, points, order, begins, listed, list_begins, landmarks, ids, squares):
    """Compare the points of lists ``start`` … ``stop`` with the landmarks of these."""
    d, longest = points.shape[1], 0
    for b in range(start, stop):
        longest = max(longest, list_begins[b + 1] - list_begins[b])
    room = (longest + LANES - 1) // LANES * LANES
    turned = np.empty((d, room), dtype=np.float32)
    apart = np.empty(room, dtype=np.float32)
    for b in range(start, stop):
        if begins[b] == begins[b + 1]:
            continue
        low, many = list_begins[b], list_begins[b + 1] - list_begins[b]
        lanes = (many + LANES - 1) // LANES * LANES
        for c in range(lanes):
            for j in range(d):
                turned[j, c] = landmarks[listed[low + c], j] if c < many else np.float32(np.inf)
        for at in range(begins[b], begins[b + 1]):
            i = order[at]
            _squares(points[i], turned, lanes, apart)
            kept = 0
            for c in range(many):
                kept = offer(ids[i], squares[i], kept, listed[low + c], apart[c])


@njit(cache=True, nogil=True)
def _squares(point, turned, lanes, apart):
    """Write the squared distances of a point (d,) to landmarks, the columns of ``turned`` (d, ≥ lanes)."""
    for c in range(lanes):
        apart[c] = 0
    d = len(point)
    whole = d // 4 * 4
    for j in range(0, whole, 4):
        w, x, y, z = point[j], point[j + 1], point[j + 2], point[j + 3]
        for c in range(lanes):
            e, f, g, h = w - turned[j, c], x - turned[j + 1, c], y - turned[j + 2, c], z - turned[j + 3, c]
            apart[c] += (e * e + f * f) + (g * g + h * h)
    for j in range(whole, d):
        for c in range(lanes):
            e = point[j] - turned[j, c]
            apart[c] += e * e

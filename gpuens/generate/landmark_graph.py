"""The graph of objects and landmarks: edges from each object to K of the p landmarks, without an N × p matrix.

    a few objects ─▶ k-means ─▶ p landmarks ─▶ √p groups of landmarks
    an object ─▶ its nearest group ─▶ its nearest landmark there ─▶ the K nearest among that one and its 10 K nearest

An object therefore needs about √p + √p + 10 K distances instead of p. Few objects are compared with all landmarks,
which costs less than groups. All steps use the same function. It sorts the objects by their list of landmarks, and one
vector instruction compares an object with several landmarks.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from gpuens.generate.landmark_lists import POINTS_OF_A_LIST, LandmarkLists
from gpuens.generate.sparse_landmarks import Turned, nearest_of_stored
from gpuens.kmeans import nested
from gpuens.kmeans.points import Points
from gpuens.runtime import device as devices
from gpuens.runtime import kernels
from gpuens.runtime.exponentials import exponentials
from gpuens.runtime.native import cpu

ITERATIONS = 5  # number of iterations of the k-means that finds landmarks; ten give no better clusters
ITERATIONS_OF_GROUPS = 20  # number of iterations of the k-means that finds groups of landmarks
NEIGHBORHOOD = 10  # the K nearest landmarks are searched among NEIGHBORHOOD * K landmarks
FEW_PER_LANDMARK = 4  # up to this number of objects per landmark, objects are compared with all landmarks


@dataclass(frozen=True)
class Landmarks:
    """The p landmarks, and the lists of landmarks among which the nearest landmarks of an object are searched.

    ``points`` (p, d), float32: the landmarks, in the coordinates of `Points`. ``centers`` (q, d): the centers of groups
    of landmarks. ``groups``: the landmarks of each group, ascending. ``neighborhoods``: for each landmark, the
    landmarks to search, ascending, if this landmark is the nearest one in its group. Few objects search all landmarks,
    as one group; then ``neighborhoods`` is None.
    """

    points: Any
    centers: Any
    groups: LandmarkLists
    neighborhoods: LandmarkLists | None

    @classmethod
    def of_sample(
        cls,
        sample: Any,
        n_landmarks: int,
        n_neighbors: int,
        n_objects: int,
        rng: np.random.Generator,
        device: str = "cpu",
    ) -> "Landmarks":
        """Return landmarks of ``n_objects`` objects: the centers of a k-means of some of them.

        The drawn objects, ``sample`` (n, d), float32, are in the memory of ``device``, and the k-means runs there.
        """
        centroids = _centroids(sample, n_landmarks, ITERATIONS, rng, device)
        points = devices.to_host(centroids.positions).astype(np.float32)
        if n_objects > FEW_PER_LANDMARK * n_landmarks:
            return cls.grouped(points, n_neighbors, rng)
        return cls(points, points[:1], LandmarkLists.of([np.arange(n_landmarks)]), None)

    @classmethod
    def grouped(cls, points: np.ndarray, n_neighbors: int, rng: np.random.Generator) -> "Landmarks":
        """Return the landmarks with coordinates ``points`` (p, d), and find their groups and neighborhoods."""
        centroids = _centroids(points, max(1, math.isqrt(len(points))), ITERATIONS_OF_GROUPS, rng, "cpu")
        centers = centroids.positions.astype(np.float32)
        occupied, of = np.unique(centroids.predict(points), return_inverse=True)
        groups = np.split(np.argsort(of, kind="stable"), np.cumsum(np.bincount(of))[:-1])
        n_near = min(len(points), NEIGHBORHOOD * n_neighbors + 1)
        places = np.arange(len(points))
        ids, _ = nearest_landmarks(
            points, LandmarkLists.of_all(len(places), len(places)), places // POINTS_OF_A_LIST, points, n_near
        )
        # if more than ``n_near`` landmarks are equal, the neighborhoods of some do not contain the landmark itself
        lost = ~(ids == places[:, None]).any(axis=1)
        ids[lost, -1] = places[lost]
        return cls(points, centers[occupied], LandmarkLists.of(groups), LandmarkLists.of(list(np.sort(ids, axis=1))))

    def on(self, device: str) -> "Landmarks":
        xp = devices.namespace(device)
        neighborhoods = None if self.neighborhoods is None else self.neighborhoods.on(device)
        return Landmarks(xp.asarray(self.points), xp.asarray(self.centers), self.groups.on(device), neighborhoods)

    @property
    def fewest(self) -> int:
        """The least number of landmarks among which the nearest landmarks of an object are searched."""
        lists = self.groups if self.neighborhoods is None else self.neighborhoods
        return int(np.diff(lists.begins).min())


@dataclass(frozen=True)
class Graph:
    """The edges from each object to its K nearest landmarks.

    ``ids`` (N, K) are the landmarks, nearest first, and ``squares`` (N, K), float32, the squared distances d² to them.
    The weight of an edge is exp(-d² / 2 σ²), where σ is the mean of all N K distances. Arrays are on the device.
    """

    ids: Any
    squares: Any
    sigma: float
    n_landmarks: int
    device: str = "cpu"


def graph_of(points: Points, landmarks: Landmarks, n_neighbors: int) -> Graph:
    """Return the graph of all objects and the landmarks, on the device of the points."""
    n_objects, p, device = points.shape[0], len(landmarks.points), points.device
    xp = devices.namespace(device)
    n_neighbors = min(n_neighbors, landmarks.fewest)
    landmarks = landmarks.on(device)
    search = _LandmarkSearch.of(points, landmarks)
    read, blocks, nearest = search.read, search.blocks, search.nearest
    longest = blocks[0].stop  # the first block is the longest one
    everything = LandmarkLists.of_all(p if landmarks.neighborhoods is None else len(landmarks.centers), longest).on(
        device
    )
    ids = xp.empty((n_objects, n_neighbors), dtype=np.min_scalar_type(p - 1))
    squares = xp.empty((n_objects, n_neighbors), dtype=np.float32)

    def edges_of(objects: Any, of: Any) -> tuple[Any, Any]:
        """Return the nearest landmarks of some objects and their squared distances.

        ``of`` says which copy of the whole list each object uses.
        """
        if landmarks.neighborhoods is None:
            return nearest(objects, everything, of, search.landmarks, n_neighbors)
        group, _ = nearest(objects, everything, of, search.centers, 1)
        first, _ = nearest(objects, landmarks.groups, group[:, 0], search.landmarks, 1)
        return nearest(objects, landmarks.neighborhoods, first[:, 0], search.landmarks, n_neighbors)

    def work(start: int, stop: int) -> list[float]:
        """Find the edges of the objects in some blocks; return the sum of the distances for each block."""
        sums = []
        for rows in blocks[start:stop]:
            ids[rows], distances = edges_of(read(rows), xp.arange(rows.stop - rows.start) // POINTS_OF_A_LIST)
            squares[rows] = distances
            sums.append(float(np.sqrt(distances, dtype=np.float64).sum()))
        return sums

    # on the CPU, blocks are divided among threads, because many steps are NumPy functions, which use one thread
    sums = devices.over_ranges(work, len(blocks)) if device == "cpu" else [work(0, len(blocks))]
    total = sum(of_block for of_range in sums for of_block in of_range)
    return Graph(ids, squares, total / ids.size, p, device)


class _LandmarkSearch(NamedTuple):
    """The functions and data of the search for nearest landmarks, either for dense or for sparse features."""

    read: Callable[[slice], Any]
    blocks: list[slice]  # ranges of objects; the objects of a range are read at once
    nearest: Callable[..., tuple[Any, Any]]  # `nearest_landmarks`, or its version for sparse features
    centers: Any  # centers of the groups of landmarks, in the format that ``nearest`` accepts
    landmarks: Any

    @classmethod
    def of(cls, points: Points, landmarks: Landmarks) -> "_LandmarkSearch":
        if not points.few_stored:
            nearest = partial(nearest_landmarks, device=points.device)
            return cls(points.between, points.blocks, nearest, landmarks.centers, landmarks.points)
        base = points.stored(slice(0, 0)).base
        turned = Turned.of(landmarks.centers, base), Turned.of(landmarks.points, base)
        return cls(points.stored, points.stored_blocks, nearest_of_stored, *turned)


def edge_weights(squares: Any, sigma: float) -> tuple[Any, Any]:
    """Return the weights (N, K) of edges divided by the largest weight of each object, and the largest weights (N,)."""
    half = 0.5 / (sigma * sigma) if sigma > 0.0 else 0.0
    wide = squares.astype(np.float64)
    device = devices.kind_of(squares)
    return tuple(exponentials(x * half, device=device) for x in (wide[:, :1] - wide, -wide[:, 0]))


def _centroids(points: Any, k: int, max_iter: int, rng: np.random.Generator, device: str) -> nested.Centroids:
    """Run k-means of all points (n, d), with k random points as initial centroids."""
    return nested.fit(
        points.__getitem__, len(points), k, rng, n_init=1, max_iter=max_iter, init="random", sizes=[len(points)],
        device=device,
    )  # fmt: skip


# --- nearest landmarks ------------------------------------------------------------------------------------------------


@kernels.primitive
def nearest_landmarks(
    points: np.ndarray, lists: LandmarkLists, of: np.ndarray, landmarks: np.ndarray, n: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return the n nearest landmarks (points, n), int64, and their squared distances, float32, nearest first.

    Point i is compared with the landmarks of list ``of[i]``, which ascend. If several landmarks are equally near, the
    landmark with the smaller number comes first.
    """
    ids, squares = np.empty((len(points), n), dtype=np.int64), np.empty((len(points), n), dtype=np.float32)
    points, landmarks = np.ascontiguousarray(points), np.ascontiguousarray(landmarks)
    cpu.nearest_landmarks(points, lists, np.ascontiguousarray(of), landmarks, ids, squares)
    return ids, squares


@nearest_landmarks.kernel
def _(points: Any, lists: LandmarkLists, of: Any, landmarks: Any, n: int, *, device: str) -> tuple[Any, Any]:
    xp, (n_points, n_features) = devices.namespace(device), points.shape
    order = xp.argsort(of, kind="stable")
    ids, squares = xp.empty((n_points, n), dtype=np.int64), xp.empty((n_points, n), dtype=np.float32)
    kernels.launch(
        "nearest_landmarks",
        kernels.blocks(n_points, 128),
        128,
        (
            xp.ascontiguousarray(points[order].T),
            order,
            of,
            lists.ids,
            lists.begins,
            landmarks,
            ids,
            squares,
            n_points,
            n_features,
            n,
        ),
        device=device,
        CODE="u8",
    )
    return ids, squares

"""The graph of objects and landmarks: edges from each object to K of the p landmarks, without an N × p matrix.

    a few objects ─▶ k-means ─▶ p landmarks ─▶ √p groups of landmarks
    an object ─▶ its nearest group ─▶ its nearest landmark there ─▶ the K nearest among that one and its 10 K nearest

An object therefore needs about √p + √p + 10 K distances instead of p. All three steps use the same function. It sorts
the objects by their list of landmarks, and one vector instruction compares an object with several landmarks.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from gpuens.generate.landmark_lists import POINTS_OF_A_LIST, LandmarkLists
from gpuens.generate.sparse_landmarks import Turned, nearest_of_stored
from gpuens.kmeans.lloyd import descend, label_by_products, sums_by_label
from gpuens.kmeans.points import Points
from gpuens.runtime import device as devices
from gpuens.runtime import kernels
from gpuens.runtime.exponentials import exponentials
from gpuens.runtime.native import cpu

ITERATIONS = 10  # number of iterations of the k-means that finds landmarks
ITERATIONS_OF_GROUPS = 20  # number of iterations of the k-means that finds groups of landmarks
NEIGHBORHOOD = 10  # the K nearest landmarks are searched among NEIGHBORHOOD * K landmarks
PRODUCTS = 256  # number of points multiplied with all centers at once; products with 1,000 centers fit the cache
FEW_FEATURES = 64  # largest number of features for which products are computed in float64


@dataclass(frozen=True)
class Landmarks:
    """The p landmarks, and the lists of landmarks among which the nearest landmarks of an object are searched.

    ``points`` (p, d), float32: the landmarks, in the coordinates of `Points`. ``centers`` (q, d): the centers of groups
    of landmarks. ``groups``: the landmarks of each group, ascending. ``neighborhoods``: for each landmark, the
    landmarks to search, ascending, if this landmark is the nearest one in its group.
    """

    points: Any
    centers: Any
    groups: LandmarkLists
    neighborhoods: LandmarkLists

    @classmethod
    def of_sample(
        cls, sample: Any, n_landmarks: int, n_neighbors: int, rng: np.random.Generator, device: str = "cpu"
    ) -> "Landmarks":
        """Return landmarks that are the centers of a k-means of the objects ``sample`` (n, d), float32.

        ``sample`` is in the memory of ``device``, and the k-means runs there.
        """
        points = devices.to_host(_centers(sample, n_landmarks, ITERATIONS, rng, device))
        return cls.grouped(points, n_neighbors, rng)

    @classmethod
    def grouped(cls, points: np.ndarray, n_neighbors: int, rng: np.random.Generator) -> "Landmarks":
        """Return the landmarks with coordinates ``points`` (p, d), and find their groups and neighborhoods."""
        centers = _centers(points, max(1, int(np.sqrt(len(points)))), ITERATIONS_OF_GROUPS, rng, "cpu")
        of = nearest_center(points, centers)
        used, of = np.unique(of, return_inverse=True)
        groups = np.split(np.argsort(of, kind="stable"), np.cumsum(np.bincount(of))[:-1])
        near = min(len(points), NEIGHBORHOOD * n_neighbors + 1)
        own = np.arange(len(points))
        ids, _ = nearest_landmarks(
            points, LandmarkLists.of_all(len(own), len(own)), own // POINTS_OF_A_LIST, points, near
        )
        # if more than ``near`` landmarks are equal, the neighborhoods of some do not contain the landmark itself
        lost = ~(ids == own[:, None]).any(axis=1)
        ids[lost, -1] = own[lost]
        return cls(points, centers[used], LandmarkLists.of(groups), LandmarkLists.of(list(np.sort(ids, axis=1))))

    def on(self, device: str) -> "Landmarks":
        xp = devices.namespace(device)
        points, centers = xp.asarray(self.points), xp.asarray(self.centers)
        return Landmarks(points, centers, self.groups.on(device), self.neighborhoods.on(device))


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
    n_neighbors = min(n_neighbors, int(np.diff(landmarks.neighborhoods.begins).min()))
    landmarks = landmarks.on(device)
    search = _LandmarkSearch.of(points, landmarks)
    read, blocks, nearest = search.read, search.blocks, search.nearest
    all_groups = LandmarkLists.of_all(len(landmarks.centers), blocks[0].stop).on(
        device
    )  # the first block is the longest one
    ids = xp.empty((n_objects, n_neighbors), dtype=np.min_scalar_type(p - 1))
    squares = xp.empty((n_objects, n_neighbors), dtype=np.float32)

    def work(start: int, stop: int) -> list[float]:
        """Find the edges of the objects in some blocks; return the sum of the distances for each block."""
        sums = []
        for rows in blocks[start:stop]:
            some = read(rows)
            of = xp.arange(rows.stop - rows.start) // POINTS_OF_A_LIST
            group, _ = nearest(some, all_groups, of, search.centers, 1)
            first, _ = nearest(some, landmarks.groups, group[:, 0], search.landmarks, 1)
            found = nearest(some, landmarks.neighborhoods, first[:, 0], search.landmarks, n_neighbors)
            ids[rows], squares[rows] = found
            sums.append(float(np.sqrt(found[1], dtype=np.float64).sum()))
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


# --- k-means of landmarks ---------------------------------------------------------------------------------------------


def _centers(points: Any, k: int, max_iter: int, rng: np.random.Generator, device: str) -> Any:
    """Run k-means with k random points as initial centers; return the final centers (k, d).

    The center of an empty cluster does not change.
    """
    xp = devices.namespace(device)
    before = np.full(len(points), -1)

    def sums_of(centers: Any) -> tuple[Any, Any] | None:
        labels = nearest_center(points, centers.astype(np.float32), device=device)
        if device == "cpu":  # on a GPU the host would wait; there, `descend` ends because the centers do not move
            if (labels == before).all():
                return None
            before[:] = labels
        found: tuple[Any, Any] = center_sums(points, labels, k, device=device)
        return found

    start = points[xp.asarray(np.sort(rng.choice(len(points), k, replace=False)))]
    return descend(start, 0.0, sums_of, max_iter, device).astype(np.float32)


@kernels.primitive
def nearest_center(points: np.ndarray, centers: np.ndarray) -> np.ndarray:
    """Return the number of the nearest center of each point (n,), int64, found by products of points and centers.

    If several centers are equally near, return the first of them.
    """
    labels = np.empty(len(points), dtype=np.int64)
    score = _scores(centers, _exact(points))

    def work(start: int, stop: int) -> None:
        for first in range(start * PRODUCTS, stop * PRODUCTS, PRODUCTS):
            labels[first : first + PRODUCTS] = score(points[first : first + PRODUCTS]).argmax(axis=1)

    devices.over_ranges(work, -(-len(points) // PRODUCTS))
    return labels


@nearest_center.kernel
def _(points: Any, centers: Any, *, device: str) -> Any:
    xp = devices.namespace(device)
    labels, changed = xp.zeros((1, len(points)), dtype=np.int64), xp.zeros(1, dtype=np.uint64)
    centers = centers.astype(_exact(points))
    half_squares, at_once = (centers * centers).sum(axis=1) / 2, max(1, devices.scratch(device) // (16 * len(centers)))
    for start in range(0, len(points), at_once):
        products = centers @ points[start : start + at_once].astype(centers.dtype, copy=False).T
        label_by_products(products[None], half_squares, labels, start, changed, device)
    return labels[0]


def _scores(centers: np.ndarray, exact: Any) -> Callable[[np.ndarray], np.ndarray]:
    """Return a function that maps points (n, d) to scores (n, k); the nearest center has the largest score."""
    turned = centers.T.astype(exact)
    half_square = (turned * turned).sum(axis=0) / 2
    return lambda points: points.astype(exact, copy=False) @ turned - half_square


def _exact(points: Any) -> Any:
    """Return the dtype of products of points (n, d) and centers.

    It is float64 for few features, because in float32 one large feature may hide the difference between centers.
    """
    return np.float64 if points.shape[1] <= FEW_FEATURES else np.float32


@kernels.primitive
def center_sums(points: np.ndarray, labels: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Return, for each of k labels, the sum of the points with this label (k, d), float64, and their number (k, 1)."""
    sums = np.zeros((k, points.shape[1]))
    cpu.center_sums(np.ascontiguousarray(points), labels, sums)
    return sums, np.bincount(labels, minlength=k)[:, None]


@center_sums.kernel
def _(points: Any, labels: Any, k: int, *, device: str) -> tuple[Any, Any]:
    return sums_by_label(labels, k, lambda some: points[some].astype(np.float64), device=device)


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

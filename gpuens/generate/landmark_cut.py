"""The transfer cut of the graph of objects and landmarks: labels of objects by eigenvectors of p landmarks.

With the weights B (N, p) of the edges, D_X and D the sums of its rows and columns, the eigenvectors V of
D^-½ Bᵀ D_X⁻¹ B D^-½ give the table D^-½ V. An object's point is its row of B times the table, scaled to length 1. The
points of many objects are computed again whenever k-means reads them: K look-ups cost less than their memory.
"""

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

from gpuens import device as devices
from gpuens import kernels
from gpuens.compiled import njit
from gpuens.generate.landmark_graph import Graph, Landmarks, graph_of
from gpuens.generate.points import Points
from gpuens.partition.embeddings import LANES, leading_eigenvectors, unit_length, where_eigenvectors_are, with_direction
from gpuens.partition.lloyd import RESTARTS_ON, begin, descend, mean_variance, nearest_centers

POINTS_AT_ONCE = 2**16
KEPT_BYTES = 2**28  # of points that are computed once


class Objects(Protocol):
    """Objects that are tied to landmarks, wherever they are: what the cut asks of them."""

    n_objects: int
    device: str

    def products(self) -> Any:
        """Return Bᵀ D_X⁻¹ B (p, p)."""

    def embed(self, table: np.ndarray) -> None:
        """Give every object its point, by a table (p, d)."""

    def at(self, rows: np.ndarray) -> Any:
        """Return the points (n, d), float32, of some objects."""

    def sums_of(self, centers: Any) -> tuple[Any, Any] | None:
        """Label objects by the nearest of the centers (k, d): the sums that `descend` asks for."""


def clustered(
    points: Any,
    tie: Callable[[Any, Landmarks, int], Any],
    k: int,
    rng: np.random.Generator,
    *,
    n_drawn: int,
    n_landmarks: int,
    n_neighbors: int,
    max_iter: int,
) -> Any:
    """Return the objects of ``tie(points, landmarks, n_neighbors)`` with the labels of one clustering.

    ``points`` are `Points`, or others with their ``shape``, ``device`` and ``at``.
    """
    drawn = np.sort(rng.choice(points.shape[0], n_drawn, replace=False))
    with devices.library_threads(1):
        landmarks = Landmarks.of_sample(points.at(drawn), n_landmarks, n_neighbors, rng, points.device)
        objects = tie(points, landmarks, n_neighbors)
        cut(objects, k, max_iter, rng)
    return objects


def cut(objects: Objects, n_clusters: int, max_iter: int, rng: np.random.Generator) -> None:
    """Label the objects by the transfer cut: k-means of their points, from one start."""
    table, _ = table_of(objects.products(), n_clusters)
    objects.embed(table)
    seed, n_objects = int(rng.integers(2**31)), objects.n_objects
    sample = np.sort(rng.choice(n_objects, min(n_objects, max(RESTARTS_ON, n_clusters)), replace=False))
    points = objects.at(sample)
    centers = begin(points, np.ones(len(points), dtype=np.int64), n_clusters, 1, seed, device=objects.device)
    centers = descend(centers, 1e-4 * mean_variance(points, device=objects.device), objects.sums_of, max_iter)
    objects.sums_of(centers)


def table_of(products: Any, n_dimensions: int) -> tuple[np.ndarray, np.ndarray]:
    """Return D^-½ V (p, d), float64, and the eigenvalues, largest first; d is less if fewer landmarks have edges.

    ``products`` (p, p), Bᵀ D_X⁻¹ B, is overwritten.
    """
    products = where_eigenvectors_are(products)
    degree = devices.to_host(products.sum(axis=1))  # B's columns: its rows, divided by their sums, add up to 1
    scale = np.zeros(len(degree))
    np.divide(1.0, np.sqrt(degree), out=scale, where=degree > 0)
    scale_there = devices.namespace(devices.kind_of(products)).asarray(scale)
    products *= scale_there[:, None]
    products *= scale_there
    values, vectors = leading_eigenvectors(products, min(n_dimensions, int(np.count_nonzero(degree))))
    return scale[:, None] * with_direction(vectors, degree), values


def tied(points: Points, landmarks: Landmarks, n_neighbors: int) -> "Tied":
    """Return the objects tied to landmarks."""
    return Tied(graph_of(points, landmarks, n_neighbors))


class Tied:
    """The objects of a graph, in the memory of this process or of a GPU."""

    def __init__(self, graph: Graph) -> None:
        self.graph, self.n_objects, self.device = graph, len(graph.ids), graph.device
        self.labels = devices.namespace(self.device).full(self.n_objects, -1, dtype=np.int64)

    def products(self) -> Any:
        graph = self.graph
        return landmark_products(graph.ids, graph.squares, graph.sigma, graph.n_landmarks, device=self.device)

    def embed(self, table: np.ndarray) -> None:
        self.table = devices.namespace(self.device).asarray(np.ascontiguousarray(table))
        self._kept: list[Any] | None = None

    def at(self, rows: Any) -> Any:
        if isinstance(rows, np.ndarray):
            rows = devices.namespace(self.device).asarray(rows)
        graph = self.graph
        return landmark_points(graph.ids[rows], graph.squares[rows], graph.sigma, self.table, device=self.device)

    def sums_of(self, centers: Any) -> tuple[Any, Any] | None:
        total, weight, changed = self.labelled(centers)
        return (total, weight) if changed else None

    def labelled(self, centers: Any) -> tuple[Any, Any, int]:
        """Label objects; return the sums (k, d) and the sizes (k, 1) of clusters, and how many labels have changed."""
        xp, n = devices.namespace(self.device), self.n_objects
        pieces = [slice(start, min(n, start + POINTS_AT_ONCE)) for start in range(0, n, POINTS_AT_ONCE)]
        if self._kept is None and 4 * n * self.table.shape[1] <= KEPT_BYTES:
            self._kept = list(map(self.at, pieces))
        centers, ones = xp.asarray(centers), xp.ones(min(n, POINTS_AT_ONCE), dtype=np.int64)
        total, weight, changed = 0.0, 0.0, 0
        for some, points in zip(pieces, self._kept or map(self.at, pieces), strict=True):
            found = nearest_centers(points, ones[: len(points)], centers, self.labels[some], device=self.device)
            total, weight, changed = total + found[0], weight + found[1], changed + found[2]
        return total, weight, changed


@kernels.primitive
def landmark_products(ids: np.ndarray, squares: np.ndarray, sigma: float, n_landmarks: int) -> np.ndarray:
    """Return Bᵀ D_X⁻¹ B (p, p), float64, of a graph's ids and squares of distances (N, K)."""
    products = np.zeros((n_landmarks, n_landmarks))

    def work(start: int, stop: int) -> None:
        _add_products(start, stop, ids, squares, sigma, products)

    devices.over_ranges(work, n_landmarks, grain=-(-n_landmarks // devices.n_threads()))  # each reads all objects
    return products


@landmark_products.kernel
def _(ids: Any, squares: Any, sigma: float, n_landmarks: int, *, device: str) -> Any:
    xp = devices.namespace(device)
    weights, largest = _all_weights(squares, sigma)
    of = ids.ravel()
    edges = xp.argsort(of, kind="stable").astype(np.int64, copy=False)
    begins = xp.concatenate([xp.zeros(1, dtype=np.int64), xp.cumsum(xp.bincount(of, minlength=n_landmarks))])
    products = xp.zeros((n_landmarks, n_landmarks))
    kernels.launch(
        "landmark_products", kernels.blocks(32 * n_landmarks, 128), 128,
        (edges, begins, ids, weights, largest / weights.sum(axis=1), products, n_landmarks, ids.shape[1]),
        device=device, CODE=kernels.c_name(ids.dtype),
    )  # fmt: skip
    return products


@kernels.primitive
def landmark_points(ids: np.ndarray, squares: np.ndarray, sigma: float, table: np.ndarray) -> np.ndarray:
    """Return the points (n, d), float32, of length 1, of objects with these landmarks and squares (n, K)."""
    points = np.empty((len(ids), table.shape[1]), dtype=np.float32)
    table = np.pad(table, ((0, 0), (0, -table.shape[1] % LANES)))

    def work(start: int, stop: int) -> None:
        _points(start, stop, ids, squares, sigma, table, points)

    devices.over_ranges(work, len(ids), grain=256)
    return points


@landmark_points.kernel
def _(ids: Any, squares: Any, sigma: float, table: Any, *, device: str) -> Any:
    sums = devices.namespace(device).empty((len(ids), table.shape[1]))
    weights, _ = _all_weights(squares, sigma)
    kernels.launch(
        "landmark_lookups", kernels.blocks(sums.size, 256), 256,
        (ids, weights, table, sums, *ids.shape, table.shape[1]), device=device, CODE=kernels.c_name(ids.dtype),
    )  # fmt: skip
    return unit_length(sums)[0].astype(np.float32)


def _all_weights(squares: Any, sigma: float) -> tuple[Any, Any]:
    """Return all weights (N, K), divided by the largest of each object, and the largest ones (N,); see `_weights`."""
    half = 0.5 / (sigma * sigma) if sigma > 0.0 else 0.0
    wide = squares.astype(np.float64)
    return np.exp((wide[:, :1] - wide) * half), np.exp(-wide[:, 0] * half)


@njit(cache=True, nogil=True)
def _weights(squares, sigma, weights):
    """Write an object's weights, divided by the largest, which is returned: far from all landmarks it may vanish."""
    half = 0.5 / (sigma * sigma) if sigma > 0.0 else 0.0
    least = np.float64(squares[0])
    for s in range(len(squares)):
        weights[s] = np.exp((least - squares[s]) * half)
    return np.exp(-least * half)


@njit(cache=True, nogil=True)
def _add_products(start, stop, ids, squares, sigma, products):
    """Add the rows ``start`` … ``stop`` of Bᵀ D_X⁻¹ B."""
    n_objects, n = ids.shape
    weights = np.empty(n)
    for i in range(n_objects):
        own = False
        for s in range(n):
            own = own or start <= ids[i, s] < stop
        if not own:
            continue
        largest, total = _weights(squares[i], sigma, weights), 0.0
        for s in range(n):
            total += weights[s]
        for s in range(n):
            a = ids[i, s]
            if start <= a < stop:
                of_object = largest * weights[s] / total
                for t in range(n):
                    products[a, ids[i, t]] += of_object * weights[t]


@njit(cache=True, nogil=True)
def _points(start, stop, ids, squares, sigma, table, points):
    n, d, wide = ids.shape[1], points.shape[1], table.shape[1]
    weights, sums = np.empty(n), np.empty(wide)
    for i in range(start, stop):
        _weights(squares[i], sigma, weights)
        sums[:] = 0.0
        for s in range(n):
            row, weight = table[ids[i, s]], weights[s]
            for j in range(wide):
                sums[j] += weight * row[j]
        length = 0.0
        for j in range(d):
            length += sums[j] * sums[j]
        length = np.sqrt(length) if length > 0.0 else 1.0
        for j in range(d):
            points[i, j] = sums[j] / length

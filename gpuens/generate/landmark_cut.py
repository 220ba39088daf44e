"""Clusterings of objects by landmarks: the transfer cut of their graph, and Genie's clusters of the landmarks.

B (N, p) are the weights of the edges, D_X and D the sums of its rows and columns. The eigenvectors V of
D^-½ Bᵀ D_X⁻¹ B D^-½ give the table D^-½ V. An object's point is its row of B times the table, scaled to length 1.
Points are never stored; k-means uses the shares of landmarks in points (`shares`). Genie's cluster of an object is the
cluster of its nearest landmark.
"""

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

from gpuens.generate.genie import genie
from gpuens.generate.landmark_graph import Graph, Landmarks, edge_weights, graph_of, weights_of
from gpuens.generate.shares import LandmarkTable, ObjectShares
from gpuens.generate.tasks import LandmarkTask
from gpuens.kmeans.lloyd import TOLERANCE, descend
from gpuens.kmeans.points import Points
from gpuens.kmeans.weighted import RESTARTS_ON, mean_variance, restarts
from gpuens.partition.embeddings import leading_eigenvectors, where_eigenvectors_are, with_direction
from gpuens.runtime import device as devices
from gpuens.runtime import kernels
from gpuens.runtime.compiled import njit


class LinkedObjects(Protocol):
    """The interface of objects with edges to landmarks, in this process or in chunks, as the cut needs it."""

    n_objects: int
    device: str

    def products(self) -> Any:
        """Return Bᵀ D_X⁻¹ B (p, p)."""

    def embed(self, table: np.ndarray) -> None:
        """Compute the point of every object from a table (p, d)."""

    def at(self, rows: np.ndarray) -> Any:
        """Return the points (n, d), float32, of some objects."""

    def sums_of(self, centers: Any) -> tuple[Any, Any] | None:
        """Label objects by the nearest of the centers (k, d), and return the sums for `descend`."""

    def sizes(self) -> np.ndarray:
        """Return the number of objects nearest to each landmark (p,), in host memory."""

    def follow(self, labels: np.ndarray) -> None:
        """Give every object the label of its nearest landmark, from ``labels`` (p,)."""

    def labels_as(self, dtype: Any) -> Any:
        """Return the labels of all objects, or a list of the labels of each chunk."""


def clustered(
    points: Any,
    tie: Callable[[Any, Landmarks, int], LinkedObjects],
    task: LandmarkTask,
    dtype: Any,
    *,
    n_drawn: int,
    n_landmarks: int,
    n_neighbors: int,
    max_iter: int,
) -> list[Any]:
    """Return the labels of ``tie(points, landmarks, n_neighbors)`` in each clustering of a task.

    ``points`` are `Points`, or an object with the same ``shape``, ``device`` and ``at``.
    """
    drawn = np.sort(task.rng.choice(points.shape[0], n_drawn, replace=False))
    with devices.library_threads(1):
        landmarks = Landmarks.of_sample(points.at(drawn), n_landmarks, n_neighbors, task.rng, points.device)
        objects = tie(points, landmarks, n_neighbors)
        cut(objects, task.n_clusters, max_iter, task.rng)
        found = [objects.labels_as(dtype)]
        if task.genie is not None:
            objects.follow(genie(landmarks.points, objects.sizes(), *task.genie))
            found.append(objects.labels_as(dtype))
    return found


def cut(objects: LinkedObjects, n_clusters: int, max_iter: int, rng: np.random.Generator) -> None:
    """Label the objects by the transfer cut: k-means of their points from a single start."""
    table, _ = table_of(objects.products(), n_clusters)
    objects.embed(table)
    seed, n_objects = int(rng.integers(2**31)), objects.n_objects
    sample = np.sort(rng.choice(n_objects, min(n_objects, max(RESTARTS_ON, n_clusters)), replace=False))
    points = objects.at(sample)
    _, centers = restarts(points, np.ones(len(points), dtype=np.int64), n_clusters, 1, seed, device=objects.device)
    centers = descend(centers, TOLERANCE * mean_variance(points, device=objects.device), objects.sums_of, max_iter)
    objects.sums_of(centers)


def table_of(products: Any, n_dimensions: int) -> tuple[np.ndarray, np.ndarray]:
    """Return D^-½ V (p, d), float64, and the eigenvalues, largest first; d is smaller if few landmarks have edges.

    ``products`` (p, p), Bᵀ D_X⁻¹ B, is overwritten.
    """
    products = where_eigenvectors_are(products)
    degree = devices.to_host(products.sum(axis=1))  # sums of B's columns, because the rows of D_X⁻¹ B add up to 1
    scale = np.zeros(len(degree))
    np.divide(1.0, np.sqrt(degree), out=scale, where=degree > 0)
    scale_there = devices.namespace(devices.kind_of(products)).asarray(scale)
    products *= scale_there[:, None]
    products *= scale_there
    values, vectors = leading_eigenvectors(products, min(n_dimensions, int(np.count_nonzero(degree))))
    return scale[:, None] * with_direction(vectors, degree), values


def tied(points: Points, landmarks: Landmarks, n_neighbors: int) -> "Tied":
    """Return the objects with their edges to landmarks."""
    return Tied(graph_of(points, landmarks, n_neighbors))


class Tied:
    """The objects of a graph in the memory of this process or of a GPU; see `LinkedObjects`."""

    def __init__(self, graph: Graph) -> None:
        self.graph, self.n_objects, self.device = graph, len(graph.ids), graph.device

    def products(self) -> Any:
        graph = self.graph
        return landmark_products(graph.ids, graph.squares, graph.sigma, graph.n_landmarks, device=self.device)

    def embed(self, table: np.ndarray) -> None:
        self.table = LandmarkTable.of(table).on(self.device)
        self.shares = ObjectShares.of(self.graph, self.table)
        self.labels = self.shares.unlabelled()

    def at(self, rows: Any) -> Any:
        return self.shares.at(rows, self.table.rows)

    def sums_of(self, centers: Any) -> tuple[Any, Any] | None:
        shares, sizes, changed = self.shares.nearest(*self.table.towards(centers), self.labels)
        return (shares @ self.table.rows, sizes[:, None]) if changed else None

    def sizes(self) -> np.ndarray:
        return devices.to_host(nearest_counts(self.graph.ids, self.graph.n_landmarks))

    def follow(self, labels: np.ndarray) -> None:
        self.labels = labels_of_nearest(self.graph.ids, labels)

    def labels_as(self, dtype: Any) -> Any:
        return self.labels.astype(dtype)


def nearest_counts(ids: Any, n_landmarks: int) -> Any:
    """Return the number of objects nearest to each landmark (p,), on the device of the ids (N, K)."""
    return devices.namespace(devices.kind_of(ids)).bincount(ids[:, 0], minlength=n_landmarks)


def labels_of_nearest(ids: Any, labels: np.ndarray) -> Any:
    """Return the label of each object's nearest landmark (N,), on the device of the ids (N, K)."""
    return devices.namespace(devices.kind_of(ids)).asarray(labels)[ids[:, 0]]


@kernels.primitive
def landmark_products(ids: np.ndarray, squares: np.ndarray, sigma: float, n_landmarks: int) -> np.ndarray:
    """Return Bᵀ D_X⁻¹ B (p, p), float64, from a graph's ids and squared distances (N, K)."""
    products = np.zeros((n_landmarks, n_landmarks))

    def work(start: int, stop: int) -> None:
        _add_products(start, stop, ids, squares, sigma, products)

    # each range of landmarks reads all objects
    devices.over_ranges(work, n_landmarks, grain=-(-n_landmarks // devices.n_threads()))
    return products


@landmark_products.kernel
def _(ids: Any, squares: Any, sigma: float, n_landmarks: int, *, device: str) -> Any:
    xp = devices.namespace(device)
    weights, largest = edge_weights(squares, sigma)
    of = ids.ravel()
    edges = xp.argsort(of, kind="stable").astype(np.int64, copy=False)
    begins = xp.concatenate([xp.zeros(1, dtype=np.int64), xp.cumsum(xp.bincount(of, minlength=n_landmarks))])
    products = xp.zeros((n_landmarks, n_landmarks))
    kernels.launch(
        "landmark_products",
        kernels.blocks(32 * n_landmarks, 128),
        128,
        (edges, begins, ids, weights, largest / weights.sum(axis=1), products, n_landmarks, ids.shape[1]),
        device=device,
        CODE=kernels.c_name(ids.dtype),
    )
    return products


@njit(cache=True, nogil=True)
def _add_products(start, stop, ids, squares, sigma, products):
    """Add rows ``start`` … ``stop`` - 1 of Bᵀ D_X⁻¹ B to ``products``."""
    n_objects, n = ids.shape
    weights = np.empty(n)
    for i in range(n_objects):
        own = False
        for s in range(n):
            own = own or start <= ids[i, s] < stop
        if not own:
            continue
        largest, total = weights_of(squares[i], sigma, weights), 0.0
        for s in range(n):
            total += weights[s]
        for s in range(n):
            a = ids[i, s]
            if start <= a < stop:
                of_object = largest * weights[s] / total
                for t in range(n):
                    products[a, ids[i, t]] += of_object * weights[t]

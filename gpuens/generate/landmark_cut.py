"""Clusterings of objects by landmarks: the transfer cut of the graph, and clusters of landmarks by Genie.

The graph has edges between objects and landmarks. B (N, p) are the weights of the edges of N objects and p landmarks.
D_X and D are diagonal matrices of the sums of the rows and of the columns of B. The eigenvectors V of
D^-½ Bᵀ D_X⁻¹ B D^-½ give the table D^-½ V. The point of an object is the object's row of B times this table, scaled to
length 1. Points are not stored, because k-means uses the shares of landmarks in points (`shares`).

Clusters of landmarks cost nearly nothing for each object, which is in the cluster of its nearest landmark. They are
those of the same cut, by k-means of the rows of V scaled to length 1, or those of Genie.
"""

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

from gpuens.generate.directions import leading_directions
from gpuens.generate.genie import genie
from gpuens.generate.landmark_graph import Graph, Landmarks, edge_weights, graph_of
from gpuens.generate.shares import LandmarkTable, ObjectShares
from gpuens.generate.tasks import ClustersOfLandmarks, CutOfObjects, LandmarkTask
from gpuens.kmeans.lloyd import TOLERANCE, descend
from gpuens.kmeans.points import Points
from gpuens.kmeans.weighted import RESTARTS_ON, mean_variance, restarts
from gpuens.labels.incidence import label_weights
from gpuens.partition.embeddings import inverse_roots, unit_length, with_direction
from gpuens.runtime import device as devices
from gpuens.runtime import kernels
from gpuens.runtime.native import cpu

WARPS_OF_A_LANDMARK = 4  # largest number of warps that add the products of a landmark, each in a row of its own


class LinkedObjects(Protocol):
    """The interface of objects with edges to landmarks that the transfer cut uses.

    The objects are in this process or in chunks.
    """

    n_objects: int
    device: str

    def products(self) -> Any:
        """Return Bᵀ D_X⁻¹ B (p, p)."""

    def embed(self, table: np.ndarray) -> None:
        """Compute the point of every object from a table (p, d)."""

    def at(self, rows: np.ndarray) -> Any:
        """Return the points (n, d), float32, of the objects ``rows`` (n,)."""

    def sums_of(self, centers: Any) -> tuple[Any, Any] | None:
        """Label all objects by their nearest center (k, d), and return the sums that `descend` needs."""

    def sizes(self) -> np.ndarray:
        """Return, for each landmark, the number of objects whose nearest landmark it is (p,), in host memory."""

    def follow(self, labels: np.ndarray) -> None:
        """Give every object the label of its nearest landmark, from ``labels`` (p,)."""

    def labels_as(self, dtype: Any) -> Any:
        """Return the labels of all objects in one array, or in a list with one array for each chunk."""


def clustered(
    points: Any,
    tie: Callable[[Any, Landmarks, int], LinkedObjects],
    task: LandmarkTask,
    dtype: Any,
    *,
    n_drawn: int,
    n_landmarks: int,
    n_neighbors: int,
) -> list[Any]:
    """Draw the landmarks of a task, and return the labels of the objects in each clustering of the task.

    ``tie(points, landmarks, n_neighbors)`` returns the objects with their edges to the landmarks. ``points`` are
    `Points`, or an object with the same attributes ``shape``, ``device`` and ``at``.
    """
    n_objects = points.shape[0]
    sample = np.sort(task.rng.choice(n_objects, n_drawn, replace=False))
    with devices.library_threads(1), devices.asked_once():
        landmarks = Landmarks.of_sample(points.at(sample), n_landmarks, n_neighbors, n_objects, task.rng, points.device)
        objects = tie(points, landmarks, n_neighbors)
        if isinstance(task, CutOfObjects):
            cut(objects, task)
            return [objects.labels_as(dtype)]
        columns = []
        for of_landmarks in clusters_of_landmarks(objects, landmarks, task):
            objects.follow(of_landmarks)
            columns.append(objects.labels_as(dtype))
        return columns


def cut(objects: LinkedObjects, task: CutOfObjects) -> None:
    """Label the objects by the transfer cut: compute their points, and cluster the points by k-means with one start."""
    rng, n_clusters = task.rng, task.n_clusters
    vectors, _, degree = leading_of(objects.products(), n_clusters)
    objects.embed(table_of(vectors, degree))
    seed, n_objects = int(rng.integers(2**31)), objects.n_objects
    sample = np.sort(rng.choice(n_objects, min(n_objects, max(RESTARTS_ON, n_clusters)), replace=False))
    points = objects.at(sample)
    _, centers = restarts(points, np.ones(len(points), dtype=np.int64), n_clusters, 1, seed, device=objects.device)
    enough = TOLERANCE * mean_variance(points, device=objects.device)
    centers = descend(centers, enough, objects.sums_of, task.max_iter, objects.device)
    objects.sums_of(centers)


def clusters_of_landmarks(
    objects: LinkedObjects, landmarks: Landmarks, task: ClustersOfLandmarks
) -> tuple[np.ndarray, np.ndarray]:
    """Return the labels (p,), int64, of the landmarks by the transfer cut and by Genie; 0 for landmarks of no object.

    A landmark weighs as many objects as have no nearer landmark.
    """
    sizes = objects.sizes()
    occupied = np.flatnonzero(sizes)
    vectors, _, degree = leading_of(objects.products(), task.n_clusters)
    directions, _ = unit_length(with_direction(vectors, degree)[occupied])
    seed = int(task.rng.integers(2**31))
    labels = np.zeros(len(sizes), dtype=np.int64)
    n_clusters = min(task.n_clusters, len(occupied))
    labels[occupied], _ = restarts(directions, sizes[occupied], n_clusters, 1, seed)
    return labels, genie(landmarks.points, sizes, *task.tree)


def leading_of(products: Any, n_dimensions: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return V (p, d), the d largest eigenvalues in descending order, and the diagonal of D (p,), all float64, host.

    The number d is ``n_dimensions``, or smaller if few landmarks have edges. ``products`` (p, p) is the matrix
    Bᵀ D_X⁻¹ B; it may be overwritten.
    """
    products = devices.to_host(products)
    # equal to the sums of the columns of B, because each row of D_X⁻¹ B has the sum 1
    degree: np.ndarray = products.sum(axis=1)
    n_dimensions = min(n_dimensions, int(np.count_nonzero(degree)))
    values, vectors = leading_directions(products, inverse_roots(degree), n_dimensions)
    return vectors, values, degree


def table_of(vectors: np.ndarray, degree: np.ndarray) -> np.ndarray:
    """Return the table D^-½ V (p, d)."""
    return inverse_roots(degree)[:, None] * with_direction(vectors, degree)


def tied(points: Points, landmarks: Landmarks, n_neighbors: int) -> "Tied":
    """Return the objects with their edges to landmarks."""
    return Tied(graph_of(points, landmarks, n_neighbors))


class Tied:
    """The objects of a graph in host memory or in GPU memory, with the interface `LinkedObjects`."""

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
        if self.device == "cpu" and not changed:
            return None
        # on a GPU the host does not wait for the number: if it is 0, the centers do not move, and `descend` ends, too
        return shares @ self.table.rows, sizes[:, None]

    def sizes(self) -> np.ndarray:
        return devices.to_host(nearest_counts(self.graph.ids, self.graph.n_landmarks))

    def follow(self, labels: np.ndarray) -> None:
        self.labels = labels_of_nearest(self.graph.ids, labels)

    def labels_as(self, dtype: Any) -> Any:
        return self.labels.astype(dtype)


def nearest_counts(ids: Any, n_landmarks: int) -> Any:
    """Return, for each landmark, the number of objects whose nearest landmark it is (p,), on the device of ``ids``.

    ``ids`` (N, K) are the K nearest landmarks of each object, nearest first.
    """
    if devices.kind_of(ids) == "cpu":
        return np.bincount(ids[:, 0], minlength=n_landmarks)
    nearest = ids[:, 0].astype(np.int64)
    return label_weights(
        devices.namespace("cuda").ones(len(nearest), dtype=np.int64), nearest, n_landmarks, device="cuda"
    )


def labels_of_nearest(ids: Any, labels: np.ndarray) -> Any:
    """Return the label of each object's nearest landmark (N,), on the device of ``ids``.

    ``ids`` (N, K) are the K nearest landmarks of each object, nearest first.
    """
    return devices.namespace(devices.kind_of(ids)).asarray(labels)[ids[:, 0]]


@kernels.primitive
def landmark_products(ids: np.ndarray, squares: np.ndarray, sigma: float, n_landmarks: int) -> np.ndarray:
    """Return the matrix Bᵀ D_X⁻¹ B (p, p), float64.

    ``ids`` and ``squares`` (N, K) are the landmarks of each object's K edges, and the squared distances to them.
    """
    products = np.zeros((n_landmarks, n_landmarks))
    # one range of landmarks per thread, because the work for each range reads all objects
    cpu.landmark_products(ids, squares, sigma, min(n_landmarks, devices.n_threads()), products)
    return products


@landmark_products.kernel
def _(ids: Any, squares: Any, sigma: float, n_landmarks: int, *, device: str) -> Any:
    xp, n_neighbors = devices.namespace(device), ids.shape[1]
    weights, largest = edge_weights(squares, sigma)
    of = ids.ravel()
    edges = xp.argsort(of, kind="stable").astype(np.int64, copy=False)
    begins = xp.searchsorted(of[edges].astype(np.int64), xp.arange(n_landmarks + 1))
    products = xp.empty((n_landmarks, n_landmarks))
    room = kernels.SHARED_BYTES // 8  # elements of rows that a block adds in shared memory
    width = min(n_landmarks, room)
    n_warps = min(WARPS_OF_A_LANDMARK, room // width)
    kernels.launch(
        "landmark_products", (n_landmarks, -(-n_landmarks // width)), 32 * n_warps,
        (edges, edges // n_neighbors, begins, ids, weights, largest / weights.sum(axis=1), products, n_landmarks,
         np.int32(n_neighbors), np.int32(width)),
        device=device, shared=8 * n_warps * width, CODE=kernels.c_name(ids.dtype),
    )  # fmt: skip
    return products

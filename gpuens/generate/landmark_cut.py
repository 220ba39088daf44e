"""The transfer cut of the graph of objects and landmarks: labels of objects by eigenvectors of p landmarks.

With the weights B (N, p) of the edges, D_X and D the sums of its rows and columns, the eigenvectors V of
D^-½ Bᵀ D_X⁻¹ B D^-½ give the table D^-½ V. An object's point is its row of B times the table, scaled to length 1. The
points of many objects are computed again whenever k-means reads them: K look-ups cost less than their memory.
"""

import numpy as np

from gpuens import device as devices
from gpuens.compiled import njit
from gpuens.generate.landmark_graph import Graph
from gpuens.partition import compiled_lloyd
from gpuens.partition.embeddings import leading_eigenvectors, with_direction
from gpuens.partition.lloyd import RESTARTS_ON, begin, descend

POINTS_AT_ONCE = 2**16
KEPT_BYTES = 2**28  # of points that are computed once


def cut(graph: Graph, n_clusters: int, max_iter: int, rng: np.random.Generator) -> np.ndarray:
    """Return the labels (N,), int64, of the transfer cut: k-means of the points, from one start."""
    table, _ = table_of(graph, n_clusters)
    return _kmeans(graph, table, n_clusters, max_iter, rng)


def table_of(graph: Graph, n_dimensions: int) -> tuple[np.ndarray, np.ndarray]:
    """Return D^-½ V (p, d), float64, and the eigenvalues, largest first; d is less if fewer landmarks have edges."""
    gram = np.zeros((graph.n_landmarks, graph.n_landmarks))

    def work(start: int, stop: int) -> None:
        _add_products(start, stop, graph.ids, graph.squares, graph.sigma, gram)

    devices.over_ranges(work, len(gram), grain=-(-len(gram) // devices.n_threads()))  # each reads all objects
    degree = gram.sum(axis=1)  # B's columns: its rows, divided by their sums, add up to 1
    scale = np.zeros(len(degree))
    np.divide(1.0, np.sqrt(degree), out=scale, where=degree > 0)
    gram *= scale[:, None]
    gram *= scale
    values, vectors = leading_eigenvectors(gram, min(n_dimensions, int(np.count_nonzero(degree))))
    return scale[:, None] * with_direction(vectors, degree), values


def points_of(graph: Graph, table: np.ndarray, some: slice | np.ndarray) -> np.ndarray:
    """Return the points (n, d), float32, of length 1, of some objects."""
    ids, squares = graph.ids[some], graph.squares[some]
    points = np.empty((len(ids), table.shape[1]), dtype=np.float32)

    def work(start: int, stop: int) -> None:
        _points(start, stop, ids, squares, graph.sigma, table, points)

    devices.over_ranges(work, len(ids), grain=256)
    return points


def _kmeans(graph: Graph, table: np.ndarray, k: int, max_iter: int, rng: np.random.Generator) -> np.ndarray:
    n_objects, seed = len(graph.ids), int(rng.integers(2**31))
    sample = np.sort(rng.choice(n_objects, min(n_objects, max(RESTARTS_ON, k)), replace=False))
    points = points_of(graph, table, sample)
    centers = begin(points, np.ones(len(points), dtype=np.int64), k, 1, seed)
    labels = np.full(n_objects, -1, dtype=np.int64)
    ones = np.ones(min(n_objects, POINTS_AT_ONCE), dtype=np.int64)
    pieces = [slice(start, min(n_objects, start + POINTS_AT_ONCE)) for start in range(0, n_objects, POINTS_AT_ONCE)]
    kept = [points_of(graph, table, some) for some in pieces] if 4 * n_objects * k <= KEPT_BYTES else None

    def sums_of(centers: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
        total, weight, changed = np.zeros((k, table.shape[1])), np.zeros((k, 1)), 0
        for some, points in zip(pieces, kept or (points_of(graph, table, some) for some in pieces), strict=True):
            found = compiled_lloyd.nearest(points, ones[: len(points)], centers, labels[some])
            total, weight, changed = total + found[0], weight + found[1], changed + found[2]
        return (total, weight) if changed else None

    centers = descend(centers, 1e-4 * compiled_lloyd.mean_variance(points), sums_of, max_iter)
    sums_of(centers)
    return labels


@njit(cache=True, nogil=True)
def _weights(squares, sigma, weights):
    """Write an object's weights, divided by the largest, which is returned: far from all landmarks it may vanish."""
    half = 0.5 / (sigma * sigma) if sigma > 0.0 else 0.0
    least = np.float64(squares[0])
    for s in range(len(squares)):
        weights[s] = np.exp((least - squares[s]) * half)
    return np.exp(-least * half)


@njit(cache=True, nogil=True)
def _add_products(start, stop, ids, squares, sigma, gram):
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
                    gram[a, ids[i, t]] += of_object * weights[t]


@njit(cache=True, nogil=True)
def _points(start, stop, ids, squares, sigma, table, points):
    n, d = ids.shape[1], table.shape[1]
    weights, sums = np.empty(n), np.empty(d)
    for i in range(start, stop):
        _weights(squares[i], sigma, weights)
        sums[:] = 0.0
        for s in range(n):
            for j in range(d):
                sums[j] += weights[s] * table[ids[i, s], j]
        length = 0.0
        for j in range(d):
            length += sums[j] * sums[j]
        length = np.sqrt(length) if length > 0.0 else 1.0
        for j in range(d):
            points[i, j] = sums[j] / length

"""Embedding of rows as points, from eigenvectors of a matrix of clusters."""

from typing import Any

import numpy as np

from gpuens.kmeans import weighted
from gpuens.labels.incidence import row_lookups
from gpuens.labels.rows import Rows, by_first_row
from gpuens.partition.base import Partition
from gpuens.runtime import checks, kernels
from gpuens.runtime import device as devices
from gpuens.runtime.native import cpu

# smallest number of clusters for which a GPU computes eigenvectors faster than the CPU. A GPU takes the columns of a
# matrix one after another, with several launches and little work for each column; for 512 columns (2 MB), LAPACK needs
# about 10 ms
ON_GPU_FROM = 512
# largest number of clusters for which LAPACK uses only one thread. Several threads would wait for each other at every
# column; if processors are shared, these waits take seconds
ONE_THREAD_UP_TO = 2000
TINY = 1e-8  # a row of eigenvectors shorter than this share of its smallest possible length is a rounding error
STEP_BYTES = 2**26  # bytes of the points and lengths that a GPU computes together


def where_eigenvectors_are(matrix: Any) -> Any:
    """Return a symmetric matrix of clusters in the memory of the processor that computes its eigenvectors faster."""
    return matrix if len(matrix) >= ON_GPU_FROM else devices.to_host(matrix)


def eigenvectors(matrix: Any) -> tuple[Any, Any]:
    """Return all eigenvalues of a symmetric matrix in ascending order and its eigenvectors as columns, on its device.

    The matrix may be overwritten.
    """
    from scipy.linalg import eigh

    if devices.kind_of(matrix) == "cuda":
        return devices.eigh(matrix)
    return eigh(matrix, overwrite_a=True, check_finite=False)


def leading_eigenvectors(matrix: Any, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the n largest eigenvalues of a symmetric matrix, in descending order, and their eigenvectors as columns.

    They are computed on the matrix's device and returned in host memory.
    """
    from scipy.linalg import LinAlgError, eigh

    size = len(matrix)
    try:
        if devices.kind_of(matrix) == "cuda":
            values, vectors = (devices.to_host(part[..., size - n :]) for part in eigenvectors(matrix))
        else:
            with devices.library_threads(1 if size <= ONE_THREAD_UP_TO else None):
                values, vectors = eigh(matrix, subset_by_index=[size - n, size - 1], check_finite=False)
    except LinAlgError:
        vectors = np.empty((size, 0))
    if not _is_orthonormal(vectors, n):
        # LAPACK's driver for a part of the eigenvectors can lose eigenvectors of equal eigenvalues; the driver for all
        # eigenvectors cannot
        values, vectors = eigh(devices.to_host(matrix), driver="evd", check_finite=False)
    return values[: -n - 1 : -1], vectors[:, : -n - 1 : -1]


def _is_orthonormal(vectors: np.ndarray, n: int) -> bool:
    """Return whether ``vectors`` has n columns that are orthogonal and of length 1."""
    return vectors.shape[1] == n and np.allclose(vectors.T @ vectors, np.eye(n), atol=1e-6)


def with_direction(vectors: np.ndarray, degree: np.ndarray) -> np.ndarray:
    """Return the eigenvectors (n, d) of a graph with the given degrees (n,); set rows that are rounding errors to 0.

    D^½ 1 is an eigenvector of eigenvalue 1, so in a connected graph the length of a row is at least its entry in this
    eigenvector. If the graph has more components than dimensions, the rows of some components are shorter, and have no
    meaningful direction.
    """
    length = np.sqrt((vectors * vectors).sum(axis=1))
    return np.where((length > TINY * np.sqrt(degree / degree.sum()))[:, None], vectors, 0.0)


def inverse_roots(values: np.ndarray) -> np.ndarray:
    """Return 1 / √value of each value ≥ 0, and 0 for 0."""
    return np.where(values > 0, 1.0 / np.sqrt(np.where(values > 0, values, 1.0)), 0.0)


def unit_points(rows: Rows, table: np.ndarray) -> tuple[Any, Any]:
    """Return the sums (G, d) of a table (N_c, d) over each row's clusters, scaled to length 1, and the lengths."""
    return unit_length(rows.row_lookups(table))


def unit_length(points: Any) -> tuple[Any, Any]:
    """Scale points (n, d) in place to length 1; return the points and the lengths by which they were divided.

    Points at the origin stay there and are divided by 1.
    """
    length = np.sqrt((points * points).sum(axis=1, keepdims=True))
    length = np.where(length > 0, length, 1.0)
    points /= length
    return points, length


@kernels.primitive
def unit_points32(codes: np.ndarray, offsets: np.ndarray, table: np.ndarray) -> np.ndarray:
    """Return the points (G, d) of `unit_points`, rounded to float32, without a float64 array of that size."""
    points = np.empty((len(codes), table.shape[1]), dtype=np.float32)
    cpu.unit_points(np.ascontiguousarray(codes.T), offsets, np.ascontiguousarray(table), points)
    return points


@unit_points32.kernel
def _(codes: Any, offsets: Any, table: Any, *, device: str) -> Any:
    """Compute the points piece by piece, because the sums of a piece are float64."""
    points = devices.namespace(device).empty((len(codes), table.shape[1]), dtype=np.float32)
    at_once = max(256, min(STEP_BYTES, devices.scratch(device)) // (16 * table.shape[1]))
    for start in range(0, len(codes), at_once):
        piece = slice(start, start + at_once)
        points[piece] = unit_length(row_lookups(codes[piece].copy(order="F"), offsets, table, device=device))[0]
    return points


def kmeans(
    points: Any, counts: np.ndarray, k: int, n_init: int, rng: np.random.Generator, device: str, **results: Any
) -> Partition:
    """Return the partition of points (G, d) with weights ``counts`` into k clusters, labelled in the order of rows.

    Starts use at most 10,000 points, or k points if k is larger; the best start continues with all points. The result
    depends only on distances between points. So, apart from rounding, it does not change if the signs of eigenvectors
    change or if eigenvectors are rotated within an eigenspace.
    """
    seed = int(rng.integers(2**31))
    labels = weighted.labels_of_restarts(points, counts, k, n_init, seed, rng, device=device)
    partition = Partition.of_labels(by_first_row(labels, None if device == "cpu" else k), **results)
    checks.warn_of_fewer(partition.n_clusters, k)
    return partition

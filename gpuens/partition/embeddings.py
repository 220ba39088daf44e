"""Embedding of rows by eigenvectors of clusters."""

from typing import Any

import numpy as np

from gpuens.kmeans import weighted
from gpuens.labels.incidence import row_lookups
from gpuens.labels.rows import Rows, by_first_row
from gpuens.partition.base import Partition
from gpuens.runtime import checks, kernels
from gpuens.runtime import device as devices
from gpuens.runtime.compiled import njit

# number of clusters from which a GPU computes eigenvectors faster than the CPU. A GPU takes the columns of a matrix one
# after the other, with several launches and little work for each; LAPACK needs about 10 ms for 512 columns (2 MB)
ON_GPU_FROM = 512
# number of clusters up to which LAPACK uses one thread: threads would wait for each other at every column, for seconds
# if processors are shared
ONE_THREAD_UP_TO = 2000
TINY = 1e-8  # share of a node's smallest possible length; shorter rows of eigenvectors are rounding errors
STEP_BYTES = 2**26  # memory for points and lengths that a GPU computes at a time
LANES = 16  # sums in a vector; dimensions are padded to multiples of it


def where_eigenvectors_are(matrix: Any) -> Any:
    """Return a symmetric matrix of clusters in the memory where its eigenvectors are computed faster."""
    return matrix if len(matrix) >= ON_GPU_FROM else devices.to_host(matrix)


def eigenvectors(matrix: Any) -> tuple[Any, Any]:
    """Return all eigenvalues of a symmetric matrix, ascending, and eigenvectors as columns, in the matrix's memory.

    The matrix may be overwritten.
    """
    from scipy.linalg import eigh

    if devices.kind_of(matrix) == "cuda":
        return devices.eigh(matrix)
    found: tuple[Any, Any] = eigh(matrix, overwrite_a=True, check_finite=False)
    return found


def leading_eigenvectors(matrix: Any, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the n largest eigenvalues of a symmetric matrix, in descending order, and their vectors as columns, host.

    They are computed in the memory of the matrix.
    """
    from scipy.linalg import LinAlgError, eigh

    size = len(matrix)
    try:
        if devices.kind_of(matrix) == "cuda":
            values, vectors = (devices.to_host(found[..., size - n :]) for found in eigenvectors(matrix))
        else:
            with devices.library_threads(1 if size <= ONE_THREAD_UP_TO else None):
                values, vectors = eigh(matrix, subset_by_index=[size - n, size - 1], check_finite=False)
    except LinAlgError:
        vectors = np.empty((size, 0))
    if not _orthonormal(vectors, n):
        # LAPACK's driver for some eigenvectors can lose those of equal eigenvalues; the driver for all does not
        values, vectors = eigh(devices.to_host(matrix), driver="evd", check_finite=False)
    return values[: -n - 1 : -1], vectors[:, : -n - 1 : -1]


def _orthonormal(vectors: np.ndarray, n: int) -> bool:
    """Return whether vectors have n orthogonal columns of length 1."""
    return vectors.shape[1] == n and np.allclose(vectors.T @ vectors, np.eye(n), atol=1e-6)


def with_direction(vectors: np.ndarray, degree: np.ndarray) -> np.ndarray:
    """Return the eigenvectors (n, d) of a graph with the given degrees (n,), with rows of rounding errors set to 0.

    D^½ 1 is an eigenvector of eigenvalue 1, so in a connected graph no row is shorter than its entry there. If there
    are more components than dimensions, the nodes of some components have shorter rows, without a direction.
    """
    length = np.sqrt((vectors * vectors).sum(axis=1))
    return np.where((length > TINY * np.sqrt(degree / degree.sum()))[:, None], vectors, 0.0)


def unit_points(rows: Rows, table: np.ndarray) -> tuple[Any, Any]:
    """Return the sums (G, d) of a table (N_c, d) over each row's clusters, scaled to length 1, and the lengths."""
    return unit_length(row_lookups(rows.codes, rows.offsets, table, device=rows.device))


def unit_length(points: Any) -> tuple[Any, Any]:
    """Return points (n, d), scaled in place to length 1 (zeros stay zeros), and the lengths they were divided by."""
    length = np.sqrt((points * points).sum(axis=1, keepdims=True))
    length = np.where(length > 0, length, 1.0)
    points /= length
    return points, length


@kernels.primitive
def unit_points32(codes: np.ndarray, offsets: np.ndarray, table: np.ndarray) -> np.ndarray:
    """Return the points (G, d) of `unit_points`, rounded to float32, without other arrays of that size."""
    n_dimensions = table.shape[1]
    table = np.pad(np.ascontiguousarray(table), ((0, 0), (0, -n_dimensions % LANES)))
    points = np.empty((len(codes), n_dimensions), dtype=np.float32)
    grain = devices.worth_a_thread(codes.shape[1] * table.shape[1] / LANES)
    devices.over_ranges(lambda a, b: _unit_points(a, b, codes, offsets, table, points), len(codes), grain=grain)
    return points


@njit(cache=True, nogil=True)
def _unit_points(start, stop, codes, offsets, table, points):
    missing = codes.dtype.type(-1)
    point = np.empty(table.shape[1])
    for g in range(start, stop):
        point[:] = 0.0
        for m in range(codes.shape[1]):
            if codes[g, m] != missing:
                row = table[offsets[m] + codes[g, m]]
                for d in range(len(point)):
                    point[d] += row[d]
        square = 0.0
        for d in range(points.shape[1]):
            square += point[d] * point[d]
        length = np.sqrt(square) if square > 0 else 1.0
        for d in range(points.shape[1]):
            points[g, d] = point[d] / length


@unit_points32.kernel
def _(codes: Any, offsets: Any, table: Any, *, device: str) -> Any:
    """Compute points in pieces, because their sums are float64."""
    points = devices.namespace(device).empty((len(codes), table.shape[1]), dtype=np.float32)
    at_once = max(256, min(STEP_BYTES, devices.scratch(device)) // (16 * table.shape[1]))
    for start in range(0, len(codes), at_once):
        some = slice(start, start + at_once)
        points[some] = unit_length(row_lookups(codes[some].copy(order="F"), offsets, table, device=device))[0]
    return points


def kmeans(
    points: Any, counts: np.ndarray, k: int, n_init: int, rng: np.random.Generator, device: str, **found: Any
) -> Partition:
    """Return the partition of points (G, d) with weights ``counts`` into k clusters, labelled in the order of rows.

    Starts use at most 10,000 points, or k if that is more; the best start continues with all points. Only distances
    between points count, so signs of eigenvectors and rotations within an eigenspace change nothing but rounding.
    """
    seed, most = int(rng.integers(2**31)), max(weighted.RESTARTS_ON, k)
    if len(points) <= most:
        labels, _ = weighted.restarts(points, counts, k, n_init, seed, device=device)
    else:
        sample = np.sort(rng.choice(len(points), most, replace=False))
        chosen = points[devices.namespace(device).asarray(sample)]
        _, centers = weighted.restarts(chosen, counts[sample], k, n_init, seed, device=device)
        labels = weighted.lloyd(points, counts, centers, device=device)
    partition = Partition.of_labels(by_first_row(labels), **found)
    checks.warn_of_fewer(partition.n_clusters, k)
    return partition

"""Embedding of rows by eigenvectors of clusters."""

from typing import Any

import numpy as np

from gpuens import device as devices
from gpuens.incidence import row_lookups
from gpuens.rows import Rows

# clusters: eigenvectors of fewer are the processor's. A GPU takes the columns of a matrix one after the other, with a
# few launches and little work for each; LAPACK needs some 10 ms for 512 columns, and the matrix is 2 MB
ON_GPU_FROM = 512


def where_eigenvectors_are(matrix: Any) -> Any:
    """Return a symmetric matrix of clusters in the memory where its eigenvectors are best computed."""
    return matrix if len(matrix) >= ON_GPU_FROM else devices.to_host(matrix)


def eigenvectors(matrix: Any) -> tuple[Any, Any]:
    """Return all eigenvalues of a symmetric matrix, ascending, and their vectors as columns, where the matrix is.

    The matrix may be overwritten.
    """
    from scipy.linalg import eigh

    if devices.kind_of(matrix) == "cuda":
        return devices.eigh(matrix)
    return eigh(matrix, overwrite_a=True, check_finite=False)


def leading_eigenvectors(matrix: Any, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the n largest eigenvalues of a symmetric matrix, in descending order, and their vectors as columns, host.

    They are computed where the matrix is.
    """
    from scipy.linalg import LinAlgError, eigh

    size = len(matrix)
    try:
        if devices.kind_of(matrix) == "cuda":
            values, vectors = (devices.to_host(found[..., size - n :]) for found in eigenvectors(matrix))
        else:
            values, vectors = eigh(matrix, subset_by_index=[size - n, size - 1], check_finite=False)
    except LinAlgError:
        vectors = np.empty((size, 0))
    if not _orthonormal(vectors, n):
        # LAPACK's driver for some eigenvectors can lose those of equal eigenvalues; the one for all does not
        values, vectors = eigh(devices.to_host(matrix), driver="evd", check_finite=False)
    return values[: -n - 1 : -1], vectors[:, : -n - 1 : -1]


def _orthonormal(vectors: np.ndarray, n: int) -> bool:
    """Return whether there are n columns, orthogonal and of length 1."""
    return vectors.shape[1] == n and np.allclose(vectors.T @ vectors, np.eye(n), atol=1e-6)


def unit_points(rows: Rows, table: np.ndarray) -> tuple[Any, Any]:
    """Return the sums (G, d) of a table (N_c, d) over each row's clusters, scaled to length 1, and the lengths."""
    return unit_length(row_lookups(rows.codes, rows.offsets, table, device=rows.device))


def unit_length(points: Any) -> tuple[Any, Any]:
    """Return points (n, d), scaled in place to length 1 (zeros stay zeros), and the lengths they were divided by."""
    length = np.sqrt((points * points).sum(axis=1, keepdims=True))
    length = np.where(length > 0, length, 1.0)
    points /= length
    return points, length

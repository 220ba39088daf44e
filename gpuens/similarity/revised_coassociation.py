"""Revised co-association: B S Bᵀ / M for a symmetric S that the caller provides."""

from typing import TYPE_CHECKING, Any

import numpy as np

from gpuens.labels.rows import Rows, as_rows
from gpuens.runtime import checks
from gpuens.runtime import device as devices
from gpuens.similarity.full import Full

if TYPE_CHECKING:
    from scipy.sparse.linalg import LinearOperator


def revised_coassociation(
    ens: Any, similarity: Any, rows: Any = None, cols: Any = None, *, device: str = "auto"
) -> devices.Array:
    """Return B S Bᵀ / M (eq 17), where S is the similarity of all clusters, as a dense block.

    (In the paper's eq 17 the second T(i, ·) should read T(j, ·).)

    Parameters
    ----------
    ens : Ensemble, Rows, or anything that Ensemble takes
    similarity : array (n_clusters, n_clusters), symmetric
        S, such as the result of `rank_correlation`; entries may be negative.
    rows, cols : None, slice, mask or array of object indices
        The block; None is all objects. The whole N × N matrix is for small N.
    device : {"auto", "cpu", "cuda"}

    Returns
    -------
    array (n_rows, n_cols), float64, in the memory of the labels
        A missing label adds nothing, and the denominator stays M.

    Raises
    ------
    MemoryError
        For a block larger than the memory budget, before it is allocated.
    ValueError
        If S is not a finite symmetric matrix of the clusters.

    Examples
    --------
    >>> import gpuens as ge
    >>> S = [[1.0, -0.5, 0.5, 0.0], [-0.5, 1.0, 0.0, 0.5], [0.5, 0.0, 1.0, -1.0], [0.0, 0.5, -1.0, 1.0]]
    >>> ge.similarity.revised_coassociation([[0, 0, 1], [0, 1, 1]], S).tolist()
    [[1.5, 0.25, -0.75], [0.25, 1.0, 0.5], [-0.75, 0.5, 1.5]]
    """
    found, of = _revised(ens, similarity, device)
    at = checks.check_block(rows, cols, of.n_rows, devices.memory_budget(of.device), "revised co-association")
    return found.block(of, *at)


def revised_operator(ens: Any, similarity: Any, *, device: str = "auto") -> "LinearOperator":
    """Return B S Bᵀ / M of all objects as an operator: products with the N × N matrix, which is never built.

    Parameters
    ----------
    ens, similarity, device
        See `revised_coassociation`.

    Returns
    -------
    scipy.sparse.linalg.LinearOperator (n_objects, n_objects), float64, symmetric
        A product with a vector (host memory) costs O(N M + N_c²).

    Examples
    --------
    >>> import numpy as np
    >>> import gpuens as ge
    >>> labels, S = [[0, 0, 1, 1], [0, 1, 1, 2]], np.eye(5)
    >>> revised = ge.similarity.revised_operator(labels, S)
    >>> np.allclose(revised @ np.eye(4), ge.similarity.revised_coassociation(labels, S))
    True
    """
    found, of = _revised(ens, similarity, device)
    return found.operator(of)


def _revised(ens: Any, similarity: Any, device: str) -> tuple[Full, Rows]:
    rows = as_rows(ens, device)
    return Full(_cluster_similarity(similarity, rows.n_clusters), rows.offsets), rows


def _cluster_similarity(values: Any, n_clusters: int) -> np.ndarray:
    """Return S as float64 (N_c, N_c); refuse matrices that are not symmetric and finite."""
    array = checks.host_array(values, "similarity must be a matrix of numbers")
    if array.shape != (n_clusters, n_clusters) or array.dtype.kind not in "iuf":
        raise ValueError(
            f"similarity must be a matrix of numbers of the {n_clusters} clusters, ({n_clusters}, {n_clusters}), but "
            f"has shape {array.shape} and dtype {array.dtype}."
        )
    if not np.isfinite(array).all() or (array != array.T).any():
        raise ValueError("similarity must be finite and symmetric; pass (S + S.T) / 2.")
    return np.ascontiguousarray(array, dtype=np.float64)

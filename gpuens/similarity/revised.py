"""Revised co-association: objects are similar through all pairs of their clusters, B S Bᵀ / M for any symmetric S.

Nothing N × N or N × N_c is built but for blocks: with V = B S, a look-up a label, entry (i, j) is Σ_m V[i, cluster of j
in m] / M.
"""

from typing import Any

import numpy as np

from gpuens import checks
from gpuens import device as devices
from gpuens.ensemble import Ensemble
from gpuens.incidence import cluster_sums, row_lookups, row_sums


def revised_coassociation(
    ens: Any, similarity: Any, rows: Any = None, cols: Any = None, *, device: str = "auto"
) -> Any:
    """Return B S Bᵀ / M (eq 17), S being the similarity of all clusters, as a dense block.

    (The second T(i, ·) of the paper's eq 17 is T(j, ·).)

    Parameters
    ----------
    ens : Ensemble, or anything that Ensemble takes
    similarity : array (n_clusters, n_clusters), symmetric
        S, such as `rank_correlation` gives; of any sign.
    rows, cols : None, slice, mask or array of object indices
        Which block; None is all objects. The whole N × N matrix is for small N.
    device : {"auto", "cpu", "cuda", "emulated"}

    Returns
    -------
    array (n_rows, n_cols), float64, where the labels came from
        A missing label adds nothing, and the denominator stays M.

    Raises
    ------
    MemoryError
        For a block larger than the memory budget, before it is allocated.
    ValueError
        For what is no finite symmetric matrix of the clusters.

    Examples
    --------
    >>> import gpuens as ge
    >>> S = [[1.0, -0.5, 0.5, 0.0], [-0.5, 1.0, 0.0, 0.5], [0.5, 0.0, 1.0, -1.0], [0.0, 0.5, -1.0, 1.0]]
    >>> ge.similarity.revised_coassociation([[0, 0, 1], [0, 1, 1]], S).tolist()
    [[1.5, 0.25, -0.75], [0.25, 1.0, 0.5], [-0.75, 0.5, 1.5]]
    """
    ens = Ensemble(ens)
    device = devices.resolve(device, ens.device_kind)
    budget = devices.memory_budget(device)
    rows, cols = checks.check_block(rows, cols, ens.n_objects, budget, "revised co-association")
    table = _cluster_similarity(similarity, ens.n_clusters)
    xp, codes = devices.namespace(device), ens.codes_on(device)
    tile = xp.empty((len(rows), len(cols)))
    of_cols = codes[xp.asarray(cols)]
    for piece in pieces(len(rows), ens.n_clusters + 2 * len(cols), device):
        spread = row_lookups(xp.asfortranarray(codes[xp.asarray(rows[piece])]), ens.offsets, table, device=device)
        sums = xp.zeros((len(spread), len(cols)))
        for m, first in enumerate(ens.offsets[:-1].tolist()):
            known = xp.flatnonzero(of_cols[:, m] != ens.missing_code)
            sums[:, known] += spread[:, first + of_cols[known, m].astype(np.int64)]
        tile[piece] = sums / ens.n_clusterings
    return devices.move(tile, ens.device_kind)


def revised_operator(ens: Any, similarity: Any, *, device: str = "auto") -> Any:
    """Return B S Bᵀ / M of all objects as an operator: products with the N × N matrix, which is never built.

    Parameters
    ----------
    ens, similarity, device
        See `revised_coassociation`.

    Returns
    -------
    scipy.sparse.linalg.LinearOperator (n_objects, n_objects), float64, symmetric
        A product with a vector (host memory) is a look-up per label and back, O(N M + N_c²).

    Examples
    --------
    >>> import numpy as np
    >>> import gpuens as ge
    >>> labels, S = [[0, 0, 1, 1], [0, 1, 1, 2]], np.eye(5)
    >>> revised = ge.similarity.revised_operator(labels, S)
    >>> np.allclose(revised @ np.eye(4), ge.similarity.revised_coassociation(labels, S))
    True
    """
    from scipy.sparse.linalg import LinearOperator

    ens = Ensemble(ens)
    device = devices.resolve(device, ens.device_kind)
    table = _cluster_similarity(similarity, ens.n_clusters)
    xp, codes, offsets = devices.namespace(device), ens.codes_on(device), ens.offsets

    def product(v: np.ndarray) -> np.ndarray:
        of_objects = xp.asarray(v.ravel(), dtype=np.float64)
        on_clusters = devices.to_host(cluster_sums(codes, offsets, of_objects, device=device))
        return devices.to_host(row_sums(codes, offsets, table @ on_clusters / ens.n_clusterings, device=device))

    shape = ens.n_objects, ens.n_objects
    return LinearOperator(shape, matvec=product, rmatvec=product, dtype=np.float64)


def self_similarities(ens: Ensemble, similarity: np.ndarray, *, device: str = "cpu") -> np.ndarray:
    """Return how similar each row is to another object with the same row, Σ S over pairs of its clusters / M (host)."""
    xp, codes, found = devices.namespace(device), ens.codes_on(device), []
    for piece in pieces(ens.n_objects, ens.n_clusters, device):
        rows = xp.asfortranarray(codes[piece])
        spread = row_lookups(rows, ens.offsets, similarity, device=device)
        sums = xp.zeros(len(rows))
        for m, first in enumerate(ens.offsets[:-1].tolist()):
            known = xp.flatnonzero(rows[:, m] != ens.missing_code)
            sums[known] += spread[known, first + rows[known, m].astype(np.int64)]
        found.append(devices.to_host(sums))
    return np.concatenate(found) / ens.n_clusterings


def pieces(n_rows: int, width: int, device: str) -> list[slice]:
    """Return slices of rows whose ``width`` numbers each a device has room for."""
    step = max(1, devices.scratch(device) // (16 * width))
    return [slice(start, min(start + step, n_rows)) for start in range(0, n_rows, step)]


def _cluster_similarity(values: Any, n_clusters: int) -> np.ndarray:
    """Return a similarity of all clusters as float64 (N_c, N_c), or refuse what is not symmetric and finite."""
    array = checks.host_array(values, "similarity must be a matrix of numbers")
    if array.shape != (n_clusters, n_clusters) or array.dtype.kind not in "iuf":
        raise ValueError(
            f"similarity must be a matrix of numbers of the {n_clusters} clusters, ({n_clusters}, {n_clusters}), but "
            f"has shape {array.shape} and dtype {array.dtype}."
        )
    if not np.isfinite(array).all() or (array != array.T).any():
        raise ValueError("similarity must be finite and symmetric; pass (S + S.T) / 2.")
    return np.ascontiguousarray(array, dtype=np.float64)

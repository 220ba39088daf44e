"""Intersections |c ∩ d| of all clusters of an ensemble, dense or sparse."""

from typing import Any

import numpy as np
from scipy import sparse

from gpuens.contingency.counting import over_cells
from gpuens.contingency.kernel import count_dense
from gpuens.contingency.labels import Labels, Table, ensemble_and_weights, labels_of
from gpuens.labels.ensemble import Ensemble
from gpuens.labels.incidence import cluster_sums, fixed_point, from_fixed_point
from gpuens.labels.rows import Rows
from gpuens.runtime import checks
from gpuens.runtime import device as devices
from gpuens.runtime.native import cpu

DENSE_SHARES = 2**22  # largest number of entries of a dense block (rows, N_c) of shares
DENSE_BYTES = 512_000_000  # largest dense N_c × N_c array with layout="auto"


def intersections(
    ens: Any, weights: Any = None, layout: str = "auto", *, device: str = "auto"
) -> np.ndarray | sparse.csr_array:
    """Return the number of common objects |c ∩ d| of any two clusters of the ensemble.

    Parameters
    ----------
    ens : Ensemble, Rows, or anything that Ensemble takes
    weights : array (n_objects,), optional
        Weights of the objects, positive numbers.
    layout : {"auto", "dense", "sparse"}
        "auto" is dense up to 512 MB (N_c = 8000) and a quarter of the memory budget.
    device : {"auto", "cpu", "cuda"}

    Returns
    -------
    ndarray or scipy.sparse.csr_array (n_clusters, n_clusters), symmetric, in host memory
        int64, or float64 if the weights are floats. The block of one clustering is diag(sizes). The sparse array is
        canonical (sorted indices, no stored zeros).

    Raises
    ------
    MemoryError
        If the array does not fit the memory, before it is allocated. The sparse array is counted first, so its size is
        exact.
    ValueError
        For an unknown layout or device, or for weights that are not positive.

    Examples
    --------
    >>> import gpuens as ge
    >>> ge.contingency.intersections([[0, 0, 0, 1], ["b", "a", "a", None]])
    array([[3, 0, 2, 1],
           [0, 1, 0, 0],
           [2, 0, 2, 0],
           [1, 0, 0, 1]])
    """
    ens, weights, device = ensemble_and_weights(ens, weights, device)
    checks.check_choice(layout, "layout", ("auto", "dense", "sparse"))
    labels, w = labels_of(ens, device), checks.check_weights(weights, ens.n_objects)
    sizes = ens.sizes
    if w is not None:
        sizes = devices.to_host(cluster_sums(ens.codes_on(device), ens.offsets, w, device=device))
    needed, budget = 8 * ens.n_clusters**2, devices.memory_budget()
    if layout == "auto":
        layout = "dense" if needed <= min(DENSE_BYTES, budget // 4) else "sparse"
    if layout == "sparse":
        return _sparse_intersections(labels, w, ens.offsets, sizes, budget)
    checks.check_memory(needed, budget, "the dense table of cluster intersections", "pass layout='sparse'")
    return _dense_intersections(labels, w, ens.offsets, sizes)


def dense_intersections(rows: Rows, weights: Any) -> devices.Array:
    """Return dense `intersections` in the memory of the rows' device, which also holds ``weights`` (G,) float64.

    The caller must check that such arrays fit the memory.
    """
    if not rows.of_labels:
        return _gram_of_shares(rows, weights)
    if rows.device == "cpu":
        return intersections(rows.ensemble, weights, "dense", device="cpu")
    labels, xp = labels_of(rows.ensemble, rows.device), rows.xp
    k = np.array(labels.n_clusters, dtype=np.int64)
    first, second = np.triu_indices(len(k), 1)
    fixed, unit = fixed_point(weights, len(weights), device=rows.device)
    counts, starts = count_dense(labels, first, second, fixed)
    # the last cell, 0, is for two clusters of the same clustering
    tables = xp.concatenate([from_fixed_point(counts, unit), xp.zeros(1)])
    start_of = np.full((len(k), len(k)), starts[-1])
    start_of[first, second] = start_of[second, first] = starts[:-1]
    m = xp.asarray(np.repeat(np.arange(len(k)), k))  # clustering of each cluster
    number, size = xp.arange(len(m)) - xp.asarray(rows.offsets)[m], xp.asarray(k)[m]
    place = np.where(m[:, None] < m, number[:, None] * size + number, number * size[:, None] + number[:, None])
    place *= m[:, None] != m
    place += xp.asarray(start_of)[m[:, None], m]
    shared = tables[place]
    diagonal = xp.arange(len(m))
    sizes = cluster_sums(rows.codes, rows.offsets, fixed, device=rows.device)
    shared[diagonal, diagonal] = from_fixed_point(sizes, unit)
    return shared


def _gram_of_shares(rows: Rows, weights: np.ndarray) -> np.ndarray:
    """Return Sᵀ diag(weights) S (N_c, N_c) of the shares S (G, N_c) of rows in host memory."""
    step, total = max(1, DENSE_SHARES // rows.n_clusters), np.zeros((rows.n_clusters, rows.n_clusters))
    with devices.library_threads(1):  # sums of several threads could differ
        for start in range(0, len(rows), step):
            part = rows.shares_at(np.arange(start, min(start + step, len(rows)))[:, None])
            total += (part * weights[start : start + step]) @ part.T
    return total


def few_intersections(rows: Rows, weights: np.ndarray, max_cells: int) -> sparse.csr_array | None:
    """Return sparse `intersections`, or None if more than ``max_cells`` of them are not empty.

    The rows are in this process, with ``weights`` (G,) float64, on the CPU. Cells are counted once and kept until they
    are sorted.
    """
    offsets, n_cells, n_clusters = rows.offsets, 0, rows.n_clusters
    parts = [(np.empty(0), np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64))]

    def collect(cells: cpu.Cells) -> None:
        nonlocal n_cells
        end = cells.starts[-1]
        second = np.repeat(offsets[cells.first : cells.first + len(cells.starts) - 1], np.diff(cells.starts))
        parts.append((cells.counts[:end].copy(), offsets[cells.i] + cells.rows[:end], second + cells.columns[:end]))
        n_cells += 2 * int(end)  # approximate: if two threads add at once, one addition may be lost
        if n_cells > max_cells:
            raise _TooManyError

    try:
        over_cells(labels_of(rows.ensemble), weights, collect)
    except _TooManyError:
        return None
    counts, first, second = (np.concatenate(part) for part in zip(*parts, strict=True))
    if 2 * len(counts) > max_cells:
        return None
    parts.clear()
    upper = sparse.coo_array((counts, (first, second)), shape=(n_clusters, n_clusters)).tocsr()
    sizes = cluster_sums(rows.codes, offsets, weights, device=rows.device)
    return (upper + upper.T + sparse.diags_array(sizes)).tocsr()


class _TooManyError(Exception):
    """The number of intersections exceeds the wanted limit."""


def layout_for(n_clusters: int) -> str:
    """Return the layout of "auto" for the intersections of ``n_clusters`` clusters."""
    return "dense" if 8 * n_clusters**2 <= DENSE_BYTES else "sparse"


def intersections_of(rows: Rows, layout: str = "auto") -> Table:
    """Return `intersections` of the objects of rows; the rows may be in pieces."""
    if layout == "auto":
        layout = layout_for(rows.n_clusters)
    return rows.sum(intersections, None, layout)


def _dense_intersections(labels: Labels, w: Any, offsets: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    shared = np.zeros((offsets[-1], offsets[-1]), dtype=sizes.dtype)
    np.fill_diagonal(shared, sizes)
    over_cells(labels, w, lambda cells: cpu.place_in_square(cells, offsets, shared))
    return shared


def _sparse_intersections(
    labels: Labels, w: Any, offsets: np.ndarray, sizes: np.ndarray, budget: int
) -> sparse.csr_array:
    """Count in two passes: first the number of cells of each row and clustering, then the cells in their places."""
    n_clusters, n_clusterings = int(offsets[-1]), len(labels.n_clusters)
    table = f"the sparse table of the intersections of {n_clusters} clusters"
    instead = "use contingency.pair_tables, which holds a few pairs of clusterings at a time, or fewer clusters"
    checks.check_memory(16 * n_clusters * n_clusterings, budget, table, instead)
    n_cells = np.zeros((n_clusters, n_clusterings), dtype=np.int64)
    column = np.repeat(np.arange(n_clusterings), np.diff(offsets))
    n_cells[np.arange(n_clusters), column] = sizes > 0
    over_cells(labels, w, lambda cells: cpu.count_in_rows(cells, offsets, n_cells))
    ends = np.cumsum(n_cells).reshape(n_cells.shape)
    nnz = int(ends[-1, -1])
    index = np.dtype(np.int32 if max(nnz, n_clusters) < 2**31 else np.int64)
    checks.check_memory(nnz * (8 + index.itemsize), budget, f"{table} ({nnz} are not empty)", instead)
    starts = np.subtract(ends, n_cells, out=n_cells)
    indptr = np.concatenate([[0], ends[:, -1]]).astype(index)
    indices, counts = np.empty(nnz, dtype=index), np.empty(nnz, dtype=sizes.dtype)
    filled = np.flatnonzero(sizes)
    diagonal = starts[filled, column[filled]]
    indices[diagonal], counts[diagonal] = filled, sizes[filled]
    over_cells(labels, w, lambda cells: cpu.place_in_rows(cells, offsets, starts, indices, counts))
    shared = sparse.csr_array((counts, indices, indptr), shape=(n_clusters, n_clusters))
    shared.has_canonical_format = True
    return shared


def intersections_with(ens: Ensemble, m: int, weights: np.ndarray | None = None) -> np.ndarray:
    """Return the number (or int64 weight) of common objects of all clusters and those of clustering m: (N_c, k_m).

    This function starts no threads, because callers process several clusterings in parallel.
    """
    labels, offsets = labels_of(ens), ens.offsets
    shared = np.zeros((ens.n_clusters, labels.n_clusters[m]), dtype=np.int64)
    cpu.count_with(np.ascontiguousarray(labels.matrix), m, offsets, weights, shared)
    return shared

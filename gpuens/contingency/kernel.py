"""Tables of pairs of clusterings on a GPU, by kernels/intersections.cu, or, for sparse tables, by a sort."""

from typing import Any

import numpy as np
from scipy import sparse

from gpuens.contingency.labels import Labels, Table, is_dense
from gpuens.labels.incidence import fixed_point, from_fixed_point
from gpuens.runtime import device as devices
from gpuens.runtime import kernels

CHUNK = 2**15  # fewest objects that a block counts
MOST_PAIRS = 2**15  # most pairs of clusterings in one launch


def count_pairs(labels: Labels, pairs: list[tuple[int, int]], w: np.ndarray | None) -> dict[tuple[int, int], Table]:
    """Return the tables of pairs of clusterings: counted on the device, then copied to the host."""
    k = labels.n_clusters
    weights, unit = _in_fixed_point(labels, w)
    dense = [pair for pair in pairs if is_dense(labels, *pair)]
    sparse_pairs = set(pairs) - set(dense)
    on_host = devices.to_host(unit) if sparse_pairs and unit is not None else None
    tables: dict[tuple[int, int], Table] = {
        pair: _sparse_table(labels, *pair, weights, on_host) for pair in sparse_pairs
    }
    first, second = np.array(dense, dtype=np.int64).reshape(-1, 2).T
    counts, starts = count_dense(labels, first, second, weights)
    flat = devices.to_host(from_fixed_point(counts, unit))
    for (i, j), start in zip(dense, starts.tolist(), strict=False):
        tables[i, j] = flat[start : start + k[i] * k[j]].reshape(k[i], k[j])
    return tables


def count_cells(labels: Labels, pairs: list[tuple[int, int]], w: np.ndarray | None) -> tuple[np.ndarray, ...]:
    """Return the non-empty cells of the tables of pairs, found on the device: starts, rows, columns and counts.

    Table p has entries starts[p] … starts[p + 1] - 1 of the other arrays, in row-major order. All tables must be dense.
    """
    xp, k = devices.namespace(labels.device), np.array(labels.n_clusters, dtype=np.int64)
    weights, unit = _in_fixed_point(labels, w)
    first, second = np.array(pairs, dtype=np.int64).T
    counts, starts = count_dense(labels, first, second, weights)
    cell = xp.flatnonzero(counts)
    begins, width = xp.asarray(starts), xp.asarray(k[second])
    table = xp.searchsorted(begins, cell, side="right") - 1
    row, column = xp.divmod(cell - begins[table], width[table])
    parts = xp.searchsorted(cell, begins), row, column, from_fixed_point(counts[cell], unit)
    return tuple(map(devices.to_host, parts))


def _in_fixed_point(labels: Labels, w: np.ndarray | None) -> tuple[Any, Any]:
    """Return the weights of the objects (N,) in fixed point and their unit; None means ones."""
    if w is None:
        return None, None
    weights = devices.namespace(labels.device).asarray(w)
    return fixed_point(weights, labels.matrix.shape[1], device=labels.device)


def count_dense(labels: Labels, first: np.ndarray, second: np.ndarray, weights: Any) -> tuple[Any, np.ndarray]:
    """Return the dense tables of pairs of clusterings in one array on the device, and the start of each table.

    ``weights`` (N,): weights of the objects in fixed point; None means ones.
    """
    xp, k = devices.namespace(labels.device), np.array(labels.n_clusters, dtype=np.int64)
    n_objects = labels.matrix.shape[1]
    starts = np.concatenate([[0], np.cumsum(k[first] * k[second])]).astype(np.int64)
    counts = xp.zeros(int(starts[-1]), dtype=np.uint64)
    count = np.dtype(np.uint32 if weights is None else np.uint64)
    shared_cells = min(kernels.SHARED_BYTES // count.itemsize, int(np.diff(starts).max(initial=0)))
    for start in range(0, len(first), MOST_PAIRS):
        launch = slice(start, start + MOST_PAIRS)
        kernels.launch(
            "count_pairs",
            (kernels.blocks(n_objects, CHUNK), len(first[launch])),
            512,
            (
                labels.matrix,
                xp.asarray(k),
                xp.asarray(first[launch].copy()),
                xp.asarray(second[launch].copy()),
                xp.asarray(starts[:-1][launch]),
                xp.ones(1, dtype=np.int64) if weights is None else weights,
                counts,
                n_objects,
                shared_cells,
            ),
            device=labels.device,
            shared=count.itemsize * shared_cells,
            CODE=kernels.c_name(labels.matrix.dtype),
            COUNT=kernels.c_name(count),
        )
    return counts, starts


def _sparse_table(labels: Labels, i: int, j: int, weights: Any, unit: np.ndarray | None) -> sparse.csr_array:
    """Return a sparse table, from the sorted cells of the objects, summed over runs of equal cells."""
    xp = devices.namespace(labels.device)
    k_i, k_j = labels.n_clusters[i], labels.n_clusters[j]
    a, b = labels.matrix[i], labels.matrix[j]
    labelled = (a < k_i) & (b < k_j)
    cell = a[labelled].astype(np.int64) * k_j + b[labelled]
    order = xp.argsort(cell)
    cell = cell[order]
    last = xp.flatnonzero(xp.concatenate([cell[1:] != cell[:-1], xp.ones(1, dtype=bool)])) if cell.size else order
    summed = last + 1 if weights is None else xp.cumsum(weights[labelled][order])[last]
    total, cell = devices.to_host(summed), devices.to_host(cell[last])
    counts = np.diff(total, prepend=np.zeros(1, dtype=total.dtype))
    rows, cols = np.divmod(cell, k_j)
    return sparse.coo_array((counts if unit is None else counts * unit, (rows, cols)), shape=(k_i, k_j)).tocsr()

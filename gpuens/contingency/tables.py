"""Contingency tables of one pair of clusterings at a time, and the non-empty cells of a table."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from scipy import sparse

from gpuens.contingency.kernel import count_pairs
from gpuens.contingency.labels import Labels, Table, batches, encode, ensemble_and_weights, labels_of, table_is_dense
from gpuens.labels.columns import as_column
from gpuens.labels.communities import as_sequences, columns_by_name
from gpuens.labels.object_names import in_order_of, index_of_all
from gpuens.runtime import checks
from gpuens.runtime import device as devices
from gpuens.runtime.native import cpu


def pair_tables(ens: Any, weights: Any = None, *, device: str = "auto") -> Iterator[tuple[int, int, Table]]:
    """Yield (i, j, table) for each pair i < j of clusterings, with only a few tables in memory at a time.

    ``table[c, d]``, of shape (k_i, k_j), is the number (with ``weights``, the weight) of objects in cluster c of
    clustering i and cluster d of clustering j: int64, or float64 if the weights are floats. The table is an ndarray, or
    a scipy.sparse.csr_array if k_i·k_j exceeds both 4 million and 4 cells per object; `cells` reads both.

    Examples
    --------
    >>> import gpuens as ge
    >>> for i, j, table in ge.contingency.pair_tables([[0, 0, 0, 1], ["b", "a", "a", None]]):
    ...     print(i, j, table.tolist())
    0 1 [[2, 1], [0, 0]]
    """
    ens, weights, device = ensemble_and_weights(ens, weights, device)
    return over_pairs(labels_of(ens, device), checks.check_weights(weights, ens.n_objects), lambda i, j, table: table)


def table(a: Any, b: Any, weights: Any = None) -> Table:
    """Return the contingency table of two label vectors: the number of objects with each pair of labels.

    ``a`` and ``b`` are lists, arrays or Series of integers, strings or categories, or clusterings of named objects as
    `gpuens.Ensemble` takes them. Objects missing (-1, NaN, None) in ``a`` or ``b`` are omitted. Row r is the r-th label
    of ``a`` in ascending order, column c the c-th label of ``b``. The counts are int64, in an ndarray or a csr_array as
    in `pair_tables`. With positive ``weights`` (n_objects,), they are sums of weights: int64, or float64 if the weights
    are floats.

    Raises
    ------
    ValueError, TypeError
        For vectors that are not 1-D, are empty, differ in length or hold no labels, and for other weights.

    Examples
    --------
    >>> import gpuens as ge
    >>> ge.contingency.table(["x", "y", "y", None], [7, 5, 5, 5])
    array([[0, 1],
           [2, 0]])
    """
    return weighted_table(a, b, weights, "weights")


def weighted_table(a: Any, b: Any, weights: Any, name: str) -> Table:
    """Return `table`; ``name`` is that of the weights in errors."""
    titles, vectors = ["a", "b"], as_sequences([a, b])
    by_name = columns_by_name(vectors, as_column, titles)
    columns, index = (vectors, index_of_all(vectors)) if by_name is None else by_name
    labels, weights_in_order = encode(columns, titles), in_order_of(index, weights, name)
    return _counter(labels, [(0, 1)], checks.check_weights(weights_in_order, labels.matrix.shape[1], name))(0, 1)


def cells(table: Table) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the non-empty cells of a table in row-major order: rows, columns (int64) and counts.

    >>> import gpuens as ge
    >>> rows, cols, counts = ge.contingency.cells(ge.contingency.table([0, 0, 1], [0, 1, 1]))
    >>> rows.tolist(), cols.tolist(), counts.tolist()
    ([0, 0, 1], [0, 1, 1], [1, 1, 1])
    """
    if isinstance(table, np.ndarray):
        if table.dtype in (np.int64, np.float64):
            return cpu.nonzero(np.ascontiguousarray(table))
        rows, cols = np.nonzero(table)
        return rows, cols, table[rows, cols]
    table = sparse.csr_array(table)
    table.sum_duplicates()
    rows = np.repeat(np.arange(table.shape[0]), np.diff(table.indptr))
    return rows, table.indices.astype(np.int64), table.data


def over_pairs(labels: Labels, w: Any, work: Callable[[int, int, Table], Any]) -> Iterator[Any]:
    """Yield (i, j, work(i, j, table)) for i < j in order, with batches of tables processed in threads."""
    for batch in batches(labels):
        count = _counter(labels, batch, w)

        def run(start: int, stop: int, batch: list[Any] = batch, count: Callable[..., Any] = count) -> list[Any]:
            return [(i, j, work(i, j, count(i, j))) for i, j in batch[start:stop]]

        for results in devices.over_ranges(run, len(batch)):
            yield from results


def _counter(labels: Labels, pairs: list[tuple[int, int]], w: np.ndarray | None) -> Callable[[int, int], Table]:
    """Return a function (i, j) → table for these pairs; on the CPU, tables are counted on demand."""
    if labels.device == "cpu":
        return lambda i, j: _count(labels, i, j, w)
    tables = count_pairs(labels, pairs, w)
    return lambda i, j: tables[i, j]


def _count(labels: Labels, i: int, j: int, w: np.ndarray | None = None) -> Table:
    """Return the table of clusterings i and j."""
    return count_columns(labels.matrix[i], labels.matrix[j], labels.n_clusters[i], labels.n_clusters[j], w)


def count_columns(a: np.ndarray, b: np.ndarray, k_a: int, k_b: int, w: np.ndarray | None = None) -> Table:
    """Return the table (k_a, k_b) of two columns of codes (N,) in host memory, where larger codes are missing."""
    dtype = np.int64 if w is None else w.dtype
    if table_is_dense(k_a, k_b, len(a)):
        flat = np.zeros(k_a * k_b + 1, dtype=dtype)
        cpu.count_table(np.ascontiguousarray(a), np.ascontiguousarray(b), (k_a, k_b), w, flat)
        return flat[:-1].reshape(k_a, k_b)
    labelled = (a < k_a) & (b < k_b)
    counts = np.ones(np.count_nonzero(labelled), dtype=dtype) if w is None else w[labelled]
    index = np.int32 if max(k_a, k_b) < 2**31 else np.int64
    return sparse.coo_array((counts, (a[labelled].astype(index), b[labelled].astype(index))), shape=(k_a, k_b)).tocsr()

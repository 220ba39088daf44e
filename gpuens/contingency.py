"""Intersections of clusters |c ∩ d|, and what derives from them: entropies and agreement between clusterings.

Tables are counted for one pair of clusterings at a time, never by a product of incidence matrices: N × N_c is never
held, nor N_c × N_c where only a sum over it is needed. Counts are integers: results do not depend on the order of the
objects or the number of threads. An object counts in a table if both of its labels are known.
"""

import itertools
import math
from collections.abc import Callable, Iterator
from threading import Lock
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from scipy import sparse

from gpuens import checks, kernels
from gpuens import device as devices
from gpuens.compiled import njit
from gpuens.encoding import as_column, encode_column
from gpuens.ensemble import Ensemble
from gpuens.incidence import cluster_sums, fixed_point, from_fixed_point
from gpuens.lanes import popcount
from gpuens.rows import Rows, as_rows

Table: TypeAlias = np.ndarray | sparse.csr_array

DENSE_CELLS = 2**22  # a table of more cells than this, and of more than 4 cells per object, is sparse
DENSE_BYTES = 512_000_000  # layout="auto" gives a dense N_c × N_c array up to this size
CELLS_AT_ONCE = 2**15  # of tables counted before they are processed; a single table may be larger
ROWS_AT_ONCE = 2**22  # cells of the table of all clusters processed together
CHUNK = 2**15  # objects that such a block counts at least
MARKED_CELLS = 200  # of a table that is counted by bits at most: more take longer than the objects one by one
MARKED_CLUSTERINGS = 8  # at least, for bits to be worth marking
MARKED_BYTES = 2**26
WORDS = 384  # of the bits of a cluster that are compared before those of the next, for the smallest cache
SCANNED = 16  # counts of a row of a table that are looked at in the time that it takes to sort one number
GAPS = (12_201, 4573, 1750, 701, 301, 132, 57, 23, 10, 4, 1)  # between numbers that are sorted by insertion: Ciura's
SMALL = 32  # objects, or their weight, in clusters whose terms of entropy are looked up
MOST_PAIRS = 2**15  # of clusterings in one launch

AVERAGES: dict[str, Callable[[float, float], float]] = {
    "geometric": lambda u, v: math.sqrt(u * v),
    "max": max,
    "arithmetic": lambda u, v: (u + v) / 2,
    "min": min,
}


# --- all pairs of clusters --------------------------------------------------------------------------------------------


def intersections(
    ens: Any, weights: Any = None, layout: str = "auto", *, device: str = "auto"
) -> np.ndarray | sparse.csr_array:
    """Return the number of objects that any two clusters of the ensemble share: |c ∩ d|.

    Parameters
    ----------
    ens : Ensemble, Rows, or anything that Ensemble takes
    weights : array (n_objects,), optional
        Weights of the objects, positive numbers.
    layout : {"auto", "dense", "sparse"}
        "auto" is dense up to 512 MB (N_c = 8000) and a quarter of the memory budget.
    device : {"auto", "cpu", "cuda", "emulated"}

    Returns
    -------
    ndarray or scipy.sparse.csr_array (n_clusters, n_clusters), symmetric, in host memory
        int64, or float64 if the weights are floats. Within one clustering it is diag(sizes). The sparse array is
        canonical (indices sorted, no stored zeros).

    Raises
    ------
    MemoryError
        Before anything of that size is allocated. The sparse layout is counted first, so its size is exact.
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
    ens, weights, device = _given(ens, weights, device)
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
    """Return `intersections` in a dense layout, in the memory of the rows' device; ``weights`` (G,) float64 are there.

    The caller has checked that such arrays fit.
    """
    if rows.device == "cpu":
        return intersections(rows.ensemble, weights, "dense", device="cpu")
    labels, xp = labels_of(rows.ensemble, rows.device), rows.xp
    k = np.array(labels.n_clusters, dtype=np.int64)
    first, second = np.triu_indices(len(k), 1)
    whole, unit = fixed_point(weights, len(weights))
    counted, starts = _count_dense(labels, first, second, whole)
    tables = xp.concatenate([from_fixed_point(counted, unit), xp.zeros(1)])  # a cell for clusters of one clustering
    start_of = np.full((len(k), len(k)), starts[-1])
    start_of[first, second] = start_of[second, first] = starts[:-1]
    own = xp.asarray(np.repeat(np.arange(len(k)), k))
    number, size = xp.arange(len(own)) - xp.asarray(rows.offsets)[own], xp.asarray(k)[own]
    place = np.where(own[:, None] < own, number[:, None] * size + number, number * size[:, None] + number[:, None])
    place *= own[:, None] != own
    place += xp.asarray(start_of)[own[:, None], own]
    shared = tables[place]
    each = xp.arange(len(own))
    shared[each, each] = cluster_sums(rows.codes, rows.offsets, weights, device=rows.device)
    return shared


def few_intersections(rows: Rows, weights: np.ndarray, most: int) -> sparse.csr_array | None:
    """Return `intersections` in a sparse layout, or None once more than ``most`` of them are found not to be empty.

    For rows in this process and ``weights`` (G,) float64, on the CPU. Cells are found once, and held while they are put
    in order.
    """
    offsets, n_found, n_clusters = rows.offsets, 0, rows.n_clusters
    parts = [(np.empty(0), np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64))]

    def keep(found: Cells) -> None:
        nonlocal n_found
        end = found.starts[-1]
        second = np.repeat(offsets[found.first : found.first + len(found.starts) - 1], np.diff(found.starts))
        parts.append((found.counts[:end].copy(), offsets[found.i] + found.rows[:end], second + found.cols[:end]))
        n_found += 2 * int(end)  # of two threads one may be lost here
        if n_found > most:
            raise _TooManyError

    try:
        _over_cells(labels_of(rows.ensemble), weights, keep)
    except _TooManyError:
        return None
    counts, first, second = (np.concatenate(part) for part in zip(*parts, strict=True))
    if 2 * len(counts) > most:
        return None
    parts.clear()
    upper = sparse.coo_array((counts, (first, second)), shape=(n_clusters, n_clusters)).tocsr()
    sizes = cluster_sums(rows.codes, offsets, weights, device=rows.device)
    return (upper + upper.T + sparse.diags_array(sizes)).tocsr()


class _TooManyError(Exception):
    """More intersections than are wanted."""


def layout_for(n_clusters: int) -> str:
    """Return the layout that "auto" means for the intersections of ``n_clusters`` clusters."""
    return "dense" if 8 * n_clusters**2 <= DENSE_BYTES else "sparse"


def intersections_of(rows: Rows, layout: str = "auto") -> Table:
    """Return `intersections` of the objects of rows, which may be in pieces."""
    if layout == "auto":
        layout = layout_for(rows.n_clusters)
    shared: Table = rows.sum(intersections, None, layout)
    return shared


def _given(labels: Any, weights: Any, device: str) -> tuple[Ensemble, Any, str]:
    """Return the ensemble, what its rows count for, and where to work; Rows say all three themselves."""
    rows = as_rows(labels, device)
    return rows.ensemble, rows.counts if weights is None and isinstance(labels, Rows) else weights, rows.device


def _dense_intersections(labels: "Labels", w: Any, offsets: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    shared = np.zeros((offsets[-1], offsets[-1]), dtype=sizes.dtype)
    np.fill_diagonal(shared, sizes)
    _over_cells(labels, w, lambda found: _place_in_square(found, offsets, shared))
    return shared


def _sparse_intersections(
    labels: "Labels", w: Any, offsets: np.ndarray, sizes: np.ndarray, budget: int
) -> sparse.csr_array:
    """Count in two passes: the cells of each row and clustering first, then the cells, straight into place."""
    n_clusters, n_clusterings = int(offsets[-1]), len(labels.n_clusters)
    what = f"the sparse table of the intersections of {n_clusters} clusters"
    instead = "use contingency.pair_tables, which holds a few pairs of clusterings at a time, or fewer clusters"
    checks.check_memory(16 * n_clusters * n_clusterings, budget, what, instead)
    n_cells = np.zeros((n_clusters, n_clusterings), dtype=np.int64)
    own = np.repeat(np.arange(n_clusterings), np.diff(offsets))
    n_cells[np.arange(n_clusters), own] = sizes > 0
    _over_cells(labels, w, lambda found: _count_in_rows(found, offsets, n_cells))
    ends = np.cumsum(n_cells).reshape(n_cells.shape)
    nnz = int(ends[-1, -1])
    index = np.dtype(np.int32 if max(nnz, n_clusters) < 2**31 else np.int64)
    checks.check_memory(nnz * (8 + index.itemsize), budget, f"{what} ({nnz} are not empty)", instead)
    starts = np.subtract(ends, n_cells, out=n_cells)
    indptr = np.concatenate([[0], ends[:, -1]]).astype(index)
    indices, counts = np.empty(nnz, dtype=index), np.empty(nnz, dtype=sizes.dtype)
    filled = np.flatnonzero(sizes)
    diagonal = starts[filled, own[filled]]
    indices[diagonal], counts[diagonal] = filled, sizes[filled]
    _over_cells(labels, w, lambda found: _place_in_rows(found, offsets, starts, indices, counts))
    shared = sparse.csr_array((counts, indices, indptr), shape=(n_clusters, n_clusters))
    shared.has_canonical_format = True
    return shared


@njit(cache=True, nogil=True)
def _place_in_square(found, offsets, shared):
    first = offsets[found.i]
    for p in range(len(found.starts) - 1):
        second = offsets[found.first + p]
        for t in range(found.starts[p], found.starts[p + 1]):
            r, c = first + found.rows[t], second + found.cols[t]
            shared[r, c] = shared[c, r] = found.counts[t]


@njit(cache=True, nogil=True)
def _count_in_rows(found, offsets, n_cells):
    first = offsets[found.i]
    for p in range(len(found.starts) - 1):
        second = offsets[found.first + p]
        for t in range(found.starts[p], found.starts[p + 1]):
            n_cells[first + found.rows[t], found.first + p] += 1
            n_cells[second + found.cols[t], found.i] += 1


@njit(cache=True, nogil=True)
def _place_in_rows(found, offsets, starts, indices, counts):
    """Write cells into a CSR matrix: those of row r and clustering m from starts[r, m] on, which advance."""
    first = offsets[found.i]
    for p in range(len(found.starts) - 1):
        second = offsets[found.first + p]
        for t in range(found.starts[p], found.starts[p + 1]):
            r, c = first + found.rows[t], second + found.cols[t]
            at, mirrored = starts[r, found.first + p], starts[c, found.i]
            indices[at], counts[at] = c, found.counts[t]
            indices[mirrored], counts[mirrored] = r, found.counts[t]
            starts[r, found.first + p] += 1
            starts[c, found.i] += 1


def intersections_with(ens: Ensemble, m: int, weights: np.ndarray | None = None) -> np.ndarray:
    """Return the shared objects, or weight (int64), of all clusters and those of clustering m, (N_c, k_m).

    It starts no threads: callers run several clusterings in parallel.
    """
    labels, offsets = labels_of(ens), ens.offsets
    shared = np.zeros((ens.n_clusters, labels.n_clusters[m]), dtype=np.int64)
    _count_with(m, labels.matrix, offsets, weights, shared)
    return shared


@njit(cache=True, nogil=True)
def _count_with(m, labels, offsets, w, shared):
    n_clusters = shared.shape[1]
    for other in range(labels.shape[0]):
        first, k = offsets[other], offsets[other + 1] - offsets[other]
        for x in range(labels.shape[1]):
            if labels[m, x] < n_clusters and labels[other, x] < k:
                shared[first + labels[other, x], labels[m, x]] += 1 if w is None else w[x]


# --- one pair of clusterings at a time --------------------------------------------------------------------------------


def pair_tables(ens: Any, weights: Any = None, *, device: str = "auto") -> Iterator[tuple[int, int, Table]]:
    """Yield (i, j, table) for each pair i < j of clusterings, with a few tables in memory at a time.

    ``table[c, d]``, of shape (k_i, k_j), is the number (with ``weights``, the weight) of objects in cluster c of
    clustering i and cluster d of clustering j: int64, or float64 if the weights are floats. It is an ndarray, or a
    scipy.sparse.csr_array where k_i·k_j is beyond both 4 million and 4 cells an object; `cells` reads both.

    Examples
    --------
    >>> import gpuens as ge
    >>> for i, j, table in ge.contingency.pair_tables([[0, 0, 0, 1], ["b", "a", "a", None]]):
    ...     print(i, j, table.tolist())
    0 1 [[2, 1], [0, 0]]
    """
    ens, weights, device = _given(ens, weights, device)
    return _over_pairs(labels_of(ens, device), checks.check_weights(weights, ens.n_objects), lambda i, j, table: table)


def table(a: Any, b: Any) -> Table:
    """Return the contingency table of two label vectors: the number of objects with each pair of labels.

    ``a`` and ``b`` are lists, arrays or Series of integers, strings or categories. Objects missing (-1, NaN, None) in
    either are omitted. Row r is the r-th label of ``a`` in ascending order, column c the c-th of ``b``. The counts are
    int64, in an ndarray or a csr_array as in `pair_tables`.

    Raises
    ------
    ValueError, TypeError
        For vectors that are not 1-D, are empty, differ in length or hold no labels.

    Examples
    --------
    >>> import gpuens as ge
    >>> ge.contingency.table(["x", "y", "y", None], [7, 5, 5, 5])
    array([[0, 1],
           [2, 0]])
    """
    labels = encode([a, b], ["a", "b"])
    return _counter(labels, [(0, 1)], None)(0, 1)


def cells(table: Table) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the non-empty cells of a table in row-major order: rows, columns (int64) and counts.

    >>> import gpuens as ge
    >>> rows, cols, counts = ge.contingency.cells(ge.contingency.table([0, 0, 1], [0, 1, 1]))
    >>> rows.tolist(), cols.tolist(), counts.tolist()
    ([0, 0, 1], [0, 1, 1], [1, 1, 1])
    """
    if isinstance(table, np.ndarray):
        found: tuple[np.ndarray, np.ndarray, np.ndarray] = _nonzero(np.ascontiguousarray(table))
        return found
    table = sparse.csr_array(table)
    table.sum_duplicates()
    rows = np.repeat(np.arange(table.shape[0]), np.diff(table.indptr))
    return rows, table.indices.astype(np.int64), table.data


class Labels(NamedTuple):
    """Label columns as codes on the device: ``matrix`` (M, N), one row per clustering.

    In row m a value of ``n_clusters[m]`` or more means that the label is missing.
    """

    matrix: Any
    n_clusters: list[int]
    device: str = "cpu"


def labels_of(ens: Ensemble, device: str = "cpu") -> Labels:
    return Labels(ens.codes_on(device).T, np.diff(ens.offsets).tolist(), device)


def encode(vectors: list[Any], names: list[Any]) -> Labels:
    """Return label vectors of the same objects (any column that Ensemble takes) as codes of one dtype."""
    device = devices.common_kind(vectors)
    columns = [as_column(vector) for vector in vectors]
    for column, vector, name in zip(columns, vectors, names, strict=True):
        checks.check_label_vector(tuple(column.shape), type(vector).__name__, name)
    for name, column in zip(names, columns, strict=True):
        if len(column) != len(columns[0]):
            raise ValueError(
                f"labelings must label the same objects, but {names[0]} has {len(columns[0])} labels and {name} has "
                f"{len(column)}; pass labelings of one length, with -1 or None where a label is missing."
            )
    encoded = [encode_column(column, name) for column, name in zip(columns, names, strict=True)]
    n_clusters = [len(categories) for _, categories in encoded]
    missing = max(n_clusters)
    dtype = np.min_scalar_type(missing)
    matrix = np.stack([np.where(codes < 0, missing, codes).astype(dtype) for codes, _ in encoded])
    return Labels(matrix, n_clusters, device)


def _over_pairs(labels: Labels, w: Any, work: Callable[[int, int, Table], Any]) -> Iterator[Any]:
    """Yield (i, j, work(i, j, table)) for i < j in order; batches of tables are processed in threads."""
    for batch in _batches(labels):
        count = _counter(labels, batch, w)

        def run(start: int, stop: int, batch: list[Any] = batch, count: Callable[..., Any] = count) -> list[Any]:
            return [(i, j, work(i, j, count(i, j))) for i, j in batch[start:stop]]

        for done in devices.over_ranges(run, len(batch)):
            yield from done


def _batches(labels: Labels) -> Iterator[list[tuple[int, int]]]:
    """Split the pairs i < j into batches whose tables are small next to the labels and the memory budget."""
    n_objects, k = labels.matrix.shape[1], labels.n_clusters
    most = min(max(2**24, 8 * n_objects), devices.memory_budget() // 32)
    if labels.device != "cpu":
        most = min(most, devices.scratch(labels.device) // 8)
    batch: list[tuple[int, int]] = []
    held = 0
    for i, j in itertools.combinations(range(len(k)), 2):
        size = min(k[i] * k[j], 4 * n_objects + DENSE_CELLS)
        if batch and held + size > most:
            yield batch
            batch, held = [], 0
        batch.append((i, j))
        held += size
    if batch:
        yield batch


def _counter(labels: Labels, pairs: list[tuple[int, int]], w: np.ndarray | None) -> Callable[[int, int], Table]:
    """Return a function (i, j) → table for these pairs; on the CPU it counts on demand."""
    if labels.device == "cpu":
        return lambda i, j: _count(labels, i, j, w)
    tables = _count_pairs(labels, pairs, w)
    return lambda i, j: tables[i, j]


def _held_dense(labels: Labels, i: int, j: int) -> bool:
    """Return whether a table is held dense; larger ones would be nearly all zeros."""
    return bool(labels.n_clusters[i] * labels.n_clusters[j] <= max(DENSE_CELLS, 4 * labels.matrix.shape[1]))


def _count(labels: Labels, i: int, j: int, w: np.ndarray | None = None) -> Table:
    """Return the table of clusterings i and j."""
    a, b, k_a, k_b = labels.matrix[i], labels.matrix[j], labels.n_clusters[i], labels.n_clusters[j]
    dtype = np.int64 if w is None else w.dtype
    if _held_dense(labels, i, j):
        flat = np.zeros(k_a * k_b + 1, dtype=dtype)
        _count_into(flat, a, b, k_a, k_b, w)
        return flat[:-1].reshape(k_a, k_b)
    known = (a < k_a) & (b < k_b)
    counts = np.ones(np.count_nonzero(known), dtype=dtype) if w is None else w[known]
    index = np.int32 if max(k_a, k_b) < 2**31 else np.int64
    return sparse.coo_array((counts, (a[known].astype(index), b[known].astype(index))), shape=(k_a, k_b)).tocsr()


@njit(cache=True, nogil=True)
def _count_into(flat, a, b, k_a, k_b, w):
    """Add each object to cell a·k_b + b of a flat table; missing labels go, without a branch, to its last cell."""
    rows, cols = np.uintp(k_a), np.uintp(k_b)  # unsigned indices spare the check for negative values
    nowhere = np.uintp(k_a * k_b)
    for x in range(a.size):
        r, c = np.uintp(a[x]), np.uintp(b[x])
        at = r * cols + c if (r < rows) & (c < cols) else nowhere
        if w is None:
            flat[at] += 1
        else:
            flat[at] += w[x]


@njit(cache=True, nogil=True)
def _nonzero(table):
    n = 0
    for r in range(table.shape[0]):
        for c in range(table.shape[1]):
            n += table[r, c] != 0
    rows, cols, counts = np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n, table.dtype)
    t = 0
    for r in range(table.shape[0]):
        for c in range(table.shape[1]):
            if table[r, c] != 0:
                rows[t], cols[t], counts[t] = r, c, table[r, c]
                t += 1
    return rows, cols, counts


# --- all pairs of clusterings -----------------------------------------------------------------------------------------


class Cells(NamedTuple):
    """The non-empty cells of the tables of one clustering with several later ones, each row-major.

    Those of clusterings ``i`` and ``first + p`` are starts[p] … starts[p + 1] - 1 of ``rows``, ``cols`` and ``counts``.
    """

    i: int
    first: int
    starts: np.ndarray
    rows: np.ndarray
    cols: np.ndarray
    counts: np.ndarray


def _over_cells(labels: Labels, w: Any, work: Callable[[Cells], Any]) -> None:
    """Call ``work`` in threads on the cells of all pairs of clusterings; each pair occurs in one call."""
    if labels.device != "cpu":
        for batch in _batches(labels):
            tables = _count_pairs(labels, batch, w)
            for (i, j), table in tables.items():
                rows, cols, counts = cells(table)
                work(Cells(i, j, np.array([0, len(rows)]), rows, cols, counts))
        return
    n_clusters = np.array(labels.n_clusters, dtype=np.int64)
    n_clusterings = len(n_clusters)
    before = np.concatenate([[0], np.cumsum(np.arange(n_clusterings - 1, 0, -1))])  # the pairs of clusterings before

    if w is not None and w.dtype.kind == "i" and (w == 1).all():
        w = None  # which is quicker
    bits, first_bits = _bits(labels.matrix, n_clusters if w is None else n_clusters[:0])

    def run(start: int, stop: int) -> None:
        counted = _scratch(n_clusters, labels.matrix.shape[1], np.dtype(np.int64 if w is None else w.dtype))
        while start < stop:
            i = int(np.searchsorted(before, start, side="right")) - 1
            j, last = i + 1 + start - before[i], min(n_clusterings, i + 1 + stop - before[i])
            done = _count_cells(i, j, last, labels.matrix, n_clusters, w, bits, first_bits, *counted)
            starts, _, _, rows, cols, counts = counted
            work(Cells(i, int(j), starts[: done + 1], rows, cols, counts))
            start += done

    devices.over_ranges(run, int(before[-1]), grain=devices.worth_a_thread(labels.matrix.shape[1]))


def _scratch(n_clusters: np.ndarray, n_objects: int, dtype: np.dtype) -> tuple[np.ndarray, ...]:
    """Return the working memory of `_count_cells`: starts, the table, the sorted objects, and cells of some tables."""
    *_, second, largest = np.sort(n_clusters).tolist()
    pair = second * largest
    cells = max(min(pair, n_objects), min(CELLS_AT_ONCE, pair * len(n_clusters)))
    table = max(min(pair, 4 * n_objects), largest)
    return (
        np.zeros(len(n_clusters), dtype=np.int64),
        np.zeros(table + 1, dtype=dtype),
        np.empty(n_objects if pair > table else 0, dtype=np.int64),
        np.empty(cells, dtype=np.int64),
        np.empty(cells, dtype=np.int64),
        np.empty(cells, dtype=dtype),
    )


def _bits(labels: np.ndarray, n_clusters: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return a bit for each object in a cluster (n, words), and where those of each clustering begin.

    Only clusterings of few clusters have them, and only if they fit.
    """
    has = 2 * n_clusters <= MARKED_CELLS
    n_words = -(-labels.shape[1] // 64)
    n_bits = int(n_clusters[has].sum())
    if len(n_clusters) < MARKED_CLUSTERINGS or 8 * n_bits * n_words > min(MARKED_BYTES, devices.memory_budget() // 8):
        n_bits, has = 0, np.zeros_like(has)
    bits = np.zeros((n_bits, n_words), dtype=np.uint64)
    first = np.cumsum(n_clusters * has) - n_clusters * has

    def mark(start: int, stop: int) -> None:
        _mark(start, stop, labels, n_clusters * has, first, bits)

    devices.over_ranges(mark, len(has), grain=devices.worth_a_thread(labels.shape[1]))
    return bits, first


@njit(cache=True, nogil=True)
def _mark(start, stop, labels, n_clusters, first, bits):
    for m in range(start, stop):
        for x in range(labels.shape[1]):
            if labels[m, x] < n_clusters[m]:
                bits[first[m] + np.int64(labels[m, x]), x // 64] |= np.uint64(1) << np.uint64(x % 64)


@njit(cache=True, nogil=True)
def _count_marked(flat, bits, first_row, first_col, k_a, k_b):
    """Add to each cell of a flat table how many objects have both bits."""
    for start in range(0, bits.shape[1], WORDS):
        begin, end = np.uint64(start), np.uint64(min(start + WORDS, bits.shape[1]))
        for row in range(k_a):
            r, col = np.uint64(first_row + row), 0
            while col + 4 <= k_b:  # four at once, so that bits of the row are read once for them
                a = np.uint64(first_col + col)
                b, c, d = a + np.uint64(1), a + np.uint64(2), a + np.uint64(3)
                in_a = in_b = in_c = in_d = np.uint64(0)
                for p in range(begin, end):
                    one = bits[r, p]
                    in_a += popcount(one & bits[a, p])
                    in_b += popcount(one & bits[b, p])
                    in_c += popcount(one & bits[c, p])
                    in_d += popcount(one & bits[d, p])
                at = row * k_b + col
                flat[at] += np.int64(in_a)
                flat[at + 1] += np.int64(in_b)
                flat[at + 2] += np.int64(in_c)
                flat[at + 3] += np.int64(in_d)
                col += 4
            while col < k_b:
                a, in_a = np.uint64(first_col + col), np.uint64(0)
                for p in range(begin, end):
                    in_a += popcount(bits[r, p] & bits[a, p])
                flat[row * k_b + col] += np.int64(in_a)
                col += 1


@njit(cache=True, nogil=True)
def _count_cells(
    i, first, last, labels, n_clusters, w, bits, first_bits, starts, table, order, rows, cols, counts
):  # fmt: skip
    """Write the cells of clustering i with ``first`` … last - 1 while there is room; return the number of tables done.

    ``table`` is all zeros before and after. A table with more cells than objects is counted row by row, that is,
    cluster by cluster of i. Objects are added in their order in both cases. By ``bits`` tables of few cells
    are counted.
    """
    n_objects, k = labels.shape[1], n_clusters[i]
    ends = np.empty(0, dtype=np.int64)
    n = done = 0
    for j in range(first, last):
        k_j = n_clusters[j]
        if len(rows) - n < min(n_objects, k * k_j):
            break
        if k * k_j < len(table):
            if w is None and k * k_j <= MARKED_CELLS and len(bits) > 0:
                _count_marked(table, bits, first_bits[i], first_bits[j], k, k_j)
            else:
                _count_into(table, labels[i], labels[j], k, k_j, w)
                table[k * k_j] = 0
            for r in range(k):
                for c in range(k_j):
                    count = table[r * k_j + c]
                    if count != 0:
                        rows[n], cols[n], counts[n] = r, c, count
                        table[r * k_j + c] = 0
                        n += 1
        else:
            if len(ends) == 0:
                ends = _sort_objects(labels[i], k, order)
            begin = 0
            for r in range(k):
                row = n
                for at in range(begin, ends[r]):
                    x = order[at]
                    c = labels[j, x]
                    if c >= k_j:
                        continue
                    if table[c] == 0:
                        cols[n] = c
                        n += 1
                    table[c] += 1 if w is None else w[x]
                if (n - row) * SCANNED > k_j:
                    n = row
                    for c in range(k_j):
                        if table[c] != 0:
                            cols[n] = c
                            n += 1
                else:
                    _sort_few(cols[row:n])
                for t in range(row, n):
                    rows[t], counts[t] = r, table[cols[t]]
                    table[cols[t]] = 0
                begin = ends[r]
        done += 1
        starts[done] = n
    return done


@njit(makes_arrays=False)
def _sort_few(numbers):
    """Sort numbers, mostly few, by Shell's method: Numba's sort takes a second to compile."""
    for gap in GAPS:
        for i in range(gap, len(numbers)):
            number, j = numbers[i], i
            while j >= gap and numbers[j - gap] > number:
                numbers[j] = numbers[j - gap]
                j -= gap
            numbers[j] = number


@njit(cache=True, nogil=True)
def _sort_objects(labels, n_clusters, order):
    """Sort the objects by cluster and return the end of each cluster."""
    ends = np.zeros(n_clusters + 1, dtype=np.int64)
    for label in labels:
        if label < n_clusters:
            ends[label + 1] += 1
    for c in range(n_clusters):
        ends[c + 1] += ends[c]
    for x in range(labels.size):
        if labels[x] < n_clusters:
            order[ends[labels[x]]] = x
            ends[labels[x]] += 1
    return ends[:n_clusters]


# --- kernels/intersections.cu -----------------------------------------------------------------------------------------


def _count_pairs(labels: Labels, pairs: list[tuple[int, int]], w: np.ndarray | None) -> dict[tuple[int, int], Table]:
    """Return the tables of pairs of clusterings, counted on the device and copied to the host."""
    xp, k = devices.namespace(labels.device), labels.n_clusters
    whole, unit = (None, None) if w is None else fixed_point(xp.asarray(w), labels.matrix.shape[1])
    dense = [pair for pair in pairs if _held_dense(labels, *pair)]
    tables: dict[tuple[int, int], Table] = {
        pair: _sparse_table(labels, *pair, whole, unit) for pair in set(pairs) - set(dense)
    }
    first, second = np.array(dense, dtype=np.int64).reshape(-1, 2).T
    counted, starts = _count_dense(labels, first, second, whole)
    flat = devices.to_host(from_fixed_point(counted, unit))
    for (i, j), start in zip(dense, starts.tolist(), strict=False):
        tables[i, j] = flat[start : start + k[i] * k[j]].reshape(k[i], k[j])
    return tables


def _count_dense(labels: Labels, first: np.ndarray, second: np.ndarray, whole: Any) -> tuple[Any, np.ndarray]:
    """Return the dense tables of pairs of clusterings one after the other, on the device, and where each starts.

    ``whole`` (N,) are weights of objects in fixed point; None are ones.
    """
    xp, k = devices.namespace(labels.device), np.array(labels.n_clusters, dtype=np.int64)
    n_objects = labels.matrix.shape[1]
    starts = np.concatenate([[0], np.cumsum(k[first] * k[second])]).astype(np.int64)
    counted = xp.zeros(int(starts[-1]), dtype=np.uint64)
    count = np.dtype(np.uint32 if whole is None else np.uint64)
    shared_cells = min(kernels.SHARED_BYTES // count.itemsize, int(np.diff(starts).max(initial=0)))
    for start in range(0, len(first), MOST_PAIRS):
        some = slice(start, start + MOST_PAIRS)
        kernels.launch(
            "count_pairs", (kernels.blocks(n_objects, CHUNK), len(first[some])), 512,
            (labels.matrix, xp.asarray(k), xp.asarray(first[some].copy()), xp.asarray(second[some].copy()),
             xp.asarray(starts[:-1][some]), xp.ones(1, dtype=np.int64) if whole is None else whole, counted, n_objects,
             shared_cells),
            device=labels.device, shared=count.itemsize * shared_cells, CODE=kernels.c_name(labels.matrix.dtype),
            COUNT=kernels.c_name(count),
        )  # fmt: skip
    return counted, starts


def _sparse_table(labels: Labels, i: int, j: int, whole: Any, unit: float | None) -> sparse.csr_array:
    """Return a sparse table: the cells of the objects, sorted and summed run by run."""
    xp = devices.namespace(labels.device)
    k_i, k_j = labels.n_clusters[i], labels.n_clusters[j]
    a, b = labels.matrix[i], labels.matrix[j]
    known = (a < k_i) & (b < k_j)
    cell = a[known].astype(np.int64) * k_j + b[known]
    order = xp.argsort(cell)
    cell = cell[order]
    last = xp.flatnonzero(xp.concatenate([cell[1:] != cell[:-1], xp.ones(1, dtype=bool)])) if cell.size else order
    summed = last + 1 if whole is None else xp.cumsum(whole[known][order])[last]
    total, cell = devices.to_host(summed), devices.to_host(cell[last])
    counts = np.diff(total, prepend=np.zeros(1, dtype=total.dtype))
    rows, cols = np.divmod(cell, k_j)
    return sparse.coo_array((counts if unit is None else counts * unit, (rows, cols)), shape=(k_i, k_j)).tocsr()


# --- entropy ----------------------------------------------------------------------------------------------------------


def entropy(ens: Any, weights: Any = None, *, device: str = "auto") -> np.ndarray:
    """Return the uncertainty H(C) of each cluster with respect to the whole ensemble, in bits.

    H(C) = Σ_m H^m(C), H^m(C) = -Σ_j p(C, C_j^m) log2 p(C, C_j^m), p(C, C_j^m) = |C ∩ C_j^m| / |C| (Huang, Wang and Lai
    2018, "Locally weighted ensemble clustering", equations 7-9). Objects of C missing in clustering m are omitted
    from p; a cluster without labelled objects there contributes 0. N_c × N_c is never held.

    The terms are summed in fixed point (52 binary places for 16 to 31 clusterings). Results are bit-identical for any
    number of threads and any order of clusters and clusterings, and, unless weights are floats, of objects.

    Parameters
    ----------
    ens : Ensemble, Rows, or anything that Ensemble takes
    weights : array (n_objects,), optional
        Weights of the objects, positive numbers.

    Returns
    -------
    ndarray (n_clusters,), float64

    Examples
    --------
    >>> import gpuens as ge
    >>> columns = [list("0000000011122222"), list("0011122200022222"), list("0000111100012222")]
    >>> ge.contingency.entropy(columns).round(2).tolist()
    [2.56, 0.0, 0.72, 0.97, 0.92, 1.95, 1.85, 1.44, 0.0]
    """
    ens, weights, device = _given(ens, weights, device)
    labels = labels_of(ens, device)
    one, offsets = _entropy_unit(ens.n_clusterings), ens.offsets
    total, adding = np.zeros(ens.n_clusters, dtype=np.int64), Lock()
    whole = checks.check_weights(weights, ens.n_objects)
    terms = np.zeros((SMALL, SMALL) if whole is None or whole.dtype.kind == "i" else (0, 0), dtype=np.int64)
    _fill_terms(terms, one)

    def add(found: Cells) -> None:
        n_tables = len(found.starts) - 1
        own = slice(*offsets[found.i : found.i + 2])
        others = slice(offsets[found.first], offsets[found.first + n_tables])
        of_rows, of_cols = _entropies(found, offsets, one, terms)
        with adding:
            total[own] += of_rows
            total[others] += of_cols

    _over_cells(labels, whole, add)
    return total / one


def entropy_of(shared: Table, offsets: np.ndarray) -> np.ndarray:
    """Return `entropy`, bit for bit, from `intersections` that are already counted."""
    one, total = _entropy_unit(len(offsets) - 1), np.zeros(int(offsets[-1]), dtype=np.int64)

    def work(start: int, stop: int) -> None:
        step = max(1, ROWS_AT_ONCE // int(offsets[-1]))
        for first in range(start, stop, step):
            rows, cols, counts = cells(shared[first : min(first + step, stop)])
            _row_entropies(rows, cols, counts, offsets, one, total[first:])

    devices.over_ranges(work, len(total))
    return total / one


def _entropy_unit(n_clusterings: int) -> float:
    # H(C) <= 32 M, since a clustering has at most 2^32 clusters: M.bit_length() + 5 bits stand before the point
    return 2.0 ** (62 - 5 - n_clusterings.bit_length())


@njit(cache=True, nogil=True)
def _entropies(found, offsets, one, terms):
    """Return the entropies of the clusters of ``found.i`` and of the others', in units of 1 / one.

    ``terms[total, count]`` are those of small clusters, whose logarithms would be taken again and again.
    """
    n_tables = len(found.starts) - 1
    first = offsets[found.first]
    of_rows = np.zeros(offsets[found.i + 1] - offsets[found.i], np.int64)
    of_cols = np.zeros(offsets[found.first + n_tables] - first, np.int64)
    row_totals = np.zeros(len(of_rows), found.counts.dtype)
    col_totals = np.zeros(len(of_cols), found.counts.dtype)
    for p in range(n_tables):
        base = offsets[found.first + p] - first
        for t in range(found.starts[p], found.starts[p + 1]):
            row_totals[found.rows[t]] += found.counts[t]
            col_totals[base + found.cols[t]] += found.counts[t]
        for t in range(found.starts[p], found.starts[p + 1]):
            of_rows[found.rows[t]] += _looked_up(found.counts[t], row_totals[found.rows[t]], one, terms)
            of_cols[base + found.cols[t]] += _looked_up(found.counts[t], col_totals[base + found.cols[t]], one, terms)
        for t in range(found.starts[p], found.starts[p + 1]):
            row_totals[found.rows[t]] = 0
    return of_rows, of_cols


@njit(cache=True, nogil=True, makes_arrays=False)
def _fill_terms(terms, one):
    for total in range(1, len(terms)):
        for count in range(1, total):
            terms[total, count] = _term(count, total, one)


@njit(makes_arrays=False)
def _looked_up(count, total, one, terms):
    if total < len(terms):
        return terms[np.int64(total), np.int64(count)]
    return _term(count, total, one)


@njit(cache=True, nogil=True)
def _row_entropies(rows, cols, counts, offsets, one, total):
    """Add the entropies of clusters to ``total`` from their rows of the table of all clusters."""
    t = 0
    while t < len(rows):
        after = offsets[np.searchsorted(offsets, cols[t], side="right")]
        end, sum_of = t, counts[t] * 0
        while end < len(rows) and rows[end] == rows[t] and cols[end] < after:
            sum_of += counts[end]
            end += 1
        for u in range(t, end):
            total[rows[u]] += _term(counts[u], sum_of, one)
        t = end


@njit(cache=True, nogil=True)
def _term(count, total, one):
    if count == total:
        return np.int64(0)
    p = count / total
    return -np.int64(np.rint(p * np.log2(p) * one))


# --- agreement --------------------------------------------------------------------------------------------------------


def agreement(
    ens: Any, score: str = "nmi", average: str = "geometric", weights: Any = None, *, device: str = "auto"
) -> np.ndarray:
    """Return the agreement of each pair of clusterings over the objects labelled in both.

    Parameters
    ----------
    ens : Ensemble, Rows, or anything that Ensemble takes
    score : {"nmi", "ari"}
    average : {"geometric", "max", "arithmetic", "min"}
        The normaliser of the mutual information; unused by the adjusted Rand index.
    weights : array (n_objects,), optional
        Weights of the objects, positive numbers.

    Returns
    -------
    ndarray (n_clusterings, n_clusterings), float64, symmetric with ones on its diagonal
        NaN for two clusterings without a labelled object in common.

    Examples
    --------
    >>> import gpuens as ge
    >>> ge.contingency.agreement([[0, 0, 1, 1], ["b", "b", "a", "a"], [0, 1, 0, 1]], score="ari").round(2).tolist()
    [[1.0, 1.0, -0.5], [1.0, 1.0, -0.5], [-0.5, -0.5, 1.0]]
    """
    ens, weights, device = _given(ens, weights, device)
    checks.check_choice(score, "score", ("nmi", "ari"))
    checks.check_choice(average, "average", AVERAGES)
    of_table = ari_of if score == "ari" else lambda table: nmi_of(table, average)
    labels = labels_of(ens, device)
    return score_pairs(labels, of_table, checks.check_weights(weights, ens.n_objects))


def agreement_of(rows: Rows, average: str = "geometric") -> np.ndarray:
    """Return `agreement` by the normalised mutual information of the objects of rows, which may be in pieces."""
    if rows.here:
        return agreement(rows, average=average)
    shared = intersections_of(rows)
    own = [slice(first, last) for first, last in itertools.pairwise(rows.offsets.tolist())]
    scores = np.eye(len(own))
    for i, j in itertools.combinations(range(len(own)), 2):
        scores[i, j] = scores[j, i] = nmi_of(shared[own[i], own[j]], average)
    return scores


def score_pairs(labels: Labels, of_table: Callable[[Table], float], w: np.ndarray | None = None) -> np.ndarray:
    """Return ``of_table`` of each pair of label columns, a symmetric matrix with a diagonal of ones."""
    scores = np.eye(len(labels.n_clusters))
    n_objects = labels.matrix.shape[1] if w is None else w.sum()
    if of_table is ari_of and n_objects < 2**31 and (w is None or w.dtype.kind == "i"):  # squares fit int64

        def score(found: Cells) -> None:
            for j, sums in enumerate(_sums_of_squares(found).tolist(), found.first):
                scores[found.i, j] = scores[j, found.i] = _ari(*sums)

        _over_cells(labels, w, score)
        return scores
    for i, j, value in _over_pairs(labels, w, lambda i, j, table: of_table(table)):
        scores[i, j] = scores[j, i] = value
    return scores


def nmi_of(table: Table, average: str = "geometric") -> float:
    """Return the normalised mutual information of a contingency table (dense or sparse), from 0 to 1.

    It is 1 for equal partitions, also for two with a single cluster each, and 0 if only one has a single cluster. NaN
    for a table without objects.

    >>> import gpuens as ge
    >>> round(ge.contingency.nmi_of(ge.contingency.table([0, 0, 1, 1], [0, 0, 1, 2])), 4)
    0.8165
    """
    checks.check_choice(average, "average", AVERAGES)
    rows, cols, counts = cells(table)
    if not counts.size:
        return math.nan
    of_rows, of_cols = _sums(rows, counts), _sums(cols, counts)
    if _one_to_one(counts, of_rows, of_cols):
        return 1.0
    if np.count_nonzero(of_rows) == 1 or np.count_nonzero(of_cols) == 1:
        return 0.0
    n = counts.astype(np.float64)
    total = n.sum()
    # one logarithm of a ratio of products: the ratio of independent labels is 1, so the sum is exactly 0
    information = (n * np.log((n * total) / (of_rows[rows] * of_cols[cols]))).sum() / total
    normaliser = AVERAGES[average](_entropy_of(of_rows / total), _entropy_of(of_cols / total))
    return float(min(1.0, max(0.0, information / normaliser)))


def ari_of(table: Table) -> float:
    """Return the adjusted Rand index of a contingency table (dense or sparse); at most 1, and 0 on average by chance.

    Pairs of objects are counted in exact integers of any size, unless the table holds real weights. It is 1 for equal
    partitions and for a single object, NaN for a table without objects.

    >>> import gpuens as ge
    >>> round(ge.contingency.ari_of(ge.contingency.table([0, 0, 1, 1], [0, 0, 1, 2])), 4)
    0.5714
    """
    rows, cols, counts = cells(table)
    of_rows, of_cols = (_sums(lines, counts).astype(counts.dtype) for lines in (rows, cols))
    sizes = counts.size, int(np.count_nonzero(of_rows)), int(np.count_nonzero(of_cols))
    return _ari(*sizes, counts.sum().item(), *(_sum_of_squares(sums) for sums in (counts, of_rows, of_cols)))


def _ari(
    n_cells: int, n_rows: int, n_cols: int, total: float, same_both: float, same_row: float, same_col: float
) -> float:
    """Return the index from the numbers of non-empty cells, rows and columns and their sums of squares."""
    if n_cells == 0:
        return math.nan
    if n_cells == n_rows == n_cols:  # one to one
        return 1.0
    tp, fn, fp = same_both - total, same_row - same_both, same_col - same_both  # ordered pairs of objects
    tn = total**2 - same_row - same_col + same_both
    return float(2 * (tp * tn - fn * fp) / ((tp + fn) * (fn + tn) + (tp + fp) * (fp + tn)))


@njit(cache=True, nogil=True)
def _sums_of_squares(found):
    """Return the arguments of `_ari` for each table of whole numbers, (tables, 7)."""
    n_tables = len(found.starts) - 1
    sums = np.zeros((n_tables, 7), np.int64)
    end = found.starts[-1]
    if end == 0:
        return sums
    of_rows, of_cols = np.zeros(found.rows[:end].max() + 1, np.int64), np.zeros(found.cols[:end].max() + 1, np.int64)
    for p in range(n_tables):
        cells = range(found.starts[p], found.starts[p + 1])
        for t in cells:
            of_rows[found.rows[t]] += found.counts[t]
            of_cols[found.cols[t]] += found.counts[t]
            sums[p, 0] += 1
            sums[p, 3] += found.counts[t]
            sums[p, 4] += found.counts[t] ** 2
        for t in cells:  # each row and column once
            row, col = of_rows[found.rows[t]], of_cols[found.cols[t]]
            sums[p, 1] += row > 0
            sums[p, 2] += col > 0
            sums[p, 5] += row**2
            sums[p, 6] += col**2
            of_rows[found.rows[t]] = of_cols[found.cols[t]] = 0
    return sums


def _sums(lines: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Return the sums of a table's rows (or columns) as floats, exact for counts below 2^53."""
    return np.bincount(lines, weights=counts)


def _one_to_one(counts: np.ndarray, of_rows: np.ndarray, of_cols: np.ndarray) -> bool:
    """Return whether the two partitions are equal."""
    return bool(counts.size == np.count_nonzero(of_rows) == np.count_nonzero(of_cols))


def _entropy_of(p: np.ndarray) -> float:
    p = p[p > 0]
    return float(-(p * np.log(p)).sum())


def _sum_of_squares(x: np.ndarray) -> Any:
    """Return Σ x² as a Python number, exact for integers even where int64 would overflow."""
    if x.dtype.kind == "f" or int(x.sum()) < 2**31:
        return (x * x).sum().item()
    return int((x.astype(object) ** 2).sum())

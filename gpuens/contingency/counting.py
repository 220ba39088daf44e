"""The cells of the tables of all pairs of clusterings, each table processed once (`over_cells`).

On the CPU, a thread counts one clustering with several later clusterings, in reused memory of the size of a cache.
Tables with few cells are counted by bits; tables with more cells than objects are counted cluster by cluster.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from gpuens.contingency.kernel import count_pairs
from gpuens.contingency.labels import Labels, batches
from gpuens.contingency.tables import cells, count_into
from gpuens.runtime import device as devices
from gpuens.runtime.compiled import njit
from gpuens.runtime.lanes import popcount

CELLS_AT_ONCE = 2**15  # most cells of tables counted together; a single table may be larger
MARKED_CELLS = 200  # most cells of a table counted by bits; for more cells, counting objects one by one is faster
MARKED_CLUSTERINGS = 8  # fewest clusterings for which counting by bits pays off
MARKED_BYTES = 2**26  # most bytes of the bits of all clusters
WORDS = 384  # 64-bit words of a cluster compared at once, so that they stay in the smallest cache
SCANNED = 16  # counts that can be scanned in the time of sorting one number
GAPS = (12_201, 4573, 1750, 701, 301, 132, 57, 23, 10, 4, 1)  # gaps of Shell's sort, by Ciura


class Cells(NamedTuple):
    """The non-empty cells of the tables of one clustering with several later clusterings, in row-major order.

    The table of clusterings ``i`` and ``first + p`` has entries starts[p] … starts[p + 1] - 1 of ``rows``, ``cols`` and
    ``counts``.
    """

    i: int
    first: int
    starts: np.ndarray
    rows: np.ndarray
    cols: np.ndarray
    counts: np.ndarray


def over_cells(labels: Labels, w: Any, work: Callable[[Cells], Any]) -> None:
    """Call ``work`` in threads on the cells of all pairs of clusterings, with each pair in exactly one call."""
    if labels.device != "cpu":
        for batch in batches(labels):
            tables = count_pairs(labels, batch, w)
            for (i, j), table in tables.items():
                rows, cols, counts = cells(table)
                work(Cells(i, j, np.array([0, len(rows)]), rows, cols, counts))
        return
    n_clusters = np.array(labels.n_clusters, dtype=np.int64)
    n_clusterings = len(n_clusters)
    # number of pairs before clustering i
    before = np.concatenate([[0], np.cumsum(np.arange(n_clusterings - 1, 0, -1))])

    if w is not None and w.dtype.kind == "i" and (w == 1).all():
        w = None  # counting without weights is faster
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
    """Return the bits of the clusters' objects (n, words), and the first row of each clustering.

    Only clusterings of few clusters have bits, and only if the bits fit the memory.
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
    """Add to each cell of a flat table the number of objects with both bits."""
    for start in range(0, bits.shape[1], WORDS):
        begin, end = np.uint64(start), np.uint64(min(start + WORDS, bits.shape[1]))
        for row in range(k_a):
            r, col = np.uint64(first_row + row), 0
            while col + 4 <= k_b:  # four columns at once share one read of the row's bits
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
def _count_cells(i, first, last, labels, n_clusters, w, bits, first_bits, starts, table, order, rows, cols, counts):
    """Write the cells of clustering i with ``first`` … last - 1 while there is room; return the number of tables.

    ``table`` is all zeros before and after. Tables of few cells are counted by ``bits``. A table with more cells than
    objects is counted row by row, that is, cluster by cluster of i. Objects are always added in their order.
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
                count_into(table, labels[i], labels[j], k, k_j, w)
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
    """Sort (usually few) numbers by Shell's method, because Numba's sort takes a second to compile."""
    for gap in GAPS:
        for i in range(gap, len(numbers)):
            number, j = numbers[i], i
            while j >= gap and numbers[j - gap] > number:
                numbers[j] = numbers[j - gap]
                j -= gap
            numbers[j] = number


@njit(cache=True, nogil=True)
def _sort_objects(labels, n_clusters, order):
    """Sort the objects by cluster, and return the end of each cluster in that order."""
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

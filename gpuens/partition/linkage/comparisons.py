"""Comparisons of label rows and regions with many queries at a time.

A table has a row for each cluster and 64 columns (lanes), one for each query. An entry is the weight of the cluster for
the query; with unit weights, it is 1 if the query has that label and 0 otherwise. Adding a label's table row to a
vector of 64 sums makes 64 comparisons, so a row of M labels takes M vector additions, whatever the weights. A missing
label is a cluster of its own with weight 0.

For label rows, the sums are integers of 8 or 16 bits in 64 lanes; they are upper bounds of the scores (with unit
weights, they are the scores). Regions are histograms; each entry multiplies a row of a float table of 16 or 64 lanes.
The clusterings are divided into chunks, so that a chunk's part of the table fits the smallest cache, and rows are
compared chunk by chunk. A table that is only a little larger than that cache is not divided, so that sums stay in
registers. If a table of all clusters would be large, several smaller tables are filled one after another.
"""

import numpy as np

from gpuens.runtime.compiled import extending, njit
from gpuens.runtime.lanes import (
    LANES,
    nothing,
    plus,
    store,
    widened,
)

CHUNK = 2**15  # bytes of a chunk of a table, which fits the smallest cache
WHOLE = 4  # a table of at most so many chunks is not divided, because it fits the second cache
LABELS = 16  # smallest number of clusterings in a chunk; after each chunk, sums must be stored
TABLE = 2**22  # largest size of a table in bytes
SEGMENT = 64  # tiles in a segment; the bounds of these tiles are checked together
BYTE = 255  # largest sum in 8 bits
UNITS = 65_535  # largest sum in 16 bits


def chunks_of(starts: np.ndarray, itemsize: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the first clustering of each chunk (n_chunks + 1,), and the first chunk of each table (n_tables + 1,).

    The last entry of either array is the end. ``starts`` (M + 1,) are the first clusters of the clusterings. A chunk
    has at most 255 clusterings, so that a byte holds the sum of their unit weights.
    """
    rows = CHUNK // (LANES * itemsize)
    chunks = _parts(starts, WHOLE * rows if starts[-1] <= WHOLE * rows else rows, LABELS)
    return chunks, _parts(starts[chunks], TABLE // (LANES * itemsize), 1)


def rows_of_tables(starts: np.ndarray, chunks: np.ndarray, tables: np.ndarray) -> int:
    """Return the number of clusters of the largest table of `chunks_of`."""
    return int(np.diff(starts[chunks[tables]]).max())


def _parts(starts: np.ndarray, most: int, least: int) -> np.ndarray:
    bounds = [0]
    for m in range(1, len(starts)):
        begin = bounds[-1]
        too_large = m - begin > BYTE or starts[m] - starts[begin] > most
        if too_large and m - 1 >= begin + least:
            bounds.append(m - 1)
    return np.array([*bounds, len(starts) - 1])


@njit(cache=True, nogil=True, makes_arrays=False)
def label_scores(rows, which, first, count, starts, begin, end, base, table, sums, at):
    """Write the scores of the rows ``which[first : first + count]`` into ``sums``, from ``sums[at]`` on.

    ``rows`` is (G, M); ``sums`` (n, LANES) has the table's dtype or a wider dtype. The labels of clusterings
    ``begin`` … ``end`` - 1 are counted; if ``begin`` > 0, they are added to the sums of earlier clusterings in
    ``sums``. The table's first row is cluster ``base``.
    """
    one, stop = np.uint64(1), np.uint64(end)  # unsigned, to save checks for negative indices
    i = 0
    while i + 4 <= count:  # four rows at a time, so that consecutive additions are independent
        a, b = rows[which[first + i]], rows[which[first + i + 1]]
        c, d = rows[which[first + i + 2]], rows[which[first + i + 3]]
        of_a, of_b, of_c, of_d = nothing(table), nothing(table), nothing(table), nothing(table)
        m = np.uint64(begin)
        while m < stop:
            start = np.uint64(starts[m] - base)
            of_a = plus(of_a, table, start + np.uint64(a[m]))
            of_b = plus(of_b, table, start + np.uint64(b[m]))
            of_c = plus(of_c, table, start + np.uint64(c[m]))
            of_d = plus(of_d, table, start + np.uint64(d[m]))
            m += one
        keep(of_a, begin, sums, at + i)
        keep(of_b, begin, sums, at + i + 1)
        keep(of_c, begin, sums, at + i + 2)
        keep(of_d, begin, sums, at + i + 3)
        i += 4
    while i < count:
        row, total = rows[which[first + i]], nothing(table)
        m = np.uint64(begin)
        while m < stop:
            total = plus(total, table, np.uint64(starts[m] - base) + np.uint64(row[m]))
            m += one
        keep(total, begin, sums, at + i)
        i += 1


@extending.register_jitable
def above_rounding(n_rows):
    """Return a factor by which a float32 total of ``n_rows`` sums becomes an upper bound, despite rounding."""
    return 1.0 + 1e-6 + 1.2e-7 * n_rows


@njit(cache=True, nogil=True, makes_arrays=False)
def keep(total, begin, sums, at):
    """Write the vector ``total`` to row ``at`` of ``sums``; if ``begin`` > 0, add it to that row instead.

    In the first chunk, ``begin`` is 0.
    """
    wide = widened(total, sums)
    if begin > 0:
        wide = plus(wide, sums, at)
    store(wide, sums, at)

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

from typing import Any

import numpy as np

LANES = 64  # columns of a table of whole numbers
LINE = 64  # bytes of a cache line
CHUNK = 2**15  # bytes of a chunk of a table, which fits the smallest cache
WHOLE = 4  # a table of at most so many chunks is not divided, because it fits the second cache
CANDIDATES = 256  # rows or regions that are collected for a query before they are scored exactly
LONG_BATCH = 2**14  # rows whose sums a thread holds, if there are several tables
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


def _parts(starts: np.ndarray, most: int, least: int) -> np.ndarray:
    bounds = [0]
    for m in range(1, len(starts)):
        begin = bounds[-1]
        too_large = m - begin > BYTE or starts[m] - starts[begin] > most
        if too_large and m - 1 >= begin + least:
            bounds.append(m - 1)
    return np.array([*bounds, len(starts) - 1])


def aligned_zeros(n: int, lanes: int, dtype: Any) -> np.ndarray:
    """Return zeros (n, lanes) aligned to cache lines: a row that crosses more lines than needed loads more slowly."""
    zeros = np.zeros(n * lanes + LINE, dtype=dtype)
    first = -zeros.__array_interface__["data"][0] % LINE // zeros.itemsize
    return zeros[first : first + n * lanes].reshape(n, lanes)

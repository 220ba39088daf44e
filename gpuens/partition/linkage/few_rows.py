"""Average linkage of few rows by a matrix of all pairs of rows, in one call without further threads.

Below about 1,500 rows, lists, threads and a NumPy call for each step cost more than the arithmetic. The rounds are the
same as in `average`, to the bit: the nearest regions, ties, similarities of merges and number of rounds are equal.

The matrix (G, G) holds Σ_c w_c n_A[c] n_R[c] of every two regions; the sums of a union are the sums of its parts. Sums
of whole numbers are exact in float64. Other sums depend on the order of addition, so they only select candidates. The
candidates are all regions whose score is within the rounding of the best score; their similarities are then computed
from their histograms.
"""

from typing import Any

import numpy as np

from gpuens.labels.rows import Rows
from gpuens.partition.linkage.dendrogram import Dendrogram, Work, empty_merges
from gpuens.runtime import device as devices
from gpuens.runtime.native import cpu

MOST_ROWS = 1500  # largest number of rows; the matrix of so many rows takes 18 MB
PADDED_COLUMNS = 72  # largest number of columns that pad a row of the matrix
ARENA_FACTOR = 2  # size of the arena of histograms, relative to the entries of all rows
ROW_BYTES = 240  # bytes of a row: the state of its region, and its merge


def suits(rows: Rows, whole_weights: bool) -> bool:
    """Return whether `link` can be used: for few rows on the CPU, if memory holds all pairs.

    If weights are ``whole_weights``, float64 must also hold all sums exactly.
    """
    n_rows = len(rows)
    if rows.device != "cpu" or n_rows > MOST_ROWS:
        return False
    histograms = 0 if whole_weights else ARENA_FACTOR * n_rows * rows.n_clusterings * 8
    codes = (n_rows + PADDED_COLUMNS) * rows.n_clusterings * rows.codes.itemsize
    needed = 8 * n_rows * (n_rows + PADDED_COLUMNS) + histograms + codes + ROW_BYTES * n_rows
    if needed > devices.memory_budget(needed=needed):
        return False
    return not whole_weights or float(rows.n_objects) ** 2 * rows.n_clusterings < 2.0**53


def link(rows: Rows, similarity: Any, work: Work) -> Dendrogram:
    """Return the dendrogram of distinct label rows under a diagonal S; parameters are those of `average_linkage`."""
    n_rows, merges = len(rows), empty_merges(len(rows) - 1)
    weights = similarity.weights.astype(np.float64, copy=False)
    label_rows = cpu.LabelRows(np.ascontiguousarray(rows.codes.T), rows.offsets, rows.counts)
    work.add(*cpu.link_few(label_rows, weights, similarity.integral, merges))
    work.comparisons += n_rows * (n_rows - 1) // 2 * rows.n_clusterings
    return Dendrogram(*merges)

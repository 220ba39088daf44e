"""Comparisons of label rows and regions with many queries at once.

A table holds the weight of each cluster for each of 64 queries, its lanes: with unit weights 1 if a query has that
label. Adding the table's row of one label to a vector of 64 sums is 64 comparisons, so a row of M labels takes M vector
additions, whatever the weights. A missing label is a cluster of its own with weight 0.

For label rows, integers of 8 or 16 bits in 64 lanes bound the score from above (exactly for unit weights). Regions are
histograms, whose entries multiply rows of a table of floats in 16 lanes. If the table of all clusters does not fit the
cache, it is filled for a chunk of the clusterings at a time.
"""

import numpy as np

from gpuens.compiled import njit
from gpuens.lanes import LANES, nothing, plus, plus_times, scaled_sum, store, widened

CHUNK = 2**18  # bytes of a table
SEGMENT = 64  # tiles whose bounds are checked together


def chunks_of(starts: np.ndarray, itemsize: int) -> np.ndarray:
    """Return the bounds (n_chunks + 1,) of chunks of clusterings whose tables fit the cache.

    ``starts`` (M + 1,) are the first clusters of the clusterings. A chunk has at most 255 clusterings, whose unit
    weights a byte can sum.
    """
    bounds = [0]
    for m in range(1, len(starts)):
        begin = bounds[-1]
        too_large = m - begin > 255 or (starts[m] - starts[begin]) * LANES * itemsize > CHUNK
        if too_large and m - 1 > begin:
            bounds.append(m - 1)
    return np.array([*bounds, len(starts) - 1])


@njit(cache=True, nogil=True)
def label_scores(rows, first, count, starts, begin, end, table, sums, at):
    """Write the scores of ``count`` rows, from ``rows[first]`` on, for each lane into ``sums``, from ``sums[at]`` on.

    ``rows`` is (G, M), ``sums`` (n, LANES) of the table's dtype or a wider one. Labels ``begin`` … ``end`` are added to
    the scores of earlier ones in ``sums``. The table's first row is cluster ``starts[begin]``.
    """
    for i in range(count):
        total = nothing(table)
        for m in range(begin, end):
            total = plus(total, table, starts[m] - starts[begin] + rows[first + i, m])
        wide = widened(total, sums)
        if begin > 0:
            wide = plus(wide, sums, at + i)
        store(wide, sums, at + i)


@njit(cache=True, nogil=True)
def histogram_scores(clusters, counts, begin, end, size, table, sums):
    """Write a region's mean score for each lane into row 0 of ``sums``; its entries are ``begin`` … ``end``."""
    even = nothing(table)  # two sums, so that consecutive additions are independent
    odd = nothing(table)
    e, one, last = np.uint64(begin), np.uint64(1), np.uint64(end)  # unsigned: no check for negative ones
    while e + one < last:
        even = plus_times(even, table, clusters[e], counts[e])
        e += one
        odd = plus_times(odd, table, clusters[e], counts[e])
        e += one
    if e < last:
        even = plus_times(even, table, clusters[e], counts[e])
    store(scaled_sum(even, odd, 1.0 / size), sums, 0)


@njit(cache=True, nogil=True)
def mark_wanted(wanted, reach, width, limits, begin, end):
    """Mark the tiles ``begin`` … ``end`` whose bound ``reach`` (lanes, n_tiles) reaches the limit of any lane."""
    for t in range(begin, end):
        wanted[t] = False
    for j in range(width):
        limit = limits[j]
        for t in range(begin, end):
            wanted[t] |= reach[j, t] >= limit

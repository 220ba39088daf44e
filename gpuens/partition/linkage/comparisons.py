"""Comparisons of label rows and regions with many queries at once.

A table holds what each cluster is worth to each of 64 queries, its lanes: for unit weights 1 where a query has the
label. The label of a row is a cluster, so that the table's row of it, added to a vector of 64 sums, is 64 comparisons;
a row of M labels takes M additions of such vectors, whatever the weights are. A missing label is a cluster of its own
that is worth nothing to anybody.

Whole numbers of 8 or 16 bits, 64 lanes, bound the score of label rows from above (and are exact for unit weights);
regions are histograms, whose entries multiply rows of a table of real numbers, 16 lanes. Where tables of all clusters
would not fit the cache they are made for a chunk of the clusterings at a time.
"""

import numpy as np

from gpuens.compiled import njit
from gpuens.lanes import LANES, nothing, plus, plus_times, scaled_sum, store, widened

CHUNK = 2**18  # bytes of a table
SEGMENT = 64  # tiles whose bounds are looked at together


def chunks_of(starts: np.ndarray, itemsize: int) -> np.ndarray:
    """Return the bounds (n_chunks + 1,) of pieces of the clusterings whose tables fit the cache.

    ``starts`` (M + 1,) are the first clusters of the clusterings. Bytes sum up to 255 unit weights.
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
    """Write what labels 0 … ``end`` of ``count`` rows are worth to the lanes, those before ``begin`` being there.

    ``rows`` (G, M), from row ``first`` on; the table's first row is cluster ``starts[begin]``. ``sums`` (n, LANES),
    from row ``at`` on, of the table's dtype or a wider one.
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
    """Write what a region, entries ``begin`` … ``end`` of an arena, is worth to the lanes an object: row 0 of sums."""
    even = nothing(table)  # two sums, so that an addition need not wait for the one before
    odd = nothing(table)
    e, one, last = np.uint64(begin), np.uint64(1), np.uint64(end)  # unsigned: no check for indices from the end
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
    """Mark the tiles ``begin`` … ``end`` whose bound ``reach`` (lanes, n_tiles) is at least the limit of any lane."""
    for t in range(begin, end):
        wanted[t] = False
    for j in range(width):
        limit = limits[j]
        for t in range(begin, end):
            wanted[t] |= reach[j, t] >= limit

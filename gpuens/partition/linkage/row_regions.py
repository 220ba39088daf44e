"""The label rows of regions, and their scores in a table of all pairs of regions (`pair_table`)."""

from typing import NamedTuple

import numpy as np

from gpuens.partition.linkage.comparisons import chunks_of, label_scores
from gpuens.partition.linkage.nearest import NearestIndex
from gpuens.runtime.compiled import njit
from gpuens.runtime.lanes import LANES


class Members(NamedTuple):
    """The rows of each of G regions as a linked chain, in arrays (G,).

    The chain of region a begins with row a. ``follows`` is the next row in the chain of each row, or -1 at the end of
    the chain. ``last`` is the last row and ``n_rows`` the number of rows of each region.
    """

    follows: np.ndarray
    last: np.ndarray
    n_rows: np.ndarray

    @classmethod
    def of_rows(cls, n_rows: int) -> "Members":
        return cls(np.full(n_rows, -1), np.arange(n_rows), np.ones(n_rows, dtype=np.int64))

    def unite(self, kept: np.ndarray, absorbed: np.ndarray) -> None:
        self.follows[self.last[kept]] = absorbed
        self.last[kept] = self.last[absorbed]
        self.n_rows[kept] += self.n_rows[absorbed]

    def of_regions(self, some: np.ndarray, place: np.ndarray, sizes: np.ndarray) -> tuple[np.ndarray, ...]:
        """Return the places and sizes of all rows of the regions ``some``, and the end (n,) of each region's rows."""
        ends = np.cumsum(self.n_rows[some])
        places, theirs = np.empty((2, int(ends[-1]) if len(ends) else 0), dtype=np.int64)
        _follow(some, self.follows, place, sizes, places, theirs)
        return places, theirs, ends


class RowIndex(NamedTuple):
    """The rows of a `NearestIndex`, and its chunks for tables of bytes and of 16-bit words, for searches in C++."""

    rows: np.ndarray
    place: np.ndarray
    sizes: np.ndarray
    offsets: np.ndarray
    of_bytes: tuple[np.ndarray, np.ndarray, np.ndarray]
    of_words: tuple[np.ndarray, np.ndarray, np.ndarray]

    @classmethod
    def of(cls, index: NearestIndex) -> "RowIndex":
        starts = index.starts
        of_bytes, of_words = ((starts, *chunks_of(starts, itemsize)) for itemsize in (1, 2))
        return cls(index.rows, index.place, index.sizes, index.offsets, of_bytes, of_words)


@njit(cache=True, nogil=True, makes_arrays=False)
def _follow(some, follows, place, sizes, places, theirs):
    n = 0
    for row in some:
        while row >= 0:
            places[n], theirs[n] = place[row], sizes[row]
            row = follows[row]
            n += 1


@njit(cache=True, nogil=True, makes_arrays=False)
def row_scores(
    own, rows, members, at, n_here, starts, offsets, chunks, tables, fresh, regions, weights, units, table, sums
):  # fmt: skip
    """Write the scores of the regions ``own`` with the rows ``members[at : at + n_here]`` to ``sums``.

    ``fresh`` tells whether a single table must be filled for these regions; if there are several tables, each of them
    is always filled.
    """
    n_tables = len(tables) - 1
    for t in range(n_tables):
        begin, end = chunks[tables[t]], chunks[tables[t + 1]]
        if n_tables > 1 or fresh:
            _fill(table, own, begin, end, starts, offsets, regions, weights, units)
        for c in range(tables[t], tables[t + 1]):
            label_scores(rows, members, at, n_here, starts, chunks[c], chunks[c + 1], starts[begin], table, sums, 0)


@njit(cache=True, nogil=True, makes_arrays=False)
def _fill(table, own, begin, end, starts, offsets, regions, weights, units):
    """Fill the table of clusterings begin … end - 1: for each cluster, the score of an object in it, rounded up."""
    clusters, counts = regions.clusters, regions.counts
    for c in range(starts[end] - starts[begin]):
        for j in range(LANES):
            table[c, j] = 0
    for j in range(len(own)):
        a = own[j]
        e, last = regions.start[a], regions.start[a] + regions.length[a]
        high = last
        while e < high:  # binary search for the region's first entry in these clusterings
            middle = (e + high) // 2
            if clusters[middle] < offsets[begin]:
                e = middle + 1
            else:
                high = middle
        per_object = units[j] / regions.size[a]
        m = begin
        while e < last and clusters[e] < offsets[end]:
            while clusters[e] >= offsets[m + 1]:
                m += 1
            table[clusters[e] + m - starts[begin], j] = np.ceil(weights[clusters[e]] * counts[e] * per_object)
            e += 1

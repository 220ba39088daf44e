"""The label rows of regions."""

from typing import NamedTuple

import numpy as np

from gpuens.partition.linkage.comparisons import TABLE, chunks_of
from gpuens.partition.linkage.nearest import NearestIndex
from gpuens.runtime.native import cpu


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


def bytes_of_thread(n_rows: int, n_clusters: int) -> int:
    """Return the largest number of bytes that a thread takes in searches by rows: a table, sums, and candidates."""
    table = 2 * cpu.LANES * n_clusters
    n_sums = min(n_rows, cpu.LONG_BATCH) if table > TABLE else cpu.LANES
    return table + 8 * n_clusters + cpu.LANES * (4 * n_sums + 16 * cpu.CANDIDATES)


class RowIndex(cpu.RowIndex):
    """The rows of a `NearestIndex`, and its chunks (kernels/cpu/linkage/members.h)."""

    @classmethod
    def of(cls, index: NearestIndex) -> "RowIndex":
        starts = index.starts
        of_bytes, of_words = (cpu.Chunks(starts, *chunks_of(starts, itemsize)) for itemsize in (1, 2))
        return cls(index.rows, index.place, index.sizes, index.offsets, of_bytes, of_words)

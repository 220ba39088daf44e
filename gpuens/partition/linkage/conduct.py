"""How average linkage goes about its work on the CPU: sizes and memory. No choice changes a result."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from math import isqrt
from typing import Any

import numpy as np

from gpuens.labels.rows import Rows
from gpuens.partition.linkage.comparisons import TABLE_BYTES, chunks_of
from gpuens.partition.linkage.nearest import NearestIndex, bytes_needed
from gpuens.runtime import device as devices
from gpuens.runtime.native import cpu

N_LISTED = 16  # regions in a list
MOST_CEILINGS = 2**26  # largest number of ceilings in all tiles together; tiles grow so that it is not exceeded
TILE_ROWS = cpu.TILE_ROWS  # largest number of rows in a tile
TILES_PER_GROUP = 16  # tiles in a group
FOLLOWER_BYTES = 96  # bytes of each region for its followers
NODES_PER_REGION = 2  # nodes of heaps of followers, for each region
RETAINED_FACTOR = 2  # memory of a thread divided by the scratch of a search: allocators keep what threads free
LARGEST_TABLE_BYTES = 2**30  # largest size of a table of pairs in bytes
PAIR_COMPARISONS = 64  # cost of a pair of rows in a table in addition to its label comparisons, in label comparisons
N_LISTED_IN_TABLE = 16  # regions in a list of a table
SMALLEST_WEIGHT_RATIO = 2.0**-10  # smallest weight that units of a table can represent, divided by the largest weight
SAMPLED_FROM = 4096  # smallest number of rows for which a sample of rows decides between a table and lists
KINDS = "tiles", "rows"  # kinds of search (kernels/cpu/linkage/searches.h)

_only: ContextVar[int | None] = ContextVar("only", default=None)


@contextmanager
def only(kind: str) -> Iterator[None]:
    """Use only one kind of search, "tiles" or "rows", in the with block."""
    token = _only.set(KINDS.index(kind))
    try:
        yield
    finally:
        _only.reset(token)


class Conduct(cpu.Conduct):
    """How a linkage goes about its work (kernels/cpu/linkage/average.h)."""

    @classmethod
    def of(cls, index: NearestIndex, room: int) -> "Conduct":
        n_rows, n_clusterings = index.rows.shape
        left = min(1.0, index.comparisons / max(1, n_rows**2 * n_clusterings))
        table = cpu.TableTerms(most_regions(room), comparisons_of_table(n_rows, n_clusterings), N_LISTED_IN_TABLE)
        return cls(left, cpu.TileSizes(TILE_ROWS, MOST_CEILINGS), _only.get(), NODES_PER_REGION * n_rows, table)


class RowIndex(cpu.RowIndex):
    """The rows of a `NearestIndex`, and its chunks (kernels/cpu/linkage/members.h)."""

    @classmethod
    def of(cls, index: NearestIndex) -> "RowIndex":
        starts = index.starts
        of_bytes, of_words = (cpu.Chunks(starts, *chunks_of(starts, itemsize)) for itemsize in (1, 2))
        return cls(index.rows, index.place, index.sizes, index.offsets, of_bytes, of_words)


# --- memory -----------------------------------------------------------------------------------------------------------


def n_listed(rows: Rows) -> int:
    return min(N_LISTED, max(1, len(rows) - 1))


def bytes_of_lists(rows: Rows) -> int:
    """Return the largest number of bytes that lists, histograms and searches by rows take."""
    n_rows, n_clusters = len(rows), rows.n_clusters
    # an entry takes 8 bytes, and half of the arena may be empty; on a GPU there are two arenas while histograms move
    arenas = 1 if rows.device == "cpu" else 2
    needed = bytes_needed(rows.codes, n_clusters, n_listed(rows)) + n_rows * (arenas * 16 * rows.n_clusterings + 112)
    if rows.device != "cpu":
        return needed + 32 * n_rows
    of_thread = max(4 * cpu.LANES * n_clusters, _bytes_of_thread(n_rows, n_clusters))
    return needed + RETAINED_FACTOR * devices.n_threads() * of_thread


def _bytes_of_thread(n_rows: int, n_clusters: int) -> int:
    """Return the largest number of bytes that a thread takes in searches by rows: a table, sums, and candidates."""
    table = 2 * cpu.LANES * n_clusters
    n_sums = min(n_rows, cpu.LONG_BATCH) if table > TABLE_BYTES else cpu.LANES
    return table + 8 * n_clusters + cpu.LANES * (4 * n_sums + 16 * cpu.CANDIDATES)


def bytes_of_tiles(codes: np.ndarray, n_clusters: int) -> int:
    """Return the largest number of bytes that tiles, a search in them, and followers take."""
    n_rows, n_clusterings = map(int, codes.shape)
    tiles = min(MOST_CEILINGS, 2 * n_rows * n_clusters // TILE_ROWS) // TILES_PER_GROUP + n_clusters
    ceilings = (TILES_PER_GROUP + 1) * tiles
    seen_bytes = 4 * (devices.n_threads() + 1)
    return n_rows * (2 * n_clusterings * int(codes.itemsize) + 48 + seen_bytes + FOLLOWER_BYTES) + ceilings


# --- a table of all pairs ---------------------------------------------------------------------------------------------


def room_for_table(rows: Rows, weights: np.ndarray) -> int:
    """Return the number of bytes available for a table of pairs; 0 if weights differ too much for the table's units."""
    if weights.min() < SMALLEST_WEIGHT_RATIO * weights.max():
        return 0
    needed = bytes_of_lists(rows) + bytes_of_tiles(rows.codes, rows.n_clusters)
    return min(LARGEST_TABLE_BYTES, devices.memory_budget() - needed)


def pays_at_once(index: Any, room: int) -> bool:
    """Return whether a table of all pairs of rows fits the memory and costs less than lists, as bounds save little."""
    n_rows, n_clusterings = index.codes.shape
    return (
        n_rows >= SAMPLED_FROM
        and bytes_of_table(n_rows) <= room
        and comparisons_of_table(n_rows, n_clusterings) < n_rows**2 * n_clusterings
    )


def bytes_of_table(n_regions: int) -> int:
    """Return the number of bytes of a table of ``n_regions`` regions."""
    return 2 * n_regions * (-(-n_regions // cpu.LANES) * cpu.LANES)


def most_regions(n_bytes: int) -> int:
    """Return the largest number of regions whose table takes at most so many bytes."""
    square = isqrt(max(0, n_bytes) // 2) // cpu.LANES * cpu.LANES  # the largest table without padding
    return max(square, n_bytes // 2 // (square + cpu.LANES))


def comparisons_of_table(n_rows: int, n_clusterings: int) -> int:
    """Return the cost, in label comparisons, of a table of regions that have ``n_rows`` rows in total."""
    return n_rows**2 // 2 * (n_clusterings + PAIR_COMPARISONS)

"""Chunks of clusterings and tables of clusters, for comparisons of label rows (kernels/cpu/linkage/comparisons.h)."""

from typing import Any

import numpy as np

from gpuens.runtime.native import cpu

CHUNK_BYTES = 2**15  # bytes of a chunk of a table, which fits the smallest cache
UNDIVIDED_CHUNKS = 4  # a table of at most so many chunks is not divided, because it fits the second cache
CHUNK_CLUSTERINGS = 16  # smallest number of clusterings in a chunk; after each chunk, sums must be stored
TABLE_BYTES = 2**22  # largest size of a table in bytes


def chunks_of(starts: np.ndarray, itemsize: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the first clustering of each chunk (n_chunks + 1,), and the first chunk of each table (n_tables + 1,).

    The last entry of either array is the end. ``starts`` (M + 1,) are the first clusters of the clusterings. A chunk
    has at most 255 clusterings, so that a byte holds the sum of their unit weights.
    """
    rows = CHUNK_BYTES // (cpu.LANES * itemsize)
    undivided = UNDIVIDED_CHUNKS * rows
    chunks = _part_bounds(starts, undivided if starts[-1] <= undivided else rows, CHUNK_CLUSTERINGS)
    return chunks, _part_bounds(starts[chunks], TABLE_BYTES // (cpu.LANES * itemsize), 1)


def _part_bounds(starts: np.ndarray, largest_part: int, fewest_clusterings: int) -> np.ndarray:
    """Return the bounds of parts of clusterings with at most ``largest_part`` clusters, if they have so few."""
    bounds = [0]
    for m in range(1, len(starts)):
        begin = bounds[-1]
        too_large = m - begin > cpu.BYTE or starts[m] - starts[begin] > largest_part
        if too_large and m - 1 >= begin + fewest_clusterings:
            bounds.append(m - 1)
    return np.array([*bounds, len(starts) - 1])


def aligned_zeros(n: int, lanes: int, dtype: Any) -> np.ndarray:
    """Return zeros (n, lanes) aligned to cache lines: a row that crosses more lines than needed loads more slowly."""
    zeros = np.zeros(n * lanes + cpu.LINE, dtype=dtype)
    first = -zeros.__array_interface__["data"][0] % cpu.LINE // zeros.itemsize
    return zeros[first : first + n * lanes].reshape(n, lanes)

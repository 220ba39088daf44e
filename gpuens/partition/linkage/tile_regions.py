"""Bytes and sizes of the tiles of label rows in which average linkage searches on the CPU (kernels/cpu/linkage)."""

import numpy as np

from gpuens.partition.linkage.regions import CEILINGS
from gpuens.runtime import device as devices
from gpuens.runtime.native import cpu

TILE = cpu.TILE_ROWS  # largest number of rows in a tile
GROUP = 16  # tiles in a group


def bytes_needed(codes: np.ndarray, n_clusters: int) -> int:
    """Return the largest number of bytes that tiles and a search in them take, without lists."""
    n_rows, n_clusterings = map(int, codes.shape)
    tiles = min(CEILINGS, 2 * n_rows * n_clusters // TILE) // GROUP + n_clusters
    ceilings = (GROUP + 1) * tiles
    seen = 4 * (devices.n_threads() + 1)
    return n_rows * (2 * n_clusterings * int(codes.itemsize) + 48 + seen) + ceilings


def sizes() -> tuple[int, int]:
    """Return the largest number of rows in a tile, and of ceilings in all tiles."""
    return TILE, CEILINGS

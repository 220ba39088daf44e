"""Products of large matrices in host memory, tile by tile, so that Python answers signals between two tiles.

A tile is the work of one thread of BLAS, so that the rounding of a large product does not depend on the number of
threads; BLAS's own threads share rows and columns in a way that depends on how many there are.
"""

from collections.abc import Callable
from math import isqrt
from typing import Any, TypeAlias

import numpy as np

from gpuens.runtime import device as devices

TILE = 2**30  # multiplications of a tile, at most .1 s; a product of no more is one call of BLAS
TILES_PER_SIDE = 4  # along the longer side of a product, at least
EDGE_MULTIPLE = 16  # factor of the edge of a tile; BLAS works on so many rows and columns at once

Tile: TypeAlias = tuple[slice, slice]  # rows and columns


def product(a: Any, b: Any) -> Any:
    """Return ``a @ b`` of two matrices in the same memory; on a GPU it is one product."""
    (n, depth), m = a.shape, b.shape[1]
    if n * depth * m <= TILE or devices.kind_of(a) == "cuda":
        return a @ b
    result = np.empty((n, m), dtype=np.result_type(a, b))

    def multiply(rows: slice, columns: slice) -> None:
        np.matmul(a[rows], b[:, columns], out=result[rows, columns])

    _multiply_tiles(multiply, _tiles(n, depth, m))
    return result


def gram(a: np.ndarray) -> np.ndarray:
    """Return ``a @ a.T``, symmetric to the bit."""
    n, depth = a.shape
    result: np.ndarray
    if n * depth * n <= TILE:
        result = a @ a.T
        return result
    result = np.empty((n, n), dtype=a.dtype)

    def multiply(rows: slice, columns: slice) -> None:
        result[rows, columns] = a[rows] @ a[columns].T  # NumPy makes the tiles of the diagonal symmetric
        if rows != columns:
            result[columns, rows] = result[rows, columns].T

    _multiply_tiles(multiply, [tile for tile in _tiles(n, depth, n) if tile[0].start >= tile[1].start])
    return result


def _tiles(n: int, depth: int, m: int) -> list[Tile]:
    """Return the rows and columns of the tiles of an (n, m) product."""
    edge = _edge(n, depth, m)
    return [(slice(i, i + edge), slice(j, j + edge)) for i in range(0, n, edge) for j in range(0, m, edge)]


def _edge(n: int, depth: int, m: int) -> int:
    """Return the number of rows and columns of a tile of an (n, m) product; it does not depend on the threads."""
    edge = min(isqrt(TILE // max(1, depth)), max(n, m) // TILES_PER_SIDE)
    return max(1, edge // EDGE_MULTIPLE) * EDGE_MULTIPLE


def _multiply_tiles(multiply: Callable[[slice, slice], None], tiles: list[Tile]) -> None:
    """Multiply tiles in threads, with one thread of BLAS for each; a signal ends all threads after their tiles."""
    stopped = False

    def work(start: int, stop: int) -> None:
        nonlocal stopped
        try:
            for tile in tiles[start:stop]:
                if not stopped:
                    multiply(*tile)
        except BaseException:
            stopped = True
            raise

    with devices.library_threads(1):
        devices.over_ranges(work, len(tiles))

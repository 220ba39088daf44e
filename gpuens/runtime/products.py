"""Products of large matrices in host memory, tile by tile, so that Python answers signals between two tiles.

A tile is the work of one thread of BLAS, so that the rounding of a large product does not depend on the number of
threads; BLAS's own threads share rows and columns in a way that depends on how many there are.
"""

from collections.abc import Callable
from math import isqrt
from typing import Any

import numpy as np

from gpuens.runtime import device as devices

TILE = 2**30  # multiplications of a tile, at most .1 s; a product of no more is one call of BLAS
SHARES = 4  # tiles along the longer side of a product, at least
MULTIPLE = 16  # the edge of a tile is a multiple of this; BLAS works on so many rows and columns at once


def product(a: Any, b: Any) -> Any:
    """Return ``a @ b`` of two matrices in the same memory; on a GPU it is one product."""
    (n, depth), m = a.shape, b.shape[1]
    if n * depth * m <= TILE or devices.kind_of(a) == "cuda":
        return a @ b
    found = np.empty((n, m), dtype=np.result_type(a, b))
    edge = _edge(n, depth, m)
    tiles = [(i, j) for i in range(0, n, edge) for j in range(0, m, edge)]

    def multiply(i: int, j: int) -> None:
        np.matmul(a[i : i + edge], b[:, j : j + edge], out=found[i : i + edge, j : j + edge])

    _each(multiply, tiles)
    return found


def gram(a: np.ndarray) -> np.ndarray:
    """Return ``a @ a.T``, symmetric to the bit."""
    n, depth = a.shape
    if n * depth * n <= TILE:
        whole: np.ndarray = a @ a.T
        return whole
    found = np.empty((n, n), dtype=a.dtype)
    edge = _edge(n, depth, n)
    tiles = [(i, j) for i in range(0, n, edge) for j in range(0, i + 1, edge)]

    def multiply(i: int, j: int) -> None:
        rows, columns = slice(i, i + edge), slice(j, j + edge)
        found[rows, columns] = a[rows] @ a[columns].T  # NumPy makes the tiles of the diagonal symmetric
        if i != j:
            found[columns, rows] = found[rows, columns].T

    _each(multiply, tiles)
    return found


def _edge(n: int, depth: int, m: int) -> int:
    """Return the number of rows and columns of a tile of an (n, m) product; it does not depend on the threads."""
    edge = min(isqrt(TILE // max(1, depth)), max(n, m) // SHARES)
    return max(1, edge // MULTIPLE) * MULTIPLE


def _each(multiply: Callable[[int, int], None], tiles: list[tuple[int, int]]) -> None:
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

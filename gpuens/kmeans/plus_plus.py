"""k-means++ chooses the initial centers of k-means; each is the best of several points drawn by squared distance."""

from typing import Any

import numpy as np

from gpuens.runtime import device as devices
from gpuens.runtime import kernels
from gpuens.runtime.native import cpu


def n_trials(k: int) -> int:
    """Return the number of points drawn for each of k centers, as in scikit-learn."""
    return 2 + int(np.log(k))


@kernels.primitive
def plus_plus(turned: np.ndarray, weights: np.ndarray, first: np.ndarray, uniform: np.ndarray) -> np.ndarray:
    """Return the points (B, k), int64, that k-means++ chooses in B starts among points with weights (n,).

    ``turned`` (d, n) are the transposed points, ``first`` (B,) the first point of each start, and ``uniform``
    (B, k - 1, draws) the random numbers in [0, 1) that draw the other points.
    """
    centers = np.empty((len(first), uniform.shape[1] + 1), dtype=np.int64)
    draws = np.ascontiguousarray(uniform).reshape(len(first), uniform.shape[1] * uniform.shape[2])
    cpu.plus_plus(turned, weights, np.asarray(first, dtype=np.int64), draws, centers)
    return centers


# --- kernels/plus_plus.cu ---------------------------------------------------------------------------------------------


@plus_plus.kernel
def _(turned: Any, weights: Any, first: np.ndarray, uniform: np.ndarray, *, device: str) -> Any:
    """Choose the points by matrix products, for as many starts at a time as memory allows."""
    turned, (n_starts, _, trials) = turned.astype(np.float64, copy=False), uniform.shape
    at_once = max(1, devices.scratch(device) // (18 * trials * turned.shape[1]))
    groups = [slice(start, start + at_once) for start in range(0, n_starts, at_once)]
    return np.concatenate([_together(turned, weights, first[group], uniform[group], device) for group in groups])


def _together(turned: Any, weights: Any, first: np.ndarray, uniform: np.ndarray, device: str) -> Any:
    xp, (n_starts, n_further, trials), (d, n) = devices.namespace(device), uniform.shape, turned.shape
    own_squares, draws = (turned * turned).sum(axis=0), xp.asarray(uniform)
    centers, potential = xp.empty((n_starts, n_further + 1), dtype=np.int64), xp.empty(n_starts)
    nearest, weighted = xp.full((n_starts, n), np.inf), xp.empty((n_starts, n))
    places = xp.asarray(first, dtype=np.int64)[:, None]
    candidates = turned[:, places[:, 0]]
    for c in range(n_further + 1):
        if c:
            reached = np.cumsum(weighted, axis=1)
            places, candidates = xp.empty((n_starts, trials), dtype=np.int64), xp.empty((d, n_starts * trials))
            kernels.launch(
                "draw_points", places.size, 256,
                (turned, reached, potential, draws, places, candidates, n, d, trials, c, n_further + 1), device=device,
            )  # fmt: skip
        squares = (candidates.T @ turned).reshape(*places.shape, n)
        spent = xp.empty(squares.shape)
        kernels.launch(
            "nearer_squares", kernels.blocks(squares.size, 256), 256,
            (own_squares, weights, nearest, places, squares, spent, *squares.shape), device=device,
        )  # fmt: skip
        kernels.launch(
            "keep_best", kernels.blocks(nearest.size, 256), 256,
            (places, spent.sum(axis=2), squares, spent, centers, potential, nearest, weighted, *squares.shape, c,
             n_further + 1),
            device=device,
        )  # fmt: skip
    return centers

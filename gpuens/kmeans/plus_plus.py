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
    chosen = np.empty((len(first), uniform.shape[1] + 1), dtype=np.int64)
    draws = np.ascontiguousarray(uniform).reshape(len(first), uniform.shape[1] * uniform.shape[2])
    cpu.plus_plus(turned, weights, np.asarray(first, dtype=np.int64), draws, chosen)
    return chosen


@plus_plus.kernel
def _(turned: Any, weights: Any, first: np.ndarray, uniform: np.ndarray, *, device: str) -> Any:
    """Choose the points by matrix products, for as many starts at a time as memory allows."""
    turned, (n_starts, _, trials) = turned.astype(np.float64, copy=False), uniform.shape
    at_once = max(1, devices.scratch(device) // (18 * trials * turned.shape[1]))
    groups = [slice(start, start + at_once) for start in range(0, n_starts, at_once)]
    return np.concatenate([_together(turned, weights, first[some], uniform[some], device) for some in groups])


def _together(turned: Any, weights: Any, first: np.ndarray, uniform: np.ndarray, device: str) -> Any:
    xp, n = devices.namespace(device), turned.shape[1]
    own_squares, each, draws = (turned * turned).sum(axis=0), xp.arange(len(first)), xp.asarray(uniform)
    chosen = xp.zeros((len(first), uniform.shape[1] + 1), dtype=np.int64)
    chosen[:, 0] = xp.asarray(first)

    def squares_to(places: Any) -> Any:
        """Return the squared distances (B, t, n) of all n points to the points with the numbers ``places`` (B, t)."""
        others = turned[:, places.ravel()]
        squares = (others.T @ turned).reshape(*places.shape, n)
        squares *= -2
        squares += own_squares
        squares += own_squares[places][:, :, None]
        return np.maximum(squares, 0, out=squares)

    nearest = squares_to(chosen[:, :1])[:, 0]
    potential = (nearest * weights).sum(axis=1)
    for c in range(1, chosen.shape[1]):
        reached = np.cumsum(nearest * weights, axis=1)
        drawn = draws[:, c - 1] * potential[:, None]
        places = (reached[:, None, :] < drawn[:, :, None]).sum(axis=2)
        places = np.minimum(places, n - 1)  # rounding may leave the last sum below the drawn value
        then = squares_to(places)
        np.minimum(then, nearest[:, None, :], out=then)
        potentials = (then * weights).sum(axis=2)
        best = potentials.argmin(axis=1)
        nearest, potential, chosen[:, c] = then[each, best], potentials[each, best], places[each, best]
    return chosen

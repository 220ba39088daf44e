"""Distances of all pairs of points, which are computed a strip of rows at a time and never stored."""

from functools import partial
from typing import Any

import numpy as np

from gpuens.runtime import device as devices
from gpuens.runtime import progress
from gpuens.runtime.products import product

STRIP_COPIES = 3  # arrays as large as a strip that are in memory at the same time


def needed(n: int, k: int, *, device: str = "cpu") -> int:
    """Return the bytes of memory that `distances_and_silhouettes` of n points in k clusters needs beside the points."""
    return 16 * n * (k + 1) + min(devices.scratch(device), 8 * STRIP_COPIES * n * n)


@devices.library_threads(1)  # sums of several threads could differ
def distances_and_silhouettes(
    points: Any, labels: Any, k: int, n_nearest: int, *, device: str = "cpu"
) -> tuple[np.ndarray, np.ndarray]:
    """Return two arrays (n,), float64, host: mean distances to the nearest points, and silhouettes in k clusters.

    The mean is over the ``n_nearest`` nearest other points. The silhouette of a point is (b - a) / max(a, b), where a
    is its mean distance to the other points of its cluster, and b the smallest mean distance to another cluster; it is
    0 in a cluster of one point, and in a single cluster. Distances are Euclidean. ``points`` (n, d), float64, and
    ``labels`` (n,), int64, are on the device.
    """
    xp, n = devices.namespace(device), len(points)
    squares, members = (points * points).sum(axis=1), (labels[:, None] == xp.arange(k)).astype(np.float64)
    means, sums = xp.empty(n), xp.empty((n, k))
    step = max(1, devices.scratch(device) // (8 * STRIP_COPIES * n))

    def finish(strip: Any, start: int, first: int, last: int) -> Any:
        """Turn rows of products of points into distances, in place; return the means of the nearest ones."""
        part, places = strip[first:last], xp.arange(start + first, start + last)
        part *= -2.0
        part += squares
        part += squares[places, None]
        part[places - (start + first), places] = 0.0
        xp.sqrt(xp.maximum(part, 0.0, out=part), out=part)
        return xp.partition(part, n_nearest, axis=1)[:, : n_nearest + 1].sum(axis=1) / n_nearest

    for start in progress.bar(range(0, n, step), "distances"):
        rows = slice(start, min(n, start + step))
        strip = product(points[rows], points.T)
        work = partial(finish, strip, start)
        nearest = [work(0, len(strip))] if device == "cuda" else devices.over_ranges(work, len(strip))
        means[rows], sums[rows] = xp.concatenate(nearest), product(strip, members)
    return devices.to_host(means), _silhouettes(devices.to_host(sums), devices.to_host(labels), k)


def silhouettes_of_distances(within: np.ndarray, between: np.ndarray) -> np.ndarray:
    """Return (b - a) / max(a, b) for mean distances a in the own cluster and b to the nearest other one, 0 if both are.

    If one of both is NaN, the silhouette is 0.
    """
    larger = np.maximum(within, between)
    return np.where(larger > 0, (between - within) / np.where(larger > 0, larger, 1.0), 0.0)


def _silhouettes(sums: np.ndarray, labels: np.ndarray, k: int) -> np.ndarray:
    """Return the silhouettes (n,) from the sums (n, k) of distances to the points of each cluster."""
    sizes, points = np.bincount(labels, minlength=k), np.arange(len(labels))
    if (sizes > 0).sum() < 2:
        return np.zeros(len(labels))
    within = sums[points, labels] / np.maximum(sizes[labels] - 1, 1)
    sums /= np.maximum(sizes, 1)
    sums[:, sizes == 0], sums[points, labels] = np.inf, np.inf
    silhouettes = silhouettes_of_distances(within, sums.min(axis=1))
    silhouettes[sizes[labels] == 1] = 0.0
    return silhouettes

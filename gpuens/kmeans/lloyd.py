"""k-means of weighted points, on the device of the points; of few of them on the CPU by scikit-learn."""

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from gpuens.kmeans import compiled_lloyd
from gpuens.kmeans.batched import CHUNK, best_of
from gpuens.runtime import device as devices
from gpuens.runtime import kernels

# for more rows, starts use a sample of this size, or of as many rows as clusters; the best goes on with all rows
RESTARTS_ON = 10_000
MOST_ITERATIONS = 100


@kernels.primitive
def restarts(points: np.ndarray, counts: np.ndarray, k: int, n_init: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the labels (G,) and centers (k, d) of the best of ``n_init`` starts of k-means of points (G, d)."""
    found = _fitted(points, counts, k, n_init=n_init, random_state=seed)
    return found.labels_, found.cluster_centers_


@kernels.primitive
def begin(points: np.ndarray, counts: np.ndarray, k: int, n_init: int, seed: int) -> np.ndarray:
    """Return the centers (k, d) of `restarts`, where only rounding of the result may depend on how it is found."""
    found = compiled_lloyd.best_start(points, counts, k, n_init, seed, MOST_ITERATIONS)
    if found is None:  # scikit-learn moves empty clusters
        found = _fitted(points, counts, k, n_init=n_init, random_state=seed).cluster_centers_
    return found


def descend(
    centers: Any, enough: float, sums_of: Callable[[Any], tuple[Any, Any] | None], max_iter: int = MOST_ITERATIONS
) -> Any:
    """Return the centers after Lloyd's iterations, which end by scikit-learn's rules.

    ``sums_of(centers)`` returns the sum of the points nearest to each center (k, d) and their number (k, 1), or None
    if no point has changed its center. An empty cluster keeps its center.
    """
    for _ in range(max_iter):
        found = sums_of(centers)
        if found is None:
            break
        total, weight = found
        moved = np.where(weight > 0, total / np.maximum(weight, 1.0), centers)
        shift = float(((moved - centers) ** 2).sum())
        centers = moved
        if shift <= enough:
            break
    return centers


def lloyd(points: Any, counts: np.ndarray, centers: Any, device: str = "cpu") -> Any:
    """Return the labels (G,) of k-means from ``centers`` (k, d); row g of ``points`` (G, d) weighs counts[g]."""
    xp = devices.namespace(device)
    labels, counts, centers = xp.full(len(points), -1, dtype=np.int64), xp.asarray(counts), xp.asarray(centers)

    def sums_of(centers: Any) -> tuple[Any, Any] | None:
        total, weight, changed = nearest_centers(points, counts, centers, labels, device=device)
        return (total, weight) if changed else None

    nearest_centers(
        points, counts, descend(centers, 1e-4 * mean_variance(points, device=device), sums_of), labels, device=device
    )
    return labels


@kernels.primitive
def nearest_centers(points: np.ndarray, counts: np.ndarray, centers: np.ndarray, labels: np.ndarray) -> tuple[Any, ...]:
    """Label points (n, d) by their nearest centers (k, d), of equally near ones the first.

    Returns the sums of each cluster's points (k, d), its weight (k, 1), and the number of points whose label in
    ``labels`` (n,), int64, was another before.
    """
    return compiled_lloyd.nearest(points, counts, centers, labels)


@kernels.primitive
def mean_variance(points: np.ndarray) -> float:
    """Return the mean variance of the dimensions of points (n, d)."""
    return compiled_lloyd.mean_variance(points)


def _fitted(points: np.ndarray, counts: np.ndarray, k: int, **how: Any) -> Any:
    """Return scikit-learn's KMeans, fitted; it warns of fewer clusters, and so do our callers."""
    from sklearn.cluster import KMeans
    from sklearn.exceptions import ConvergenceWarning

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        with devices.library_threads(1, "openmp"):  # several would add their sums in the order in which they end
            return KMeans(k, max_iter=MOST_ITERATIONS, **how).fit(points, sample_weight=counts)


@restarts.kernel
def _(points: Any, counts: np.ndarray, k: int, n_init: int, seed: int, *, device: str) -> tuple[Any, Any]:
    return best_of(points, counts, k, n_init=n_init, max_iter=MOST_ITERATIONS, seed=seed, device=device)


@begin.kernel
def _(points: Any, counts: np.ndarray, k: int, n_init: int, seed: int, *, device: str) -> Any:
    return restarts(points, counts, k, n_init, seed, device=device)[1]


@mean_variance.kernel
def _(points: Any, *, device: str) -> float:
    return float(points.var(axis=0, dtype=np.float64).mean())


@nearest_centers.kernel
def _(points: Any, counts: Any, centers: Any, labels: Any, *, device: str) -> tuple[Any, Any, int]:
    """Products of matrices."""
    centers = centers.astype(np.float32)
    half_square, changed = (centers * centers).sum(axis=1) / 2, devices.namespace(device).zeros((), dtype=int)
    at_once = max(1, devices.scratch(device) // (12 * len(centers)))
    for start in range(0, len(points), at_once):
        some = slice(start, start + at_once)
        found = (points[some] @ centers.T - half_square).argmax(axis=1)
        changed += (found != labels[some]).sum()
        labels[some] = found
    return *sums_by_label(labels, len(centers), points.__getitem__, counts), int(changed)


def sums_by_label(labels: Any, k: int, points_of: Callable[[slice], Any], weights: Any = None) -> tuple[Any, Any]:
    """Return the sums of each label's points (k, d), and its weight (k, 1), both float64, by products of matrices.

    ``points_of(rows)`` are the points (n, d) of some rows, in whose type they are multiplied; ``weights`` (N,) are 1 if
    not given. The products of `CHUNK` rows are added in float64 and in order: one product of half a million rows in
    float32 is off by 7e-7, and the number of rows must not depend on free memory.
    """
    names = devices.namespace(devices.kind_of(labels)).arange(k)[:, None]
    total: Any = 0.0
    weight: Any = 0.0
    for start in range(0, len(labels), CHUNK):
        some = slice(start, start + CHUNK)
        points = points_of(some)
        hot = (labels[some] == names).astype(points.dtype)
        if weights is not None:
            hot *= weights[some]
        total = total + (hot @ points).astype(np.float64)
        weight = weight + hot.sum(axis=1, dtype=np.float64)
    return total, weight[:, None]

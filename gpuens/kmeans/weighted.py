"""k-means of weighted points, such as embedded rows, with the same random draws as scikit-learn's KMeans.

On the CPU, all iterations of all starts are one call (kernels/cpu/kmeans). On a GPU, several starts are iterated
together by matrix products.
"""

from operator import itemgetter
from typing import Any

import numpy as np

from gpuens.kmeans.lloyd import (
    CHUNK,
    MOST_ITERATIONS,
    TOLERANCE,
    descend_on_gpu,
    label_by_products,
    refill,
    squares_to_own,
    sums_by_label,
)
from gpuens.kmeans.plus_plus import n_trials, plus_plus
from gpuens.runtime import device as devices
from gpuens.runtime import kernels
from gpuens.runtime.native import cpu

# size of the sample (at least one row per cluster) that the starts use if there are more rows; only the best start
# continues with all rows
RESTARTS_ON = 10_000
ADDED = 2**13  # number of points in a chunk, whose sums `mean_variance` adds


def restarts(
    points: Any, counts: np.ndarray, k: int, n_init: int, seed: int, *, device: str = "cpu"
) -> tuple[Any, Any]:
    """Return the labels (n,) and centers (k, d) of the best of several starts of k-means of points (n, d).

    The starts make the random draws of scikit-learn's KMeans(k, n_init=n_init, random_state=seed) and follow its rules,
    so that the results are equal up to rounding errors. In float32, rounding errors may change a drawn point. If
    several starts are equally good, the first of them is returned.
    """
    xp, n = devices.namespace(device), len(points)
    mean = points.mean(axis=0, dtype=np.float64).astype(points.dtype)
    points = points - mean
    enough = TOLERANCE * points.var(axis=0).mean().astype(np.float64)
    share = counts.astype(points.dtype)
    share /= share.sum()
    state, draws = np.random.RandomState(seed), (k - 1, n_trials(k))
    draws_of_starts = [(state.choice(n, p=share), state.uniform(size=draws)) for _ in range(n_init)]
    first, uniform = (np.stack(arrays) for arrays in zip(*draws_of_starts, strict=True))
    counts, turned = xp.asarray(counts), xp.ascontiguousarray(points.T)
    first_centers = plus_plus(turned, counts.astype(np.float64), first, uniform, device=device)
    del turned
    labels, centers = (best_of_starts if device == "cpu" else _best_of_starts_on_gpu)(
        points, counts, first_centers, enough, device
    )
    return labels, centers + mean


def labels_of_restarts(
    points: Any, counts: np.ndarray, k: int, n_init: int, seed: int, rng: np.random.Generator, *, device: str = "cpu"
) -> Any:
    """Return the labels (n,) of `restarts` of points (n, d), which use at most 10,000 points, or k if k is larger.

    The sample of more points is drawn by ``rng``; the best start continues with all points.
    """
    n_drawn = max(RESTARTS_ON, k)
    if len(points) <= n_drawn:
        return restarts(points, counts, k, n_init, seed, device=device)[0]
    sample = np.sort(rng.choice(len(points), n_drawn, replace=False))
    drawn_points = points[devices.namespace(device).asarray(sample)]
    _, centers = restarts(drawn_points, counts[sample], k, n_init, seed, device=device)
    return lloyd(points, counts, centers, device=device)


def best_of_starts(
    points: np.ndarray, counts: np.ndarray, first_centers: np.ndarray, enough: float, device: str = "cpu"
) -> tuple[np.ndarray, np.ndarray]:
    """Return the labels (n,) and centers (k, d) of the best of the starts from points ``first_centers`` (B, k)."""
    labels, centers = np.empty(len(points), dtype=np.int64), np.empty((first_centers.shape[1], points.shape[1]))
    cpu.best_of_starts(*_weighted(points, counts), first_centers, enough, MOST_ITERATIONS, centers, labels)
    return labels, centers


def _best_of_starts_on_gpu(points: Any, counts: Any, first_centers: Any, enough: float, device: str) -> tuple[Any, Any]:
    xp, n, (n_starts, k) = devices.namespace(device), len(points), first_centers.shape

    def best_of(group: slice) -> tuple[float, Any, Any]:
        """Return the inertia, labels and centers of the best of some starts, which are iterated together.

        A single start has nothing to be compared with; its inertia is not computed, and given as 0.
        """
        centers, labels = descended(points, counts, points[first_centers[group]].astype(np.float64), enough, device)
        if n_starts == 1:
            return 0.0, labels[0], centers[0]
        apart = [
            squares_to_own(points.__getitem__, *centers_and_labels)
            for centers_and_labels in zip(centers, labels, strict=True)
        ]
        inertia = devices.to_host(xp.stack([(squares * counts).sum() for squares in apart]))
        best = int(inertia.argmin())
        return float(inertia[best]), labels[best], centers[best]

    step = max(1, devices.scratch(device) // (16 * n + k * (9 * min(n, CHUNK) + 40 * points.shape[1])))
    starts = (slice(start, start + step) for start in range(0, n_starts, step))
    _, labels, centers = min(map(best_of, starts), key=itemgetter(0))
    return labels, centers


def lloyd(points: Any, counts: np.ndarray, centers: Any, device: str = "cpu") -> Any:
    """Run k-means from the initial ``centers`` (k, d); return the labels (n,) of the points.

    Point g of ``points`` (n, d) has the weight ``counts[g]``.
    """
    enough = TOLERANCE * mean_variance(points, device=device)
    if device == "cpu":
        labels = np.empty(len(points), dtype=np.int64)
        moved = np.array(centers, dtype=np.float64, order="C")
        cpu.descend_weighted(*_weighted(points, counts), enough, MOST_ITERATIONS, moved, labels)
        return labels
    xp = devices.namespace(device)
    return descended(points, xp.asarray(counts), xp.asarray(centers)[None], enough, device)[1][0]


def descended(points: Any, counts: Any, centers: Any, enough: Any, device: str) -> tuple[Any, Any]:
    """Run Lloyd's iterations for B starts on a GPU; return the final centers (B, k, d) and the labels (B, n)."""
    xp = devices.namespace(device)
    labels = xp.full((len(centers), len(points)), -1, dtype=np.int64)

    def sums_of(centers: Any) -> Any:
        return nearest_centers(points, counts, centers, labels, device=device)

    def weighted_point(x: int) -> tuple[Any, float]:
        count = float(counts[x])
        return count * points[x].astype(np.float64), count

    def refilled(centers: Any, total: Any, weight: Any, empty: np.ndarray) -> None:
        def squares_of(b: int) -> Any:
            return squares_to_own(points.__getitem__, centers[b], labels[b])

        refill(labels, total, weight, empty, squares_of, weighted_point)

    centers, labelled = descend_on_gpu(centers, enough, sums_of, refilled, device=device)
    if not labelled:
        _label(points, centers, labels, device)
    return centers, labels


# --- nearest centers --------------------------------------------------------------------------------------------------


@kernels.primitive
def nearest_centers(
    points: np.ndarray, counts: np.ndarray, centers: np.ndarray, labels: np.ndarray
) -> tuple[np.ndarray, np.ndarray, int]:
    """Label points (n, d) by the nearest of the centers (B, k, d), float64, of each of B starts.

    If several centers are equally near, the first of them is taken. Return the sum of each cluster's points (B, k, d)
    and its weight (B, k, 1), both float64, and the number of labels (B, n), int64, that changed.
    """
    n_starts, k, d = centers.shape
    sums = np.empty((n_starts, k, d + 1))
    points_and_counts = _weighted(points, counts)
    starts = zip(np.ascontiguousarray(centers), labels, sums, strict=True)
    changed = sum(
        cpu.nearest_centers(*points_and_counts, centers_of_start, labels_of_start, sums_of_start)
        for centers_of_start, labels_of_start, sums_of_start in starts
    )
    return sums[..., :-1], sums[..., -1:], changed


def _weighted(points: np.ndarray, counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return points and counts as compiled functions read them, which they nearly always are."""
    return np.ascontiguousarray(points), np.ascontiguousarray(counts, dtype=np.int64)


@nearest_centers.kernel
def _(points: Any, counts: Any, centers: Any, labels: Any, *, device: str) -> tuple[Any, Any, Any]:
    """Label the points by matrix products; the number of changed labels stays on the device."""
    changed = _label(points, centers, labels, device)
    return *sums_by_label(labels, centers.shape[1], points.__getitem__, counts, device=device), changed


def _label(points: Any, centers: Any, labels: Any, device: str) -> Any:
    """Label points (n, d) by the nearest of the centers (B, k, d) on a GPU; return the number of changed labels."""
    n_starts, k, d = centers.shape
    centers, changed = centers.astype(points.dtype), devices.namespace(device).zeros(1, dtype=np.uint64)
    half_squares = (centers * centers).sum(axis=2) / 2
    at_once = max(1, devices.scratch(device) // (8 * n_starts * k))
    for start in range(0, len(points), at_once):
        products = (centers.reshape(-1, d) @ points[start : start + at_once].T).reshape(n_starts, k, -1)
        label_by_products(products, half_squares, labels, start, changed, device)
    return changed[0]


@kernels.primitive
def mean_variance(points: np.ndarray) -> float:
    """Return the mean of the variances of the d dimensions of points (n, d), which are read in chunks."""
    sums, squares = np.zeros(points.shape[1]), np.zeros(points.shape[1])
    for start in range(0, len(points), ADDED):
        chunk = points[start : start + ADDED].astype(np.float64)
        sums += chunk.sum(axis=0)
        squares += np.einsum("ij,ij->j", chunk, chunk)
    mean = sums / len(points)
    return float((squares / len(points) - mean * mean).mean())


@mean_variance.kernel
def _(points: Any, *, device: str) -> Any:
    """Return the mean on the device, so that the host does not wait for it."""
    return points.var(axis=0, dtype=np.float64).mean()

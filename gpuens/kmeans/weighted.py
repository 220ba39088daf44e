"""k-means of weighted points, such as embedded rows, with the same random draws as scikit-learn's KMeans.

On the CPU, blocks of points are transposed, so that one vector instruction compares several points with a center for
any number of dimensions and centers. Sums over clusters do not depend on the number of threads, because they are added
in order from chunks of a constant size. On a GPU, several starts are iterated together by matrix products.
"""

from functools import partial
from operator import itemgetter
from typing import Any

import numpy as np

from gpuens.kmeans.lloyd import CHUNK, TOLERANCE, descend, refill, squares_to_own, sums_by_label
from gpuens.kmeans.plus_plus import n_trials, plus_plus
from gpuens.runtime import device as devices
from gpuens.runtime import kernels
from gpuens.runtime.compiled import njit

# size of the sample (at least one row per cluster) that the starts use if there are more rows; only the best start
# continues with all rows
RESTARTS_ON = 10_000
BLOCK = 64  # number of points compared with the centers at a time
ADDED = 2**13  # number of points in a chunk; the points of a chunk are added one after the other


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
    enough = TOLERANCE * float(points.var(axis=0).mean())
    share = counts.astype(points.dtype)
    share /= share.sum()
    state, draws = np.random.RandomState(seed), (k - 1, n_trials(k))
    drawn = [(state.choice(n, p=share), state.uniform(size=draws)) for _ in range(n_init)]
    first, uniform = (np.stack(each) for each in zip(*drawn, strict=True))
    counts, turned = xp.asarray(counts), xp.ascontiguousarray(points.T)
    chosen = plus_plus(turned, counts.astype(np.float64), first, uniform, device=device)
    del turned

    def best_of(some: slice) -> tuple[float, Any, Any]:
        """Return the inertia, labels and centers of the best of some starts, which are iterated together."""
        centers, labels = descended(points, counts, points[chosen[some]].astype(np.float64), enough, device)
        apart = [squares_to_own(points.__getitem__, *found) for found in zip(centers, labels, strict=True)]
        inertia = devices.to_host(xp.stack([(squares * counts).sum() for squares in apart]))
        best = int(inertia.argmin())
        return float(inertia[best]), labels[best], centers[best]

    def best_between(start: int, stop: int, step: int = 1) -> tuple[float, Any, Any]:
        return min((best_of(slice(a, min(a + step, stop))) for a in range(start, stop, step)), key=itemgetter(0))

    if device == "cpu":
        found = min(devices.over_ranges(best_between, n_init), key=itemgetter(0))
    else:
        a_start = 16 * n + k * (9 * min(n, CHUNK) + 40 * points.shape[1])
        found = best_between(0, n_init, max(1, devices.scratch(device) // a_start))
    return found[1], found[2] + mean


def lloyd(points: Any, counts: np.ndarray, centers: Any, device: str = "cpu") -> Any:
    """Run k-means from the initial ``centers`` (k, d); return the labels (n,) of the points.

    Point g of ``points`` (n, d) has the weight ``counts[g]``.
    """
    xp = devices.namespace(device)
    enough = TOLERANCE * mean_variance(points, device=device)
    return descended(points, xp.asarray(counts), xp.asarray(centers)[None], enough, device)[1][0]


def descended(points: Any, counts: Any, centers: Any, enough: float, device: str) -> tuple[Any, Any]:
    """Run Lloyd's iterations for B starts; return the final centers (B, k, d) and the labels (B, n)."""
    xp = devices.namespace(device)
    labels = xp.full((len(centers), len(points)), -1, dtype=np.int64)

    def weighted_point(x: int) -> tuple[Any, float]:
        own = float(counts[x])
        return own * points[x].astype(np.float64), own

    def sums_of(centers: Any) -> tuple[Any, Any] | None:
        total, weight, changed = nearest_centers(points, counts, centers, labels, device=device)
        both = np.concatenate([weight.ravel(), xp.asarray(changed).reshape(1)])  # so that the host waits once
        *weights, n_changed = devices.to_host(both).tolist()
        if not n_changed:
            return None
        empty = np.reshape(weights, weight.shape[:2]) == 0

        def squares_of(b: int) -> Any:
            return squares_to_own(points.__getitem__, centers[b], labels[b])

        refill(labels, total, weight, empty, squares_of, weighted_point)
        return total, weight

    centers = descend(centers, enough, sums_of)
    nearest_centers(points, counts, centers, labels, device=device)
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
    own = centers.astype(points.dtype)
    half_square = (own * own).sum(axis=2) / 2
    n_chunks = -(-len(points) // ADDED)
    total, n_changed = np.empty((n_starts, k, d + 1)), 0
    for b in range(n_starts):
        sums, changed = np.zeros((n_chunks, k, d + 1)), np.zeros(n_chunks, dtype=np.int64)
        work = partial(_nearest, points, counts, own[b], half_square[b], labels[b], sums, changed)
        devices.over_ranges(work, n_chunks, grain=devices.worth_a_thread(ADDED * k * d / 8))
        total[b], n_changed = sums.sum(axis=0), n_changed + int(changed.sum())
    return total[..., :-1], total[..., -1:], n_changed


@njit(cache=True, nogil=True)
def _nearest(points, counts, centers, half_square, labels, sums, changed, start, stop):
    """Label the points of chunks ``start`` … ``stop``, and add them to each chunk's sums."""
    n, d = points.shape
    turned = np.zeros((d, BLOCK), dtype=points.dtype)
    score, best = np.empty(BLOCK, dtype=points.dtype), np.empty(BLOCK, dtype=points.dtype)
    label, whole = np.empty(BLOCK, dtype=np.int32), d // 4 * 4
    for chunk in range(start, stop):
        own = sums[chunk]
        last = min(n, (chunk + 1) * ADDED)
        for first in range(chunk * ADDED, last, BLOCK):
            some = min(BLOCK, last - first)
            for p in range(some):
                for j in range(d):
                    turned[j, p] = points[first + p, j]
            best[:] = np.inf
            label[:] = 0
            for c in range(len(centers)):
                score[:] = half_square[c]
                for j in range(0, whole, 4):  # four dimensions at a time, so that each score is read and written once
                    w, x, y, z = centers[c, j], centers[c, j + 1], centers[c, j + 2], centers[c, j + 3]
                    for p in range(BLOCK):
                        score[p] = (
                            ((score[p] - w * turned[j, p]) - x * turned[j + 1, p]) - y * turned[j + 2, p]
                        ) - z * turned[j + 3, p]
                for j in range(whole, d):
                    x = centers[c, j]
                    for p in range(BLOCK):
                        score[p] -= x * turned[j, p]
                for p in range(BLOCK):
                    nearer = score[p] < best[p]
                    best[p] = score[p] if nearer else best[p]
                    label[p] = c if nearer else label[p]
            for p in range(some):
                g, c = first + p, label[p]
                if labels[g] != c:
                    labels[g] = c
                    changed[chunk] += 1
                weight = np.float64(counts[g])
                for j in range(d):
                    own[c, j] += weight * points[g, j]
                own[c, d] += weight


@nearest_centers.kernel
def _(points: Any, counts: Any, centers: Any, labels: Any, *, device: str) -> tuple[Any, Any, Any]:
    """Label the points by matrix products; the number of changed labels stays on the device."""
    n_starts, k, d = centers.shape
    centers, changed = centers.astype(points.dtype), devices.namespace(device).zeros((), dtype=int)
    half_square = (centers * centers).sum(axis=2)[:, :, None] / 2
    at_once = max(1, devices.scratch(device) // (12 * n_starts * k))
    for start in range(0, len(points), at_once):
        some = slice(start, start + at_once)
        products = (centers.reshape(-1, d) @ points[some].T).reshape(n_starts, k, -1)
        found = (products - half_square).argmax(axis=1)
        changed += (found != labels[:, some]).sum()
        labels[:, some] = found
    return *sums_by_label(labels, k, points.__getitem__, counts), changed


@kernels.primitive
def mean_variance(points: np.ndarray) -> float:
    """Return the mean of the variances of the d dimensions of points (n, d), which are read in chunks."""
    sums, squares = np.zeros(points.shape[1]), np.zeros(points.shape[1])
    for start in range(0, len(points), ADDED):
        some = points[start : start + ADDED].astype(np.float64)
        sums += some.sum(axis=0)
        squares += np.einsum("ij,ij->j", some, some)
    mean = sums / len(points)
    return float((squares / len(points) - mean * mean).mean())


@mean_variance.kernel
def _(points: Any, *, device: str) -> float:
    return float(points.var(axis=0, dtype=np.float64).mean())

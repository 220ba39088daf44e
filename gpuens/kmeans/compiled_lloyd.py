"""k-means of many points on the CPU: its iterations and its starts, compiled.

Points are read in blocks and turned, so that one instruction compares several of them with a center, whatever the
number of dimensions and centers. Sums over clusters are those of chunks of a fixed size, added in order: they do not
depend on the number of threads.
"""

import numpy as np

from gpuens.runtime import device as devices
from gpuens.runtime.compiled import njit

BLOCK = 64  # points compared at once
CHUNK = 2**13  # points whose sums are added one by one


def nearest(
    points: np.ndarray, counts: np.ndarray, centers: np.ndarray, labels: np.ndarray
) -> tuple[np.ndarray, np.ndarray, int]:
    """Label points (n, d) by their nearest centers (k, d), float64; of equally near ones by the first.

    Returns the sums of each cluster's points (k, d), its weight (k, 1), both float64, and the number of points whose
    label in ``labels`` (n,), int64, was another before.
    """
    k, d = centers.shape
    own = centers.astype(points.dtype)
    half_square = (own * own).sum(axis=1) / 2
    n_chunks = -(-len(points) // CHUNK)
    sums, changed = np.zeros((n_chunks, k, d + 1)), np.zeros(n_chunks, dtype=np.int64)

    def work(start: int, stop: int) -> None:
        _nearest(start, stop, points, counts, own, half_square, labels, sums, changed)

    devices.over_ranges(work, n_chunks, grain=devices.worth_a_thread(CHUNK * k * d / 8))
    total = sums.sum(axis=0)
    return total[:, :-1], total[:, -1:], int(changed.sum())


@njit(cache=True, nogil=True)
def _nearest(start, stop, points, counts, centers, half_square, labels, sums, changed):
    n, d = points.shape
    turned = np.zeros((d, BLOCK), dtype=points.dtype)
    score, best = np.empty(BLOCK, dtype=points.dtype), np.empty(BLOCK, dtype=points.dtype)
    label, whole = np.empty(BLOCK, dtype=np.int32), d // 4 * 4
    for chunk in range(start, stop):
        own = sums[chunk]
        last = min(n, (chunk + 1) * CHUNK)
        for first in range(chunk * CHUNK, last, BLOCK):
            some = min(BLOCK, last - first)
            for p in range(some):
                for j in range(d):
                    turned[j, p] = points[first + p, j]
            best[:] = np.inf
            label[:] = 0
            for c in range(len(centers)):
                score[:] = half_square[c]
                for j in range(0, whole, 4):  # a score is read and written once for four dimensions
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


def mean_variance(points: np.ndarray) -> float:
    """Return the mean variance of the dimensions of points (n, d), read in chunks."""
    sums, squares = np.zeros(points.shape[1]), np.zeros(points.shape[1])
    for start in range(0, len(points), CHUNK):
        some = points[start : start + CHUNK].astype(np.float64)
        sums += some.sum(axis=0)
        squares += np.einsum("ij,ij->j", some, some)
    mean = sums / len(points)
    return float((squares / len(points) - mean * mean).mean())


def best_start(
    points: np.ndarray, counts: np.ndarray, k: int, n_init: int, seed: int, max_iter: int
) -> np.ndarray | None:
    """Return the centers (k, d), float64, of the best of several starts of k-means, or None if a cluster got empty.

    The starts make the draws of scikit-learn's KMeans(k, n_init=n_init, random_state=seed), and end by its rules, so
    that they find the same up to rounding, which in float32 may decide what is drawn.
    """
    mean = points.mean(axis=0, dtype=np.float64).astype(points.dtype)
    points = points - mean
    enough = 1e-4 * float(points.var(axis=0).mean())  # first: it takes a copy
    turned = np.ascontiguousarray(points.T)
    weights = counts.astype(np.float64)
    share = counts.astype(points.dtype)
    share /= share.sum()
    state, trials = np.random.RandomState(seed), 2 + int(np.log(k))
    draws = [(state.choice(len(points), p=share), state.uniform(size=(k - 1, trials))) for _ in range(n_init)]
    centers, inertia = np.empty((n_init, k, points.shape[1])), np.empty(n_init)

    def work(start: int, stop: int) -> None:
        for i in range(start, stop):
            centers[i] = points[plus_plus(turned, weights, *draws[i])]
            inertia[i] = _descended(points, counts, centers[i], enough, max_iter)

    devices.over_ranges(work, n_init)
    return None if np.isnan(inertia).any() else centers[inertia.argmin()] + mean


@njit(cache=True, nogil=True)
def plus_plus(turned, weights, first, uniform):
    """Return the points that k-means++ chooses, the best of several draws each, by squared distance."""
    n, trials = turned.shape[1], uniform.shape[1]
    chosen = np.empty(len(uniform) + 1, dtype=np.int64)
    chosen[0] = first
    nearest, reached = np.empty(n, dtype=turned.dtype), np.empty(n)
    then, kept = np.empty(n, dtype=turned.dtype), np.empty(n, dtype=turned.dtype)
    nearest[:] = np.inf
    potential = _to_candidate(turned, weights, first, nearest, then)
    for g in range(n):  # slices of arrays would take Numba seconds to compile, and so would searchsorted
        nearest[g] = then[g]
    for c in range(1, len(chosen)):
        total = 0.0
        for g in range(n):
            total += weights[g] * nearest[g]
            reached[g] = total
        lowest, best = np.inf, -1
        for t in range(trials):
            drawn, g, stop = uniform[c - 1, t] * potential, 0, n - 1
            while g < stop:
                middle = (g + stop) // 2
                if reached[middle] < drawn:
                    g = middle + 1
                else:
                    stop = middle
            found = _to_candidate(turned, weights, g, nearest, then)
            if found < lowest:
                lowest, best = found, g
                then, kept = kept, then
        for g in range(n):
            nearest[g] = kept[g]
        potential, chosen[c] = lowest, best
    return chosen


@njit(cache=True, nogil=True)
def _to_candidate(turned, weights, candidate, nearest, then):
    """Write the squared distances to the nearest center, the candidate among them, and return their weighted sum."""
    then[:] = 0
    for j in range(len(turned)):
        x = turned[j, candidate]
        for g in range(len(then)):
            apart = turned[j, g] - x
            then[g] += apart * apart
    total = 0.0
    for g in range(len(then)):
        then[g] = min(then[g], nearest[g])
        total += weights[g] * then[g]
    return total


@njit(cache=True, nogil=True)
def _descended(points, counts, centers, enough, max_iter):
    """Move ``centers`` (k, d), float64, by Lloyd's iterations and return the inertia, NaN if a cluster got empty."""
    n, d = points.shape
    n_chunks = -(-n // CHUNK)
    labels = np.full(n, -1, dtype=np.int64)
    sums, changed = np.empty((n_chunks, len(centers), d + 1)), np.empty(n_chunks, dtype=np.int64)
    for iteration in range(max_iter + 1):
        own = centers.astype(points.dtype)
        half_square = np.empty(len(own), dtype=points.dtype)
        for c in range(len(own)):
            half_square[c] = (own[c] * own[c]).sum() / 2
        sums[:], changed[:] = 0.0, 0
        _nearest(0, n_chunks, points, counts, own, half_square, labels, sums, changed)
        if changed.sum() == 0 or iteration == max_iter:
            break
        shift = 0.0
        for c in range(len(centers)):
            weight = sums[:, c, d].sum()
            if weight == 0:
                return np.nan
            for j in range(d):
                moved = sums[:, c, j].sum() / weight
                shift += (moved - centers[c, j]) ** 2
                centers[c, j] = moved
        if shift <= enough:
            max_iter = iteration + 1  # labels follow the centers once more
    inertia = 0.0
    for g in range(n):
        own_center = centers[labels[g]]
        for j in range(d):
            inertia += counts[g] * (points[g, j] - own_center[j]) ** 2
    return inertia

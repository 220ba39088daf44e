"""k-means on nested samples: a few objects, then twice as many, and so on; at last every object's nearest centroid.

    4,096 objects ─▶ k-means++ ─▶ Lloyd ─▶ 8,192 of which these are half ─▶ Lloyd ─▶ … ─▶ 65,536 ─▶ Lloyd ─▶ all objects

Most iterations are made where they cost least, and each larger sample moves the centroids little. A sample of s objects
leaves the inertia of all by about a share of k / s above that of a fit to all of them, so the last one has at least
`PER_CLUSTER` objects for each centroid.

Scores are products in float32, of points that are shifted and scaled. Where their bound of rounding leaves more than
one centroid possible, squared distances in float64 decide, so that no label depends on how a product was rounded:
neither on the threads nor on the objects beside.
"""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from gpuens.kmeans import batched
from gpuens.kmeans.compiled_lloyd import plus_plus
from gpuens.kmeans.lloyd import descend, sums_by_label
from gpuens.kmeans.points import MOST, power
from gpuens.runtime import checks, kernels
from gpuens.runtime import device as devices
from gpuens.runtime.compiled import njit

FIRST = 2**12  # objects in the first sample
LAST = 2**16  # and in the last one
FIRST_PER_CLUSTER = 2**5
PER_CLUSTER = 2**8
TOLERANCE = 1e-3  # share of the features' variance: centroids that move less have converged, given how few are drawn
ITERATIONS = 20  # at most, on each sample but the first: of Covtype's objects twice the time gains a few thousandths
BLOCK = 2**9  # points that are multiplied with all centroids at once
TURNED = 2**11  # points that are turned at once, so that they stay in the cache
NOTHING = 1e-24  # a squared distance that is rounding; no coordinate is above 1


# for an object far beyond the first sample, products and squares overflow, and float64 decides
far_objects = np.errstate(over="ignore", invalid="ignore")


class Frame(NamedTuple):
    """Coordinates: ``scale``, a power of 2, times the features; ``mean`` (d,) of these is subtracted in products.

    ``spread`` is their mean variance.
    """

    scale: float
    mean: Any
    spread: float

    @classmethod
    def of(cls, points: Any) -> "Frame":
        """Return the frame in which no coordinate of these points (n, d) is above 1."""
        scale = power(max(abs(float(points.max())), abs(float(points.min()))))
        moved = points * np.float64(scale)
        mean = moved.mean(axis=0)
        moved -= mean
        more = min(power(float(abs(moved).max())), 2.0**MOST / scale)
        moved *= more
        return cls(scale * more, mean * more, float((moved * moved).mean()))

    def around_mean(self, points: Any, dtype: Any) -> Any:
        """Return the points (n, d) less the mean, turned: (d, n)."""
        wide = np.result_type(points.dtype, dtype)
        scale, mean = wide.type(self.scale), self.mean.astype(wide)
        turned = devices.namespace(devices.kind_of(points)).empty(points.shape[::-1], dtype=dtype)
        step = TURNED if isinstance(points, np.ndarray) else batched.CHUNK
        for start in range(0, len(points), step):
            moved = points[start : start + step] * scale
            moved -= mean
            turned[:, start : start + step] = moved.T
        return turned


class Model(NamedTuple):
    """Centroids (k, d), float64, in the coordinates of the frame, not less the mean."""

    centers: Any
    frame: Frame

    @far_objects
    def predict(self, points: Any, device: str = "cpu") -> Any:
        """Return the nearest centroid (n,) of each point (n, d), of equally near ones the first."""
        xp, n = devices.namespace(device), points.shape[0]
        labels, step = xp.empty(n, dtype=np.int64), batched.CHUNK
        for start in range(0, n, step):
            some = dense(points[start : start + step])
            around = self.frame.around_mean(some, precision(device))
            nearest_of(some, around, self.centers, self.frame, labels[start : start + step], device=device)
        return labels


def dense(points: Any) -> Any:
    """Return points (n, d) as an array."""
    return points.toarray() if hasattr(points, "toarray") else points


def precision(device: str) -> Any:
    """Return the type of products: where float64 is not checked afterwards, it is used at once."""
    return np.float32 if device == "cpu" else np.float64


def sample_sizes(n: int, k: int) -> list[int]:
    """Return the sizes of the samples of n objects for k clusters, each twice the one before but for the last."""
    last = min(n, max(LAST, PER_CLUSTER * k))
    sizes = [min(last, max(FIRST, FIRST_PER_CLUSTER * k))]
    while sizes[-1] < last:
        sizes.append(min(last, 2 * sizes[-1]))
    return sizes


def needed(draws: batched.Draws, itemsize: int, k: int, device: str = "cpu") -> int:
    """Return the bytes that k-means holds beside the features of one clustering."""
    sizes, q = sample_sizes(draws.n_drawn, k), draws.projection or draws.n_seen
    held: int = sizes[-1] * (q * (itemsize + np.dtype(precision(device)).itemsize) + 8) + 24 * sizes[0] * q
    held += 8 * draws.n_objects  # the objects to draw from, and later their labels
    at_once = min(batched.CHUNK, draws.n_objects) * 8 * (2 * k + 3 * q)
    trials = 18 * (2 + int(np.log(k))) * sizes[0]
    return held + trials + (at_once if device != "cpu" else 0)


def label(
    X: Any, tasks: list[batched.Task], draws: batched.Draws, *, device: str, **settings: Any
) -> Iterator[tuple[int, Any]]:
    """Yield each task's nearest centroids (n_objects,) with its position, found on the device."""
    most = needed(draws, X.dtype.itemsize, max(task.k for task in tasks), device) + 8 * draws.n_objects
    checks.check_memory(
        most,
        devices.memory_budget(device),
        "k-means on X",
        "draw fewer objects or features, or use algorithm='minibatch'",
    )
    xp = devices.namespace(device)
    for m, task in enumerate(tasks):
        seen = batched.Seen(X, [task], draws, xp)
        at: Callable[[np.ndarray], Any] = partial(_drawn, seen)
        model = fit(at, draws.n_drawn, task.k, task.rng, device=device, **settings)
        labels = xp.empty(draws.n_objects, dtype=np.int64)
        for start in range(0, draws.n_objects, batched.CHUNK):
            stop = min(start + batched.CHUNK, draws.n_objects)
            points = seen.between(start, stop)
            labels[start:stop] = model.predict(points.reshape(stop - start, -1), device)
        yield m, labels


def _drawn(seen: batched.Seen, picks: np.ndarray) -> Any:
    return seen.at([picks])[0]


@far_objects
def fit(
    at: Callable[[np.ndarray], Any],
    n: int,
    k: int,
    rng: np.random.Generator,
    *,
    n_init: int,
    max_iter: int,
    init: str,
    device: str = "cpu",
) -> Model:
    """Return k centroids of n objects, of which ``at`` returns those at some positions: (some, d)."""
    sizes = sample_sizes(n, k)
    points = dense(at(rng.choice(n, sizes[-1], replace=False)))
    frame = Frame.of(points[: sizes[0]])
    around = frame.around_mean(points, precision(device))
    first = slice(sizes[0])
    best, least = None, np.inf
    for _ in range(n_init):
        centers = _begun(points[first], frame, k, rng, init, device)
        centers = _descended(points[first], around[:, first], centers, frame, max_iter, device)
        if n_init == 1:
            best = centers
            break
        labels = Model(centers, frame).predict(points[first], device)
        inertia = float(_to_own(points[first], centers, labels, frame).sum())
        if inertia < least:
            best, least = centers, inertia
    for size in sizes[1:]:
        best = _descended(points[:size], around[:, :size], best, frame, min(max_iter, ITERATIONS), device)
    return Model(best, frame)


def _begun(points: Any, frame: Frame, k: int, rng: np.random.Generator, init: str, device: str) -> Any:
    """Return k of the points, in the coordinates of the frame: k-means++ or a draw without replacement."""
    if init == "random":
        places = rng.choice(len(points), k, replace=False)
    else:
        first, trials = int(rng.integers(len(points))), 2 + int(np.log(k))
        places = spread_out(points, frame, first, rng.random((k - 1, trials)), device=device)
    return points[devices.namespace(device).asarray(places)] * np.float64(frame.scale)


@kernels.primitive
def spread_out(points: Any, frame: Frame, first: int, uniform: np.ndarray) -> Any:
    """Return the points that k-means++ chooses (k,), the best of several draws each; ``uniform`` (k - 1, draws)."""
    return plus_plus(frame.around_mean(points, np.float64), np.ones(len(points)), first, uniform)


@spread_out.kernel
def _(points: Any, frame: Frame, first: int, uniform: np.ndarray, *, device: str) -> Any:
    xp, k = devices.namespace(device), len(uniform) + 1
    chosen = xp.full((1, k), first, dtype=np.int64)
    draws = xp.asarray(uniform.reshape(1, k - 1, -1))
    around = frame.around_mean(points, np.float64)
    return batched.plus_plus(around.T, chosen, draws, np.array([uniform.shape[1]]), None)[0]


def _descended(points: Any, around: Any, centers: Any, frame: Frame, max_iter: int, device: str) -> Any:
    """Return the centroids after Lloyd's iterations; those of empty clusters move to the farthest points."""
    labels = devices.namespace(device).full(len(points), -1, dtype=np.int64)

    def sums_of(centers: Any) -> tuple[Any, Any] | None:
        changed = nearest_of(points, around, centers, frame, labels, device=device)
        if not changed:
            return None
        sums, sizes = sums_within(points, labels, frame, len(centers), device=device)
        if not bool((sizes > 0).all()) and _move_empty(points, centers, labels, sizes, frame):
            sums, sizes = sums_within(points, labels, frame, len(centers), device=device)
        return sums + sizes * frame.mean, sizes

    return descend(centers, TOLERANCE * frame.spread, sums_of, max_iter)


def _move_empty(points: Any, centers: Any, labels: Any, sizes: Any, frame: Frame) -> bool:
    """Give each empty cluster, in ``labels``, the farthest point from its centroid; return whether there was one."""
    squares = devices.to_host(_to_own(points, centers, labels, frame))
    empty = np.flatnonzero(devices.to_host(sizes)[:, 0] == 0)
    farthest = np.argsort(-squares, kind="stable")[: len(empty)]
    for cluster, x in zip(empty.tolist(), farthest[squares[farthest] > NOTHING].tolist(), strict=False):
        labels[x] = cluster
    return bool(squares.max() > NOTHING)


def _to_own(points: Any, centers: Any, labels: Any, frame: Frame) -> Any:
    """Return the squared distance (n,) of each point to its centroid."""
    apart = points * np.float64(frame.scale)
    apart -= centers[labels]
    return (apart * apart).sum(axis=1)


# --- nearest centroids ------------------------------------------------------------------------------------------------


@kernels.primitive
def nearest_of(points: Any, around: Any, centers: Any, frame: Frame, labels: Any) -> int:
    """Label points (n, d) by their nearest centers (k, d); return how many labels were others before.

    ``around`` (d, n) are the points less the mean of the frame, float32.
    """
    own = centers - frame.mean
    lengths = np.sqrt(np.einsum("ij,ij->i", own, own))
    narrow, half_square = own.astype(np.float32), (lengths * lengths / 2).astype(np.float32)
    changed = 0
    for start in range(0, len(points), BLOCK):
        some = slice(start, start + BLOCK)
        near = around[:, some]
        products, squares = narrow @ near, np.einsum("ji,ji->i", near, near)
        changed += _decide(points[some], squares, products, centers, lengths, half_square, frame.scale, labels[some])
    return changed


@nearest_of.kernel
def _(points: Any, around: Any, centers: Any, frame: Frame, labels: Any, *, device: str) -> int:
    own = centers - frame.mean
    half_square = (own * own).sum(axis=1) / 2
    changed = 0
    for start in range(0, len(points), batched.CHUNK):
        some = slice(start, start + batched.CHUNK)
        found = (half_square[:, None] - own @ around[:, some]).argmin(axis=0)
        changed += int((found != labels[some]).sum())
        labels[some] = found
    return changed


@njit(cache=True, nogil=True)
def _decide(points, squares, products, centers, lengths, half_square, scale, labels):
    """Write the nearest centers, by products (k, n) if rounding leaves no doubt; return how many changed."""
    k, n = products.shape
    best, second = np.empty(n, dtype=np.float32), np.empty(n, dtype=np.float32)
    found = np.zeros(n, dtype=np.int32)
    best[:], second[:] = np.inf, np.inf
    for c in range(k):
        half, own = half_square[c], products[c]
        for p in range(n):
            score = half - own[p]
            nearer = score < best[p]
            higher = best[p] if nearer else score
            second[p] = higher if higher < second[p] else second[p]
            best[p] = score if nearer else best[p]
            found[p] = c if nearer else found[p]
    # a product of d terms in any order is wrong by at most (d + 1) u |x| |c|; the rest is for the roundings beside it,
    # 1e-30 for what is too small for float32
    share, longest, changed = (points.shape[1] + 8) * 2.0**-24, lengths.max(), 0
    for p in range(n):
        length, label = np.sqrt(np.float64(squares[p])), found[p]
        if not second[p] - best[p] > 2 * share * longest * (length + longest) + 1e-30:
            label = _nearest_in_doubt(points[p], products[:, p], centers, lengths, half_square, scale, share, length)
        if label != labels[p]:
            labels[p] = label
            changed += 1
    return changed


@njit(cache=True, nogil=True)
def _nearest_in_doubt(point, products, centers, lengths, half_square, scale, share, length):
    """Return the nearest of the centers that a product may be the best of, by squared distances in float64."""
    highest = np.inf
    for c in range(len(centers)):
        error = share * lengths[c] * (length + lengths[c]) + 1e-30
        reached = half_square[c] - products[c] + error
        highest = reached if reached < highest else highest
    least, label = np.inf, 0
    for c in range(len(centers)):
        error = share * lengths[c] * (length + lengths[c]) + 1e-30
        if half_square[c] - products[c] - error > highest:
            continue
        square = 0.0
        for j in range(len(point)):
            apart = point[j] * scale - centers[c, j]
            square += apart * apart
        if square < least:
            least, label = square, c
    return label


@kernels.primitive
def sums_within(points: Any, labels: Any, frame: Frame, k: int) -> tuple[Any, Any]:
    """Return the sums of each cluster's points less the mean (k, d), and the sizes of the clusters (k, 1), float64."""
    sums = np.zeros((k, points.shape[1]))
    _add(points, labels, frame.scale, frame.mean, sums)
    return sums, np.bincount(labels, minlength=k)[:, None].astype(np.float64)


@sums_within.kernel
def _(points: Any, labels: Any, frame: Frame, k: int, *, device: str) -> tuple[Any, Any]:
    return sums_by_label(labels, k, lambda some: frame.around_mean(points[some], np.float64).T)


@njit(cache=True, nogil=True, makes_arrays=False)
def _add(points, labels, scale, mean, sums):
    for i in range(len(points)):
        own = sums[labels[i]]
        for j in range(points.shape[1]):
            own[j] += points[i, j] * scale - mean[j]

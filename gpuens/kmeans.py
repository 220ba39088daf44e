"""k-means of many clusterings at once, by products and sums of whole arrays, where the features are.

The CPU's k-means is scikit-learn's (`generate`); this one takes the same steps with the same draws, all of them made on
the host: k-means++ with its trials, empty clusters moved to the farthest objects, mini-batches with their reassigned
centroids, and the rules that stop. So the same seed gives the same clusterings wherever they are computed, up to
rounding. Sums that decide are float64.

Clusterings are worked on in groups: ``centers`` (B, K, q), the centroids of B clusterings, with zeros where one has
fewer than K and ``real`` (B, K) to tell. ``points`` is (n, q) where all of them are fitted to the same objects and
features, and (B, n, q) where each has its own. Distances go through |c|² - 2 x·c, sums over a cluster through a product
with a matrix of zeros and ones: both are large products of matrices, in chunks of fixed size, summed in their order.
"""

from collections.abc import Callable, Iterator
from itertools import count
from typing import Any, NamedTuple

import numpy as np

from gpuens import device as devices
from gpuens import validation

BATCH = 1024  # objects in a mini-batch
PATIENCE = 10  # mini-batches without improvement before k-means stops
TOLERANCE = 1e-4  # of the features' variance: centroids that move less have converged
REASSIGNED_BELOW = 0.01  # of the objects of the largest cluster: mini-batches move the centroid elsewhere
CHUNK = 2**14  # objects in one product; fixed, since rounding depends on it
GROUP = 64  # clusterings at once at most


class Task(NamedTuple):
    """One clustering: k, the objects it is fitted to, how it sees the features, and what it draws from."""

    k: int
    rows: np.ndarray | None  # None: all
    columns: np.ndarray | None  # None: all
    directions: np.ndarray | None  # of a projection
    rng: np.random.Generator


def label(
    X: Any, tasks: list[Task], *, algorithm: str, n_init: int, max_iter: int, init: str, device: str
) -> Iterator[tuple[list[int], Any]]:
    """Yield groups of tasks, as their positions, with the nearest centroid (B, n_objects) of every object.

    ``X`` is dense, where the device works. The tasks see numbers of objects and features that are the same for all.
    """
    fit = _full if algorithm == "full" else _mini_batches
    budget = devices.memory_budget(device)
    order = sorted(range(len(tasks)), key=lambda t: tasks[t].k)  # alike, so that there is little to pad
    while order:
        shared, each = _needed(X, tasks[order[0]], tasks[order[min(GROUP, len(order)) - 1]].k, algorithm)
        validation.fits(
            shared + each, budget, "k-means on X", "draw fewer objects or features, or use algorithm='minibatch'"
        )
        size = min(GROUP, (budget - shared) // each)
        alike = [
            t for t in order[:size] if algorithm == "full" or _beginning(tasks[t], X) == _beginning(tasks[order[0]], X)
        ]
        order = order[len(alike) :]
        yield alike, fit(_Seen(X, [tasks[t] for t in alike], devices.namespace(device)), n_init, max_iter, init)


def _needed(X: Any, task: Task, k: int, algorithm: str) -> tuple[int, int]:
    """Return the bytes that a group takes, whatever its size, and those that each of its clusterings takes."""
    n_objects, n_features = X.shape
    n, q, size = _n_drawn(task, X), n_features, X.dtype.itemsize
    if task.columns is not None:
        q = len(task.columns)
    if task.directions is not None:
        q = q + task.directions.shape[1]
    own = 2 * n * q * size
    shared = 0
    if algorithm == "minibatch":
        n = _n_first(task, X)
        own = 3 * n * q * size
    elif all(part is None for part in (task.rows, task.columns, task.directions)):
        shared, own = own, 0
    products = min(n, CHUNK) * (k * (2 * size + 1) + 16 * q)
    trials = 18 * (2 + int(np.log(k))) * n
    return shared, own + max(products, trials) + 32 * n + 9 * n_objects + 1


def _n_drawn(task: Task, X: Any) -> int:
    return X.shape[0] if task.rows is None else len(task.rows)


def _n_first(task: Task, X: Any) -> int:
    """Return how many objects mini-batch k-means begins with."""
    return min(_n_drawn(task, X), 3 * max(BATCH, task.k))


def _beginning(task: Task, X: Any) -> tuple[int, bool]:
    """Return what mini-batch k-means must have in common to begin together."""
    return _n_first(task, X), task.k <= 3 * BATCH


class _Seen:
    """The objects as a group of clusterings sees them."""

    def __init__(self, X: Any, tasks: list[Task], xp: Any) -> None:
        self.X, self.tasks, self.xp = X, tasks, xp
        self.n_objects, self.n_drawn = X.shape[0], _n_drawn(tasks[0], X)
        self._columns, self._directions = self._stacked("columns"), self._stacked("directions", X.dtype)
        self.k = np.array([task.k for task in tasks])
        self.real = xp.asarray(np.arange(self.k.max()) < self.k[:, None])

    def _stacked(self, name: str, dtype: Any = np.int64) -> Any:
        parts = [getattr(task, name) for task in self.tasks]
        return None if parts[0] is None else self.xp.asarray(np.stack(parts).astype(dtype, copy=False))

    def drawn(self) -> Any:
        """Return the objects that are fitted: (n, q), or (B, n, q) where they or the features differ."""
        if self.tasks[0].rows is None:
            return self.between(0, self.n_objects)
        return self.at([np.arange(self.n_drawn)] * len(self.tasks))

    def at(self, picks: list[np.ndarray]) -> Any:
        """Return (B, n, q): for each clustering the objects at n positions among those that are fitted."""
        rows = [pick if task.rows is None else task.rows[pick] for pick, task in zip(picks, self.tasks, strict=True)]
        places = self.xp.asarray(np.stack(rows))
        if self._columns is None:
            return self._projected(self.X[places])
        return self._projected(self.X[places[:, :, None], self._columns[:, None, :]])

    def between(self, start: int, stop: int) -> Any:
        """Return the objects start … stop - 1 of all."""
        points = self.X[start:stop]
        return self._projected(points if self._columns is None else points[:, self._columns].transpose(1, 0, 2))

    def _projected(self, points: Any) -> Any:
        return points if self._directions is None else points @ self._directions

    def subset(self, positions: np.ndarray) -> "_Seen":
        return _Seen(self.X, [self.tasks[b] for b in positions], self.xp)

    def nearest(self, centers: Any) -> Any:
        """Return the nearest centroid (B, n_objects) of every object."""
        starts = range(0, self.n_objects, CHUNK)
        found = [_nearest(self.between(a, min(a + CHUNK, self.n_objects)), centers, self.real) for a in starts]
        return np.concatenate(found, axis=1)


# --- products ---------------------------------------------------------------------------------------------------------


def _chunks(points: Any) -> Iterator[Any]:
    for start in range(0, points.shape[-2], CHUNK):
        yield points[..., start : start + CHUNK, :]


def _products(left: Any, points: Any) -> Any:
    """Return the products (B, K, n) of vectors (B, K, q) with points."""
    if points.ndim == 3:
        return left @ points.transpose(0, 2, 1)
    return (left.reshape(-1, left.shape[2]) @ points.T).reshape(*left.shape[:2], -1)


def _sums(hot: Any, points: Any) -> Any:
    """Return the sums (B, K, q) of the points that ``hot`` (B, K, n) has ones for."""
    if points.ndim == 3:
        return hot @ points
    return (hot.reshape(-1, hot.shape[2]) @ points).reshape(*hot.shape[:2], -1)


def _nearest(points: Any, centers: Any, real: Any) -> Any:
    norms = np.where(real, (centers * centers).sum(axis=2), np.inf).astype(centers.dtype)
    scores = _products(centers, points)
    scores *= -2
    scores += norms[:, :, None]
    return scores.argmin(axis=1)


def _hot(labels: Any, k: int, dtype: Any) -> Any:
    """Return (B, k, n): one where an object has a label."""
    xp = devices.namespace(devices.kind_of(labels))
    return (labels[:, None, :] == xp.arange(k)[:, None]).astype(dtype)


def _clusters(points: Any, centers: Any, real: Any) -> tuple[Any, Any, Any]:
    """Return the nearest centroids (B, n), the sums of the points of each cluster and their numbers (float64)."""
    found, sums, sizes = [], 0.0, 0.0
    for chunk in _chunks(points):
        labels = _nearest(chunk, centers, real)
        hot = _hot(labels, centers.shape[1], centers.dtype)
        sums = _sums(hot, chunk).astype(np.float64) + sums
        sizes = hot.sum(axis=2, dtype=np.float64) + sizes
        found.append(labels)
    return np.concatenate(found, axis=1), sums, sizes


def _own_centers(centers: Any, labels: Any) -> Any:
    """Return the centroid (B, n, q) that each object is labelled with."""
    xp = devices.namespace(devices.kind_of(labels))
    return centers[xp.arange(len(centers))[:, None], labels]


def _inertia(points: Any, centers: Any, labels: Any) -> np.ndarray:
    """Return the sum (B,) of the squared distances of all points to their centroids."""
    total, start = 0.0, 0
    for chunk in _chunks(points):
        apart = chunk - _own_centers(centers, labels[:, start : start + CHUNK])
        total = (apart * apart).sum(axis=(1, 2), dtype=np.float64) + total
        start += CHUNK
    return devices.to_host(total)


# --- where centroids begin --------------------------------------------------------------------------------------------


def _begin(points: Any, k: np.ndarray, states: list[np.random.RandomState], init: str) -> Any:
    """Return the first centroids (B, K, q), those beyond a clustering's k being zero."""
    xp = devices.namespace(devices.kind_of(points))
    n = points.shape[-2]
    p = np.ones(n, dtype=points.dtype)
    p /= p.sum()
    chosen = np.zeros((len(k), k.max()), dtype=np.int64)
    if init == "random":
        for b, state in enumerate(states):
            chosen[b, : k[b]] = state.choice(n, size=k[b], replace=False, p=p)
        places = xp.asarray(chosen)
    else:
        trials = 2 + np.log(k).astype(np.int64)
        draws = np.ones((len(k), k.max() - 1, trials.max()))
        for b, state in enumerate(states):
            chosen[b, 0] = state.choice(n, p=p)
            draws[b, : k[b] - 1, : trials[b]] = state.uniform(size=(k[b] - 1, trials[b]))
        places = _plus_plus(points, xp.asarray(chosen), xp.asarray(draws), trials)
    return _at(points, places) * xp.asarray(np.arange(k.max()) < k[:, None])[:, :, None]


def _plus_plus(points: Any, chosen: Any, draws: Any, trials: np.ndarray) -> Any:
    """Choose all centroids but the first: each the best of some objects drawn by their squared distances (k-means++)."""
    xp = devices.namespace(devices.kind_of(points))
    allowed = xp.asarray(np.arange(trials.max()) < trials[:, None])
    each = xp.arange(len(chosen))
    nearest = _squared_distances(points, _at(points, chosen[:, :1]))[:, 0]
    potential = nearest.sum(axis=1)
    for c in range(1, chosen.shape[1]):
        reached = np.cumsum(nearest, axis=1)
        drawn = draws[:, c - 1] * potential[:, None]
        places = (reached[:, None, :] < drawn[:, :, None]).sum(axis=2)
        places = np.minimum(places, reached.shape[1] - 1)  # a sum may round to less than what it is compared with
        then = _squared_distances(points, _at(points, places))
        np.minimum(then, nearest[:, None, :], out=then)
        potentials = np.where(allowed, then.sum(axis=2), np.inf)
        best = potentials.argmin(axis=1)
        nearest, potential = then[each, best], potentials[each, best]
        chosen[:, c] = places[each, best]
    return chosen


def _at(points: Any, places: Any) -> Any:
    """Return the points (B, t, q) at places (B, t)."""
    if points.ndim == 2:
        return points[places]
    return points[devices.namespace(devices.kind_of(points)).arange(len(points))[:, None], places]


def _squared_distances(points: Any, others: Any) -> Any:
    """Return (B, t, n): from others (B, t, q) to all points, in float64."""
    xp = devices.namespace(devices.kind_of(points))
    others = others.astype(np.float64)
    norms = (others * others).sum(axis=2)[:, :, None]
    distances = xp.empty((*others.shape[:2], points.shape[-2]))
    start = 0
    for chunk in _chunks(points):
        chunk = chunk.astype(np.float64)
        part = distances[:, :, start : start + CHUNK]
        part[...] = _products(others, chunk)
        part *= -2
        part += norms
        part += (chunk * chunk).sum(axis=-1)[..., None, :]
        start += CHUNK
    return np.maximum(distances, 0, out=distances)


# --- all objects at once ----------------------------------------------------------------------------------------------


def _full(seen: _Seen, n_init: int, max_iter: int, init: str) -> Any:
    """Run Lloyd's k-means on each clustering's objects; return the nearest centroid of every object."""
    points = seen.drawn()
    mean = points.mean(axis=-2, keepdims=True, dtype=np.float64).astype(points.dtype)
    points = points - mean
    states = [np.random.RandomState(_seed(task.rng)) for task in seen.tasks]
    best = labels = inertia = None
    for _ in range(n_init):
        centers = _lloyd(points, _begin(points, seen.k, states, init), seen.real, max_iter)
        if n_init == 1:
            best = centers
            break
        found = np.concatenate([_nearest(chunk, centers, seen.real) for chunk in _chunks(points)], axis=1)
        reached = _inertia(points, centers, found)
        if best is None:
            best, labels, inertia = centers, found, reached
            continue
        for b in np.flatnonzero(reached < inertia):
            if not _same_clusters(found[b], labels[b]):  # rounding does not make the same clusters better
                best[b], labels[b], inertia[b] = centers[b], found[b], reached[b]
    if seen.tasks[0].rows is None:
        return np.concatenate([_nearest(chunk, best, seen.real) for chunk in _chunks(points)], axis=1)
    return seen.nearest((best + mean) * seen.real[:, :, None])


def _lloyd(points: Any, centers: Any, real: Any, max_iter: int) -> Any:
    """Return the centroids after at most so many iterations; clusterings that have converged drop out."""
    tolerance = TOLERANCE * devices.to_host(points.var(axis=-2, dtype=np.float64).mean(axis=-1))
    tolerance = np.broadcast_to(tolerance, len(centers))
    xp = devices.namespace(devices.kind_of(points))
    finished = xp.empty_like(centers)
    at_work = np.arange(len(centers))
    before = xp.full((len(centers), points.shape[-2]), -1, dtype=np.int64)
    for iteration in count(1):
        labels, sums, sizes = _clusters(points, centers, real)
        empty = real & (sizes == 0)
        if empty.any():
            _move_empty(points, centers, labels, sums, sizes, devices.to_host(empty))
        moved = _means(sums, sizes, real).astype(centers.dtype)
        shift = moved - centers
        shifts = devices.to_host((shift * shift).sum(axis=(1, 2), dtype=np.float64))
        done = devices.to_host((labels == before).all(axis=1)) | (shifts <= tolerance[at_work])
        if iteration == max_iter:
            done[:] = True
        if done.any():
            finished[xp.asarray(at_work[done])] = moved[xp.asarray(np.flatnonzero(done))]
            left = xp.asarray(np.flatnonzero(~done))
            at_work = at_work[~done]
            if not at_work.size:
                return finished
            moved, labels, real = moved[left], labels[left], real[left]
            points = points if points.ndim == 2 else points[left]
        centers, before = moved, labels
    raise AssertionError


def _means(sums: Any, sizes: Any, real: Any) -> Any:
    """Return the centroids; one that is still empty goes where scikit-learn puts it, beside the largest cluster."""
    xp = devices.namespace(devices.kind_of(sums))
    means = sums / np.maximum(sizes, 1)[:, :, None]
    largest = sizes.argmax(axis=1)
    each = xp.arange(len(sums))
    first = xp.arange(sizes.shape[1]) < largest[:, None]  # those go there before the largest is divided by its size
    beside = np.where(first[:, :, None], sums[each, largest][:, None], means[each, largest][:, None])
    return np.where((sizes > 0)[:, :, None], means, beside) * real[:, :, None]


def _move_empty(points: Any, centers: Any, labels: Any, sums: Any, sizes: Any, empty: np.ndarray) -> None:
    """Move the empty clusters of each clustering to its objects that are farthest from their centroids, in place."""
    for b in np.flatnonzero(empty.any(axis=1)):
        own = points if points.ndim == 2 else points[b]
        apart = own - centers[b][labels[b]]
        distances = devices.to_host((apart * apart).sum(axis=1))
        if not distances.max():  # more clusters than distinct objects
            continue
        clusters = np.flatnonzero(empty[b])
        farthest = np.argpartition(distances, -len(clusters))[: -len(clusters) - 1 : -1]
        for cluster, x in zip(clusters.tolist(), farthest.tolist(), strict=True):
            left = int(labels[b, x])
            sums[b, left] -= own[x]
            sizes[b, left] -= 1
            sums[b, cluster] = own[x]
            sizes[b, cluster] = 1


def _same_clusters(a: Any, b: Any) -> bool:
    """Return whether two labellings (n,) are the same but for the names of their labels."""
    n_pairs = len(np.unique(a * (int(b.max()) + 1) + b))
    return n_pairs == len(np.unique(a)) == len(np.unique(b))


def _seed(rng: np.random.Generator) -> int:
    return int(rng.integers(2**31))


# --- mini-batches -----------------------------------------------------------------------------------------------------


class _Start(NamedTuple):
    """Mini-batch k-means on its way: what the host keeps of each clustering."""

    counts: np.ndarray  # (B, K): objects seen by each cluster
    since: np.ndarray  # (B,): objects seen since centroids were last reassigned
    states: list[np.random.RandomState]


def _mini_batches(seen: _Seen, n_init: int, max_iter: int, init: str) -> Any:
    """Run mini-batch k-means (Sculley 2010) on each clustering's objects; return the nearest centroid of every object."""
    n, k = seen.n_drawn, seen.k
    first = seen.at([task.rng.choice(n, _n_first(task, seen.X), replace=False) for task in seen.tasks])
    seeds = [[_seed(task.rng) for _ in range(n_init)] for task in seen.tasks]
    centers = start = inertia = None
    for own_seeds in zip(*seeds, strict=True):
        found, own = _start(first, k, seen.real, [np.random.RandomState(seed) for seed in own_seeds], init)
        reached = _inertia(first, found, _nearest(first, found, seen.real))
        if start is None:
            centers, start, inertia = found, own, reached
            continue
        for b in np.flatnonzero(reached < inertia):
            centers[b], inertia[b] = found[b], reached[b]
            start.counts[b], start.since[b], start.states[b] = own.counts[b], own.since[b], own.states[b]
    del first
    return seen.nearest(_go_on(seen, centers, start, max_iter))


def _start(first: Any, k: np.ndarray, real: Any, states: list, init: str) -> tuple[Any, _Start]:
    """Return the centroids after the first objects, which are drawn without replacement, and what goes on from there."""
    n = first.shape[1]
    size = 3 * min(BATCH, n)
    among = [state.randint(0, n, size) if k_b <= size < n else None for state, k_b in zip(states, k, strict=True)]
    points = first
    if among[0] is not None:  # k is alike in a group: all of them or none
        points = _at(first, devices.namespace(devices.kind_of(first)).asarray(np.stack(among)))
    centers = _begin(points, k, states, init)
    start = _Start(np.zeros(real.shape, dtype=first.dtype), np.zeros(len(k), dtype=np.int64), states)
    centers, _ = _step(first, centers, k, real, start, min(BATCH, n))
    return centers, start


def _go_on(seen: _Seen, centers: Any, start: _Start, max_iter: int) -> Any:
    """Return the centroids after mini-batches until the smoothed inertia has not improved for a while."""
    xp, n = seen.xp, seen.n_drawn
    size, n_first = min(n, BATCH), _n_first(seen.tasks[0], seen.X)
    finished = xp.empty_like(centers)
    at_work = np.arange(len(centers))
    smoothing = min(1.0, 2 * size / (n + 1))
    smoothed = best = np.full(len(centers), np.inf)
    since_best = np.zeros(len(centers), dtype=np.int64)
    for _ in range(max_iter * n // size):
        batch = seen.at([task.rng.integers(n, size=size) for task in seen.tasks])
        centers, inertia = _step(batch, centers, seen.k, seen.real, start, min(BATCH, n_first))
        smoothed = np.where(smoothed == np.inf, inertia, smoothed + smoothing * (inertia - smoothed))
        since_best = np.where(smoothed < best, 0, since_best + 1)
        best = np.minimum(best, smoothed)
        done = since_best == PATIENCE
        if done.any():
            finished[xp.asarray(at_work[done])] = centers[xp.asarray(np.flatnonzero(done))]
            left = np.flatnonzero(~done)
            at_work, smoothed, best, since_best = at_work[left], smoothed[left], best[left], since_best[left]
            if not at_work.size:
                return finished
            centers, seen = centers[xp.asarray(left)], seen.subset(left)
            start = _Start(start.counts[left], start.since[left], [start.states[b] for b in left])
    finished[xp.asarray(at_work)] = centers
    return finished


def _step(batch: Any, centers: Any, k: np.ndarray, real: Any, start: _Start, size: int) -> tuple[Any, np.ndarray]:
    """Move the centroids towards a mini-batch; return them and the inertia that it had before."""
    xp = devices.namespace(devices.kind_of(batch))
    counts, since, states = start
    since += size
    none_yet = ((counts == 0) & (np.arange(counts.shape[1]) < k[:, None])).any(axis=1)
    due = none_yet | (since >= 10 * k)
    since[due] = 0
    labels = _nearest(batch, centers, real)
    inertia = _inertia(batch, centers, labels)
    hot = _hot(labels, centers.shape[1], centers.dtype)
    sizes = hot.sum(axis=2)
    weights = xp.asarray(counts)
    sums = _sums(hot, batch).astype(np.float64) + centers * weights[:, :, None]
    total = np.maximum(weights + sizes, 1)
    centers = np.where((sizes > 0)[:, :, None], sums / total[:, :, None], centers).astype(centers.dtype)
    counts += devices.to_host(sizes)
    for b in np.flatnonzero(due):
        own = counts[b, : k[b]]
        low, picks = _reassigned(own, batch.shape[1], states[b])
        if low.size:
            centers[b, xp.asarray(low)] = batch[b, xp.asarray(picks)]
    return centers, inertia


def _reassigned(counts: np.ndarray, n: int, state: np.random.RandomState) -> tuple[np.ndarray, np.ndarray]:
    """Return which clusters have seen too few objects, and which objects of a mini-batch they begin again at."""
    low = counts < REASSIGNED_BELOW * counts.max()
    if low.sum() > 0.5 * n:  # no more than half of a batch
        low[np.argsort(counts)[int(0.5 * n) :]] = False
    clusters = np.flatnonzero(low)
    picks = state.choice(n, replace=False, size=len(clusters)) if clusters.size else clusters
    counts[low] = counts[~low].min()
    return clusters, picks

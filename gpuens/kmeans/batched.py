"""k-means of many clusterings at once on the device, by products and sums of whole arrays.

On the CPU k-means is scikit-learn's (`generate`). This version follows it step by step, with the same draws, all made
on the host: the trials of k-means++, empty clusters moved to the farthest objects, reassigned centroids of
mini-batches, and the stopping rules. So a seed gives the same clusterings on every device, up to rounding; decisive
sums are float64. (cuML's k-means makes its own draws, so we do not use it.) `best_of` does the same for the starts of
one k-means of weighted points.

Clusterings are processed in groups: ``centers`` (B, K, q) are the centroids of B clusterings, padded with zeros, and
``real`` (B, K) masks the padding. ``points`` is (n, q) if all are fitted to the same objects and features, else
(B, n, q). Distances are |c|² - 2 x·c, sums over clusters are products with one-hot matrices: both are large matrix
products in chunks of a fixed size, added in order.
"""

from collections.abc import Iterator
from copy import copy
from typing import Any, NamedTuple

import numpy as np

from gpuens.runtime import checks
from gpuens.runtime import device as devices

BATCH = 1024  # objects in a mini-batch
PATIENCE = 10  # mini-batches without improvement before k-means stops
TOLERANCE = 1e-4  # share of the features' variance: centroids that move less have converged
REASSIGNED_BELOW = 0.01  # share of the largest cluster's objects, below which mini-batches reassign a centroid
CHUNK = 2**14  # objects in one product; fixed, since rounding depends on it
GROUP = 64  # clusterings in a group at most


class Task(NamedTuple):
    """One clustering: its k and its random generator."""

    k: int
    rng: np.random.Generator


class Draws(NamedTuple):
    """The draws of each clustering: numbers of objects and features, and a projection."""

    n_objects: int
    n_features: int
    n_drawn: int
    n_seen: int
    projection: int | None

    def of(self, rng: np.random.Generator) -> tuple[np.ndarray | None, np.ndarray | None, np.ndarray | None]:
        """Return the rows and columns of one clustering (None: all) and the directions of its projection or None."""
        rows, columns = _some(rng, self.n_objects, self.n_drawn), _some(rng, self.n_features, self.n_seen)
        if self.projection is None:
            return rows, columns, None
        return rows, columns, rng.standard_normal((self.n_seen, self.projection)) / np.sqrt(self.projection)

    @property
    def all_alike(self) -> bool:
        """Whether every clustering is fitted to the same points."""
        return (self.n_drawn, self.n_seen, self.projection) == (self.n_objects, self.n_features, None)

    def n_first(self, k: int) -> int:
        """Return the number of objects for the start of mini-batch k-means."""
        return min(self.n_drawn, 3 * max(BATCH, k))


def _some(rng: np.random.Generator, n: int, size: int) -> np.ndarray | None:
    """Return ``size`` of range(n) in ascending order; None for all of them."""
    return None if size == n else np.sort(rng.choice(n, size, replace=False, shuffle=False))


def label(
    X: Any, tasks: list[Task], draws: Draws, *, algorithm: str, n_init: int, max_iter: int, init: str, device: str
) -> Iterator[tuple[list[int], Any]]:
    """Yield groups of tasks (positions) with the nearest centroid of every object, (B, n_objects).

    ``X`` is dense and on the device.
    """
    fit = _full if algorithm == "full" else _mini_batches
    budget = devices.memory_budget(device)
    order = sorted(range(len(tasks)), key=lambda t: tasks[t].k)  # similar ones together, for little padding
    while order:
        shared, each = _needed(draws, X.dtype.itemsize, tasks[order[:GROUP][-1]].k, algorithm)
        checks.check_memory(
            shared + each, budget, "k-means on X", "draw fewer objects or features, or use algorithm='minibatch'"
        )
        group = order[: min(GROUP, (budget - shared) // each)]
        if algorithm == "minibatch":
            group = [t for t in group if _beginning(draws, tasks[t].k) == _beginning(draws, tasks[group[0]].k)]
        order = order[len(group) :]
        seen = Seen(X, [tasks[t] for t in group], draws, devices.namespace(device))
        yield group, fit(seen, n_init, max_iter, init)


def _beginning(draws: Draws, k: int) -> tuple[int, bool]:
    """Return the key of clusterings whose mini-batches can begin together."""
    return draws.n_first(k), k <= 3 * BATCH


def _needed(draws: Draws, size: int, k: int, algorithm: str) -> tuple[int, int]:
    """Return the bytes of a group as a fixed part and a part per clustering.

    ``size`` is the size of a feature value.
    """
    q = draws.n_seen + (draws.projection or 0)
    n = draws.n_drawn if algorithm == "full" else draws.n_first(k)
    at_once = max(min(CHUNK, draws.n_objects), n if algorithm == "minibatch" else 0)
    products = at_once * (k * (2 * size + 1) + 4 * size * q)
    trials = 18 * (2 + int(np.log(k))) * n
    each = max(products, trials) + 40 * n + 17 * draws.n_objects + 4 * k * q * 8
    points = 3 * n * q * size
    return (points, each) if draws.all_alike and algorithm == "full" else (0, each + points)


class Seen:
    """The objects as seen by a group of clusterings."""

    def __init__(self, X: Any, tasks: list[Task], draws: Draws, xp: Any) -> None:
        self.X, self.draws, self.xp = X, draws, xp
        self.rngs = [task.rng for task in tasks]
        self.k = np.array([task.k for task in tasks])
        self.real = xp.asarray(np.arange(self.k.max()) < self.k[:, None])
        rows, columns, directions = zip(*(draws.of(rng) for rng in self.rngs), strict=True)
        self._rows: list[np.ndarray | None] = list(rows)
        self._columns = None if columns[0] is None else xp.asarray(np.stack(columns))
        self._directions = None if directions[0] is None else xp.asarray(np.stack(directions).astype(X.dtype))

    def drawn(self) -> Any:
        """Return the objects to fit: (n, q), or (B, n, q) if objects or features differ."""
        if self.draws.n_drawn == self.draws.n_objects:
            return self.between(0, self.draws.n_objects)
        return self.at([np.arange(self.draws.n_drawn)] * len(self.k))

    def at(self, picks: list[np.ndarray]) -> Any:
        """Return (B, n, q): for each clustering, n of its objects to fit by position."""
        rows = [pick if own is None else own[pick] for pick, own in zip(picks, self._rows, strict=True)]
        places = self.xp.asarray(np.stack(rows))
        if self._columns is None:
            return self._projected(self.X[places])
        return self._projected(self.X[places[:, :, None], self._columns[:, None, :]])

    def between(self, start: int, stop: int) -> Any:
        """Return objects start … stop - 1."""
        points = self.X[start:stop]
        return self._projected(points if self._columns is None else points[:, self._columns].transpose(1, 0, 2))

    def _projected(self, points: Any) -> Any:
        return points if self._directions is None else points @ self._directions

    def only(self, left: np.ndarray) -> "Seen":
        """Return the view of some of the clusterings."""
        some, places = copy(self), self.xp.asarray(left)
        some.rngs, some._rows = [self.rngs[b] for b in left], [self._rows[b] for b in left]
        some.k, some.real = self.k[left], self.real[places]
        some._columns = None if self._columns is None else self._columns[places]
        some._directions = None if self._directions is None else self._directions[places]
        return some

    def nearest(self, centers: Any) -> Any:
        """Return the nearest centroid (B, n_objects) of every object."""
        n = self.draws.n_objects
        found = [_nearest(self.between(a, min(a + CHUNK, n)), centers, self.real) for a in range(0, n, CHUNK)]
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
    """Return the sums (B, K, q) of the points selected by ``hot`` (B, K, n)."""
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
    """Return the one-hot labels (B, k, n)."""
    xp = devices.namespace(devices.kind_of(labels))
    return (labels[:, None, :] == xp.arange(k)[:, None]).astype(dtype)


def _clusters(points: Any, centers: Any, real: Any, weights: Any) -> tuple[Any, Any, Any]:
    """Return the nearest centroids (B, n), and the sums and sizes of the clusters (float64)."""
    found, sums, sizes, start = [], 0.0, 0.0, 0
    for chunk in _chunks(points):
        labels = _nearest(chunk, centers, real)
        hot = _hot(labels, centers.shape[1], centers.dtype)
        if weights is not None:
            hot *= weights[start : start + CHUNK]
            start += CHUNK
        sums = _sums(hot, chunk).astype(np.float64) + sums
        sizes = hot.sum(axis=2, dtype=np.float64) + sizes
        found.append(labels)
    return np.concatenate(found, axis=1), sums, sizes


def _to_own(points: Any, centers: Any, labels: Any) -> Any:
    """Return the squared distance of each point to its centroid (B, n)."""
    each = devices.namespace(devices.kind_of(labels)).arange(len(centers))[:, None]
    found, start = [], 0
    for chunk in _chunks(points):
        apart = chunk - centers[each, labels[:, start : start + CHUNK]]
        apart *= apart
        found.append(apart.sum(axis=2))
        start += CHUNK
    return np.concatenate(found, axis=1)


def _inertia(points: Any, centers: Any, labels: Any, weights: Any = None) -> np.ndarray:
    """Return the sum of these distances of each clustering (B,)."""
    distances = _to_own(points, centers, labels)
    if weights is not None:
        distances *= weights
    return devices.to_host(distances.sum(axis=1, dtype=np.float64))


# --- where centroids begin --------------------------------------------------------------------------------------------


def _begin(
    points: Any, k: np.ndarray, states: list[np.random.RandomState], init: str, weights: np.ndarray | None = None
) -> Any:
    """Return the first centroids (B, K, q), padded with zeros; ``weights`` (n,) are in host memory."""
    xp = devices.namespace(devices.kind_of(points))
    n = points.shape[-2]
    p = np.ones(n, dtype=points.dtype) if weights is None else weights.copy()
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
        own = None if weights is None else xp.asarray(weights)
        places = plus_plus(points, xp.asarray(chosen), xp.asarray(draws), trials, own)
    return _at(points, places) * xp.asarray(np.arange(k.max()) < k[:, None])[:, :, None]


def plus_plus(points: Any, chosen: Any, draws: Any, trials: np.ndarray, weights: Any) -> Any:
    """Choose all centroids but the first by k-means++: each is the best of several draws by squared distance."""
    xp = devices.namespace(devices.kind_of(points))
    allowed = xp.asarray(np.arange(trials.max()) < trials[:, None])
    each = xp.arange(len(chosen))
    nearest = _squared_distances(points, _at(points, chosen[:, :1]))[:, 0]
    potential = _weighted(nearest, weights).sum(axis=1)
    for c in range(1, chosen.shape[1]):
        reached = np.cumsum(_weighted(nearest, weights), axis=1)
        drawn = draws[:, c - 1] * potential[:, None]
        places = (reached[:, None, :] < drawn[:, :, None]).sum(axis=2)
        places = np.minimum(places, reached.shape[1] - 1)  # rounding may leave the sum below the drawn value
        then = _squared_distances(points, _at(points, places))
        np.minimum(then, nearest[:, None, :], out=then)
        potentials = np.where(allowed, _weighted(then, weights).sum(axis=2), np.inf)
        best = potentials.argmin(axis=1)
        nearest, potential = then[each, best], potentials[each, best]
        chosen[:, c] = places[each, best]
    return chosen


def _weighted(distances: Any, weights: Any) -> Any:
    return distances if weights is None else distances * weights


def _at(points: Any, places: Any) -> Any:
    """Return the points (B, t, q) at positions (B, t)."""
    if points.ndim == 2:
        return points[places]
    return points[devices.namespace(devices.kind_of(points)).arange(len(points))[:, None], places]


def _squared_distances(points: Any, others: Any) -> Any:
    """Return float64 squared distances (B, t, n) of others (B, t, q) to all points."""
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


def _full(seen: Seen, n_init: int, max_iter: int, init: str) -> Any:
    """Run Lloyd's k-means on each clustering's objects; return the nearest centroid of every object."""
    points = seen.drawn()
    mean = points.mean(axis=-2, keepdims=True, dtype=np.float64).astype(points.dtype)
    points = points - mean
    states = [np.random.RandomState(_seed(rng)) for rng in seen.rngs]
    best: Any = None
    labels: Any
    inertia: Any
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
            if not _same_clusters(found[b], labels[b]):  # equal clusters are not better by rounding
                best[b], labels[b], inertia[b] = centers[b], found[b], reached[b]
    if seen.draws.n_drawn == seen.draws.n_objects:
        return np.concatenate([_nearest(chunk, best, seen.real) for chunk in _chunks(points)], axis=1)
    return seen.nearest((best + mean) * seen.real[:, :, None])


def _lloyd(points: Any, centers: Any, real: Any, max_iter: int, weights: Any = None) -> Any:
    """Return the centroids after at most ``max_iter`` iterations; converged clusterings drop out.

    The host looks once at what an iteration has done.
    """
    tolerance = TOLERANCE * devices.to_host(points.var(axis=-2, dtype=np.float64).mean(axis=-1))
    tolerance = np.broadcast_to(tolerance, len(centers))
    xp = devices.namespace(devices.kind_of(points))
    finished = xp.empty_like(centers)
    at_work = np.arange(len(centers))
    before = xp.full((len(centers), points.shape[-2]), -1, dtype=np.int64)
    iteration = 0
    while at_work.size:
        iteration += 1
        labels, sums, sizes = _clusters(points, centers, real, weights)
        moved, shifts = _moved(centers, sums, sizes, real)
        empty, same = real & (sizes == 0), (labels == before).all(axis=1)
        some_empty, unchanged, by = devices.to_host(xp.stack([empty.any(axis=1), same, shifts]))
        if some_empty.any():
            _move_empty(points, centers, labels, sums, sizes, devices.to_host(empty), weights)
            moved, shifts = _moved(centers, sums, sizes, real)
            by = devices.to_host(shifts)
        done = (unchanged > 0) | (by <= tolerance[at_work])
        if iteration == max_iter:
            done[:] = True
        if done.any():
            finished[xp.asarray(at_work[done])] = moved[xp.asarray(np.flatnonzero(done))]
            left = xp.asarray(np.flatnonzero(~done))
            at_work = at_work[~done]
            moved, labels, real = moved[left], labels[left], real[left]
            points = points if points.ndim == 2 else points[left]
        centers, before = moved, labels
    return finished


def _moved(centers: Any, sums: Any, sizes: Any, real: Any) -> tuple[Any, Any]:
    """Return the new centroids, and the squared length of each clustering's moves (B,)."""
    moved = _means(sums, sizes, real).astype(centers.dtype)
    shift = moved - centers
    return moved, (shift * shift).sum(axis=(1, 2), dtype=np.float64)


def _means(sums: Any, sizes: Any, real: Any) -> Any:
    """Return the centroids; as in scikit-learn, one still empty moves beside the largest cluster."""
    xp = devices.namespace(devices.kind_of(sums))
    means = sums / np.maximum(sizes, 1)[:, :, None]
    largest = sizes.argmax(axis=1)
    each = xp.arange(len(sums))
    first = xp.arange(sizes.shape[1]) < largest[:, None]  # clusters before the largest see its sum, not its mean
    beside = np.where(first[:, :, None], sums[each, largest][:, None], means[each, largest][:, None])
    return np.where((sizes > 0)[:, :, None], means, beside) * real[:, :, None]


def _move_empty(points: Any, centers: Any, labels: Any, sums: Any, sizes: Any, empty: np.ndarray, weights: Any) -> None:
    """Move empty clusters, in place, to the objects farthest from their centroids."""
    for b in np.flatnonzero(empty.any(axis=1)):
        own = points if points.ndim == 2 else points[b]
        distances = devices.to_host(_to_own(own, centers[b : b + 1], labels[b : b + 1])[0])
        if not distances.max():  # more clusters than distinct objects
            continue
        clusters = np.flatnonzero(empty[b])
        farthest = np.argpartition(distances, -len(clusters))[: -len(clusters) - 1 : -1]
        for cluster, x in zip(clusters.tolist(), farthest.tolist(), strict=True):
            left, weight = int(labels[b, x]), 1 if weights is None else weights[x]
            sums[b, left] -= own[x] * weight
            sizes[b, left] -= weight
            sums[b, cluster] = own[x] * weight
            sizes[b, cluster] = weight


def best_of(
    points: Any, weights: np.ndarray, k: int, *, n_init: int, max_iter: int, seed: int, device: str
) -> tuple[Any, Any]:
    """Return the labels (n,) and centroids (k, q) of the best of several starts of k-means of weighted points (n, q).

    The starts are made together, with the draws of scikit-learn's KMeans(k, n_init=n_init, random_state=seed), which
    makes them one after the other. Of starts that are equally good the first counts.
    """
    xp, n = devices.namespace(device), len(points)
    mean = points.mean(axis=0, keepdims=True, dtype=np.float64).astype(points.dtype)
    points = points - mean
    weights = weights.astype(points.dtype)
    own, state = xp.asarray(weights), np.random.RandomState(seed)
    draws = Draws(n, points.shape[1], n, points.shape[1], None)
    at_once = max(1, devices.scratch(device) // _needed(draws, points.itemsize, k, "full")[1])
    labels, centers, least = None, None, np.inf
    for start in range(0, n_init, at_once):
        size = min(at_once, n_init - start)
        real = xp.ones((size, k), dtype=bool)
        first = _begin(points, np.full(size, k), [state] * size, "k-means++", weights)
        reached = _lloyd(points, first, real, max_iter, own)
        found = np.concatenate([_nearest(chunk, reached, real) for chunk in _chunks(points)], axis=1)
        inertia = _inertia(points, reached, found, own)
        best = int(inertia.argmin())
        if inertia[best] < least:
            labels, centers, least = found[best], reached[best], inertia[best]
    return labels, centers + mean


def _same_clusters(a: Any, b: Any) -> bool:
    """Return whether two labellings (n,) are the same partition."""
    n_pairs = len(np.unique(a * (int(b.max()) + 1) + b))
    return n_pairs == len(np.unique(a)) == len(np.unique(b))


def _seed(rng: np.random.Generator) -> int:
    return int(rng.integers(2**31))


# --- mini-batches -----------------------------------------------------------------------------------------------------


class _Start(NamedTuple):
    """The host's state of mini-batch k-means."""

    counts: np.ndarray  # (B, K): objects seen by each cluster
    since: np.ndarray  # (B,): objects seen since centroids were last reassigned
    states: list[np.random.RandomState]


def _mini_batches(seen: Seen, n_init: int, max_iter: int, init: str) -> Any:
    """Run mini-batch k-means (Sculley 2010) on each clustering's objects; return every object's nearest centroid."""
    n, k = seen.draws.n_drawn, seen.k
    first = seen.at([rng.choice(n, seen.draws.n_first(k[0]), replace=False) for rng in seen.rngs])
    seeds = [[_seed(rng) for _ in range(n_init)] for rng in seen.rngs]
    start: Any = None
    centers: Any
    inertia: Any
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


def _start(first: Any, k: np.ndarray, real: Any, states: list[Any], init: str) -> tuple[Any, _Start]:
    """Return the centroids after the first objects, drawn without replacement, and the state."""
    n = first.shape[1]
    size = 3 * min(BATCH, n)
    points = first
    if k[0] <= size < n:  # true of all of a group or of none
        among = np.stack([state.randint(0, n, size) for state in states])
        points = _at(first, devices.namespace(devices.kind_of(first)).asarray(among))
    centers = _begin(points, k, states, init)
    start = _Start(np.zeros(real.shape, dtype=first.dtype), np.zeros(len(k), dtype=np.int64), states)
    centers, _ = _step(first, centers, k, real, start, min(BATCH, n))
    return centers, start


def _go_on(seen: Seen, centers: Any, start: _Start, max_iter: int) -> Any:
    """Return the centroids after mini-batches until the smoothed inertia stops improving."""
    xp, n = seen.xp, seen.draws.n_drawn
    size = min(n, BATCH)
    finished = xp.empty_like(centers)
    at_work = np.arange(len(centers))
    smoothing = min(1.0, 2 * size / (n + 1))
    smoothed = best = np.full(len(centers), np.inf)
    since_best = np.zeros(len(centers), dtype=np.int64)
    for step in range(max_iter * n // size):
        batch = seen.at([rng.integers(n, size=size) for rng in seen.rngs])
        centers, inertia = _step(batch, centers, seen.k, seen.real, start, size)
        smoothed = inertia if step == 0 else smoothed + smoothing * (inertia - smoothed)
        since_best = np.where(smoothed < best, 0, since_best + 1)
        best = np.minimum(best, smoothed)
        done = since_best == PATIENCE
        if done.any():
            finished[xp.asarray(at_work[done])] = centers[xp.asarray(np.flatnonzero(done))]
            left = np.flatnonzero(~done)
            at_work, smoothed, best, since_best = at_work[left], smoothed[left], best[left], since_best[left]
            if not at_work.size:
                return finished
            centers, seen = centers[xp.asarray(left)], seen.only(left)
            start = _Start(start.counts[left], start.since[left], [start.states[b] for b in left])
    finished[xp.asarray(at_work)] = centers
    return finished


def _step(batch: Any, centers: Any, k: np.ndarray, real: Any, start: _Start, size: int) -> tuple[Any, np.ndarray]:
    """Move the centroids towards a mini-batch; return them and the inertia before the move."""
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
    """Return the clusters that have seen too few objects, and the objects of a mini-batch to restart them at."""
    low = counts < REASSIGNED_BELOW * counts.max()
    if low.sum() > 0.5 * n:  # no more than half of a batch
        low[np.argsort(counts)[int(0.5 * n) :]] = False
    clusters = np.flatnonzero(low)
    picks = state.choice(n, replace=False, size=len(clusters)) if clusters.size else clusters
    counts[low] = counts[~low].min()
    return clusters, picks

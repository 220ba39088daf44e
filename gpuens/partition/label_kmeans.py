"""k-means in label space: the features of a row are looked up, clustering by clustering, by its labels.

Row g has the features T_1[label of g in 1], …, T_M[label of g in M] side by side, T_m (k_m, d_m) being a table of any
kind; a missing label has zeros. Neither these features nor the centroids are ever built. With P[c, k] the share of the
objects of cluster k that the cluster c of the ensemble holds, the coordinates of centroid k in clustering m are
T_mᵀ P_m[:, k], and the squared distance of a row to it is a sum over the row's labels:

    d(g, k) = const[k] + Σ_{m: g is labelled} cost[c, k],       c = cluster of g in m
    cost[c, k] = |T_m[c]|² - 2 T_m[c] · (T_mᵀ P_m[:, k]),       const[k] = Σ_m |T_mᵀ P_m[:, k]|²

So an iteration is a histogram (N_c, K) of whole numbers, a *divergence* that makes cost and const of it on the host,
and one pass over the labels. Another divergence is another method: centred unit tables make it QMI, tables of coupled
similarities CgC, and the utilities of KCC differ in nothing but cost and const.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from gpuens import device as devices
from gpuens import kernels, scattered
from gpuens.compiled import njit
from gpuens.ensemble import Ensemble
from gpuens.incidence import row_lookups

Divergence: TypeAlias = Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]

RESTARTS_ON = 20_000  # rows: of more, restarts see a sample of this size, and the best of them goes on with all rows
ROUNDING = 1e-12  # of the largest terms: distances up to it are those of a row to its like
BLOCK_SUMS = 2**12  # distances that a CPU thread works on at a time


class LabelKMeans(NamedTuple):
    """What `label_kmeans` found: K clusters of G rows, and the centroids, by which other rows can be labelled."""

    labels: Any  # (G,) int64, 0 … K - 1 in the order of the clusters' first rows, in host memory; or a rule
    objective: float  # the sum of the distances of all objects to the centroids of their clusters
    n_iter: int  # passes over all rows
    converged: bool
    cost: np.ndarray  # (N_c, K): these two are what `nearest_centroids` takes
    const: np.ndarray  # (K,)


def label_kmeans(
    codes: Any,
    offsets: np.ndarray,
    weights: np.ndarray,
    divergence: Divergence,
    n_clusters: int,
    *,
    n_init: int = 10,
    max_iter: int = 100,
    rng: np.random.Generator,
    device: str = "cpu",
) -> LabelKMeans:
    """Cut rows into clusters by k-means in label space: k-means++ and Lloyd's iterations, the best of some restarts.

    Parameters
    ----------
    codes : array (G, M), unsigned integers, columns contiguous, where ``device`` works
    offsets : ndarray (M + 1,), int64
    weights : ndarray (G,), int64, at least 1
        How many objects each row stands for: the result is that of repeating the rows.
    divergence : callable
        P (N_c, K) → cost (N_c, K), const (K,), all float64 in host memory, as `squared_euclidean` makes them.
    n_clusters : int
        Clusters wanted, at most G.
    n_init : int
        Restarts. Beyond 20,000 rows they see that many objects, drawn with replacement, which is 3-5 times faster;
        on 60,000 rows × 20 with 7, 25 and 100 clusters the objective was within 0.06 % of that of restarts on all.
    max_iter : int
        Passes over the rows of a start at most. They end earlier when the objective no longer falls; it never rises.
    rng : numpy.random.Generator
        All draws are made on the host: the same state gives the same labels on every device.

    Returns
    -------
    LabelKMeans
        No cluster is empty: one that loses its rows begins again at the row that is farthest from all centroids (of
        equal ones the first), together with the rows of the same features. Those are never told apart, so there are
        fewer clusters than wanted where there are fewer different features; whoever calls may have to say so.

    Examples
    --------
    >>> import numpy as np
    >>> import gpuens as ge
    >>> from gpuens.partition import label_kmeans, squared_euclidean
    >>> ens = ge.Ensemble([[0, 0, 0, 1, 1, 1], [0, 0, 1, 2, 2, 2]])
    >>> features = squared_euclidean([np.eye(2), np.eye(3)])
    >>> found = label_kmeans(ens.codes, ens.offsets, np.ones(6, dtype=int), features, 2, rng=np.random.default_rng(0))
    >>> found.labels.tolist(), round(found.objective, 3)
    ([0, 0, 0, 1, 1, 1], 1.333)
    """
    from threadpoolctl import threadpool_limits

    rows = _Rows(codes, offsets, weights, divergence, device)
    with threadpool_limits(1, user_api="blas"):  # whose sums could otherwise depend on the number of threads
        some = rows.sample(RESTARTS_ON, rng) if len(codes) > RESTARTS_ON else rows
        starts = (_lloyd(some, *some.plus_plus(n_clusters, rng), n_clusters, max_iter) for _ in range(n_init))
        best, n_iter, converged = min(starts, key=lambda found: found[0].objective)
        if some is not rows:
            best, n_iter, converged = _lloyd(rows, best.cost, best.const, n_clusters, max_iter)
    labels = devices.to_host(best.labels)
    order = np.argsort(np.unique(labels, return_index=True)[1])
    return LabelKMeans(
        np.argsort(order)[labels], best.objective, n_iter, converged, best.cost[:, order], best.const[order]
    )


def learn_label_kmeans(
    rows: scattered.Pieces,
    divergence: Divergence,
    n_clusters: int,
    *,
    n_init: int = 10,
    max_iter: int = 100,
    rng: np.random.Generator,
) -> LabelKMeans:
    """Do what `label_kmeans` does of rows in pieces; ``labels`` is a rule that labels any rows.

    Restarts see 20,000 objects drawn from all pieces, and every further iteration is a sum of whole numbers over the
    pieces: it does not matter how the rows are divided among them, but for the draw.
    """
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1, user_api="blas"):
        ensemble, counts = scattered.draw(rows, RESTARTS_ON, rng)
        some = _Rows(ensemble.codes, ensemble.offsets, counts, divergence, "cpu")
        starts = (_lloyd(some, *some.plus_plus(n_clusters, rng), n_clusters, max_iter) for _ in range(n_init))
        best, _, _ = min(starts, key=lambda found: found[0].objective)
        best, n_iter, converged = _lloyd(_RowsInPieces(rows, divergence), best.cost, best.const, n_clusters, max_iter)
    rule = scattered.numbered(best.labels, len(best.const), rows)
    order = np.argsort(rule.number)
    return LabelKMeans(rule, best.objective, n_iter, converged, best.cost[:, order], best.const[order])


def squared_euclidean(tables: Sequence[np.ndarray]) -> Divergence:
    """Return the divergence of squared Euclidean distances between rows of tables T_m (k_m, d_m), one a clustering.

    >>> import numpy as np
    >>> from gpuens.partition import squared_euclidean
    >>> cost, const = squared_euclidean([np.array([[0.0, 3.0], [4.0, 0.0]])])(np.array([[1.0], [0.0]]))
    >>> (const + cost).tolist()
    [[0.0], [25.0]]
    """
    tables = [np.ascontiguousarray(table, dtype=np.float64) for table in tables]
    squares = [(table * table).sum(axis=1, keepdims=True) for table in tables]
    ends = np.cumsum([len(table) for table in tables])

    def divergence(shares: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        cost, squared = np.empty(shares.shape), np.empty((len(tables), shares.shape[1]))

        def work(start: int, stop: int) -> None:
            for m in range(start, stop):
                own = slice(ends[m] - len(tables[m]), ends[m])
                centroids = tables[m].T @ shares[own]
                squared[m] = (centroids * centroids).sum(axis=0)
                cost[own] = squares[m] - 2 * (tables[m] @ centroids)

        devices.over_ranges(work, len(tables))
        return cost, squared.sum(axis=0)

    return divergence


def centred_indicators(offsets: np.ndarray) -> Divergence:
    """Return the divergence of squared Euclidean distances between labels, one-hot and centred, of k_m clusters each.

    It is that of the tables I - 1/k_m, which are not built: they are projections, so that T_mᵀ P_m, and T_m times that
    too, are P_m less the mean of its rows.

    >>> import numpy as np
    >>> from gpuens.partition.label_kmeans import centred_indicators
    >>> cost, const = centred_indicators(np.array([0, 2]))(np.array([[1.0], [0.0]]))
    >>> (const + cost).tolist()
    [[0.0], [2.0]]
    """
    sizes = np.diff(offsets)
    squares = np.repeat(1.0 - 1.0 / sizes, sizes)[:, None]

    def divergence(shares: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        means = np.add.reduceat(shares, offsets[:-1], axis=0) / sizes[:, None]
        centroids = shares - np.repeat(means, sizes, axis=0)
        const = (centroids * centroids).sum(axis=0)
        centroids *= -2.0
        centroids += squares
        return centroids, const

    return divergence


# --- iterations -------------------------------------------------------------------------------------------------------


class _Clusters(NamedTuple):
    """A partition of the rows without empty clusters, and the centroids of its clusters."""

    labels: Any
    cost: np.ndarray
    const: np.ndarray
    objective: float


def _lloyd(
    rows: "_Rows", cost: np.ndarray, const: np.ndarray, n_clusters: int, max_iter: int
) -> tuple[_Clusters, int, bool]:
    """Return the clusters that iterations from given centroids lead to, how many there were, and whether they ended."""
    found = rows.clusters(cost, const, n_clusters)
    for n_iter in range(2, max_iter + 1):
        then = rows.clusters(found.cost, found.const, n_clusters)
        if not then.objective < found.objective:  # as when no label changes
            return found, n_iter, True
        found = then
    return found, max_iter, False


class _Rows:
    """The rows of an ensemble where a device works, what they count for, and how far they are from what."""

    def __init__(
        self, codes: Any, offsets: np.ndarray, weights: np.ndarray, divergence: Divergence, device: str
    ) -> None:
        self.codes, self.offsets, self.weights = codes, offsets, weights
        self.divergence, self.device = divergence, device
        self.xp = devices.namespace(device)
        self.counts = self.xp.asarray(weights, dtype=np.int64)

    def sample(self, size: int, rng: np.random.Generator) -> "_Rows":
        """Return the rows of so many objects, drawn with replacement."""
        reached = np.cumsum(self.weights)
        drawn = np.searchsorted(reached, rng.integers(reached[-1], size=size), side="right")
        chosen, weights = np.unique(drawn, return_counts=True)
        codes = self.codes[self.xp.asarray(chosen)].copy(order="F")
        return _Rows(codes, self.offsets, weights, self.divergence, self.device)

    def plus_plus(self, n_clusters: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """Return rows as centroids (Arthur & Vassilvitskii 2007): the best of some, drawn by distance, again and again.

        There are fewer centroids than asked for where fewer rows are different.
        """
        n_trials = 2 + int(np.log(n_clusters))
        chosen = [int(_drawn(self.weights, rng.random(1))[0])]
        nearest = self.distances_to(self.rows_at(chosen))
        while len(chosen) < n_clusters and nearest.any():
            picks = _drawn(self.weights * nearest[:, 0], rng.random(n_trials))
            then = np.minimum(nearest, self.distances_to(self.rows_at(picks)))
            best = (self.weights[:, None] * then).sum(axis=0).argmin()
            chosen.append(int(picks[best]))
            nearest = then[:, best : best + 1]
        return self.centroids_at(chosen)

    def clusters(self, cost: np.ndarray, const: np.ndarray, n_clusters: int) -> _Clusters:
        """Return the clusters of the rows nearest to each of some centroids, with new ones in place of empty ones."""
        labels = self.nearest(cost, const)
        counted, n_objects = self.count(labels, len(const))
        held = np.flatnonzero(n_objects)
        if len(held) < len(const):
            labels = self.leave_out(labels, np.cumsum(n_objects > 0) - 1)
            counted, n_objects = np.ascontiguousarray(counted[:, held]), n_objects[held]
        while True:
            found = self.of(labels, counted, n_objects)
            k = len(n_objects)
            if k == n_clusters:
                return found
            row, distance = self.farthest(found.cost, found.const)
            if distance <= self.rounding(found.cost, found.const):
                return found
            # no cluster loses all its rows to the new one: the mean of such rows alone would be at distance 0
            labels = self.set_apart(labels, row, k)
            counted, n_objects = self.count(labels, k + 1)

    def of(self, labels: Any, counted: np.ndarray, n_objects: np.ndarray) -> _Clusters:
        """Return the clusters that labels say, with their centroids and the sum of the distances to them."""
        cost, const = self.divergence(counted / n_objects)
        objective = float((n_objects * const).sum() + (counted * cost).sum())
        return _Clusters(labels, cost, const, max(objective, 0.0))

    def nearest(self, cost: np.ndarray, const: np.ndarray) -> Any:
        """Return the centroid that each row is nearest to."""
        return nearest_centroids(self.codes, self.offsets, cost, const, device=self.device)[0]

    def count(self, labels: Any, k: int) -> tuple[np.ndarray, np.ndarray]:
        """Return how many objects of each label each cluster of the ensemble holds, and all (host)."""
        counted = label_histograms(self.codes, self.offsets, self.counts, labels, k, device=self.device)
        n_objects = np.bincount(labels, weights=self.counts, minlength=k)
        return devices.to_host(counted), devices.to_host(n_objects)

    def leave_out(self, labels: Any, number: np.ndarray) -> Any:
        """Return labels numbered anew."""
        return self.xp.asarray(number)[labels]

    def farthest(self, cost: np.ndarray, const: np.ndarray) -> tuple[np.ndarray, float]:
        """Return the row that is farthest from its nearest centroid, of equal ones the first, and how far it is."""
        return _farthest(self.codes, self.offsets, cost, const, self.device)

    def set_apart(self, labels: Any, row: np.ndarray, k: int) -> Any:
        """Return labels with k for the rows of the same features as one."""
        return np.where(self.xp.asarray(self.distances_to(row[None])[:, 0] == 0), k, labels)

    def distances_to(self, chosen: np.ndarray) -> np.ndarray:
        """Return the distances (G, n) of all rows to others (n, M), host; exactly 0 to those that are alike."""
        cost, const = self.divergence(self.shares_of(chosen))
        distances = devices.to_host(row_lookups(self.codes, self.offsets, cost, device=self.device)) + const
        return np.where(distances > self.rounding(cost, const), distances, 0.0)

    def centroids_at(self, places: Any) -> tuple[np.ndarray, np.ndarray]:
        """Return some rows as centroids."""
        return self.divergence(self.shares_of(self.rows_at(places)))

    def rows_at(self, places: Any) -> np.ndarray:
        """Return the codes of some rows, in host memory."""
        codes: np.ndarray = devices.to_host(self.codes[self.xp.asarray(np.asarray(places))])
        return codes

    def shares_of(self, codes: np.ndarray) -> np.ndarray:
        """Return P (N_c, n) of clusters of one row (n, M) each."""
        t, m = np.nonzero(codes != np.iinfo(codes.dtype).max)
        shares = np.zeros((int(self.offsets[-1]), len(codes)))
        shares[self.offsets[m] + codes[t, m], t] = 1.0
        return shares

    def rounding(self, cost: np.ndarray, const: np.ndarray) -> float:
        """Return up to what a distance may be nothing but rounding."""
        largest = np.maximum.reduceat(np.abs(cost).max(axis=1), self.offsets[:-1]).sum() + np.abs(const).max()
        return ROUNDING * float(largest)


@dataclass(frozen=True)
class _Nearest:
    """A rule: each row goes to its nearest centroid, but for rows with the features of one that is set apart."""

    cost: np.ndarray
    const: np.ndarray
    number: np.ndarray  # of each centroid
    apart: tuple  # (cost, const, what is nothing but rounding, label) of each row set apart; the last counts

    def __call__(self, ensemble: Ensemble, *, device: str) -> np.ndarray:
        codes, offsets = ensemble.codes_on(device), ensemble.offsets
        nearest, _ = nearest_centroids(codes, offsets, self.cost, self.const, device=device)
        labels: np.ndarray = self.number[devices.to_host(nearest)]
        for cost, const, rounding, label in self.apart:
            distances = devices.to_host(row_lookups(codes, offsets, cost, device=device))[:, 0] + const
            labels[distances <= rounding] = label
        return labels


class _RowsInPieces(_Rows):
    """Rows that are in pieces; instead of their labels there is a rule."""

    def __init__(self, rows: scattered.Pieces, divergence: Divergence) -> None:
        self.rows, self.divergence, self.offsets = rows, divergence, rows.numbering.offsets

    def nearest(self, cost: np.ndarray, const: np.ndarray) -> _Nearest:
        return _Nearest(cost, const, np.arange(len(const)), ())

    def count(self, labels: _Nearest, k: int) -> tuple[np.ndarray, np.ndarray]:
        counted = self.rows.sum(_count, labels, k)
        return counted[:-1], counted[-1].astype(np.float64)

    def leave_out(self, labels: _Nearest, number: np.ndarray) -> _Nearest:
        return replace(labels, number=number)

    def farthest(self, cost: np.ndarray, const: np.ndarray) -> tuple[np.ndarray, float]:
        found = self.rows.each(_farthest_of, cost, const)
        row, distance = min(found, key=lambda of_piece: (-of_piece[1], tuple(of_piece[0].tolist())))
        return row, distance

    def set_apart(self, labels: _Nearest, row: np.ndarray, k: int) -> _Nearest:
        cost, const = self.divergence(self.shares_of(row[None]))
        return replace(labels, apart=(*labels.apart, (cost, const, self.rounding(cost, const), k)))


def _count(ensemble: Ensemble, counts: np.ndarray, rule: _Nearest, k: int, *, device: str) -> np.ndarray:
    """Return how many objects of each label each cluster holds (N_c, k), and in a row more all."""
    xp, labels = devices.namespace(device), rule(ensemble, device=device)
    given = (ensemble.codes_on(device), ensemble.offsets, xp.asarray(counts), xp.asarray(labels))
    counted = devices.to_host(label_histograms(*given, k, device=device))
    n_objects = np.bincount(labels, weights=counts, minlength=k).astype(np.int64)
    return np.concatenate([counted, n_objects[None]])


def _farthest_of(
    ensemble: Ensemble, counts: np.ndarray, cost: np.ndarray, const: np.ndarray, *, device: str
) -> tuple[np.ndarray, float]:
    return _farthest(ensemble.codes_on(device), ensemble.offsets, cost, const, device)


def _farthest(
    codes: Any, offsets: np.ndarray, cost: np.ndarray, const: np.ndarray, device: str
) -> tuple[np.ndarray, float]:
    _, distances = nearest_centroids(codes, offsets, cost, const, device=device)
    distances = devices.to_host(distances)
    farthest = int(distances.argmax())
    return devices.to_host(codes[farthest]), float(distances[farthest])


def _drawn(masses: np.ndarray, uniform: np.ndarray) -> np.ndarray:
    """Return positions drawn in proportion to masses, by uniform numbers in [0, 1); never one without mass."""
    reached = np.cumsum(masses)
    return np.searchsorted(reached, uniform * reached[-1], side="right")


# --- primitives -------------------------------------------------------------------------------------------------------


@kernels.primitive
def nearest_centroids(
    codes: np.ndarray, offsets: np.ndarray, cost: np.ndarray, const: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the centroid (G,) int64 that each row is nearest to, of equal ones the first, and its distance (float64).

    The distances const[k] + Σ_m cost[cluster of the row in m, k] are summed in the order of the clusterings; what
    rounding makes negative is 0. ``cost`` is (N_c, K), K ≥ 1.
    """
    labels, distances = np.empty(len(codes), dtype=np.int64), np.empty(len(codes))
    cost = np.ascontiguousarray(cost)
    block = max(16, BLOCK_SUMS // len(const))

    def work(a: int, b: int) -> None:
        _nearest_centroids(codes[a:b], offsets, cost, const, labels[a:b], distances[a:b], block)

    devices.over_ranges(work, len(codes), grain=2048)
    return labels, distances


@kernels.primitive
def label_histograms(
    codes: np.ndarray, offsets: np.ndarray, weights: np.ndarray, labels: np.ndarray, n_labels: int
) -> np.ndarray:
    """Return (N_c, n_labels) int64: the weight of the rows of each cluster that have each of the labels (G,)."""
    counted = np.zeros((int(offsets[-1]), n_labels), dtype=np.int64)
    devices.over_ranges(lambda a, b: _label_histograms(a, b, codes, offsets, weights, labels, counted), codes.shape[1])
    return counted


@njit(cache=True, nogil=True)
def _nearest_centroids(codes, offsets, cost, const, labels, distances, block):
    missing = codes.dtype.type(-1)
    n_rows, n_centroids = codes.shape[0], len(const)
    sums = np.empty((block, n_centroids))
    for start in range(0, n_rows, block):
        size = min(block, n_rows - start)
        for i in range(size):
            for k in range(n_centroids):
                sums[i, k] = const[k]
        for m in range(codes.shape[1]):
            for i in range(size):
                label = codes[start + i, m]
                if label != missing:
                    at = offsets[m] + label
                    for k in range(n_centroids):
                        sums[i, k] += cost[at, k]
        for i in range(size):
            nearest = 0
            for k in range(1, n_centroids):
                if sums[i, k] < sums[i, nearest]:
                    nearest = k
            labels[start + i] = nearest
            distances[start + i] = max(sums[i, nearest], 0.0)


@njit(cache=True, nogil=True)
def _label_histograms(start, stop, codes, offsets, weights, labels, counted):
    missing = codes.dtype.type(-1)
    for m in range(start, stop):
        for g in range(codes.shape[0]):
            if codes[g, m] != missing:
                counted[offsets[m] + codes[g, m], labels[g]] += weights[g]


# --- kernels/label_space.cu -------------------------------------------------------------------------------------------


@nearest_centroids.kernel
def _(codes: Any, offsets: Any, cost: Any, const: Any, *, device: str) -> Any:
    xp = devices.namespace(device)
    labels, distances = xp.empty(len(codes), dtype=np.int64), xp.empty(len(codes))
    kernels.launch(
        "nearest_centroids", kernels.blocks(len(codes), 256), 256,
        (codes.T, xp.asarray(offsets), xp.ascontiguousarray(xp.asarray(cost)), xp.asarray(const), labels, distances,
         *codes.shape, len(const)),
        device=device, CODE=kernels.c_name(codes.dtype),
    )  # fmt: skip
    return labels, distances


@label_histograms.kernel
def _(codes: Any, offsets: Any, weights: Any, labels: Any, n_labels: int, *, device: str) -> Any:
    xp = devices.namespace(device)
    counted = xp.zeros((int(offsets[-1]), n_labels), dtype=np.uint64)
    cells = np.diff(devices.to_host(offsets)) * n_labels
    shared = 8 * int(cells.max(initial=0, where=8 * cells <= kernels.SHARED_BYTES))
    kernels.launch(
        "label_histograms", (kernels.blocks(len(codes), 256 * 64), codes.shape[1]), 256,
        (codes.T, xp.asarray(offsets), xp.asarray(weights, dtype=np.int64), labels, counted, len(codes), n_labels,
         shared // 8),
        device=device, shared=shared, CODE=kernels.c_name(codes.dtype),
    )  # fmt: skip
    return counted.view(np.int64)

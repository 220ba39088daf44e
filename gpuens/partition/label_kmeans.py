"""k-means in label space, where the features of a row are looked up by its labels.

The features of row g are the concatenation of T_1[label of g in 1], …, T_M[label of g in M], where T_m (k_m, d_m) is a
table for clustering m; a missing label has zeros. Neither these features nor the centroids are built in memory. Let
P[c, k] be the share of the objects of cluster k that are in cluster c of the ensemble. Then the features of centroid k
in clustering m are T_mᵀ P_m[:, k], and the squared distance of a row to the centroid is a sum over the row's labels:

    d(g, k) = const[k] + Σ_{m: g is labelled} cost[c, k],       c = cluster of g in m
    cost[c, k] = |T_m[c]|² - 2 T_m[c] · (T_mᵀ P_m[:, k]),       const[k] = Σ_m |T_mᵀ P_m[:, k]|²

So an iteration has three parts: an integer histogram (N_c, K) of the objects in each cluster, where K is the number of
centroids; a *divergence*, which computes cost and const from the histogram on the host; and one pass over the labels.
Each divergence gives another method: with tables of coupled similarities, the method is CgC. The costs of KCC's
utilities and of SEC need no tables; they are in `gpuens.partition.utilities`.

On a GPU all starts take each step together, so that the host waits only once in each step. The starts do not affect
each other: the labels of a start are the same as if it ran alone.
"""

import math
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from gpuens.kmeans.plus_plus import n_trials
from gpuens.labels.incidence import label_weights, screen_units
from gpuens.labels.rows import Rows, Rule, numbered
from gpuens.partition.base import DIAGONAL, Partition, Partitioner
from gpuens.runtime import checks, kernels
from gpuens.runtime import device as devices
from gpuens.runtime.native import cpu
from gpuens.runtime.seeds import NOT_GIVEN, takes_rng

# largest number of rows for which starts use all rows. If there are more rows, each start uses a sample of so many
# objects, and only the best start continues with all rows
RESTARTS_ON = 20_000
ROUNDING = 1e-12  # a distance smaller than this share of its largest terms counts as 0
MOST_STARTS = 32  # largest number of starts that run together
VALUES_AT_ONCE = 2**22  # shares whose costs are computed together
STARTS_BYTES = 2**26  # largest number of bytes of the starts that run together

Costs = Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]


@dataclass(frozen=True)
class Divergence:
    """Distances of rows to K clusters, from the shares P (N_c, K) of their objects in each cluster of the ensemble.

    Attributes
    ----------
    costs : callable
        P → cost (N_c, K), const (K,), float64 in host memory.
    apart : callable, optional
        The same kind of function, for clusters of a single row: only rows with the same features have distance 0. By
        default it is `costs`. (If missing labels are left out, `costs` also gives distance 0 to a row whose labels are
        a subset of the cluster's labels.)
    row_term : callable, optional
        Rows → a number (G,) for each row, float64 on the rows' device, which is added to all distances of the row. It
        is at most the number of clusterings.
    """

    costs: Costs
    apart: Costs | None = None
    row_term: Callable[[Rows], Any] | None = None

    def __call__(self, shares: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return self.costs(shares)

    def to_row(self, shares: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return (self.apart or self.costs)(shares)


@dataclass(frozen=True, eq=False)
class LabelKMeans(Partitioner):
    """k-means with the centred similarities between an object's clusters and all clusters of their clusterings.

    Parameters
    ----------
    n_init, max_iter : int
        The number of starts of k-means, and the largest number of iterations of a start.
    random_state : int, None or numpy.random.Generator
        The same seed gives the same labels, on every device.
    """

    n_init: int = 10
    max_iter: int = 100
    random_state: Any = 0
    takes = DIAGONAL + ("blocks",)
    any_sign = True
    learns_by_sums = True
    takes_shares = True
    real_weights = True

    def __post_init__(self) -> None:
        checks.check_runs(self.n_init, self.max_iter)
        checks.make_generator(self.random_state)

    def __call__(self, similarity: Any, rows: Rows, n_clusters: int) -> Partition:
        divergence = squared_euclidean([matrix - matrix.mean(axis=0) for matrix in similarity.matrices()])
        rng = checks.make_generator(self.random_state)
        partition = label_kmeans(rows, divergence, n_clusters, n_init=self.n_init, max_iter=self.max_iter, rng=rng)
        checks.warn_of_fewer(partition.n_clusters, n_clusters)
        if partition.labels is not None:
            partition.rule = None  # rows unknown at fit are assigned to the most similar cluster
        return partition


@takes_rng
def label_kmeans(
    rows: Rows,
    divergence: Divergence,
    n_clusters: int,
    *,
    n_init: int = 10,
    max_iter: int = 100,
    tol: float = 0.0,
    random_state: Any = 0,
    rng: Any = NOT_GIVEN,
) -> Partition:
    """Cluster rows by k-means in label space: k-means++ and Lloyd's iterations, the best of ``n_init`` starts.

    Parameters
    ----------
    rows : Rows
        A row with count c has the effect of c equal rows. With rows in pieces, starts use 20,000 objects drawn from
        all pieces, and every further iteration is an integer sum over the pieces: apart from the draw, their division
        does not matter.
    divergence : Divergence
        For example the result of `squared_euclidean`.
    n_clusters : int
        Number of clusters, at most G.
    n_init : int
        The number of starts. Above 20,000 rows they use 20,000 objects drawn with replacement, which is 3-5 times
        faster; for 60,000 rows × 20 and 7, 25 and 100 clusters the objective was within 0.06 % of that of starts on all
        rows.
    max_iter : int
        The largest number of passes over the rows in a start. A start ends when the objective no longer falls; it never
        rises.
    tol : float
        A start also ends when the objective falls by no more than this share of it.
    random_state : int, None or numpy.random.Generator
        Used on the host only: the same state gives the same labels on every device.
    rng : optional
        SciPy's name of ``random_state`` (SPEC 7); only one of both is passed.

    Returns
    -------
    Partition
        ``results``: the ``objective``, the sum of the distances of all objects to the centroids of their clusters,
        ``n_iter``, passes over all rows, and whether it ``converged``. No cluster is empty: one that loses its rows
        restarts at the row farthest from all centroids (the first of equal ones), with all rows of the same features.
        Rows with the same features stay together, so there are fewer clusters than ``n_clusters`` if there are fewer
        different features; the caller may want to warn.

    Examples
    --------
    >>> import numpy as np
    >>> import gpuens as ge
    >>> from gpuens.partition import label_kmeans, squared_euclidean
    >>> rows = ge.Rows([[0, 0, 0, 1, 1, 1], [0, 0, 1, 2, 2, 2]])
    >>> partition = label_kmeans(rows, squared_euclidean([np.eye(2), np.eye(3)]), 2, rng=np.random.default_rng(0))
    >>> partition.labels.tolist(), round(partition.results["objective"], 3)
    ([0, 0, 0, 1, 1, 1], 1.333)
    """
    rng = checks.make_generator(random_state)
    with devices.library_threads(1):  # sums of several threads could differ
        uses_all_rows = rows.here and rows.n_rows <= RESTARTS_ON
        sample = rows if uses_all_rows else rows.draw(RESTARTS_ON, rng)
        search = _LloydRun(sample, divergence)
        draws, at_once = 1 + n_trials(n_clusters) * (n_clusters - 1), search.starts_at_once(n_clusters)
        groups = (rng.random((min(at_once, n_init - i), draws)) for i in range(0, n_init, at_once))
        starts = (
            start
            for sample in groups
            for start in search.side_by_side(
                [_lloyd(search, *seeds, n_clusters, max_iter, tol) for seeds in search.plus_plus(n_clusters, sample)]
            )
        )
        best, n_iter, converged = min(starts, key=lambda end: end[0].objective)
        if not uses_all_rows:
            search = _LloydRun(rows, divergence)
            last = _lloyd(search, best.cost, best.const, n_clusters, max_iter, tol)
            ((best, n_iter, converged),) = search.side_by_side([last])
    rule, labels = numbered(best.rule, len(best.const), rows)
    results = {"objective": best.objective, "n_iter": n_iter, "converged": converged}
    return Partition(labels, rule.n_labels, rule, results)


def squared_euclidean(tables: Sequence[np.ndarray]) -> Divergence:
    """Return the divergence of squared Euclidean distances between rows of tables T_m (k_m, d_m), one per clustering.

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
                clusters = slice(ends[m] - len(tables[m]), ends[m])
                centroids = tables[m].T @ shares[clusters]
                squared[m] = (centroids * centroids).sum(axis=0)
                cost[clusters] = squares[m] - 2 * (tables[m] @ centroids)

        devices.over_ranges(work, len(tables))
        return cost, squared.sum(axis=0)

    return Divergence(divergence)


def centred_indicators(offsets: np.ndarray) -> Divergence:
    """Return the divergence of squared Euclidean distances between one-hot, centred labels.

    Its tables T_m = I - 1/k_m are not built: they are projections, so T_mᵀ P_m and T_m T_mᵀ P_m are both P_m minus the
    mean of its rows.

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

    return Divergence(divergence)


# --- iterations -------------------------------------------------------------------------------------------------------


class _Clusters(NamedTuple):
    """A partition of the rows without empty clusters, and the centroids of the partition's clusters."""

    rule: "Nearest"
    cost: np.ndarray
    const: np.ndarray
    objective: float


# Iterations are generators: they yield a rule with its number of labels K, and are sent the number of objects of each
# label in each cluster of the ensemble (N_c, K), and in total (K,).
Histograms: TypeAlias = tuple[np.ndarray, np.ndarray]
Iterations: TypeAlias = Generator[tuple[Rule, int], Histograms, Any]


def _lloyd(
    search: "_LloydRun", cost: np.ndarray, const: np.ndarray, n_clusters: int, max_iter: int, tol: float = 0.0
) -> Iterations:
    """Run Lloyd's iterations from the given centroids; return the clusters, number of iterations, and convergence."""
    clusters = yield from search.clusters(cost, const, n_clusters)
    for n_iter in range(2, max_iter + 1):
        moved = yield from search.clusters(clusters.cost, clusters.const, n_clusters)
        if not moved.objective < clusters.objective:  # also when no label changes
            return clusters, n_iter, True
        ends = clusters.objective - moved.objective <= tol * clusters.objective
        clusters = moved
        if ends:
            return clusters, n_iter, True
    return clusters, max_iter, False


@dataclass(frozen=True)
class Nearest:
    """A rule that assigns each row to its nearest centroid.

    If an empty cluster restarted at a row, rows with the features of that row are assigned to the restarted cluster.
    """

    cost: np.ndarray
    const: np.ndarray
    number: np.ndarray  # the label of each centroid
    # (cost, const, rounding tolerance, label) of each row at which a cluster restarted; if several rows fit, the last
    # counts
    apart: tuple[Any, ...] = ()

    def __call__(self, rows: Rows) -> np.ndarray:
        return devices.to_host(self.on_device(rows))

    def on_device(self, rows: Rows) -> Any:
        """Return the labels (G,) on the device of the rows."""
        nearest, _ = nearest_to(rows, self.cost, self.const)
        labels = rows.xp.asarray(self.number)[nearest]
        for cost, const, rounding, label in self.apart:
            distances = rows.row_lookups(cost)[:, 0] + rows.xp.asarray(const)
            labels[distances <= rounding] = label
        return labels

    def among(self, labels: np.ndarray) -> "Nearest":
        is_among = np.isin(self.number, labels)
        return replace(
            self,
            cost=np.ascontiguousarray(self.cost[:, is_among]),
            const=self.const[is_among],
            number=self.number[is_among],
        )


class _LloydRun:
    """A run of k-means on rows; partitions are represented by rules instead of labels."""

    def __init__(self, rows: Rows, divergence: Divergence) -> None:
        if not rows.of_labels:
            divergence = Divergence(divergence.costs, row_term=_ShareTerm(divergence.costs))
        self.rows, self.divergence, self.fixed = rows, divergence, 0.0
        if divergence.row_term is not None:
            unit = 2.0 ** (math.frexp(rows.n_objects * rows.n_clusterings)[1] - 62)
            self.fixed = int(rows.sum(_sum_of_terms, divergence.row_term, unit)) * unit

    def starts_at_once(self, n_clusters: int) -> int:
        """Return the number of starts that run together; it is 1 on the CPU, where the host waits for no device."""
        if self.rows.device == "cpu":
            return 1
        a_start = max(self.rows.n_rows * n_trials(n_clusters), 4 * self.rows.n_clusters * n_clusters)
        return max(1, min(MOST_STARTS, min(STARTS_BYTES, devices.scratch(self.rows.device)) // (8 * a_start)))

    def side_by_side(self, runs: Sequence[Iterations]) -> list[Any]:
        """Run the iterations of several starts step by step, counting for all starts together; return their results."""
        results: list[Any] = [None] * len(runs)
        answers: dict[int, Any] = dict.fromkeys(range(len(runs)))
        while answers:
            questions = {}
            for start, answer in answers.items():
                try:
                    questions[start] = runs[start].send(answer)
                except StopIteration as end:
                    results[start] = end.value
            answers = (
                dict(zip(questions, count_all(self.rows, list(questions.values())), strict=True)) if questions else {}
            )
        return results

    def plus_plus(self, n_clusters: int, uniform: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
        """Return cost and const of each start's k-means++ centroids (Arthur & Vassilvitskii 2007).

        In each step, several rows are drawn with probabilities in proportion to their distances, and the best of these
        rows is kept. ``uniform`` (S, …) are the random numbers in [0, 1) of each of S starts. There are fewer centroids
        than ``n_clusters`` if there are fewer different rows. Draws depend only on whole numbers, whose sums are the
        same on every device.
        """
        rows, xp, n_starts = self.rows, self.rows.xp, len(uniform)
        counts, reached = xp.asarray(rows.counts)[:, None, None], np.cumsum(rows.counts)
        first = np.searchsorted(reached, uniform[:, 0] * reached[-1], side="right")
        steps = [_Step(self.codes_at(first)[:, None], np.ones(n_starts, dtype=bool), xp.zeros(n_starts, np.int64))]
        nearest = self.distances_to(steps[0].codes)[:, :, 0]
        # the masses of a start add up to less than 2^57, and the masses of all starts add up to less than 2^62
        largest = devices.to_host((counts[:, 0] * nearest).max(axis=0))
        scale = 2.0 ** np.minimum(56 - np.frexp(largest * rows.n_rows)[1], 1000)
        scale = counts * xp.asarray(scale)[:, None]
        masses = _round_up(nearest[:, :, None] * scale)[:, :, 0]
        for uniform_of_step in uniform[:, 1:].reshape(n_starts, -1, n_trials(n_clusters)).swapaxes(0, 1):
            places, has_mass = _draw_by_mass(masses, uniform_of_step, xp)
            codes, has_mass = _to_host_together(rows.codes[places], has_mass)
            if not has_mass.any():
                break
            shorter = xp.minimum(nearest[:, :, None], self.distances_to(codes))
            weighed = _round_up(shorter * scale)
            best = weighed.sum(axis=0).argmin(axis=1)
            steps.append(_Step(codes, has_mass, best))
            nearest, masses = (
                xp.take_along_axis(of, best[None, :, None], axis=2)[:, :, 0] for of in (shorter, weighed)
            )
        has_mass, best = (
            np.array([step.left for step in steps]),
            devices.to_host(xp.stack([step.best for step in steps])),
        )
        centroids = np.array(
            [step.codes[np.arange(n_starts), of_step] for step, of_step in zip(steps, best, strict=True)]
        )
        return [self.divergence(self.rows.shares_at(centroids[has_mass[:, s], s])) for s in range(n_starts)]

    def clusters(self, cost: np.ndarray, const: np.ndarray, n_clusters: int) -> Iterations:
        """Return the clusters of the rows nearest to each centroid; an empty cluster restarts at the farthest row."""
        rule = Nearest(cost, const, np.arange(len(const)))
        histogram, n_objects = yield rule, len(const)
        occupied = np.flatnonzero(n_objects)
        if len(occupied) < len(const):
            rule = replace(rule.among(occupied), number=np.arange(len(occupied)))
            histogram, n_objects = np.ascontiguousarray(histogram[:, occupied]), n_objects[occupied]
        while True:
            clusters = self.measure(rule, histogram, n_objects)
            k = len(n_objects)
            if k == n_clusters:
                return clusters
            row, distance = self.farthest(clusters.cost, clusters.const)
            if distance <= self.rounding(clusters.cost, clusters.const).max():
                return clusters
            # the new cluster takes the rows equal to one row; it cannot take all rows of a cluster, because then these
            # rows would have had distance 0 to their centroid
            row_distances = self.divergence.to_row(self.rows.shares_at(row[None]))
            rule = replace(rule, apart=(*rule.apart, (*row_distances, float(self.rounding(*row_distances)[0]), k)))
            histogram, n_objects = yield rule, k + 1

    def measure(self, rule: Nearest, histogram: np.ndarray, n_objects: np.ndarray) -> _Clusters:
        """Return the clusters of a rule, their centroids, and the sum of the objects' distances to their centroids."""
        cost, const = self.divergence(histogram / n_objects)
        objective = float((n_objects * const).sum() + (histogram * cost).sum() + self.fixed)
        return _Clusters(rule, cost, const, max(objective, 0.0))

    def farthest(self, cost: np.ndarray, const: np.ndarray) -> tuple[np.ndarray, float]:
        """Return the row with the largest distance to its nearest centroid, and the distance; of ties, the first."""
        of_pieces = self.rows.each(_farthest, cost, const, self.divergence.row_term)
        row, distance = min(of_pieces, key=lambda of_piece: (-of_piece[1], tuple(of_piece[0].tolist())))
        return row, distance

    def distances_to(self, drawn_codes: np.ndarray) -> Any:
        """Return the distances (G, S, n) of all rows to ``drawn_codes`` rows (S, n, M) of S starts, on the device.

        The distance of two rows of equal features is exactly 0.
        """
        rows, xp = self.rows, self.rows.xp
        distances_of_starts = [self.divergence(self.rows.shares_at(of_start)) for of_start in drawn_codes]
        cost, const = (np.concatenate(parts, axis=-1) for parts in zip(*distances_of_starts, strict=True))
        distances = rows.row_lookups(cost)
        if self.divergence.row_term is not None:
            distances += self.divergence.row_term(rows)[:, None]
        distances += xp.asarray(const)
        apart = xp.where(distances > xp.asarray(self.rounding(cost, const)), distances, 0.0)
        return apart.reshape(len(apart), *drawn_codes.shape[:2])

    def codes_at(self, places: Any) -> np.ndarray:
        """Return the codes of the rows at ``places``, in host memory."""
        return devices.to_host(self.rows.codes[self.rows.xp.asarray(np.asarray(places))])

    def rounding(self, cost: np.ndarray, const: np.ndarray) -> np.ndarray:
        """Return the rounding tolerance of the distances to each centroid, (K,)."""
        largest: np.ndarray = np.maximum.reduceat(np.abs(cost), self.rows.offsets[:-1], axis=0).sum(axis=0)
        return ROUNDING * (largest + np.abs(const))


class _ShareTerm:
    """The number that makes the distance of each row of shares to a centroid equal to it 0; kept for the last rows."""

    def __init__(self, costs: Costs) -> None:
        self.costs, self._numbers = costs, np.empty(0)
        self._rows: Rows | None = None

    def __call__(self, rows: Rows) -> np.ndarray:
        if rows is not self._rows:
            step, numbers = max(1, VALUES_AT_ONCE // rows.n_clusters), np.empty(len(rows))
            for start in range(0, len(rows), step):
                shares = rows.shares_at(np.arange(start, min(start + step, len(rows)))[:, None])
                cost, const = self.costs(shares)
                numbers[start : start + step] = -const - np.einsum("ck,ck->k", cost, shares)
            self._rows, self._numbers = rows, numbers
        return self._numbers


def nearest_to(rows: Rows, cost: np.ndarray, const: np.ndarray) -> tuple[Any, Any]:
    """Return each row's nearest centroid (G,), int64, and the distance to it, without its own number."""
    if rows.of_labels:
        return nearest_centroids(rows.codes, rows.offsets, cost, const, device=rows.device)
    distances = rows.row_lookups(cost) + const
    return distances.argmin(axis=1), distances.min(axis=1)


def count_labels(rows: Rows, rule: Rule, k: int) -> Histograms:
    """Return the number of objects in each cluster of the ensemble with each label of a rule, (N_c, k) int64.

    Also returns the number of objects with each label, (k,) float64. Rows may be in pieces.
    """
    (counts,) = count_all(rows, [(rule, k)])
    return counts


def count_all(rows: Rows, rules: Sequence[tuple[Rule, int]]) -> list[Histograms]:
    """Return the result of `count_labels` for each pair of a rule and its k in ``rules``."""
    counts = rows.sum(_count, rules)
    ends = np.cumsum([k for _, k in rules])
    return [(part[:-1], part[-1].astype(np.float64)) for part in np.split(counts, ends[:-1], axis=1)]


def _count(rows: Rows, rules: Sequence[tuple[Rule, int]]) -> np.ndarray:
    xp, counts, tables = rows.xp, rows.xp.asarray(rows.counts), []
    for rule, k in rules:
        labels = rule.on_device(rows) if isinstance(rule, Nearest) else xp.asarray(rule(rows))
        histograms = rows.label_histograms(labels, k)
        tables.append(xp.concatenate([histograms, label_weights(counts, labels, k, device=rows.device)[None]]))
    return devices.to_host(xp.concatenate(tables, axis=1))


def _sum_of_terms(rows: Rows, row_term: Callable[[Rows], Any], unit: float) -> np.ndarray:
    """Return the summed distances of all objects as a whole number of units, the same for any division into pieces."""
    units = np.rint(row_term(rows) * (rows.xp.asarray(rows.counts) / unit)).astype(np.int64)
    return devices.to_host(units.sum())


def _farthest(
    rows: Rows, cost: np.ndarray, const: np.ndarray, row_term: Callable[[Rows], Any] | None
) -> tuple[np.ndarray, float]:
    _, distances = nearest_to(rows, cost, const)
    if row_term is not None:
        distances = distances + row_term(rows)
    farthest = int(distances.argmax())
    return devices.to_host(rows.codes[farthest]), float(distances[farthest])


# --- draws ------------------------------------------------------------------------------------------------------------


class _Step(NamedTuple):
    """Draws of all starts at one step of k-means++."""

    codes: np.ndarray  # (S, n, M), the n rows drawn by each of S starts
    left: np.ndarray  # (S,), whether a start could still draw a row that differs from its centroids
    best: Any  # (S,), on the device: which of the n drawn rows each start kept


def _round_up(masses: Any) -> Any:
    """Return masses as int64, rounded up, so that positive masses stay positive."""
    return np.ceil(masses).astype(np.int64)


def _draw_by_mass(masses: Any, uniform: np.ndarray, xp: Any) -> tuple[Any, Any]:
    """Return rows (S, n) drawn in proportion to each start's masses (G, S), and whether each start has any mass (S,).

    ``uniform`` (S, n) are random numbers in [0, 1). A row without mass is drawn only if no row has mass.
    """
    n_rows, n_starts = masses.shape
    reached, totals = np.cumsum(masses.T.ravel()), masses.sum(axis=0)[:, None]  # all starts in one cumulative sum
    targets = np.floor(xp.asarray(uniform) * totals).astype(np.int64)
    targets = np.minimum(targets, np.maximum(totals - 1, 0)) + np.cumsum(totals, axis=0) - totals
    places = xp.searchsorted(reached, targets.ravel(), side="right").reshape(uniform.shape)
    return np.minimum(places - n_rows * xp.arange(n_starts)[:, None], n_rows - 1), totals[:, 0] > 0


def _to_host_together(codes: Any, has_mass: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return codes (S, n, M) and booleans (S,) in host memory, by a single transfer for both."""
    joined = devices.to_host(np.concatenate([codes.astype(np.int64).ravel(), has_mass.astype(np.int64)]))
    return joined[: codes.size].astype(codes.dtype).reshape(codes.shape), joined[codes.size :] > 0


# --- primitives -------------------------------------------------------------------------------------------------------


@kernels.primitive
def nearest_centroids(
    codes: np.ndarray, offsets: np.ndarray, cost: np.ndarray, const: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return each row's nearest centroid (G,), int64, and the distance to it (float64); of ties, the first centroid.

    The distances const[k] + Σ_m cost[cluster of the row in m, k] are summed in the order of the clusterings. ``cost``
    is (N_c, K), K ≥ 1; distances may be negative.
    """
    labels, distances = np.empty(len(codes), dtype=np.int64), np.empty(len(codes))
    cost, const = np.ascontiguousarray(cost), np.ascontiguousarray(const)
    cpu.nearest_centroids(np.ascontiguousarray(codes.T), offsets, cost, const, labels, distances)
    return labels, distances


# --- kernels/label_space.cu -------------------------------------------------------------------------------------------


@nearest_centroids.kernel
def _(codes: Any, offsets: Any, cost: Any, const: Any, *, device: str) -> Any:
    xp, n_clusterings = devices.namespace(device), codes.shape[1]
    labels, distances = xp.empty(len(codes), dtype=np.int64), xp.empty(len(codes))
    terms = np.concatenate([const[None], cost])
    units, _ = screen_units(devices.namespace(devices.kind_of(terms)).ascontiguousarray(terms), n_clusterings + 1)
    kernels.launch(
        "nearest_centroids", kernels.blocks(len(codes), 256), 256,
        (codes.T, xp.asarray(offsets), xp.asarray(units), np.int32(n_clusterings + 5),
         xp.ascontiguousarray(xp.asarray(cost)), xp.asarray(const), labels, distances, *codes.shape, len(const)),
        device=device, CODE=kernels.c_name(codes.dtype),
    )  # fmt: skip
    return labels, distances

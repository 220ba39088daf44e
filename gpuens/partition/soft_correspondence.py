"""Soft correspondence: memberships of the objects, and the correspondence of each clustering's clusters to them.

Long, Zhang & Yu, "Combining multiple clusterings by soft correspondence", ICDM 2005. Base clustering h is a matrix
A_h (N, k_h) of memberships, one-hot for labels; a missing label or row is the uniform row 1 / k_h (§4). Their eq 3 is

    f(M, S) = Σ_h |M - A_h S_h|² - α_h |S_h - 1 1ᵀ S_h / k_h|² + β_h |S_h 1 1ᵀ - 1 1ᵀ|²,   S_h (k_h, k) ≥ 0

with penalties proportional to the mean size of a cluster, α_h = α N / k_h and β_h = β N / k_h, so that they have the
same effect for any number of objects. An iteration applies eq 10 to each S_h (all entries of a step at once),

    S_h ← S_h * (A_hᵀ M + β_h k) / (A_hᵀ A_h S_h - α_h S_h + (α_h / k_h) 1 1ᵀ S_h + β_h k S_h 1 1ᵀ)

until it converges, and then sets M = (1 / r) Σ_h A_h S_h (eq 6). Neither raises f: eq 10 needs a positive denominator,
which α < β k guarantees.

Nothing of size N × N_c is held. For labels A_h S_h is a look-up, and A_hᵀ A_h is the diagonal of cluster sizes plus the
constant (missing labels) / k_h². M is A S / r from the first S on, so equal rows have equal memberships: core groups
with counts replace the objects, and S is the only state.

A cluster without objects (in a sample) does not count in k_h, and gets the mean correspondence of its clustering: its
label carries as much information as a missing one.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from gpuens import checks, kernels
from gpuens import device as devices
from gpuens.compiled import njit
from gpuens.ensemble import Ensemble
from gpuens.incidence import cluster_sums, label_histograms
from gpuens.partition.base import Partition, Partitioner
from gpuens.partition.label_kmeans import centred_indicators, label_kmeans
from gpuens.rows import Rows
from gpuens.soft_ensemble import SoftEnsemble

STEPS = 50  # the most steps of eq 10 in an iteration; they cost O(N_c k) and visit no object
FINER = 0.1  # tolerance of the steps relative to that of the iterations
BLURRED = 0.1  # random share of the correspondences at the start, because an entry of 0 stays 0
VANISHED = 1e-100  # smaller correspondences become 0, because arithmetic with subnormal numbers is slow
TABLES = 10  # tables (N_c, k) held at once
BLOCK_ROWS = 4096  # rows of soft clusterings summed together


class Correspondence(NamedTuple):
    """The result of `soft_correspondence`, in host memory."""

    labels: np.ndarray  # (G,) int64: the largest membership of each row, the first of equal ones
    table: np.ndarray  # (N_c, k) float64: the S_h in joined order, from which `memberships` computes M of any rows
    correspondences: list[np.ndarray]  # S_h (k_h, k) of each clustering as given; rows sum to 1
    objective: np.ndarray  # (n_iter,): f after each iteration, never rising
    converged: bool


@dataclass(frozen=True, eq=False)
class SoftCorrespondence(Partitioner):
    """Soft correspondence between the clusters of all clusterings and those of the consensus; it uses labels alone.

    Parameters are those of `gpuens.SCEC`.
    """

    alpha: float = 1.0
    beta: float = 2.0
    init: Any = "kmeans"
    n_init: int = 5
    max_iter: int = 100
    tol: float = 1e-3
    random_state: Any = 0
    takes = ("labels",)
    gives_membership = True

    def __post_init__(self) -> None:
        if isinstance(self.init, str):
            checks.check_choice(self.init, "init", ["clustering", "kmeans", "random"])
        checks.check_runs(self.n_init, self.max_iter)
        checks.check_between(self.tol, "tol", 0.0, 1.0)
        checks.make_generator(self.random_state)

    def check(self, n_clusters: Any, *, any_sign: bool = False) -> None:
        alpha = checks.check_between(self.alpha, "alpha", 0.0, 1e9)
        most = n_clusters * checks.check_real(self.beta, "beta", above=0.0, at_most=1e9)
        if alpha >= most:  # a denominator of eq 10 could be 0 or negative
            raise ValueError(
                f"alpha={alpha:g} must be below beta * n_clusters = {most:g}, so that the objective cannot rise; take "
                "a smaller alpha or a larger beta."
            )

    def __call__(self, similarity: Any, rows: Rows, n_clusters: int) -> Partition:
        init = self.init
        if not isinstance(init, str):
            sizes = [len(own) for own in rows.ensemble.categories]
            init = _first_correspondences(init, sizes, n_clusters)
        found = soft_correspondence(
            rows,
            n_clusters,
            alpha=float(self.alpha),
            beta=float(self.beta),
            init=init,
            n_init=self.n_init,
            max_iter=self.max_iter,
            tol=float(self.tol),
            rng=checks.make_generator(self.random_state),
        )
        n_found = int(found.labels.max()) + 1
        checks.warn_of_fewer(n_found, n_clusters)
        return Partition(
            found.labels,
            n_found,
            rule=_LargestMembership(found.table, n_found),
            found={
                "correspondence": found.correspondences,
                "objective": found.objective,
                "n_iter": len(found.objective),
                "converged": found.converged,
                "shares": object_shares(rows, found.labels, found.table.shape[1]),
            },
            membership=partial(memberships, found.table),
        )


def _first_correspondences(init: Any, n_clusters: list[int], k: int) -> list[np.ndarray]:
    """Return the checked start, one positive array (k_h, k) per clustering, as float64."""
    if not isinstance(init, (list, tuple)):
        raise TypeError(
            "init must be 'kmeans', 'clustering', 'random' or a list of one array per clustering, not "
            f"{type(init).__name__}."
        )
    if len(init) != len(n_clusters):
        raise ValueError(
            f"init must be 'kmeans', 'clustering', 'random' or one array per clustering, but {len(init)} were given "
            f"for {len(n_clusters)}."
        )
    found = []
    for position, (matrix, k_h) in enumerate(zip(init, n_clusters, strict=True)):
        matrix = checks.host_array(matrix, f"init: array {position} must be a matrix of numbers")
        if matrix.shape != (k_h, k) or matrix.dtype.kind not in "iuf":
            raise ValueError(
                f"init: array {position} must be numbers of shape {(k_h, k)}, own clusters × those of the consensus, "
                f"but has shape {matrix.shape} and dtype {matrix.dtype}."
            )
        if not ((matrix >= 1e-100) & (matrix <= 1e100)).all():
            raise ValueError(f"init: array {position} must be from 1e-100 to 1e100; an entry of 0 would stay 0.")
        found.append(matrix.astype(np.float64))
    return found


@dataclass(frozen=True)
class _LargestMembership:
    """A rule: the first largest membership of each row."""

    table: np.ndarray
    n_clusters: int

    def __call__(self, rows: Rows) -> np.ndarray:
        labels = np.empty(len(rows), dtype=np.int64)
        step = max(4096, devices.scratch(rows.device) // (16 * self.table.shape[1]))
        for start in range(0, len(rows), step):
            found = memberships(self.table, rows.take(slice(start, start + step)))
            labels[start : start + step] = found[:, : self.n_clusters].argmax(axis=1)
        return labels


def soft_correspondence(
    rows: Rows,
    n_clusters: int,
    *,
    alpha: float = 1.0,
    beta: float = 2.0,
    init: str | Sequence[np.ndarray] = "kmeans",
    n_init: int = 1,
    max_iter: int = 100,
    tol: float = 1e-3,
    n_steps: int = STEPS,
    rng: np.random.Generator,
) -> Correspondence:
    """Minimise eq 3 from several starts and return the best result.

    Parameters
    ----------
    rows : Rows
        Of an Ensemble or a SoftEnsemble. A row with count c has the effect of c equal rows.
    n_clusters : int
    alpha, beta : float
        Weights of columns with few clusters and of rows that sum to 1; 0 ≤ alpha < beta · n_clusters.
    init : {"kmeans", "clustering", "random"} or M arrays (k_h, k)
        The start: k-means in label space (argmax of soft clusterings), a random base clustering whose clusters are
        assigned to those of the consensus at random, or random correspondences. Given arrays are the only start.
    n_init, max_iter : int
        Starts, and the most iterations of each.
    tol : float
        Iterations end when no membership changes by more than this, and the steps of each when no correspondence
        changes by more than a tenth of it.
    n_steps : int
        The most steps of each S_h in an iteration.
    rng : numpy.random.Generator
        Used on the host only: the same state gives the same result on every device, bit for bit.

    Examples
    --------
    >>> import numpy as np
    >>> from gpuens import Rows
    >>> from gpuens.partition import soft_correspondence
    >>> rows = Rows([[0, 0, 1, 1, 2, 2], [2, 2, 0, 0, 1, 1]])
    >>> found = soft_correspondence(rows, 3, rng=np.random.default_rng(0))
    >>> found.labels.tolist(), found.correspondences[1].argmax(axis=1).tolist()
    ([0, 0, 1, 1, 2, 2], [1, 2, 0])
    """
    ensemble = SoftEnsemble.of(rows.ensemble)
    _tables_fit(ensemble, n_clusters)
    with devices.library_threads(1):  # sums of several threads could differ
        problem = _Problem(ensemble, rows.counts, n_clusters, alpha, beta, rows.device)
        starts = _starts(problem, init, n_init, rng)
        ends = (_descend(problem, table, max_iter, tol, n_steps) for table in starts)
        table, objective, converged = min(ends, key=lambda end: end[1][-1])
    table = problem.filled(table / table.sum(axis=1, keepdims=True), problem.held > 0)
    order = _by_first_row(devices.to_host(problem.memberships(table, some)) for some in problem.blocks)
    table = np.ascontiguousarray(table[:, order])
    labels = [devices.to_host(problem.memberships(table, some).argmax(axis=1)) for some in problem.blocks]
    return Correspondence(np.concatenate(labels), table, ensemble.split(table), np.array(objective), converged)


def _tables_fit(ensemble: SoftEnsemble, n_clusters: int) -> None:
    """Refuse correspondences that do not fit the memory budget."""
    soft = np.diff(ensemble.soft_offsets)
    checks.check_memory(
        8 * TABLES * ensemble.n_clusters * n_clusters + 16 * int((soft * soft).sum()),
        devices.memory_budget(),
        f"the correspondence of {ensemble.n_clusters} clusters to {n_clusters}",
        "ask for fewer clusters, or take clusterings of fewer clusters",
    )


def memberships(table: np.ndarray, rows: Rows) -> np.ndarray:
    """Return M (G, k) of any rows by eq 6, host.

    ``table`` (N_c, k) holds the correspondences of all clusters in joined order.
    """
    ensemble = SoftEnsemble.of(rows.ensemble)
    return devices.to_host(_memberships(ensemble, table, slice(0, ensemble.n_objects), rows.device))


def _memberships(ensemble: SoftEnsemble, table: np.ndarray, some: slice, device: str) -> Any:
    known, soft = np.split(table, [ensemble.offsets[-1]])
    codes, means = _rows_of(ensemble.codes_on(device), some), _means(known, ensemble.offsets)
    sums = label_memberships(codes, ensemble.offsets, known, means, device=device)
    if len(soft):
        soft_memberships(ensemble.soft_on(device)[some], soft, sums, device=device)
    sums /= ensemble.n_clusterings
    return sums


def _rows_of(codes: Any, some: slice) -> Any:
    """Return some rows of codes, columns contiguous."""
    return codes if some == slice(0, len(codes)) else codes[some].copy(order="F")


def object_shares(rows: Rows, labels: np.ndarray, n_clusters: int) -> list[np.ndarray]:
    """Return for each clustering the shares (k_h, n_clusters) of each cluster's objects with each label, host.

    ``labels`` (G,) are those of the rows. In a soft clustering objects are weighted by their memberships. Shares of a
    cluster without objects are 0.
    """
    ensemble, device, weights = SoftEnsemble.of(rows.ensemble), rows.device, rows.counts
    xp = devices.namespace(device)
    codes, soft = ensemble.codes_on(device), ensemble.soft_on(device)
    counts, labels = xp.asarray(weights), xp.asarray(labels)
    parts = []
    if codes.shape[1]:
        held = label_histograms(codes, ensemble.offsets, counts, labels, n_clusters, device=device)
        parts.append(devices.to_host(held).astype(np.float64))
    if soft is not None:
        objects = (labels[:, None] == xp.arange(n_clusters)) * counts[:, None].astype(np.float64)
        sums = soft_correspondences(soft, objects, BLOCK_ROWS, device=device)
        parts.append(np.add.reduce(devices.to_host(sums), axis=0))
    shared = np.concatenate(parts)
    total = shared.sum(axis=1, keepdims=True)
    return ensemble.split(shared / np.where(total > 0, total, 1.0))


def _means(table: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    """Return the mean row of each clustering (M, k), which stands for a missing label."""
    if len(offsets) == 1:
        return np.zeros((0, table.shape[1]))
    sums: np.ndarray = np.add.reduceat(table, offsets[:-1], axis=0)
    return sums / np.diff(offsets)[:, None]


def _by_first_row(memberships: Iterable[np.ndarray]) -> np.ndarray:
    """Return the clusters in the order of the first rows that they label, those without rows last.

    A tie goes to the cluster that comes first in this order. The memberships (rows, k) come in pieces.
    """
    order: list[int] = []
    for some in memberships:
        largest = some.max(axis=1)
        reached = some[:, order].max(axis=1, initial=-np.inf)
        while (below := reached < largest).any():
            order.append(int(some[below.argmax()].argmax()))
            np.maximum(reached, some[:, order[-1]], out=reached)
    return np.array(order + [d for d in range(some.shape[1]) if d not in order])


# --- iterations -------------------------------------------------------------------------------------------------------


class _Problem:
    """The rows on a device and the terms of eq 3; tables (N_c, k) are correspondences in joined order."""

    def __init__(
        self, ensemble: SoftEnsemble, weights: np.ndarray, n_clusters: int, alpha: float, beta: float, device: str
    ) -> None:
        self.ensemble, self.n_clusters, self.device = ensemble, n_clusters, device
        self.xp = devices.namespace(device)
        self.weights = weights
        self.counts = self.xp.asarray(weights, dtype=np.float64)[:, None]
        self.n_objects = int(weights.sum())
        self.bounds = np.append(ensemble.starts, ensemble.n_clusters)
        self.held = np.ones(ensemble.n_clusters)  # objects in each cluster, without missing ones
        n_labels = len(ensemble.offsets) - 1
        if n_labels:
            codes = ensemble.codes_on(device)
            objects = devices.to_host(cluster_sums(codes, ensemble.offsets, weights, device=device))
            self.held[: len(objects)] = objects
        self._gram()
        self.k_h = np.add.reduceat(self.held > 0, ensemble.starts, dtype=np.int64)
        # a clustering without any labelled row keeps all its clusters, with all objects missing
        self.there = (self.held > 0) | np.repeat(self.k_h == 0, np.diff(self.bounds))
        self.k_h = np.where(self.k_h == 0, np.diff(self.bounds), self.k_h)
        labelled = np.add.reduceat(self.held, ensemble.starts)
        labelled[n_labels:] = self.n_objects
        missing = self.n_objects - labelled
        self.shared = missing / self.k_h**2  # added by missing labels to every entry of A_hᵀ A_h
        mass = self.held + np.repeat(missing / self.k_h, np.diff(self.bounds))  # Σ A_h over the rows
        self.mass = np.where(self.there, mass, 1.0)
        self.alphas, self.betas = (factor * self.n_objects / self.k_h for factor in (alpha, beta))
        self.blocks = self._blocks()
        n_rows, held_at_once = len(weights), 4  # memberships of two iterations, times the counts, and as integers
        self.has_room = 8 * held_at_once * n_rows * n_clusters <= devices.memory_budget(device)

    def _blocks(self) -> list[slice]:
        """Return slices of rows to process at once; with soft clusterings multiples of `BLOCK_ROWS`."""
        n_rows, k, n_soft = self.ensemble.n_objects, self.n_clusters, int(self.ensemble.soft_offsets[-1])
        step = devices.scratch(self.device) // (32 * k + 8 * k * n_soft // BLOCK_ROWS)
        step = max(BLOCK_ROWS, step // BLOCK_ROWS * BLOCK_ROWS) if n_soft or step > BLOCK_ROWS else max(256, step)
        return [slice(start, min(start + step, n_rows)) for start in range(0, n_rows, step)]

    def _gram(self) -> None:
        """Compute A_hᵀ A_h (k_h, k_h) of the soft clusterings, joined in one array, and their clusters' masses."""
        ensemble, n_labels = self.ensemble, len(self.ensemble.offsets) - 1
        self.gram_starts = np.full(ensemble.n_clusterings, -1, dtype=np.int64)
        grams = [np.empty(0)]
        if ensemble.soft_offsets[-1]:
            soft, weights = devices.to_host(ensemble.soft_on(self.device)), self.weights[:, None]
            reached = 0
            for m, (first, last) in enumerate(pairwise(ensemble.soft_offsets.tolist())):
                own = np.ascontiguousarray(soft[:, first:last])
                gram = own.T @ (weights * own)
                gram = (gram + gram.T) / 2
                self.gram_starts[n_labels + m] = reached
                self.held[self.bounds[n_labels + m] : self.bounds[n_labels + m + 1]] = (weights * own).sum(axis=0)
                reached += gram.size
                grams.append(gram.ravel())
        self.grams = np.concatenate(grams)

    def memberships(self, table: np.ndarray, some: slice) -> Any:
        return _memberships(self.ensemble, table, some, self.device)

    def products(self, membership_of: Callable[[slice], Any], largest: float) -> np.ndarray:
        """Return A_hᵀ M of all clusterings (N_c, k), host; ``membership_of`` returns M of a slice of rows.

        ``largest`` is an upper bound of the entries of M.
        """
        ensemble, device, k = self.ensemble, self.device, self.n_clusters
        codes, offsets = ensemble.codes_on(device), ensemble.offsets
        known = np.zeros((int(offsets[-1]), k), dtype=np.int64)
        unknown = np.zeros((len(offsets) - 1, k), dtype=np.int64)
        soft = np.zeros((int(ensemble.soft_offsets[-1]), k))
        unit = 2.0 ** (math.frexp(largest * self.n_objects)[1] - 62)
        for some in self.blocks:
            values = membership_of(some) * self.counts[some]
            if len(soft):
                sums = soft_correspondences(ensemble.soft_on(device)[some], values, BLOCK_ROWS, device=device)
                for of_block in devices.to_host(sums):
                    soft += of_block
            if len(unknown):
                values /= unit
                whole = self.xp.rint(values, out=values).astype(np.int64)
                found = label_correspondences(_rows_of(codes, some), offsets, whole, device=device)
                for total, of_block in zip((known, unknown), found, strict=True):
                    total += devices.to_host(of_block)
        shared = unknown * unit / self.k_h[: len(unknown), None]
        return np.concatenate([known * unit + np.repeat(shared, np.diff(offsets), axis=0), soft])

    def filled(self, table: np.ndarray, unless: np.ndarray) -> np.ndarray:
        """Return the table with the mean row of its clustering for each cluster not in the mask ``unless``."""
        if not unless.all():
            sums = np.add.reduceat(np.where(self.there[:, None], table, 0.0), self.bounds[:-1], axis=0)
            means = np.repeat(sums / self.k_h[:, None], np.diff(self.bounds), axis=0)
            table = np.where(unless[:, None], table, means)
        return table

    def stepped(self, table: np.ndarray, products: np.ndarray, tol: float, n_steps: int) -> np.ndarray:
        """Return the table after steps of eq 10 on all S_h with fixed M."""
        then = table.copy()

        def work(start: int, stop: int) -> None:
            _steps(
                start, stop, self.bounds, self.there, self.k_h, self.held, self.shared, self.grams, self.gram_starts,
                self.alphas, self.betas, products, then, tol, n_steps, VANISHED,
            )  # fmt: skip

        devices.over_ranges(work, self.ensemble.n_clusterings)
        return self.filled(then, self.there)

    def objective(self, table: np.ndarray, products: np.ndarray) -> float:
        """Return eq 3 for M = A S / r, where Σ_h |M - A_h S_h|² = Σ_h <S_h, A_hᵀ A_h S_h> - <S_h, A_hᵀ M>."""
        parts = np.empty(self.ensemble.n_clusterings)

        def work(start: int, stop: int) -> None:
            _objectives(
                start, stop, self.bounds, self.there, self.k_h, self.held, self.shared, self.grams, self.gram_starts,
                self.alphas, self.betas, products, table, parts,
            )  # fmt: skip

        devices.over_ranges(work, len(parts))
        return math.fsum(parts)


def _descend(
    problem: _Problem, table: np.ndarray, max_iter: int, tol: float, n_steps: int
) -> tuple[np.ndarray, list[float], bool]:
    """Return the correspondences after iterations from given ones, f after each, and whether they converged."""
    objective: list[float] = []
    before = _Pass(problem, table)
    products, _ = before.products()
    for _ in range(max_iter):
        table = problem.stepped(table, products, FINER * tol, n_steps)
        now = _Pass(problem, table)
        products, moved = now.products(before)
        objective.append(problem.objective(table, products))
        if moved <= tol:
            return table, objective, True
        before = now
    return table, objective, False


class _Pass:
    """Memberships from one table, in pieces of rows, kept for the next pass if they fit in memory."""

    def __init__(self, problem: _Problem, table: np.ndarray) -> None:
        self.problem, self.table = problem, table
        self.held: dict[int, Any] = {}

    def products(self, before: "_Pass | None" = None) -> tuple[np.ndarray, float]:
        """Return A_hᵀ M, and the largest change of a membership since the pass ``before``, whose memory is freed."""
        moved = 0.0

        def membership_of(some: slice) -> Any:
            nonlocal moved
            found = self.problem.memberships(self.table, some)
            if before is not None:
                change = before.held.pop(some.start, None)
                change = before.problem.memberships(before.table, some) if change is None else change
                change -= found
                moved = max(moved, float(np.abs(change, out=change).max()))
            if self.problem.has_room:
                self.held[some.start] = found
            return found

        return self.problem.products(membership_of, float(self.table.max())), moved


# --- starts -----------------------------------------------------------------------------------------------------------


def _starts(
    problem: _Problem, init: str | Sequence[np.ndarray], n_init: int, rng: np.random.Generator
) -> Iterator[np.ndarray]:
    """Yield the table of each start, with positive entries."""
    ensemble, k = problem.ensemble, problem.n_clusters
    if not isinstance(init, str):
        yield problem.filled(ensemble.joined(init), problem.there)
        return
    for _ in range(n_init):
        by_lot = rng.dirichlet(np.ones(k), size=ensemble.n_clusters)
        if init != "random":
            members_of = partial(_members, problem.xp, _first_labels(problem, init, rng), k)
            shares = problem.products(members_of, 1.0) / problem.mass[:, None]
            by_lot = (1 - BLURRED) * shares + BLURRED * by_lot
        yield problem.filled(by_lot, problem.there)


def _members(xp: Any, labels: Any, k: int, some: slice) -> Any:
    """Return labels as memberships (rows, k), uniform for -1."""
    own = labels[some, None]
    return xp.where(own < 0, 1.0 / k, (own == xp.arange(k)).astype(np.float64))


def _first_labels(problem: _Problem, init: str, rng: np.random.Generator) -> Any:
    """Return the cluster of each row at the start, on the device; -1 if it is unknown."""
    ensemble, xp, k = problem.ensemble, problem.xp, problem.n_clusters
    codes, sizes = ensemble.hardened_on(problem.device), np.diff(problem.bounds)
    if init == "kmeans":
        names = range(len(sizes))
        hardened = Ensemble.of_codes(codes, [np.arange(size) for size in sizes], list(names))
        rows = Rows.of(hardened, problem.weights, problem.device)
        return xp.asarray(label_kmeans(rows, centred_indicators(problem.bounds), k, n_init=1, rng=rng).labels)
    m = int(rng.integers(ensemble.n_clusterings))
    lots = np.append(rng.permutation(max(k, sizes[m]))[: sizes[m]] % k, -1)
    return xp.asarray(lots)[np.minimum(codes[:, m].astype(np.int64), sizes[m])]


# --- steps of eq 10, and eq 3, one clustering after the other ---------------------------------------------------------


@njit(cache=True, nogil=True)
def _gram_times(h, first, table, held, shared, grams, gram_starts, column_sums, result):
    """Write A_hᵀ A_h S_h into ``result`` (k_h, k)."""
    k_h, k = result.shape
    for c in range(k_h):
        if gram_starts[h] < 0:
            for d in range(k):
                result[c, d] = held[first + c] * table[first + c, d] + shared[h] * column_sums[d]
        else:
            for d in range(k):
                result[c, d] = 0.0
            for i in range(k_h):
                entry = grams[gram_starts[h] + c * k_h + i]
                for d in range(k):
                    result[c, d] += entry * table[first + i, d]


@njit(cache=True, nogil=True)
def _column_sums(first, last, table, there, sums):
    for d in range(len(sums)):
        sums[d] = 0.0
    for c in range(first, last):
        if there[c]:
            for d in range(len(sums)):
                sums[d] += table[c, d]


@njit(cache=True, nogil=True)
def _steps(
    start, stop, bounds, there, k_h, held, shared, grams, gram_starts, alphas, betas, products, table, tol, n_steps,
    vanished,
):  # fmt: skip
    k = table.shape[1]
    column_sums = np.empty(k)
    for h in range(start, stop):
        first, last = bounds[h], bounds[h + 1]
        alpha, penalty = alphas[h], betas[h] * k
        gram_times = np.empty((last - first, k))
        for _ in range(n_steps):
            _column_sums(first, last, table, there, column_sums)
            _gram_times(h, first, table, held, shared, grams, gram_starts, column_sums, gram_times)
            moved = 0.0
            for c in range(first, last):
                if not there[c]:
                    continue
                row_sum = 0.0
                for d in range(k):
                    row_sum += table[c, d]
                for d in range(k):
                    before = table[c, d]
                    if before == 0.0:
                        continue
                    below = gram_times[c - first, d] - alpha * before
                    below += alpha / k_h[h] * column_sums[d]
                    below += penalty * row_sum
                    after = before * (products[c, d] + penalty) / below
                    if after < vanished:
                        after = 0.0
                    moved = max(moved, abs(after - before))
                    table[c, d] = after
            if moved <= tol:
                break


@njit(cache=True, nogil=True)
def _objectives(
    start, stop, bounds, there, k_h, held, shared, grams, gram_starts, alphas, betas, products, table, parts
):
    k = table.shape[1]
    column_sums = np.empty(k)
    for h in range(start, stop):
        first, last = bounds[h], bounds[h + 1]
        gram_times = np.empty((last - first, k))
        _column_sums(first, last, table, there, column_sums)
        _gram_times(h, first, table, held, shared, grams, gram_starts, column_sums, gram_times)
        apart, sparse, off = 0.0, 0.0, 0.0
        for c in range(first, last):
            if not there[c]:
                continue
            row_sum = 0.0
            for d in range(k):
                entry = table[c, d]
                row_sum += entry
                apart += entry * (gram_times[c - first, d] - products[c, d])
                sparse += (entry - column_sums[d] / k_h[h]) ** 2
            off += (row_sum - 1.0) ** 2
        parts[h] = apart - alphas[h] * sparse + betas[h] * k * off


# --- primitives -------------------------------------------------------------------------------------------------------


@kernels.primitive
def label_memberships(codes: np.ndarray, offsets: np.ndarray, table: np.ndarray, of_missing: np.ndarray) -> np.ndarray:
    """Return (G, k): Σ_m table[cluster of the row in m], or ``of_missing[m]`` (M, k) where its label is missing."""
    sums, table = np.zeros((len(codes), table.shape[1])), np.ascontiguousarray(table)
    given = codes, offsets, table, of_missing, sums
    devices.over_ranges(lambda a, b: _label_memberships(a, b, *given), len(codes), grain=2048)
    return sums


@kernels.primitive
def label_correspondences(codes: np.ndarray, offsets: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the sums of ``values`` (G, k) over the rows of each cluster (N_c, k) and over missing labels (M, k).

    Everything is int64.
    """
    known = np.zeros((int(offsets[-1]), values.shape[1]), dtype=np.int64)
    unknown = np.zeros((codes.shape[1], values.shape[1]), dtype=np.int64)
    devices.over_ranges(
        lambda a, b: _label_correspondences(a, b, codes, offsets, values, known, unknown), codes.shape[1]
    )
    return known, unknown


@kernels.primitive
def soft_memberships(soft: np.ndarray, table: np.ndarray, sums: np.ndarray) -> None:
    """Add Σ_j soft[g, j] table[j] (N, J) × (J, k) to ``sums`` (N, k), in the order of the clusters."""
    table = np.ascontiguousarray(table)
    devices.over_ranges(lambda a, b: _soft_memberships(soft[a:b], table, sums[a:b]), len(soft), grain=512)


@kernels.primitive
def soft_correspondences(soft: np.ndarray, values: np.ndarray, block_rows: int) -> np.ndarray:
    """Return (blocks, J, k): Σ_g soft[g, j] values[g] over the rows of each block, in their order."""
    n_blocks = -(-len(soft) // block_rows)
    sums = np.zeros((n_blocks, soft.shape[1], values.shape[1]))

    def work(start: int, stop: int) -> None:
        for block in range(start, stop):
            rows = slice(block * block_rows, (block + 1) * block_rows)
            _soft_correspondences(soft[rows], values[rows], sums[block])

    devices.over_ranges(work, n_blocks)
    return sums


@njit(cache=True, nogil=True)
def _label_memberships(start, stop, codes, offsets, table, of_missing, sums):
    missing = codes.dtype.type(-1)
    for g in range(start, stop):
        for m in range(codes.shape[1]):
            if codes[g, m] != missing:
                row = table[offsets[m] + codes[g, m]]
            else:
                row = of_missing[m]
            for d in range(table.shape[1]):
                sums[g, d] += row[d]


@njit(cache=True, nogil=True)
def _label_correspondences(start, stop, codes, offsets, values, known, unknown):
    missing = codes.dtype.type(-1)
    for m in range(start, stop):
        for g in range(codes.shape[0]):
            if codes[g, m] != missing:
                row = known[offsets[m] + codes[g, m]]
            else:
                row = unknown[m]
            for d in range(values.shape[1]):
                row[d] += values[g, d]


@njit(cache=True, nogil=True)
def _soft_memberships(soft, table, sums):
    for g in range(soft.shape[0]):
        for j in range(soft.shape[1]):
            for d in range(table.shape[1]):
                sums[g, d] += soft[g, j] * table[j, d]


@njit(cache=True, nogil=True)
def _soft_correspondences(soft, values, sums):
    for g in range(soft.shape[0]):
        for j in range(soft.shape[1]):
            for d in range(values.shape[1]):
                sums[j, d] += soft[g, j] * values[g, d]


# --- kernels/soft_correspondence.cu, kernels/soft_clusterings.cu ------------------------------------------------------


@label_memberships.kernel
def _(codes: Any, offsets: Any, table: Any, of_missing: Any, *, device: str) -> Any:
    xp = devices.namespace(device)
    sums = xp.empty((len(codes), table.shape[1]))
    kernels.launch(
        "label_memberships", kernels.blocks(sums.size, 256), 256,
        (codes.T, xp.asarray(offsets), xp.ascontiguousarray(xp.asarray(table)), xp.asarray(of_missing), sums,
         *codes.shape, table.shape[1]),
        device=device, CODE=kernels.c_name(codes.dtype),
    )  # fmt: skip
    return sums


@label_correspondences.kernel
def _(codes: Any, offsets: Any, values: Any, *, device: str) -> tuple[Any, Any]:
    xp, width = devices.namespace(device), values.shape[1]
    known = xp.zeros((int(offsets[-1]), width), dtype=np.uint64)
    unknown = xp.zeros((codes.shape[1], width), dtype=np.uint64)
    cells = (np.diff(devices.to_host(offsets)) + 1) * width
    shared = 8 * int(cells.max(initial=0, where=8 * cells <= kernels.SHARED_BYTES))
    offsets = xp.asarray(offsets)
    for some in kernels.runs(codes.shape[1]):
        kernels.launch(
            "label_correspondences", (kernels.blocks(values.size, 256 * 64), some.stop - some.start), 256,
            (codes.T[some], offsets[some.start :], values, known, unknown[some], len(codes), width, shared // 8),
            device=device, shared=shared, CODE=kernels.c_name(codes.dtype),
        )  # fmt: skip
    return known.view(np.int64), unknown.view(np.int64)


@soft_memberships.kernel
def _(soft: Any, table: Any, sums: Any, *, device: str) -> None:
    xp = devices.namespace(device)
    kernels.launch(
        "soft_memberships", kernels.blocks(sums.size, 256), 256,
        (soft, xp.ascontiguousarray(xp.asarray(table)), sums, *soft.shape, sums.shape[1]),
        device=device,
    )  # fmt: skip


@soft_correspondences.kernel
def _(soft: Any, values: Any, block_rows: int, *, device: str) -> Any:
    xp = devices.namespace(device)
    sums = xp.empty((-(-len(soft) // block_rows), soft.shape[1], values.shape[1]))
    kernels.launch(
        "soft_correspondences", kernels.blocks(sums.size, 256), 256,
        (soft, values, sums, *soft.shape, values.shape[1], block_rows),
        device=device,
    )  # fmt: skip
    return sums

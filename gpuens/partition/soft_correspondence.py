"""Soft correspondence: memberships of objects, and how each clustering's clusters correspond to the consensus's.

Long, Zhang & Yu, "Combining multiple clusterings by soft correspondence", ICDM 2005. Base clustering h is a matrix
A_h (N, k_h) of memberships, one-hot for labels; a missing label or row is the uniform row 1 / k_h (§4). Their eq 3 is

    f(M, S) = Σ_h |M - A_h S_h|² - α_h |S_h - 1 1ᵀ S_h / k_h|² + β_h |S_h 1 1ᵀ - 1 1ᵀ|²,   S_h (k_h, k) ≥ 0

with penalties proportional to the mean size of a cluster, α_h = α N / k_h and β_h = β N / k_h, so that they have the
same effect for any number of objects. An iteration applies eq 10 to each S_h (all entries of a step at once),

    S_h ← S_h * (A_hᵀ M + β_h k) / (A_hᵀ A_h S_h - α_h S_h + (α_h / k_h) 1 1ᵀ S_h + β_h k S_h 1 1ᵀ)

until it converges, and then sets M = (1 / r) Σ_h A_h S_h (eq 6). Neither step raises f if the denominator of eq 10 is
positive, which α < β k guarantees.

No array of size N × N_c is built. For labels, A_h S_h is a look-up, and A_hᵀ A_h is the diagonal matrix of cluster
sizes plus the constant (number of missing labels) / k_h². M is A S / r from the first S on, so equal rows have equal
memberships: core groups with counts replace the objects, and S is the only state. Then A_hᵀ M is (1 / r) Σ_h' A_hᵀ A_h'
S_h', and the intersections A_hᵀ A_h' never change: if there are fewer of them than labels, they are used, and the rows
are read only to check whether a membership still changes.

A cluster without objects (in a sample) does not count in k_h, and gets the mean correspondence of its clustering: its
label carries as much information as a missing one.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from gpuens.labels.incidence import label_histograms
from gpuens.labels.rows import Rows
from gpuens.labels.soft_ensemble import SoftEnsemble
from gpuens.partition.base import Partition, Partitioner, label_in_steps
from gpuens.partition.soft_descent import STEPS, Problem, descend, first_tables
from gpuens.partition.soft_memberships import BLOCK_ROWS, memberships, soft_correspondences
from gpuens.runtime import checks
from gpuens.runtime import device as devices
from gpuens.runtime.seeds import NOT_GIVEN, takes_rng

TABLES = 10  # largest number of tables (N_c, k) in memory


class Correspondence(NamedTuple):
    """The result of `soft_correspondence`, in host memory."""

    labels: np.ndarray  # (G,) int64: the cluster with each row's largest membership; of ties, the first cluster
    table: np.ndarray  # (N_c, k) float64: the S_h in joined order, from which `memberships` computes M of any rows
    correspondences: list[np.ndarray]  # S_h (k_h, k) of each clustering as given; rows sum to 1
    objective: np.ndarray  # (n_iter,): f after each iteration, never rising
    converged: bool


@dataclass(frozen=True, eq=False)
class SoftCorrespondence(Partitioner):
    """Soft correspondence between the clusters of all clusterings and those of the consensus; it uses only labels.

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
    takes_shares = True
    real_weights = True

    def __post_init__(self) -> None:
        if isinstance(self.init, str):
            checks.check_choice(self.init, "init", ["clustering", "kmeans", "random"])
        checks.check_runs(self.n_init, self.max_iter)
        checks.check_between(self.tol, "tol", 0.0, 1.0)
        checks.make_generator(self.random_state)

    def check(self, n_clusters: Any, *, any_sign: bool = False) -> None:
        alpha = checks.check_between(self.alpha, "alpha", 0.0, 1e9)
        if n_clusters is None:  # the number of clusters will be chosen later
            return
        limit = n_clusters * checks.check_real(self.beta, "beta", above=0.0, at_most=1e9)
        if alpha >= limit:  # a denominator of eq 10 could be ≤ 0
            raise ValueError(
                f"alpha={alpha:g} must be below beta * n_clusters = {limit:g}, so that the objective cannot rise; take "
                "a smaller alpha or a larger beta."
            )

    def __call__(self, similarity: Any, rows: Rows, n_clusters: int) -> Partition:
        init = self.init
        if not isinstance(init, str):
            sizes = [len(names) for names in rows.ensemble.categories]
            init = _first_correspondences(init, sizes, n_clusters)
        fit = soft_correspondence(
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
        n_used = int(fit.labels.max()) + 1
        checks.warn_of_fewer(n_used, n_clusters)
        return Partition(
            fit.labels,
            n_used,
            rule=LargestMembership(fit.table, n_used),
            results={
                "correspondence": fit.correspondences,
                "objective": fit.objective,
                "n_iter": len(fit.objective),
                "converged": fit.converged,
                "shares": object_shares(rows, fit.labels, fit.table.shape[1]),
            },
            per_cluster=("correspondence", "shares"),
            membership=partial(memberships, fit.table),
        )


def _first_correspondences(init: Any, n_clusters: list[int], k: int) -> list[np.ndarray]:
    """Return the checked first correspondences: for each clustering, a positive float64 array (k_h, k)."""
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
    correspondences = []
    for position, (matrix, k_h) in enumerate(zip(init, n_clusters, strict=True)):
        matrix = checks.host_array(matrix, f"init: array {position} must be a matrix of numbers")
        if matrix.shape != (k_h, k) or matrix.dtype.kind not in "iuf":
            raise ValueError(
                f"init: array {position} must be numbers of shape {(k_h, k)}, own clusters × those of the consensus, "
                f"but has shape {matrix.shape} and dtype {matrix.dtype}."
            )
        if not ((matrix >= 1e-100) & (matrix <= 1e100)).all():
            raise ValueError(f"init: array {position} must be from 1e-100 to 1e100; an entry of 0 would stay 0.")
        correspondences.append(matrix.astype(np.float64))
    return correspondences


@dataclass(frozen=True)
class LargestMembership:
    """A rule that assigns each row to the cluster with its largest membership; of ties, to the first cluster."""

    table: np.ndarray
    n_clusters: int

    def __call__(self, rows: Rows) -> np.ndarray:
        step = max(4096, devices.scratch(rows.device) // (16 * self.table.shape[1]))
        table, k = self.table, self.n_clusters
        return label_in_steps(lambda piece: memberships(table, piece)[:, :k].argmax(axis=1), rows, step)


@takes_rng
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
    random_state: Any = 0,
    rng: Any = NOT_GIVEN,
) -> Correspondence:
    """Return, of the correspondences found from several starts, the one with the smallest value of eq 3.

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
        The number of starts, and the largest number of iterations of a start.
    tol : float
        Iterations end when no membership changes by more than this; the steps within an iteration end when no
        correspondence changes by more than a tenth of it.
    n_steps : int
        The largest number of steps of each S_h in an iteration.
    random_state : int, None or numpy.random.Generator
        Used on the host only: the same state gives the same result on every device, bit for bit.
    rng : optional
        SciPy's name of ``random_state`` (SPEC 7); only one of both is passed.

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
    ensemble, rng = SoftEnsemble.of(rows.ensemble), checks.make_generator(random_state)
    _check_table_memory(ensemble, n_clusters)
    with devices.library_threads(1):  # because sums by several threads could differ
        problem = Problem(ensemble, rows.counts, n_clusters, alpha, beta, rows.device)
        starts = first_tables(problem, init, n_init, rng)
        ends = (descend(problem, table, max_iter, tol, n_steps) for table in starts)
        table, objective, converged = min(ends, key=lambda end: end[1][-1])
    table = problem.filled(table / table.sum(axis=1, keepdims=True), problem.sizes > 0)
    order = _by_first_row(devices.to_host(problem.memberships(table, piece)) for piece in problem.blocks)
    table = np.ascontiguousarray(table[:, order])
    labels = [devices.to_host(problem.memberships(table, piece).argmax(axis=1)) for piece in problem.blocks]
    return Correspondence(np.concatenate(labels), table, ensemble.split(table), np.array(objective), converged)


def _check_table_memory(ensemble: SoftEnsemble, n_clusters: int) -> None:
    """Raise MemoryError if the correspondences do not fit the memory budget."""
    soft = np.diff(ensemble.soft_offsets)
    checks.check_memory(
        8 * TABLES * ensemble.n_clusters * n_clusters + 16 * int((soft * soft).sum()),
        devices.memory_budget(),
        f"the correspondence of {ensemble.n_clusters} clusters to {n_clusters}",
        "ask for fewer clusters, or take clusterings of fewer clusters",
    )


def object_shares(rows: Rows, labels: np.ndarray, n_clusters: int) -> list[np.ndarray]:
    """Return, for each clustering, the share (k_h, n_clusters) of each cluster's objects with each label, host.

    ``labels`` (G,) are labels of the rows. In a soft clustering, objects are weighted by their memberships. The shares
    of a cluster without objects are 0.
    """
    ensemble, device, weights = SoftEnsemble.of(rows.ensemble), rows.device, rows.counts
    xp = devices.namespace(device)
    codes, soft = ensemble.codes_on(device), ensemble.soft_on(device)
    counts, labels = xp.asarray(weights), xp.asarray(labels)
    parts = []
    if codes.shape[1]:
        histograms = label_histograms(codes, ensemble.offsets, counts, labels, n_clusters, device=device)
        parts.append(devices.to_host(histograms).astype(np.float64))
    if soft is not None:
        objects = (labels[:, None] == xp.arange(n_clusters)) * counts[:, None].astype(np.float64)
        sums = soft_correspondences(soft, objects, BLOCK_ROWS, device=device)
        parts.append(np.add.reduce(devices.to_host(sums), axis=0))
    shared = np.concatenate(parts)
    total = shared.sum(axis=1, keepdims=True)
    return ensemble.split(shared / np.where(total > 0, total, 1.0))


def _by_first_row(memberships: Iterable[np.ndarray]) -> np.ndarray:
    """Return the clusters in the order of the first row that each cluster labels; clusters without rows come last.

    If memberships tie, the row is labelled by the cluster that comes first in this order. The memberships (rows, k) are
    given in pieces.
    """
    order: list[int] = []
    for piece in memberships:
        largest = piece.max(axis=1)
        reached = piece[:, order].max(axis=1, initial=-np.inf)
        while (below := reached < largest).any():
            order.append(int(piece[below.argmax()].argmax()))
            np.maximum(reached, piece[:, order[-1]], out=reached)
    return np.array(order + [d for d in range(piece.shape[1]) if d not in order])

"""A certificate: a lower bound of the mean loss to the clusterings that holds for every partition.

Clusterings and losses are those of `gpuens.Median`. Four proofs give the bound:

partitions
    Up to 8 objects, or rows of equal labels without a missing one, have few enough partitions to compare all.
pairs
    Let p_ij be the share of the clusterings that put i and j together. The loss "binder" is a sum over pairs of a p_ij
    if the partition puts i and j apart, and (2 - a) (1 - p_ij) if together, so it is at least the sum of the smaller
    costs. The numbers of pairs by p are counted without a matrix.
triangles
    Pairs that cannot all have their smaller cost raise this bound (`pair_gains`). The same holds for one minus the
    adjusted Rand index, for a known number of pairs that the partition puts together (`mean_ari`).
clusterings
    Binder's loss and the variation of information d are metrics for a = 1. For a permutation σ of the clusterings, the
    triangle inequality d(c_m, c_σ(m)) ≤ d(ρ, c_m) + d(ρ, c_σ(m)) summed over m gives

        mean_m d(ρ, c_m) ≥ mean_m d(c_m, c_σ(m)) / 2

    The best σ is an assignment; this is the optimum of the linear program of all triangle inequalities. For other a,
    both costs are at least min(a, 2 - a) times those of a = 1, and so is the bound.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from gpuens.contingency.counting import over_cells
from gpuens.contingency.distinct import Distinct
from gpuens.contingency.labels import Labels, labels_of
from gpuens.contingency.losses import check_loss, losses_to
from gpuens.contingency.scores import place_scores
from gpuens.evidence.inputs import read_consensus
from gpuens.evidence.mean_ari import bound_ari_loss
from gpuens.evidence.pair_gains import bound_gain
from gpuens.evidence.pairs import pairs
from gpuens.labels.rows import Rows
from gpuens.partition.bottleneck import times_log
from gpuens.partition.median import FEW, smallest_loss
from gpuens.reduction.core_groups import core_groups
from gpuens.runtime import checks
from gpuens.runtime import device as devices
from gpuens.runtime.native import cpu
from gpuens.similarity.diagonal import Diagonal

MOST_TRIANGLE_ROWS = {"binder": 5_000, "omari": 1_000}  # largest number of distinct rows whose triangles are searched
MOST_PAIR_ROWS = 5_000  # largest number of distinct rows whose pairs are compared for "omari"
ROUNDS = 3  # rounds over all triangles; seven more would bring the bound of "binder" about .1 % nearer
MOST_COMPARISONS = 10**12  # number of label comparisons above which the bound of "binder" is by clusterings
CLUSTERINGS = 512  # clusterings that are assigned to each other in one block
MATRICES = 3  # matrices of all pairs of rows in memory at once


class Certificate(NamedTuple):
    """A bound of the mean loss that no partition can pass, beside the mean loss of a consensus.

    Attributes
    ----------
    loss : {"binder", "vi", "omari"}
    objective : float
        The mean loss of the consensus to the clusterings, as `gpuens.Median` has it.
    bound : float
        No partition has a smaller mean loss, up to rounding. For "omari", 1 - bound is the largest mean ARI.
    by : {"partitions", "triangles", "pairs", "clusterings"}
        The proof: the loss of all partitions, or a bound by triples or pairs of objects, or by pairs of clusterings.
    """

    loss: str
    objective: float
    bound: float
    by: str

    @property
    def gap(self) -> float:
        """The largest share of its loss by which another partition can be better, from 0 to 1."""
        return 1.0 - self.bound / self.objective if self.objective > self.bound else 0.0

    @property
    def exact(self) -> bool:
        """Whether `bound` is the loss of the best partition, because all partitions were compared."""
        return self.by == "partitions"

    def __str__(self) -> str:
        percent = math.ceil(1000 * self.gap - 1e-6) / 10
        if percent == 0:
            return "no partition is better"
        if self.exact:
            return f"the best partition is better by {percent:.1f} %"
        return f"no partition is better by more than {percent:.1f} %"


def certificate(
    labels: Any, consensus: Any, loss: str = "binder", a: float = 1.0, *, device: str = "auto"
) -> Certificate:
    """Return a lower bound of the mean loss to the clusterings that no partition can pass, with any number of clusters.

    The cost for "binder" is G² M / 2 label comparisons of the G distinct label rows, and up to 5,000 rows a search
    among their triples; above 10¹² comparisons it is that of "vi", up to 256 M contingency tables. For "omari" the rows
    are compared about a hundred times, and up to 1,000 rows their triples are searched about twenty times.

    Parameters
    ----------
    labels : anything that `gpuens.Ensemble` takes
        The base clusterings (n_objects, n_clusterings). An object without a label is alone in that clustering.
    consensus : array (n_objects,)
        A label for every object.
    loss : {"binder", "vi", "omari"}
        As for `gpuens.Median`. The bounds of "binder" are the closest ones.
    a : float in [0, 2]
        The cost of putting apart what is together in a clustering; the reverse costs 2 - a. Not for "omari".
    device : {"auto", "cpu", "cuda"}

    Raises
    ------
    ValueError, TypeError
        For labels that Ensemble refuses, a consensus of another length, an unknown loss, and more than 5,000 distinct
        rows for "omari".
    MemoryError
        If the matrices of all pairs of rows do not fit.

    Examples
    --------
    >>> import gpuens as ge
    >>> labels = [[0, 0, 0, 1, 1, 1], [0, 0, 1, 2, 2, 2], [0, 0, 0, 0, 1, 1]]
    >>> found = ge.evidence.certificate(labels, [0, 0, 0, 1, 1, 1])
    >>> str(found), found.by, round(found.bound, 3)
    ('no partition is better', 'partitions', 0.13)
    """
    rows, codes = read_consensus(labels, consensus, device)
    return certify(rows, codes, loss, a)


def certify(rows: Rows, consensus: np.ndarray, loss: str, a: float) -> Certificate:
    """Return the certificate of the consensus labels (G,), 0 … k - 1, of label rows."""
    check_loss(loss, a)
    objective = float(losses_to(rows.ensemble, consensus, loss, a, rows.counts).mean())
    bound, by = _bound(_typical_first(core_groups(rows).rows), loss, float(a))
    return Certificate(loss, objective, min(max(bound, 0.0), objective), by)  # rounding alone could pass the objective


def _typical_first(rows: Rows) -> Rows:
    """Return the rows with the most matches first: greedy bounds hardly depend on the order of the objects then."""
    matches = devices.to_host(rows.row_sums(rows.cluster_sizes()))
    return rows.take(np.lexsort((rows.counts, -matches)))


def _bound(rows: Rows, loss: str, a: float) -> tuple[float, str]:
    """Return the bound for distinct rows, and its proof."""
    units = _units(rows)
    if units is not None:
        return smallest_loss(units, loss, a), "partitions"
    if loss == "omari":
        _check_omari(rows)
        by_triangles = len(rows) <= MOST_TRIANGLE_ROWS["omari"]
        return bound_ari_loss(rows, by_triangles), "triangles" if by_triangles else "pairs"
    if loss == "vi" or len(rows) ** 2 * rows.n_clusterings // 2 > MOST_COMPARISONS:
        return min(a, 2 - a) * _bound_by_clusterings(rows, loss), "clusterings"
    if len(rows) <= MOST_TRIANGLE_ROWS["binder"]:
        return _bound_by_triangles(rows, a), "triangles"
    distribution = pairs(rows, missing="zero", exact=True)
    costs = np.minimum(a * distribution.consensus, (2 - a) * (1 - distribution.consensus))
    return 2 * float(costs @ distribution.counts) / float(rows.n_objects) ** 2, "pairs"


def _units(rows: Rows) -> Rows | None:
    """Return at most 8 rows whose objects may stay together, or None; objects with a missing label are rows alone."""
    complete = (devices.to_host(rows.codes) != rows.ensemble.missing_code).all(axis=1)
    units = np.where(complete, 1, rows.counts)
    if units.sum() > FEW:
        return None
    return rows.take(np.repeat(np.arange(len(rows)), units), np.repeat(rows.counts // units, units))


# --- bounds -----------------------------------------------------------------------------------------------------------


def _bound_by_triangles(rows: Rows, a: float) -> float:
    """Return the bound of Binder's loss by pairs and triangles: the loss of all apart, minus the largest gain."""
    _check_pairs(rows)
    base_sizes = rows.cluster_sizes().astype(np.float64)
    all_apart = a * float(base_sizes @ (base_sizes - 1)) / rows.n_clusterings
    gains = Diagonal(np.ones(rows.n_clusters), rows.offsets).tile(rows, 0, len(rows))
    gains *= 2.0
    gains -= 2 - a
    return (all_apart - bound_gain(gains, rows.counts.astype(np.float64), ROUNDS)) / float(rows.n_objects) ** 2


def _bound_by_clusterings(rows: Rows, loss: str) -> float:
    """Return half the mean distance of the clusterings to those assigned to them, for a = 1.

    Each block of clusterings has an assignment of its own; together they are a permutation of all clusterings.
    """
    from scipy.optimize import linear_sum_assignment

    labels, total = labels_of(rows.ensemble), 0.0
    for start in range(0, rows.n_clusterings, CLUSTERINGS):
        block = slice(start, start + CLUSTERINGS)
        distinct = Distinct.among(Labels(labels.matrix[block], labels.n_clusters[block]))
        distances = _distances(distinct.labels, rows.counts, loss)[distinct.of][:, distinct.of]
        total += float(distances[linear_sum_assignment(distances, maximize=True)].sum())
    return total / (2 * rows.n_clusterings * _scale(rows, loss))


def _distances(labels: Labels, counts: np.ndarray, loss: str) -> np.ndarray:
    """Return the distances of all pairs of clusterings, times N² or N: Σ φ(n_c) + Σ φ(n_c') - 2 Σ φ(n_cc').

    φ(n) is n (n - 1), or n log2 n; it is 0 for an object that is alone.
    """

    def phi(n: np.ndarray) -> np.ndarray:
        n = n.astype(np.float64)
        return n * (n - 1) if loss == "binder" else times_log(n)

    n_tables = len(labels.n_clusters)
    of_clusterings, shared = np.empty(n_tables), np.zeros((n_tables, n_tables))
    for m, (column, k) in enumerate(zip(labels.matrix, labels.n_clusters, strict=True)):
        labelled = column < k
        of_clusterings[m] = phi(np.bincount(column[labelled], weights=counts[labelled])).sum()

    def add(cells: cpu.Cells) -> None:
        tables = np.repeat(np.arange(len(cells.starts) - 1), np.diff(cells.starts))
        sums = np.bincount(tables, weights=phi(cells.counts[: len(tables)]), minlength=len(cells.starts) - 1)
        place_scores(shared, cells, sums)

    over_cells(labels, counts, add)
    np.fill_diagonal(shared, of_clusterings)
    return np.maximum(of_clusterings[:, None] + of_clusterings - 2 * shared, 0.0)


def _scale(rows: Rows, loss: str) -> float:
    return float(rows.n_objects) ** 2 if loss == "binder" else float(rows.n_objects)


# --- refusals ---------------------------------------------------------------------------------------------------------


def _check_omari(rows: Rows) -> None:
    if len(rows) > MOST_PAIR_ROWS:
        raise ValueError(
            f"loss='omari' has a certificate for at most {MOST_PAIR_ROWS:,} distinct label rows, but labels have "
            f"{len(rows):,}; pass loss='binder' or loss='vi', or labels of fewer objects."
        )
    _check_pairs(rows)


def _check_pairs(rows: Rows) -> None:
    checks.check_memory(
        8 * MATRICES * len(rows) ** 2,
        devices.memory_budget(),
        f"a certificate from the pairs of {len(rows):,} distinct label rows",
        "pass loss='vi', whose certificate compares clusterings, or labels of fewer objects",
    )

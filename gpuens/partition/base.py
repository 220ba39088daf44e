"""Partitioners take a similarity and rows and return a partition of the rows.

A partitioner knows no method and no similarity by name. It lists the kinds of similarity that it accepts. It is called
with a similarity of one of these kinds, the rows and the number of clusters.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Self

import numpy as np

from gpuens.labels.rows import Numbered, Rows, Rule
from gpuens.runtime import device as devices

# kinds of similarity that partitioners accept
DIAGONAL = ("diagonal",)
CLUSTERS = ("diagonal", "blocks", "full")
ANY = ("diagonal", "blocks", "full", "pairs")
OBSERVED = ("observed",)


@dataclass
class Partition:
    """The result of a partitioner.

    Attributes
    ----------
    labels : array (G,), int64, or None
        The labels of the rows, each of 0 … n_clusters - 1 in use, in host memory or on the rows' device; None for rows
        in pieces.
    n_clusters : int
    rule : callable or None
        Maps any rows to their labels. If None, rows unknown at fit get the label of the most similar cluster.
    results : dict
        Results for the estimator, by the name of its attribute without the final underscore.
    per_cluster : tuple of str
        The names of the results, arrays or lists of arrays, whose last axis is the clusters.
    as_labels : tuple of str
        The names of the results that are arrays of numbers of clusters; -1 is no cluster.
    membership : callable or None
        Maps any rows to their shares in the clusters, (G, ≥ k), or in the names of a vocabulary, which sum to 1; see
        `shares_of`.
    rest : ndarray (G,), bool, host, or None
        The mask of the rows that the partitioner left without a cluster; each of them got the label of the most similar
        cluster.
    names : ndarray (n_clusters,) or None
        The name of each cluster, if names are the labels of the objects.
    certainty : dict or None
        Fields of `gpuens.evidence.Objects` that the partitioner measures itself, arrays (G,), such as shares of votes.
    """

    labels: Any
    n_clusters: int
    rule: Rule | None = None
    results: dict[str, Any] = field(default_factory=dict)
    per_cluster: tuple[str, ...] = ()
    as_labels: tuple[str, ...] = ()
    membership: Callable[[Rows], np.ndarray] | None = None
    rest: np.ndarray | None = None
    names: np.ndarray | None = None
    certainty: dict[str, np.ndarray] | None = None

    @classmethod
    def of_rule(cls, rule: Numbered, labels: np.ndarray | None, **results: Any) -> "Partition":
        """Return the partition of a rule and labels from `gpuens.labels.rows.numbered`."""
        return cls(labels, rule.n_labels, rule=rule if labels is None else None, results=results)

    @classmethod
    def of_labels(cls, labels: Any, **results: Any) -> "Partition":
        return cls(labels, int(labels.max()) + 1, results=results)

    def renumbered(self, numbers: np.ndarray) -> Self:
        """Return the partition in which each cluster c has the number ``numbers[c]``, a permutation of 0 … k - 1."""
        labels, rule, order = self.labels, self.rule, np.argsort(numbers)
        if labels is not None:
            labels = devices.move(numbers, devices.kind_of(labels))[labels]
        if isinstance(rule, Numbered):
            rule = replace(rule, number=_extend_numbers(numbers, len(rule.number))[rule.number], sizes=None)
        elif rule is not None:
            rule = Numbered(rule, numbers, len(numbers))
        results = self.results | {name: _reorder_columns(self.results[name], order) for name in self.per_cluster}
        for name in self.as_labels:
            clusters = self.results[name]
            results[name] = np.where(clusters < 0, -1, _extend_numbers(numbers, int(clusters.max()) + 1)[clusters])
        membership, names = self.membership, self.names
        if names is not None:
            names = names[order]
        elif isinstance(membership, OrderedColumns):
            membership = replace(membership, order=_reorder_columns(membership.order, order))
        elif membership is not None:
            membership = OrderedColumns(membership, order)
        return replace(self, labels=labels, rule=rule, results=results, membership=membership, names=names)


@dataclass(frozen=True)
class OrderedColumns:
    """A function of rows whose values (G, ≥ k) have the first k columns in another order."""

    function: Callable[[Rows], np.ndarray]
    order: np.ndarray  # (k,), the column of the function for each column of the values

    def __call__(self, rows: Rows) -> np.ndarray:
        return _reorder_columns(self.function(rows), self.order)


def _extend_numbers(numbers: np.ndarray, n: int) -> np.ndarray:
    """Return numbers (k,) followed by k … n - 1, the numbers of clusters without rows."""
    return np.concatenate([numbers, np.arange(len(numbers), n)])


def _reorder_columns(values: Any, order: np.ndarray) -> Any:
    """Return arrays (…, ≥ k), alone or in a list, with the first k columns in another order."""
    if isinstance(values, list):
        return [_reorder_columns(array, order) for array in values]
    return values[..., _extend_numbers(order, values.shape[-1])]


@dataclass(frozen=True)
class MostSimilar:
    """A rule that assigns each row to the most similar cluster; of equally similar clusters, to the largest."""

    # rows → summed similarities with each cluster (G, k); if there is a rest, a further last column is for it
    sums: Callable[[Rows], np.ndarray]
    members: np.ndarray  # (k,), the number of objects in each cluster
    by: str  # "mean" or "sum" of the similarities to the members of a cluster

    @classmethod
    def of(
        cls, similarity: Any, rows: Rows, labels: np.ndarray, rest: np.ndarray | None = None, by: str = "mean"
    ) -> "MostSimilar":
        """Return the rule for the clusters ``labels`` (G,) of ``rows``, without the rows in the mask ``rest`` (G,)."""
        if rest is None:
            return cls(similarity.sums(rows, labels), np.bincount(labels, weights=rows.counts), by)
        k = int(labels[~rest].max()) + 1
        labels = np.where(rest, k, labels)  # the rest becomes a further cluster, the last
        return cls(similarity.sums(rows, labels), np.bincount(labels, weights=rows.counts)[:k], by)

    def __call__(self, rows: Rows) -> np.ndarray:
        largest_first = np.argsort(-self.members, kind="stable")

        def label(piece: Rows) -> np.ndarray:
            sums = self.sums(piece)[:, largest_first]
            if self.by == "mean":
                sums /= self.members[largest_first]
            return largest_first[sums.argmax(axis=1)]

        return label_in_steps(label, rows, max(4096, devices.scratch(rows.device) // (32 * len(self.members))))


def label_in_steps(label: Rule, rows: Rows, step: int) -> np.ndarray:
    """Return the labels (G,), int64, that a rule gives rows, ``step`` rows at a time."""
    labels = np.empty(len(rows), dtype=np.int64)
    for start in range(0, len(rows), step):
        labels[start : start + step] = label(rows.take(slice(start, start + step)))
    return labels


def shares_of(sums: np.ndarray) -> np.ndarray:
    """Return the sums (G, k) ≥ 0, each row scaled to shares that add up to 1; a row of zeros gets equal shares.

    >>> from gpuens.partition.base import shares_of
    >>> shares_of(np.array([[3.0, 1.0], [0.0, 0.0]])).tolist()
    [[0.75, 0.25], [0.5, 0.5]]
    """
    total = sums.sum(axis=1, keepdims=True)
    return np.where(total > 0, sums / np.where(total > 0, total, 1.0), 1.0 / sums.shape[1])


class Partitioner:
    """A way to make a partition: called with a similarity, rows and a number of clusters, it returns a `Partition`.

    A subclass is a frozen dataclass that checks its parameters on construction, and implements ``__call__``.

    Attributes
    ----------
    takes : tuple of str
        The kinds of similarity that the partitioner accepts, see `gpuens.similarity.base.Similarity`.
    any_sign : bool
        Whether similarities may be negative.
    learns_by_sums : bool
        Whether rows may be in pieces.
    takes_shares : bool
        Whether rows may be shares of the labels around objects (`gpuens.Spatial`).
    real_weights : bool
        Whether only the ratios of the counts of rows matter, so that weights of objects may have fractions.
    chooses_n_clusters : bool
        Whether the partitioner can choose the number of clusters, so that the number may be None.
    gives_membership : bool
        Whether all partitions of this partitioner have memberships; if False, single partitions may have them.
    gives_names : bool
        Whether partitions have names, of a vocabulary that the clusterings share.
    bytes_each_pair : int
        Memory for each ordered pair of rows.

    Examples
    --------
    Each row goes to the most similar of the k rows that have the most objects:

    >>> from dataclasses import dataclass
    >>> import numpy as np
    >>> import gpuens as ge
    >>> @dataclass(frozen=True)
    ... class Largest(ge.partition.Partitioner):
    ...     def __call__(self, similarity, rows, n_clusters):
    ...         largest = np.argsort(-rows.counts, kind="stable")[:n_clusters]
    ...         to_all = np.vstack([similarity.tile(rows, g, g + 1) for g in largest])  # (k, G)
    ...         to_all[np.arange(n_clusters), largest] = np.inf  # each of them is in its own cluster
    ...         return ge.partition.Partition.of_labels(to_all.argmax(axis=0))
    >>> labels = [[0, 0, 0, 1, 1, 1], [0, 0, 1, 2, 2, 2], [0, 0, 0, 0, 1, 1]]
    >>> ge.Consensus(2, partitioner=Largest()).fit_predict(labels).tolist()
    [0, 0, 0, 1, 1, 1]
    """

    takes: ClassVar[tuple[str, ...]] = ANY
    any_sign: ClassVar[bool] = False
    learns_by_sums: ClassVar[bool] = False
    takes_shares: ClassVar[bool] = False
    real_weights: ClassVar[bool] = False
    gives_membership: ClassVar[bool] = False
    gives_names: ClassVar[bool] = False
    bytes_each_pair: ClassVar[int] = 0

    @property
    def chooses_n_clusters(self) -> bool:
        return False

    def at_most(self) -> "Partitioner":
        """Return a copy that may find fewer clusters than requested; used if the number was not chosen by the user."""
        return self

    def in_units(self, unit: int | float) -> "Partitioner":
        """Return a copy for rows whose counts are weights in units of ``unit``; parameters are in the given unit."""
        return self

    def most_clusters(self, n_objects: int) -> int:
        """Return the largest number of clusters that the parameters allow for ``n_objects`` objects."""
        return n_objects

    def fewest_clusters(self, rows: Rows) -> int:
        """Return the smallest number of clusters into which the rows can be divided."""
        return 1

    @property
    def lacks(self) -> str | None:
        """Return the reason why this machine cannot run the partitioner, such as a missing package, else None."""
        return None

    def counts_objects(self, n_clusters: int | None) -> str | None:
        """Return the parameter for which the number of objects matters, despite `real_weights`, or None."""
        return None

    def check(self, n_clusters: Any, *, any_sign: bool = False) -> None:
        """Raise an error if parameters do not fit the number of clusters, or do not allow negative similarities."""

    def refuse_too_many(self, rows: Rows, n_clusters: int, kind: str) -> None:
        """Raise MemoryError, before any work, if the partition of these rows does not fit the memory budget."""

    def ask_memory(self, rows: Rows, n_clusters: int, kind: str) -> None:
        """Call `check_memory` for rows of which only the sizes are known."""
        self.refuse_too_many(rows, n_clusters, kind)

    def __call__(self, similarity: Any, rows: Rows, n_clusters: Any) -> Partition:
        """Return a partition of the rows; every subclass must define this method.

        Parameters
        ----------
        similarity : Similarity or None
            Of a kind in `takes`; None for a partitioner of labels alone. ``similarity.tile(rows, start, stop)``
            (stop - start, G) has the similarities of objects with rows start … stop - 1 to those of all rows,
            ``similarity.self_similarities(rows)`` (G,) those of two objects of one row, and
            ``similarity.sums(rows, labels)`` is a function of rows that returns `Similarity.scale` times their summed
            similarity to each cluster, (G, k). Those of clusters also have ``times(table)``, S T for T (N_c, k).
        rows : Rows
            G distinct label rows; ``rows.counts`` (G,) are their numbers of objects; see `gpuens.similarity.Measure`.
        n_clusters : int or None
            k, at most G. None only if `chooses_n_clusters` is true and no number was requested.

        Returns
        -------
        Partition
            Labels of the rows (G,), int64, each of 0 … k - 1 in use: ``Partition.of_labels(labels)``. Later objects
            are assigned to the cluster with the largest mean similarity, unless the partition has a rule.
        """
        raise NotImplementedError

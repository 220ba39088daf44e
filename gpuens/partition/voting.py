"""Consensus by votes of the clusterings, and choice of the base clustering that agrees best with the others.

The clusters of every clustering are matched to those of a reference; then every clustering votes for a label of each
object. A table (N_c, k) holds the vote of each cluster, so the votes for an object are a look-up. "plurality" matches
clusters one to one by the Hungarian method, and surplus clusters to the cluster with which they share most objects.
"soft" (cumulative voting) divides the vote of a cluster as the reference divides its objects. The result is the next
reference.
"""

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from gpuens.contingency.scores import row_agreement
from gpuens.labels.incidence import label_histograms, row_lookups
from gpuens.labels.rows import Rows, numbered
from gpuens.partition.base import OrderedColumns, Partition, Partitioner, shares_of
from gpuens.partition.label_kmeans import Nearest, count_labels
from gpuens.partition.utilities import category_kmeans
from gpuens.runtime import checks
from gpuens.runtime import device as devices


@dataclass(frozen=True, eq=False)
class Votes(Partitioner):
    """Votes of the clusterings; the parameters are those of `gpuens.Voting`."""

    voting: str = "plurality"
    reference: Any = None
    max_iter: int = 10
    random_state: Any = 0
    takes = ("labels",)
    gives_membership = True
    learns_by_sums = True
    real_weights = True

    def __post_init__(self) -> None:
        checks.check_choice(self.voting, "voting", ("plurality", "soft"))
        checks.check_runs(1, self.max_iter)
        checks.make_generator(self.random_state)

    def __call__(self, similarity: Any, rows: Rows, n_clusters: int) -> Partition:
        m, shared = self._reference(rows, n_clusters)
        table, converged = np.full(shared.shape, np.nan), False
        for n_iter in range(1, self.max_iter + 1):
            before, table = table, votes(shared, rows.offsets, self.voting)
            converged = bool((before == table).all())
            rule = Nearest(-table, np.zeros(n_clusters), np.arange(n_clusters))
            if converged or n_iter == self.max_iter:
                break
            shared, _ = count_labels(rows, rule, n_clusters)
        numbered_rule, labels = numbered(rule, n_clusters, rows)
        checks.warn_of_fewer(numbered_rule.n_labels, n_clusters)
        name = None if m is None else rows.ensemble.names[m]
        results = {"reference_clustering": name, "n_iter": n_iter, "converged": converged}
        membership = OrderedColumns(partial(vote_shares, table), np.argsort(numbered_rule.number))
        return Partition(labels, numbered_rule.n_labels, numbered_rule, results, membership=membership)

    def _reference(self, rows: Rows, k: int) -> tuple[int | None, np.ndarray]:
        """Return the position of the reference, and the contingency table (N_c, k) of all clusters with its k clusters.

        An entry is the number of objects in both clusters.

        If no clustering has k clusters, the reference is k-means in label space, and its position is None.
        """
        k_of, names = rows.clusters_in_use(), rows.ensemble.names
        if self.reference is not None:
            m = _find_name(self.reference, names)
            if m is None:
                raise ValueError(
                    f"reference must be the name of a clustering, such as {checks.shown(names[0])}, not "
                    f"{checks.shown(self.reference)}."
                )
            if k_of[m] != k:
                raise ValueError(
                    f"reference={checks.shown(self.reference)} has {k_of[m]} clusters, not n_clusters={k}; take "
                    "another one, or leave it out."
                )
        elif (k_of == k).any():
            m = int(np.where(k_of == k, row_agreement(rows).sums(np.ones(len(k_of))), -1.0).argmax())
        else:
            partition = category_kmeans(rows, k, checks.make_generator(self.random_state))
            assert partition.rule is not None
            return None, count_labels(rows, partition.rule, k)[0]
        shared = shared_with(rows, m)
        return m, np.ascontiguousarray(shared[:, shared.any(axis=0)])


@dataclass(frozen=True, eq=False)
class BestBase(Partitioner):
    """The base clustering that agrees best with all base clusterings; see `gpuens.BestOfK`."""

    takes = ("labels",)
    learns_by_sums = True
    real_weights = True

    @property
    def chooses_n_clusters(self) -> bool:
        return True

    def __call__(self, similarity: Any, rows: Rows, n_clusters: int | None) -> Partition:
        sizes, k_of = rows.cluster_sizes(), rows.clusters_in_use()
        candidates = np.ones(len(k_of), dtype=bool) if n_clusters is None else k_of == n_clusters
        if not candidates.any():
            smallest, largest = k_of.min(), k_of.max()
            numbers = smallest if smallest == largest else f"{smallest} to {largest}"
            raise ValueError(
                f"n_clusters={n_clusters}, but the base clusterings have {numbers} clusters and none has "
                f"{n_clusters}; leave it out to get the best of all."
            )
        present = np.add.reduceat(sizes, rows.offsets[:-1])
        anmi = row_agreement(rows).sums(present) / present.sum()
        best = int(np.where(candidates, anmi, -1.0).argmax())
        # mean co-association with the objects of each cluster other than an object's own
        its_clusters = slice(rows.offsets[best], rows.offsets[best + 1])
        table = shared_with(rows, best) / np.maximum(sizes[its_clusters], 1)
        table[its_clusters] *= rows.n_clusterings + 1
        k = table.shape[1]
        rule, labels = numbered(Nearest(-table, np.zeros(k), np.arange(k)), k, rows)
        results = {"anmi": anmi, "best_clustering": rows.ensemble.names[best]}
        return Partition(labels, rule.n_labels, rule, results)


def votes(shared: np.ndarray, offsets: np.ndarray, voting: str) -> np.ndarray:
    """Return the vote (N_c, k) of each cluster, from its numbers of objects in each cluster of the reference.

    >>> import numpy as np
    >>> from gpuens.partition.voting import votes
    >>> votes(np.array([[0, 4], [3, 1], [0, 2]]), np.array([0, 3]), "plurality").tolist()
    [[0.0, 1.0], [1.0, 0.0], [0.0, 1.0]]
    >>> votes(np.array([[0, 4], [3, 1], [0, 2]]), np.array([0, 3]), "soft").tolist()
    [[0.0, 1.0], [0.75, 0.25], [0.0, 1.0]]
    """
    sizes = shared.sum(axis=1, keepdims=True)
    if voting == "soft":
        return shared / np.maximum(sizes, 1)
    from scipy.optimize import linear_sum_assignment

    best_label = shared.argmax(axis=1)
    for m in range(len(offsets) - 1):
        clusters, labels = linear_sum_assignment(shared[offsets[m] : offsets[m + 1]], maximize=True)
        best_label[offsets[m] + clusters] = labels
    return np.where(sizes > 0, best_label[:, None] == np.arange(shared.shape[1]), 0.0)


def vote_shares(table: np.ndarray, rows: Rows) -> np.ndarray:
    """Return the share of votes for each label, for each row, (G, k), host; rows without votes get equal shares."""
    return shares_of(devices.to_host(row_lookups(rows.codes, rows.offsets, table, device=rows.device)))


def _find_name(name: Any, names: list[Any]) -> int | None:
    try:
        return dict(zip(names, range(len(names)), strict=True)).get(name)
    except TypeError:  # an unhashable value cannot be a name
        return None


def shared_with(rows: Rows, m: int) -> np.ndarray:
    """Return the number of objects that each cluster shares with each cluster of clustering m, (N_c, k_m) int64."""
    k = int(rows.offsets[m + 1] - rows.offsets[m])
    checks.check_memory(
        8 * rows.n_clusters * k,
        devices.memory_budget(rows.device),
        f"the table of {rows.n_clusters:,} clusters and the {k:,} of a clustering",
        "take clusterings of fewer clusters",
    )
    return rows.sum(_shared_with, m)


def _shared_with(rows: Rows, m: int) -> np.ndarray:
    codes, counts = rows.codes, rows.xp.asarray(rows.counts)
    labelled = codes[:, m] != np.iinfo(codes.dtype).max
    labels, k = np.where(labelled, codes[:, m], 0).astype(np.int64), int(rows.offsets[m + 1] - rows.offsets[m])
    return devices.to_host(label_histograms(codes, rows.offsets, counts * labelled, labels, k, device=rows.device))

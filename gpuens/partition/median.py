"""The partition with the smallest expected loss to the clusterings, with any number of clusters, by local search.

The expected loss of a partition is its mean loss to the clusterings. Let n_r, n_c and n_rc be the numbers of objects in
cluster r of the partition, in cluster c of clustering m, and in both. With φ(x) = x (x - 1), the loss "binder" is

    [a Σ_c φ(n_c) + (2 - a) Σ_r φ(n_r) - 2 Σ_rc φ(n_rc)] / N²

So a pair that is together only in the clustering costs a, and a pair that is together only in the partition 2 - a. With
φ(x) = x log2 x and the divisor N, the same formula is the loss "vi". The loss "omari" is one minus the adjusted Rand
index, a ratio of the three sums for φ(x) = x (x - 1). An object without a label is alone in that clustering; φ(1) = 0,
so it adds nothing to any sum.

With links, the rows of a must-link group move together, and each cannot-link within a cluster adds a penalty λ.

Moving a row from cluster r to cluster s changes φ of 2 M numbers n_rc. So a sweep over the rows costs O(G M k), and no
matrix of objects is needed. Clusterings that put the same objects together count as one with a weight.

Dahl, Johnson & Müller, "Search algorithms and loss functions for Bayesian clustering", JCGS 31 (2022), for the losses
with a weight and for allocation in random order; Wade & Ghahramani, "Bayesian cluster analysis: point estimation and
credible balls", Bayesian Analysis 13 (2018), for "vi"; Fritsch & Ickstadt, "Improved criteria for clustering based on
the posterior similarity matrix", Bayesian Analysis 4 (2009), for "omari".
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from gpuens.contingency.losses import LOSSES, check_loss
from gpuens.labels.odd_columns import first_equal_clusterings
from gpuens.labels.rows import Rows, by_first_row
from gpuens.partition.base import Partition, Partitioner
from gpuens.partition.bottleneck import TABLE, times_log
from gpuens.partition.label_kmeans import Nearest, count_labels
from gpuens.partition.utilities import category_kmeans
from gpuens.reduction.linked_groups import LinkedRows
from gpuens.runtime import checks
from gpuens.runtime import device as devices
from gpuens.runtime.native import cpu

FEW = 8  # largest number of rows whose partitions are all tried; 8 rows have 4,140
ROWS_OF_STARTS = 4_000  # largest number of rows for starts on all rows; otherwise starts draw so many objects
SETTLED = 200  # above ROWS_OF_STARTS, sweeps end when at most one in so many rows moves
TABLES_BYTES = 16  # memory of a search for each pair of a base cluster and a cluster
RULE_BYTES = 48  # memory of the rule for new objects for each such pair
MOST_CLUSTERS = 256  # default limit, unless a clustering has more clusters


@dataclass(frozen=True, eq=False)
class MedianSearch(Partitioner):
    """Local search from many starts; the parameters are those of `gpuens.Median`.

    Above 4,000 rows, starts use 4,000 objects, drawn with replacement. The best start continues on all rows, until at
    most one row in 200 moves in a sweep.
    """

    loss: str = "binder"
    a: float = 1.0
    max_clusters: int | None = None
    n_init: int = 16
    max_iter: int = 100
    random_state: Any = 0
    link_penalty: float | None = None
    takes = ("labels",)

    @property
    def chooses_n_clusters(self) -> bool:
        return True

    def __post_init__(self) -> None:
        check_loss(self.loss, self.a)
        if self.max_clusters is not None:
            checks.check_integer(self.max_clusters, "max_clusters", minimum=1)
        if self.link_penalty is not None:
            checks.check_real(self.link_penalty, "link_penalty", above=0.0)
        checks.check_runs(self.n_init, self.max_iter)
        checks.make_generator(self.random_state)

    def check(self, n_clusters: Any, *, any_sign: bool = False) -> None:
        if n_clusters is not None and self.max_clusters is not None:
            raise ValueError(
                f"n_clusters={n_clusters} fixes the number of clusters, and max_clusters={self.max_clusters} limits a "
                "number that the loss chooses; pass one of them."
            )

    def refuse_too_many(self, rows: Rows, n_clusters: int, kind: str) -> None:
        if isinstance(rows, LinkedRows):
            rows.refuse_more(n_clusters)
        # 1 stands also for a free number
        max_clusters = n_clusters if n_clusters > 1 else self._largest_n_clusters(rows)
        checks.check_memory(
            rows.n_clusters * max_clusters * (TABLES_BYTES * devices.n_threads() + RULE_BYTES),
            devices.memory_budget(),
            f"the numbers of objects in {rows.n_clusters} base clusters and up to {max_clusters} clusters, for each "
            "thread,",
            "ask for fewer clusters, max_clusters=…, or give fewer clusterings",
        )

    def __call__(self, similarity: Any, rows: Rows, n_clusters: int | None) -> Partition:
        rng = checks.make_generator(self.random_state)
        fewest, limit = (1, self._largest_n_clusters(rows)) if n_clusters is None else (n_clusters, n_clusters)
        sample = rows if rows.n_rows <= ROWS_OF_STARTS else rows.draw_for(fewest, ROWS_OF_STARTS, rng)
        search = _Search(self, sample, fewest, limit)
        has_few = len(search.movable) <= FEW
        best = search.best_of_all() if has_few else search.best_of(search.starts(self.n_init, rng), rng)
        if sample is not rows:
            labels = self._rule(sample, np.asarray(by_first_row(best.labels)))(rows)
            search = _Search(self, rows, fewest, limit, settled=len(rows) // SETTLED)
            best = search.descend(labels[None], search.movable[None])
        labels = np.asarray(by_first_row(best.labels))
        k = int(labels.max()) + 1
        if n_clusters is None and self.max_clusters is None and k == limit < rows.n_rows:
            checks.warn(
                f"the loss falls up to the limit of {limit} clusters; pass max_clusters=… for more clusters and more "
                "time, or take loss='vi', which has fewer clusters."
            )
        results = {"objective": best.loss, "n_iter": best.n_iter, "converged": best.converged}
        if search.links is not None:
            first, second = labels[search.links.first], labels[search.links.second]
            n_violated = int(np.count_nonzero(first == second))
            results |= {"objective": best.loss - search.links.penalty * n_violated, "n_violated_links": n_violated}
        return Partition(labels, k, self._rule(rows, labels), results)

    def _penalty(self, n_objects: int) -> float:
        """Return the penalty of a cannot-link within a cluster; by default, it exceeds all losses."""
        if self.link_penalty is not None:
            return float(self.link_penalty)
        return 2.0 * max(1.0, float(np.log2(n_objects))) if self.loss == "vi" else 2.0

    def _largest_n_clusters(self, rows: Rows) -> int:
        """Return the largest number of clusters that may be found if the number is free."""
        if self.max_clusters is not None:
            return min(int(self.max_clusters), rows.n_rows)
        return min(rows.n_rows, max(MOST_CLUSTERS, int(np.diff(rows.offsets).max())))

    def _rule(self, rows: Rows, labels: np.ndarray) -> Nearest:
        """Return the rule that assigns an object unknown at fit to the cluster where it raises the loss least."""
        k, a = int(labels.max()) + 1, float(self.a)
        shared, objects = (of.astype(np.float64) for of in count_labels(rows, lambda _: labels, k))
        if self.loss == "vi":
            cost = -2.0 * (times_log(shared + 1) - times_log(shared))
            const = (2 - a) * rows.n_clusterings * (times_log(objects + 1) - times_log(objects))
        elif self.loss == "binder":
            cost, const = -2.0 * shared, (2 - a) * rows.n_clusterings * objects
        else:
            of_together, of_spread = _slopes(shared, objects, rows)
            cost, const = -shared * np.repeat(of_together, np.diff(rows.offsets))[:, None], -objects * of_spread.sum()
        return Nearest(cost, const, np.arange(k))


def smallest_loss(rows: Rows, loss: str, a: float) -> float:
    """Return the smallest mean loss of all partitions of at most `FEW` rows, with any number of clusters."""
    return _Search(MedianSearch(loss, a), rows, 1, len(rows)).best_of_all().loss


class _Optimum(NamedTuple):
    labels: np.ndarray  # (G,)
    loss: float
    n_iter: int
    converged: bool


class _Search:
    """The search among partitions of rows into ``least`` to ``most`` clusters."""

    def __init__(self, partitioner: MedianSearch, rows: Rows, fewest: int, limit: int, settled: int = 0) -> None:
        self.rows = rows
        codes, sizes = devices.to_host(rows.ensemble.codes), np.diff(rows.offsets)
        distinct, times = np.unique(first_equal_clusterings(codes, sizes), return_counts=True)
        offsets = np.concatenate([[0], np.cumsum(sizes[distinct])])
        self.ensemble = cpu.MedianEnsemble(np.ascontiguousarray(codes.T[distinct]), offsets, rows.counts, times)
        table = np.empty(0)
        if partitioner.loss == "vi":
            table = times_log(np.arange(min(rows.n_objects + 1, TABLE), dtype=np.float64))
        self.loss = cpu.MedianLoss(LOSSES.index(partitioner.loss), float(partitioner.a), table)
        self.bounds = cpu.MedianBounds(fewest, limit, int(partitioner.max_iter), settled)
        self.links: cpu.MedianLinks | None = None
        self.movable = np.arange(len(rows))  # first rows of the blocks that move together
        if isinstance(rows, LinkedRows):
            self.links = cpu.MedianLinks(*rows.links(), partitioner._penalty(rows.n_objects))
            self.movable = np.flatnonzero(rows.group == self.movable)

    def best_of_all(self) -> _Optimum:
        """Return the best of all partitions, for few rows."""
        labels = np.empty(len(self.rows), dtype=np.int64)
        return _Optimum(labels, cpu.median_of_all(self.ensemble, self.loss, self.bounds, labels, self.links), 1, True)

    def starts(self, n_init: int, rng: np.random.Generator) -> np.ndarray:
        """Return the labels (n_init, G) of the starts, where -1 means that the search allocates the row.

        Up to half of the starts are clusterings, the most frequent first. If the number of clusters is fixed, one start
        is the result of k-means in label space. The other starts allocate all rows.
        """
        labels, codes, times = np.full((n_init, len(self.rows)), -1), self.ensemble.codes, self.ensemble.times
        shuffled = rng.permutation(len(times))
        frequent = shuffled[np.argsort(-times[shuffled], kind="stable")]
        for start, m in zip(labels[: n_init // 2], frequent, strict=False):
            column = np.where(codes[m] == np.iinfo(codes.dtype).max, -1, codes[m].astype(np.int64))
            start[:] = self._number_by_size(column)
        if self.bounds.least == self.bounds.most:
            labels[-1] = category_kmeans(self.rows, self.bounds.most, rng, n_init=1).labels
        return labels

    def _number_by_size(self, column: np.ndarray) -> np.ndarray:
        """Return labels renumbered by falling size; -1 for clusters beyond the largest allowed number."""
        labelled = column >= 0
        sizes = np.bincount(column[labelled], weights=self.rows.counts[labelled])
        number = np.empty(len(sizes) + 1, dtype=np.int64)
        number[np.argsort(-sizes, kind="stable")] = np.arange(len(sizes))
        number[-1] = -1
        renumbered = number[column]
        return np.where(renumbered < self.bounds.most, renumbered, -1)

    def best_of(self, starts: np.ndarray, rng: np.random.Generator) -> _Optimum:
        """Return the best partition to which the starts (n_init, G) lead."""
        return self.descend(starts, rng.permuted(np.tile(self.movable, (len(starts), 1)), axis=1))

    def descend(self, starts: np.ndarray, orders: np.ndarray) -> _Optimum:
        """Return the best partition to which the starts (n_init, G) lead if they visit the rows in these orders.

        ``orders`` (n_init, n) are permutations of the movable rows.
        """
        labels = np.ascontiguousarray(starts, dtype=np.int64)
        if self.links is not None:
            labels = np.ascontiguousarray(labels[:, self.links.group])
        losses, sweeps = np.empty(len(labels)), np.empty(len(labels), dtype=np.int64)
        cpu.search_medians(self.ensemble, self.loss, self.bounds, orders, labels, losses, sweeps, self.links)
        best = int(losses.argmin())
        return _Optimum(labels[best], float(losses[best]), abs(int(sweeps[best])), bool(sweeps[best] > 0))


def _slopes(shared: np.ndarray, objects: np.ndarray, rows: Rows) -> tuple[np.ndarray, np.ndarray]:
    """Return the derivatives (M,) of the adjusted Rand index by Σ_rc φ(n_rc), and by Σ_r φ(n_r)."""
    sizes = rows.cluster_sizes().astype(np.float64)
    together = np.add.reduceat((shared * (shared - 1)).sum(axis=1), rows.offsets[:-1])
    pairs_of_clusterings = np.add.reduceat(sizes * (sizes - 1), rows.offsets[:-1])
    spread, share = (
        float((objects * (objects - 1)).sum()),
        pairs_of_clusterings / max(rows.n_objects * (rows.n_objects - 1.0), 1.0),
    )
    range_of_index = (spread + pairs_of_clusterings) / 2 - spread * share
    range_of_index = np.where(range_of_index > 0, range_of_index, np.inf)  # the index is 1 whatever is added
    above_chance = (together - spread * share) / range_of_index
    return 1 / range_of_index, (-share - above_chance * (0.5 - share)) / range_of_index

"""LIMBO: repeatedly merge the two clusters whose union loses the least information about the labels of its objects.

Let n be the number of objects of a cluster, and h_c the number of those in cluster c of the ensemble. The cluster has
the share p = n / N of all objects, and the distribution h_c / (n M) over labels. Merging A and B loses
(p_A + p_B) JS(A, B) bits, where JS is the Jensen-Shannon divergence of their distributions. The loss is
(F(A) + F(B) - F(A ∪ B)) / (N M) for

    F(A) = Σ_c h_c log2 h_c - Σ_c h_c · log2 n

F of a single row is 0. So the loss of merging two rows follows from their common labels. The loss of merging a union
with another region follows from the region's entries. When an object is added to a cluster, the loss is least in the
cluster with the largest

    Σ_{c of the object} [(h_c + 1) log2 (h_c + 1) - h_c log2 h_c] - (Σ_c h_c + L) log2 (n + 1) + Σ_c h_c log2 n

where L is the number of labels of the object. This takes one look-up for each label.

Andritsos, Tsaparas, Miller & Sevcik, "LIMBO: scalable clustering of categorical data", EDBT 2004.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from gpuens.labels.rows import Rows, numbered
from gpuens.partition.base import Partition, Partitioner
from gpuens.partition.label_kmeans import Nearest, count_labels
from gpuens.runtime import checks
from gpuens.runtime import device as devices
from gpuens.runtime.exponentials import logarithms
from gpuens.runtime.native import cpu

TABLE = 2**17  # largest number of entries in the table of x log2 x for whole numbers x


@dataclass(frozen=True)
class InformationBottleneck(Partitioner):
    """Repeatedly merge the two clusters whose union loses the least information; then assign each row by least loss.

    Memory holds a number for each pair of rows, and two for each label. If losses are equal, the pair of the first rows
    merges.
    """

    takes = ("labels",)
    bytes_each_pair = 8

    def refuse_too_many(self, rows: Rows, n_clusters: int, kind: str) -> None:
        checks.check_memory(
            len(rows) * (8 * len(rows) + 16 * rows.n_clusterings + 128),
            devices.memory_budget(),
            f"the information lost by all pairs of {len(rows):,} distinct label rows",
            "reduce the rows first, reduction=CATree(…) or Sample(…)",
        )

    def __call__(self, similarity: Any, rows: Rows, n_clusters: int) -> Partition:
        n, codes = len(rows), np.ascontiguousarray(devices.to_host(rows.codes).T)
        table = times_log(np.arange(min(rows.n_objects + 1, TABLE), dtype=np.float64))
        row_labels, losses = np.empty(n, dtype=np.int64), np.empty(n - n_clusters)
        cpu.merge_by_information(codes, rows.offsets, rows.counts, table, row_labels, losses)
        shared, sizes = count_labels(rows, lambda all_of_them: row_labels, n_clusters)
        rule, labels = numbered(least_loss(shared.astype(np.float64), sizes), n_clusters, rows)
        checks.warn_of_fewer(rule.n_labels, n_clusters)
        results = {"losses": losses / (rows.n_objects * rows.n_clusterings)}
        return Partition(labels, rule.n_labels, rule=rule, results=results)


def least_loss(shared: np.ndarray, sizes: np.ndarray) -> Nearest:
    """Return the rule that assigns each row to the cluster in which one of its objects loses the least information.

    ``shared`` (N_c, k) are the numbers of objects in each cluster of the ensemble and each cluster of the consensus;
    ``sizes`` (k,) are the numbers of objects in each cluster of the consensus.
    """
    logs_of_next, total = logarithms(sizes + 1), shared.sum(axis=0)
    gains = (shared + 1) * logarithms(shared + 1) - times_log(shared) - logs_of_next
    return Nearest(-gains, -total * (logarithms(sizes) - logs_of_next), np.arange(len(sizes)))


def times_log(x: np.ndarray) -> np.ndarray:
    """Return x log2 x, which is 0 for x = 0."""
    return x * logarithms(np.where(x > 0, x, 1.0))

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
from gpuens.runtime.compiled import njit

TABLE = 2**17  # largest number of entries in the table of x log2 x for whole numbers x


@dataclass(frozen=True)
class InformationBottleneck(Partitioner):
    """Repeatedly merge the two clusters whose union loses the least information; then assign each row by least loss.

    Memory holds a number for each pair of rows, and a number for each row and cluster of the ensemble. If losses are
    equal, the pair of the first rows merges.
    """

    takes = ("labels",)
    bytes_each_pair = 8

    def refuse_too_many(self, rows: Rows, n_clusters: int, kind: str) -> None:
        entries = _width(rows.n_clusters, rows.n_clusterings)
        checks.check_memory(
            len(rows) * (8 * (len(rows) + rows.n_clusters) + 4 * entries),
            devices.memory_budget(),
            f"the information lost by all pairs of {len(rows)} distinct label rows",
            "reduce the rows first, reduction=CATree(…) or Sample(…)",
        )

    def __call__(self, similarity: Any, rows: Rows, n_clusters: int) -> Partition:
        codes, missing = devices.to_host(rows.codes), rows.ensemble.missing_code
        counts, width = rows.counts.astype(np.float64), _width(rows.n_clusters, rows.n_clusterings)
        total = (codes != missing).sum(axis=1) * counts  # number of labels of the objects of each row
        of_whole = _times_log(np.arange(min(rows.n_objects + 1, TABLE), dtype=np.float64))
        loss = np.empty((len(codes), len(codes)))
        devices.over_ranges(lambda a, b: _lose(a, b, codes, missing, counts, total, loss), len(codes))
        merged, losses = _merge(codes, missing, rows.offsets, counts, total, n_clusters, width, of_whole, loss)
        held, sizes = count_labels(rows, lambda all_of_them: merged, n_clusters)
        rule, labels = numbered(least_loss(held.astype(np.float64), sizes), n_clusters, rows)
        checks.warn_of_fewer(rule.n_labels, n_clusters)
        found = {"losses": losses / (rows.n_objects * rows.n_clusterings)}
        return Partition(labels, rule.n_labels, rule=rule, found=found)


def least_loss(held: np.ndarray, sizes: np.ndarray) -> Nearest:
    """Return the rule that assigns each row to the cluster in which one of its objects loses the least information.

    ``held`` (N_c, k) are the numbers of objects in each cluster of the ensemble and each cluster of the consensus;
    ``sizes`` (k,) are the numbers of objects in each cluster of the consensus.
    """
    more, total = np.log2(sizes + 1), held.sum(axis=0)
    kept = (held + 1) * np.log2(held + 1) - _times_log(held) - more
    return Nearest(-kept, -total * (np.log2(sizes) - more), np.arange(len(sizes)))


def _times_log(x: np.ndarray) -> np.ndarray:
    return x * np.log2(np.where(x > 0, x, 1.0))


def _width(n_clusters: int, n_clusterings: int) -> int:
    """Return the capacity of a region's list of labels; regions with more labels are read cluster by cluster."""
    return max(n_clusterings, n_clusters // 8)


@njit(cache=True, nogil=True, inline="always")
def _xlogx(x, of_whole):
    return of_whole[np.int64(x)] if x < len(of_whole) else x * np.log2(x)


@njit(cache=True, nogil=True)
def _lose(start, stop, codes, missing, sizes, total, loss):
    """Write the loss of merging each row ``start`` … ``stop`` - 1 with each later row; other entries are infinite."""
    n_clusterings = codes.shape[1]
    for i in range(start, stop):
        loss[i, : i + 1] = np.inf
        for j in range(i + 1, len(codes)):
            shared = 0
            for m in range(n_clusterings):
                shared += codes[i, m] == codes[j, m] and codes[i, m] != missing
            both = sizes[i] + sizes[j]
            own, others = total[i] - shared * sizes[i], total[j] - shared * sizes[j]
            loss[i, j] = own * np.log2(both / sizes[i]) + others * np.log2(both / sizes[j])


@njit(cache=True, nogil=True)
def _merge(codes, missing, offsets, sizes, total, n_clusters, width, of_whole, loss):
    """Return the cluster of each row (G,), 0 … n_clusters - 1, and the loss of each merge in the order of the merges.

    ``of_whole`` is x log2 x for whole numbers x from 0 on, and ``loss`` (G, G) the loss of merging two rows. ``loss``,
    ``sizes`` (objects of each row) and ``total`` (labels of these objects) are overwritten.
    """
    n, n_clusterings = codes.shape
    held = np.zeros((n, offsets[-1]))
    entries, n_entries = np.empty((n, width), dtype=np.int32), np.zeros(n, dtype=np.int64)  # non-zero entries of held
    for i in range(n):
        for m in range(n_clusterings):
            if codes[i, m] != missing:
                held[i, offsets[m] + codes[i, m]] = sizes[i]
                entries[i, n_entries[i]] = offsets[m] + codes[i, m]
                n_entries[i] += 1
    # for each row, the later row whose merge loses least, and the loss
    partner, least = np.zeros(n, dtype=np.int64), np.full(n, np.inf)
    for i in range(n - 1):
        partner[i] = i + 1 + np.argmin(loss[i, i + 1 :])
        least[i] = loss[i, partner[i]]
    alive, cluster = np.ones(n, dtype=np.bool_), np.arange(n)
    inside, logs = np.zeros(n), np.zeros(offsets[-1])  # F of each region, and x log2 x of the entries of a union
    losses = np.empty(n - n_clusters)
    for merge in range(n - n_clusters):
        a = np.argmin(least)
        b = partner[a]
        losses[merge] = least[a]
        alive[b], least[b] = False, np.inf
        for i in range(n):
            if cluster[i] == b:
                cluster[i] = a
        sum_logs, n_entries[a] = 0.0, 0
        for c in range(held.shape[1]):
            held[a, c] += held[b, c]
            logs[c] = _xlogx(held[a, c], of_whole)
            sum_logs += logs[c]
            if held[a, c] > 0.0:
                if n_entries[a] < width:
                    entries[a, n_entries[a]] = c
                n_entries[a] += 1
        sizes[a] += sizes[b]
        total[a] += total[b]
        inside[a] = sum_logs - total[a] * np.log2(sizes[a])
        for i in range(n):
            if i < b:
                loss[i, b] = np.inf
            if not alive[i] or i == a:
                continue
            together = sum_logs
            if n_entries[i] <= width:
                for c in entries[i, : n_entries[i]]:
                    together += _xlogx(held[a, c] + held[i, c], of_whole) - logs[c]
            else:
                for c in range(held.shape[1]):
                    if held[i, c] > 0.0:
                        together += _xlogx(held[a, c] + held[i, c], of_whole) - logs[c]
            together -= (total[a] + total[i]) * np.log2(sizes[a] + sizes[i])
            loss[min(a, i), max(a, i)] = max(0.0, inside[a] + inside[i] - together)
        for i in range(n - 1):
            if alive[i] and (i == a or partner[i] == a or partner[i] == b):
                partner[i] = i + 1 + np.argmin(loss[i, i + 1 :])
                least[i] = loss[i, partner[i]]
            elif alive[i] and i < a and loss[i, a] < least[i]:
                partner[i], least[i] = a, loss[i, a]
    numbers = np.cumsum(alive) - 1
    return numbers[cluster], losses

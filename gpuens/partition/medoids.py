"""PAM: k rows (medoids) with a small sum of the distances from all objects to their nearest medoid.

Kaufman & Rousseeuw (1990). Distances are 1 - similarity. BUILD chooses medoids one after another; each new medoid is
the row that lowers the sum most. SWAP repeatedly makes the best exchange of a medoid and another row, as long as an
exchange lowers the sum. One pass over a row's distances computes the changes of the sum by all exchanges with that row;
this needs the two nearest medoids of each row (Schubert & Rousseeuw, "Fast and eager k-medoids clustering", Information
Systems 101, 2021).

A row counts with the number of its objects. One of the objects of a medoid's row is the medoid itself, at distance 0.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from gpuens.labels.rows import Rows, by_first_row
from gpuens.partition.base import Partition, Partitioner
from gpuens.runtime import checks, progress
from gpuens.runtime import device as devices
from gpuens.runtime.native import cpu

BLOCK = 512  # rows of the similarity matrix computed at a time


@dataclass(frozen=True)
class Medoids(Partitioner):
    """PAM (k-medoids): exchange a medoid and a row until no exchange lowers the sum of distances (1 - similarity).

    Memory holds 8 bytes for each pair of rows, and 8 bytes for each row and cluster. If exchanges are equally good, or
    medoids equally near, the first row is taken.

    Examples
    --------
    >>> import gpuens as ge
    >>> labels = [[0, 0, 0, 1, 1, 1], [0, 0, 1, 2, 2, 2], [0, 0, 0, 0, 1, 1]]
    >>> ge.Consensus(2, partitioner="pam").fit(labels).medoids_.tolist()
    [0, 3]
    """

    any_sign = True
    real_weights = True
    bytes_each_pair = 8

    def refuse_too_many(self, rows: Rows, n_clusters: int, kind: str) -> None:
        checks.check_memory(
            8 * len(rows) * (len(rows) + max(n_clusters, min(BLOCK, len(rows)))),
            devices.memory_budget(),
            f"PAM holds all pairs of {len(rows):,} distinct label rows, which",
            "reduce the rows first, reduction=CATree(…) or Sample(…)",
        )

    def __call__(self, similarity: Any, rows: Rows, n_clusters: int) -> Partition:
        n = len(rows)
        distances = np.empty((n, n))
        for start in progress.bar(range(0, n, BLOCK), "all pairs of rows"):
            stop = min(start + BLOCK, n)
            np.subtract(1.0, similarity.tile(rows, start, stop), out=distances[start:stop])
        diagonal, counts = np.arange(n), rows.counts.astype(np.float64)
        distances[diagonal, diagonal] = (1.0 - similarity.self_similarities(rows)) * (1.0 - 1.0 / counts)
        medoids, objective = pam(distances, counts, n_clusters)
        labels = distances.take(medoids, axis=1).argmin(axis=1)
        labels[medoids] = np.arange(n_clusters)
        first = np.unique(labels, return_index=True)[1]
        results = {"medoids": medoids[np.argsort(first)], "objective": objective}
        return Partition(by_first_row(labels), n_clusters, results=results, per_cluster=("medoids",))


def pam(distances: np.ndarray, weights: np.ndarray, k: int) -> tuple[np.ndarray, float]:
    """Return the medoids (k,) in ascending order, and the weighted sum of each row's distance to its nearest medoid.

    Parameters
    ----------
    distances : ndarray (n, n), float64
        Entry (i, j) is the distance of row i, which has weight ``weights[i]``, to row j as a medoid.
    weights : ndarray (n,), float64
    k : int ≤ n
    """
    medoids = np.empty(k, dtype=np.int64)
    cpu.pam(distances, weights, medoids)
    return medoids, float(weights @ distances.take(medoids, axis=1).min(axis=1))

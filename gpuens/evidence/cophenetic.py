"""How well the dendrogram of average linkage keeps the similarities of all pairs of objects, in closed form.

The cophenetic similarity t(x, y) is that of the merge which brings x and y together. In average linkage it is the mean
of s over all pairs that the merge brings together, so that Σ t s = Σ t² over these pairs: the merges alone give the
covariance of t and s, and Σ s² over all pairs follows from the intersections of clusters.
"""

import numpy as np

from gpuens.labels.rows import Rows
from gpuens.partition.linkage.dendrogram import Dendrogram
from gpuens.runtime.compiled import njit
from gpuens.similarity.base import ClusterSimilarity


def of_average_linkage(rows: Rows, similarity: ClusterSimilarity, dendrogram: Dendrogram, own: np.ndarray) -> float:
    """Return the correlation of t and s over all pairs of objects, NaN where either is constant.

    ``own`` (G,) are the similarities of objects that share a row.
    """
    counts = rows.counts.astype(np.float64)
    merged = _pairs_merged(dendrogram.kept, dendrogram.absorbed, counts)
    pairs = np.concatenate([merged, counts * (counts - 1) / 2])
    t = np.concatenate([dendrogram.similarities, dendrogram.within(own)])
    mean_s = np.concatenate([dendrogram.similarities, own])  # over the pairs of a merge
    total = pairs.sum()
    center = pairs @ mean_s / total  # sums of deviations from it lose less to rounding
    t, mean_s = t - center, mean_s - center
    squares = (similarity.sum_of_squares(rows) - counts @ own**2) / 2 / total - center**2
    mean = pairs @ t / total
    of_t = pairs @ t**2 / total - mean**2
    rounding = 1e-14 * center**2
    if of_t <= rounding or squares <= rounding:
        return float("nan")
    return float(pairs @ (t * mean_s) / total / np.sqrt(of_t * squares))


@njit(cache=True, nogil=True)
def _pairs_merged(kept, absorbed, sizes):
    """Return the pairs of objects that each merge brings together; ``sizes`` (G,) are those of the leaves."""
    sizes = sizes.copy()
    pairs = np.empty(len(kept))
    for i in range(len(kept)):
        pairs[i] = sizes[kept[i]] * sizes[absorbed[i]]
        sizes[kept[i]] += sizes[absorbed[i]]
    return pairs

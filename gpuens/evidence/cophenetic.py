"""The cophenetic correlation of average linkage with the similarities of all pairs of objects, in closed form.

The cophenetic similarity t(x, y) is the similarity of the merge that brings x and y together. In average linkage, t is
the mean of s over all pairs that the merge brings together, so that Σ t s = Σ t² over these pairs. The merges therefore
give the covariance of t and s. Σ s² over all pairs follows from the intersections of clusters.
"""

import numpy as np

from gpuens.labels.rows import Rows
from gpuens.partition.linkage.dendrogram import Dendrogram
from gpuens.runtime.compiled import njit
from gpuens.similarity.base import ClusterSimilarity


def of_average_linkage(rows: Rows, similarity: ClusterSimilarity, dendrogram: Dendrogram, own: np.ndarray) -> float:
    """Return the correlation of t and s over all pairs of objects, or NaN if t or s is constant.

    ``own`` (G,): for each row, the similarity of two objects of this row.
    """
    counts = rows.counts.astype(np.float64)
    merged = _pairs_merged(dendrogram.kept, dendrogram.absorbed, counts)
    pairs = np.concatenate([merged, counts * (counts - 1) / 2])
    t = np.concatenate([dendrogram.similarities, dendrogram.within(own)])
    # mean of s over the pairs of each merge, then over the pairs inside each row
    mean_s = np.concatenate([dendrogram.similarities, own])
    total = pairs.sum()
    center = pairs @ mean_s / total  # sums of deviations from the centre have smaller rounding errors
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
    """Return the number of pairs of objects that each merge brings together; ``sizes`` (G,): objects of each leaf."""
    sizes = sizes.copy()
    pairs = np.empty(len(kept))
    for i in range(len(kept)):
        pairs[i] = sizes[kept[i]] * sizes[absorbed[i]]
        sizes[kept[i]] += sizes[absorbed[i]]
    return pairs

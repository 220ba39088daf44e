"""The cophenetic correlation of average linkage, computed without visiting the pairs of objects.

It is the correlation of the similarity s(x, y) and the cophenetic similarity t(x, y) over all pairs of objects x and y.
The cophenetic similarity is the similarity of the merge that brings x and y into one cluster. In average linkage, t is
the mean of s over all pairs that the merge brings together, so that Σ t s = Σ t² over these pairs. The covariance of t
and s is therefore computed from the merges, and Σ s² over all pairs from the intersections of clusters.
"""

import numpy as np

from gpuens.labels.rows import Rows
from gpuens.partition.linkage.dendrogram import Dendrogram
from gpuens.runtime.native import cpu
from gpuens.similarity.base import ClusterSimilarity


def correlate_average_linkage(
    rows: Rows, similarity: ClusterSimilarity, dendrogram: Dendrogram, within: np.ndarray
) -> float:
    """Return the correlation of cophenetic similarities t and similarities s over all pairs of objects.

    The result is NaN if t or s is constant. ``within`` (G,) are the similarities of objects with equal label rows.
    """
    counts = rows.counts.astype(np.float64)
    n_merged = np.empty(len(dendrogram.kept))
    cpu.pairs_merged(dendrogram.kept, dendrogram.absorbed, counts, n_merged)
    pairs = np.concatenate([n_merged, counts * (counts - 1) / 2])
    t = np.concatenate([dendrogram.similarities, dendrogram.within(within)])
    # the mean of s over the pairs that each merge brings together, followed by the mean over the pairs inside each row
    mean_s = np.concatenate([dendrogram.similarities, within])
    total = pairs.sum()
    center = pairs @ mean_s / total  # subtracted, because sums of deviations from the mean have smaller rounding errors
    t, mean_s = t - center, mean_s - center
    variance_s = (similarity.sum_of_squares(rows) - counts @ within**2) / 2 / total - center**2
    mean = pairs @ t / total
    variance_t = pairs @ t**2 / total - mean**2
    rounding = 1e-14 * center**2
    if variance_t <= rounding or variance_s <= rounding:
        return float("nan")
    return float(pairs @ (t * mean_s) / total / np.sqrt(variance_t * variance_s))

"""The Genie algorithm: a single linkage that merges the smallest clusters first if the sizes are too unequal.

Each edge of the minimum spanning tree is a merge of two clusters. As long as the Gini index of the sizes c_1 ≤ … ≤ c_n
of the n clusters,

    G = Σ_i (2 i - n - 1) c_i / ((n - 1) Σ_i c_i),

is at most a threshold, the shortest edge is the next merge. If the Gini index is above the threshold, the next merge is
the shortest edge of a cluster of the smallest size (Gagolewski, Bartoszuk & Cena, Information Sciences 363, 2016). A
threshold of 1 gives single linkage, in which outliers become clusters. Small thresholds give clusters of similar sizes.
"""

import numpy as np

from gpuens.runtime.native import cpu


def genie(points: np.ndarray, sizes: np.ndarray, n_clusters: int, most_unequal: float) -> np.ndarray:
    """Cluster n points by the Genie algorithm; return their labels (n,), int64, 0 … n_clusters - 1.

    Parameters
    ----------
    points : ndarray (n, d), float32
    sizes : ndarray (n,), int64
        The number of objects that each point represents. Points of size 0 get label 0 and do not count.
    n_clusters : int
        The number of clusters, or the number of points if that is smaller.
    most_unequal : float
        The largest Gini index of the sizes at which the shortest edge is the next merge.
    """
    occupied = np.flatnonzero(sizes)
    labels = np.zeros(len(points), dtype=np.int64)
    groups = np.empty(len(occupied), dtype=np.int64)
    cpu.genie(points[occupied], np.ascontiguousarray(sizes[occupied]), n_clusters, most_unequal, groups)
    labels[occupied] = groups
    return labels

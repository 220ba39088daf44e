"""The Genie algorithm: a single linkage that merges the smallest clusters first if the sizes are too unequal.

Each edge of the minimum spanning tree is a merge of two clusters. As long as the Gini index of the sizes c_1 ≤ … ≤ c_n
of the n clusters,

    G = Σ_i (2 i - n - 1) c_i / ((n - 1) Σ_i c_i),

is at most a threshold, the shortest edge is the next merge. If the Gini index is above the threshold, the next merge is
the shortest edge of a cluster of the smallest size (Gagolewski, Bartoszuk & Cena, Information Sciences 363, 2016). A
threshold of 1 gives single linkage, in which outliers become clusters. Small thresholds give clusters of similar sizes.
"""

import numpy as np

from gpuens.generate.landmark_graph import LANES, squared_distances
from gpuens.runtime.compiled import njit


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
    there = np.flatnonzero(sizes)
    labels = np.zeros(len(points), dtype=np.int64)
    edges, squares = _spanning_tree(points[there])
    root = _merged(edges[np.argsort(squares, kind="stable")], sizes[there], n_clusters, most_unequal)
    labels[there] = np.unique(root, return_inverse=True)[1]
    return labels


@njit(cache=True, nogil=True)
def _spanning_tree(points):
    """Find the minimum spanning tree of n points by Prim's algorithm; return its edges (n - 1, 2), squared lengths."""
    n, d = points.shape
    room = (n + LANES - 1) // LANES * LANES
    turned = np.zeros((d, room), dtype=np.float32)
    for i in range(n):
        turned[:, i] = points[i]
    apart, least = np.empty(room, dtype=np.float32), np.full(n, np.float32(np.inf))
    towards, outside = np.zeros(n, dtype=np.int64), np.ones(n, dtype=np.bool_)
    edges, squares = np.empty((n - 1, 2), dtype=np.int64), np.empty(n - 1, dtype=np.float32)
    newest = 0
    outside[0] = False
    for e in range(n - 1):
        squared_distances(points[newest], turned, room, apart)
        nearest = -1
        for i in range(n):
            if outside[i]:
                if apart[i] < least[i]:
                    least[i], towards[i] = apart[i], newest
                if nearest < 0 or least[i] < least[nearest]:
                    nearest = i
        edges[e, 0], edges[e, 1], squares[e] = towards[nearest], nearest, least[nearest]
        outside[nearest] = False
        newest = nearest
    return edges, squares


@njit(cache=True, nogil=True)
def _merged(edges, sizes, n_clusters, most_unequal):
    """Merge clusters along the edges, which must ascend by length; return the cluster of each point (n,).

    The numbers of the clusters are in 0 … n - 1, possibly with gaps.
    """
    n = len(sizes)
    total = sizes.sum()
    cluster, size = np.arange(n), sizes.copy()
    ascending = np.sort(sizes)
    open_edges = np.ones(len(edges), dtype=np.bool_)
    first, left = 0, n
    while left > max(1, n_clusters):
        spread = 0.0
        for i in range(left):
            spread += (2.0 * (i + 1) - left - 1.0) * ascending[i]
        while not open_edges[first]:
            first += 1
        e = first
        if spread > most_unequal * (left - 1.0) * total:
            while not open_edges[e] or min(size[cluster[edges[e, 0]]], size[cluster[edges[e, 1]]]) > ascending[0]:
                e += 1
        open_edges[e] = False
        kept, absorbed = cluster[edges[e, 0]], cluster[edges[e, 1]]
        for i in range(n):
            if cluster[i] == absorbed:
                cluster[i] = kept
        _join(ascending, left, size[kept], size[absorbed])
        size[kept] += size[absorbed]
        left -= 1
    return cluster


@njit(cache=True, nogil=True)
def _join(ascending, n, a, b):
    """Replace the numbers a and b, which are among the first n elements of ``ascending``, by a + b.

    Afterwards, the first n - 1 elements are in ascending order.
    """
    for one in (a, b):
        for i in range(np.searchsorted(ascending[:n], one), n - 1):
            ascending[i] = ascending[i + 1]
        n -= 1
    place = n
    while place > 0 and ascending[place - 1] > a + b:
        ascending[place] = ascending[place - 1]
        place -= 1
    ascending[place] = a + b

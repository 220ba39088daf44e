"""The merge list of a linkage, and its cuts."""

import numpy as np

from gpuens import checks
from gpuens.compiled import njit
from gpuens.partition.linkage.order import pair_hash


class Dendrogram:
    """A full merge list: n leaves, n - 1 merges, most similar first.

    Attributes
    ----------
    kept, absorbed : ndarray (n - 1,), int64
        The regions that merge, each named by one of its leaves; the union keeps the name ``kept``.
    similarities : ndarray (n - 1,), float64
        Similarity at which they merge, never rising.
    """

    def __init__(self, kept: np.ndarray, absorbed: np.ndarray, similarities: np.ndarray) -> None:
        self.kept = kept
        self.absorbed = absorbed
        self.similarities = similarities

    @classmethod
    def from_merges(
        cls, kept: np.ndarray, absorbed: np.ndarray, similarities: np.ndarray, n_leaves: int
    ) -> "Dendrogram":
        """Sort merges found in any order (a union after its parts) as a greedy algorithm would make them.

        A greedy algorithm takes the best pair that exists at the time: a union of the same similarity as its part
        waits for the part, and from then on competes by its own hash. Where the merges leave several trees, these
        have nothing in common and are joined in the order of their names at similarity 0.
        """
        heights, waits_for = _greedy_keys(kept, absorbed, similarities, n_leaves)
        order = np.lexsort((np.arange(len(kept)), waits_for, -heights))
        is_root = np.ones(n_leaves, dtype=bool)
        is_root[absorbed] = False
        first, *rest = np.flatnonzero(is_root)
        return cls(
            np.concatenate([kept[order], np.full(len(rest), first)]),
            np.concatenate([absorbed[order], np.array(rest, dtype=np.int64)]),
            np.concatenate([heights[order], np.zeros(len(rest))]),
        )

    @property
    def n_leaves(self) -> int:
        return len(self.kept) + 1

    # --- cuts ---------------------------------------------------------------------------------------------------------

    def cut(self, n_clusters: int) -> np.ndarray:
        """Return the label of each leaf, 0 … n_clusters - 1 in the order of the clusters' smallest leaves."""
        n_clusters = checks.check_n_clusters(n_clusters, self.n_leaves)
        merges = self.n_leaves - n_clusters
        region = np.arange(self.n_leaves)
        region[self.absorbed[:merges]] = self.kept[:merges]
        while True:  # every leaf points towards its region's name; doubling the steps takes log(depth) rounds
            further = region[region]
            if np.array_equal(further, region):
                break
            region = further
        smallest_leaf = np.full(self.n_leaves, self.n_leaves)
        np.minimum.at(smallest_leaf, region, np.arange(self.n_leaves))
        return np.unique(smallest_leaf[region], return_inverse=True)[1]

    def n_clusters_at(self, distance: float) -> int:
        """Return the clusters left when every merge at a distance (1 - similarity) below ``distance`` is made."""
        distance = checks.check_real(distance, "distance")
        return self.n_leaves - int(np.count_nonzero(1.0 - self.similarities < distance))

    def lifetimes(self, leaves_made_at: float | None = None) -> np.ndarray:
        """Return the range of cutting heights that gives 2, 3, … clusters, float64 (Fred & Jain 2005).

        It is the height of the merge that ends them minus that of the merge that made them. The n leaves are made at
        ``leaves_made_at``, or never where some of them have merged before; None is for leaves that are single objects,
        which no merge has made and which do not count.
        """
        distances = 1.0 - self.similarities
        if leaves_made_at is not None and len(distances):
            distances = np.concatenate([[min(leaves_made_at, distances[0])], distances])
        return np.diff(distances)[::-1]

    # --- what other people's tools read -------------------------------------------------------------------------------

    def expand(self, membership: np.ndarray, self_similarities: np.ndarray) -> "Dendrogram":
        """Return the dendrogram of all objects from that of their groups.

        Objects of group g (``membership`` (N,)) merge with each other at ``self_similarities[g]``, and no group is
        closer to another than to itself.
        """
        by_group = np.argsort(membership, kind="stable")
        groups = membership[by_group]
        first = np.concatenate([[True], groups[1:] != groups[:-1]])
        representative = by_group[first]
        within = self_similarities.copy()
        for side in (self.kept, self.absorbed):  # rounding must not lift a merge above the making of its parts
            np.maximum.at(within, side, self.similarities)
        kept = np.concatenate([representative[groups[~first]], representative[self.kept]])
        absorbed = np.concatenate([by_group[~first], representative[self.absorbed]])
        similarities = np.concatenate([within[groups[~first]], self.similarities])
        order = np.argsort(-similarities, kind="stable")
        return Dendrogram(kept[order], absorbed[order], similarities[order])

    def children(self) -> tuple[np.ndarray, np.ndarray]:
        """Return scikit-learn's ``children_`` (n - 1, 2) int64 and the leaves under each merge (n - 1,) int64."""
        return _children(self.kept, self.absorbed)

    def linkage_matrix(self) -> np.ndarray:
        """Return SciPy's linkage matrix Z (n - 1, 4): two nodes, distance 1 - similarity, leaves."""
        children, counts = self.children()
        return np.column_stack([children, 1.0 - self.similarities, counts])


@njit(cache=True, nogil=True)
def _greedy_keys(kept, absorbed, similarities, n_leaves):
    """Return heights that never rise above those of the parts, and the hash that decides among equal heights.

    The latter is the largest hash among the merge and the parts (of parts, …) of its own height: the last of them to
    be taken is what it waits for.
    """
    n = len(kept)
    heights = np.empty(n)
    waits_for = np.empty(n, dtype=np.uint64)
    made_by = np.full(n_leaves, -1)
    for i in range(n):
        height = similarities[i]
        for side in (kept[i], absorbed[i]):
            if made_by[side] >= 0:
                height = min(height, heights[made_by[side]])
        wait = pair_hash(kept[i], absorbed[i])
        for side in (kept[i], absorbed[i]):
            if made_by[side] >= 0 and heights[made_by[side]] == height:
                wait = max(wait, waits_for[made_by[side]])
        heights[i] = height
        waits_for[i] = wait
        made_by[kept[i]] = i
    return heights, waits_for


@njit(cache=True, nogil=True)
def _children(kept, absorbed):
    n = len(kept)
    node = np.arange(n + 1)
    leaves = np.ones(n + 1, dtype=np.int64)
    children = np.empty((n, 2), dtype=np.int64)
    counts = np.empty(n, dtype=np.int64)
    for i in range(n):
        a, b = kept[i], absorbed[i]
        children[i, 0] = min(node[a], node[b])
        children[i, 1] = max(node[a], node[b])
        leaves[a] += leaves[b]
        counts[i] = leaves[a]
        node[a] = n + 1 + i
    return children, counts

"""The merge list of a linkage, and its cuts."""

import numpy as np

from gpuens.partition.linkage.order import pair_hash
from gpuens.runtime import checks
from gpuens.runtime.compiled import njit


class Dendrogram:
    """A full merge list: n leaves, n - 1 merges, most similar first.

    Attributes
    ----------
    kept, absorbed : ndarray (n - 1,), int64
        The regions of each merge, named by one of their leaves; the union is named ``kept``.
    similarities : ndarray (n - 1,), float64
        The similarity of each merge, in descending order.
    """

    def __init__(self, kept: np.ndarray, absorbed: np.ndarray, similarities: np.ndarray) -> None:
        self.kept = kept
        self.absorbed = absorbed
        self.similarities = similarities

    @classmethod
    def from_merges(
        cls, kept: np.ndarray, absorbed: np.ndarray, similarities: np.ndarray, n_leaves: int
    ) -> "Dendrogram":
        """Return the dendrogram of merges in any order (a union after its parts), sorted as by a greedy algorithm.

        A greedy algorithm takes the best pair of existing regions. So a merge waits until its two regions exist, and
        then competes by its own hash with merges of the same similarity. If the merges form several trees, the trees
        are joined at similarity 0, in the order of their names.
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
        while True:  # every leaf points towards its region's name; pointer doubling takes log(depth) rounds
            further = region[region]
            if np.array_equal(further, region):
                break
            region = further
        smallest_leaf = np.full(self.n_leaves, self.n_leaves)
        np.minimum.at(smallest_leaf, region, np.arange(self.n_leaves))
        return np.unique(smallest_leaf[region], return_inverse=True)[1]

    def n_clusters_at(self, distance: float) -> int:
        """Return the number of clusters after all merges at a distance (1 - similarity) below ``distance``."""
        distance = checks.check_real(distance, "distance")
        return self.n_leaves - int(np.count_nonzero(1.0 - self.similarities < distance))

    def n_large(self, counts: np.ndarray, least: int) -> np.ndarray:
        """Return the number of regions of at least ``least`` objects after 0, 1, … n - 1 merges, (n,) int64.

        ``counts`` (n,) are the numbers of objects of the leaves. A merge changes the result by at most 1.
        """
        found: np.ndarray = _n_large(self.kept, self.absorbed, counts, least)
        return found

    def lifetimes(self, leaves_made_at: float | None = None, n_large: np.ndarray | None = None) -> np.ndarray:
        """Return the lifetime of 2, 3, … clusters, float64 (Fred & Jain 2005): the length of their range of distances.

        The range ends at the distance of the merge that reduces the number of clusters, and begins at that of the merge
        before. ``leaves_made_at`` is the distance at which the n leaves are complete; None means that leaves are single
        objects, whose lifetime does not count. With the result of `n_large`, only large regions are clusters. As their
        number can rise and fall, the range is then that of the cut of `coarsest`, up to the next changes of the number.
        """
        if n_large is None:
            n_large = np.arange(self.n_leaves, 0, -1)
        ended = coarsest(n_large)[2:]
        changes = np.where(np.diff(n_large, prepend=-1), np.arange(self.n_leaves), 0)
        made = np.maximum.accumulate(changes)[ended]
        distances: np.ndarray = 1.0 - self.similarities
        if leaves_made_at is None:
            made, ended = made[made > 0], ended[made > 0]
        else:
            leaves_made_at = distances[:1].min(initial=leaves_made_at)
        found: np.ndarray = distances[ended] - np.append(leaves_made_at or 0.0, distances)[made]
        return found

    # --- formats of SciPy and scikit-learn ----------------------------------------------------------------------------

    def expand(self, membership: np.ndarray, self_similarities: np.ndarray) -> "Dendrogram":
        """Return the dendrogram of all objects; its leaves so far are groups, and ``membership`` (N,) their objects'.

        Objects of group g merge with each other at ``self_similarities[g]``, before they merge with other groups.
        """
        by_group = np.argsort(membership, kind="stable")
        groups = membership[by_group]
        first = np.concatenate([[True], groups[1:] != groups[:-1]])
        representative = by_group[first]
        within = self.within(self_similarities)
        kept = np.concatenate([representative[groups[~first]], representative[self.kept]])
        absorbed = np.concatenate([by_group[~first], representative[self.absorbed]])
        similarities = np.concatenate([within[groups[~first]], self.similarities])
        order = np.argsort(-similarities, kind="stable")
        return Dendrogram(kept[order], absorbed[order], similarities[order])

    def within(self, self_similarities: np.ndarray) -> np.ndarray:
        """Return the similarity at which the objects of each leaf merge, at least that of the leaf's first merge."""
        within = self_similarities.copy()
        for side in (self.kept, self.absorbed):  # despite rounding, a merge must not come before its parts
            np.maximum.at(within, side, self.similarities)
        return within

    def children(self) -> tuple[np.ndarray, np.ndarray]:
        """Return scikit-learn's ``children_`` (n - 1, 2), int64, and each merge's number of leaves (n - 1,), int64."""
        found: tuple[np.ndarray, np.ndarray] = _children(self.kept, self.absorbed)
        return found

    def linkage_matrix(self) -> np.ndarray:
        """Return SciPy's linkage matrix Z (n - 1, 4): two nodes, distance 1 - similarity, number of leaves.

        SciPy refuses negative distances: if similarities are above 1, distances are measured from the largest one.
        """
        children, counts = self.children()
        return np.column_stack([children, self.most - self.similarities, counts])

    @property
    def most(self) -> float:
        """The similarity at distance 0: 1, or the largest similarity if that is above 1, as with ECRMC."""
        return float(self.similarities.max(initial=1.0))


def coarsest(n_large: np.ndarray) -> np.ndarray:
    """Return the number of merges of the coarsest cut with 0, 1, 2, … large regions, int64.

    ``n_large`` is the result of `Dendrogram.n_large`; the last number is its largest. 0 is not always reached.
    """
    merges = np.zeros(int(n_large.max()) + 1, dtype=np.int64)
    merges[n_large] = np.arange(len(n_large))  # the last assignment of equal indices counts
    return merges


@njit(cache=True, nogil=True)
def _n_large(kept, absorbed, counts, least):
    sizes = counts.copy()
    n_large = np.empty(len(counts), dtype=np.int64)
    n_large[0] = (counts >= least).sum()
    for i in range(len(kept)):
        a, b = sizes[kept[i]], sizes[absorbed[i]]
        n_large[i + 1] = n_large[i] + int(a + b >= least) - int(a >= least) - int(b >= least)
        sizes[kept[i]] = a + b
    return n_large


@njit(cache=True, nogil=True)
def _greedy_keys(kept, absorbed, similarities, n_leaves):
    """Return the merges' similarities, limited to those of their parts, and the hash that decides between equal ones.

    The hash is the largest among the merge and all merges within it at the same similarity, for which it must wait.
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

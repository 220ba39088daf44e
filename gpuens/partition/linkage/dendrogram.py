"""The merge list of a linkage, partitions by cutting it, and counters of its work."""

from dataclasses import dataclass

import numpy as np

from gpuens.runtime import checks
from gpuens.runtime import device as devices
from gpuens.runtime.native import cpu


@dataclass
class Work:
    """Counters of label comparisons, searches over all regions, and rounds."""

    comparisons: int = 0
    searches: int = 0
    rounds: int = 0

    def add(self, rounds: int, searches: int, comparisons: int) -> None:
        self.rounds += rounds
        self.searches += searches
        self.comparisons += comparisons


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
        """Return the dendrogram of the given merges, sorted in the order in which a greedy algorithm would merge.

        A merge may be given at any place after the merges of its parts. If the merges form several trees, the trees are
        joined at similarity 0. kernels/cpu/linkage/dendrogram.h tells the order.
        """
        merges = empty_merges(n_leaves - 1)
        cpu.sort_merges(kept, absorbed, similarities, merges)
        return cls(*merges)

    @classmethod
    def from_heights(
        cls, kept: devices.Array, absorbed: devices.Array, heights: devices.Array, waits: devices.Array, n_leaves: int
    ) -> "Dendrogram":
        """Return the dendrogram of merges with known `Heights`, sorted on the device that holds them.

        Each sort is of whole numbers and keeps the order of equal ones.
        """
        xp = devices.namespace(devices.kind_of(kept))
        bits = heights.view(np.int64)  # a negative number's bits: the smallest int64, plus those of its absolute value
        falling = xp.where(bits < 0, bits - np.iinfo(np.int64).min, -bits)
        order = xp.argsort(waits, kind="stable")
        order = order[xp.argsort(falling[order], kind="stable")]
        merges = [devices.to_host(part[order]) for part in (kept, absorbed, heights)]
        if len(kept) < n_leaves - 1:
            roots = np.setdiff1d(np.arange(n_leaves), merges[1])
            joined = np.full(len(roots) - 1, roots[0]), roots[1:], np.zeros(len(roots) - 1)
            merges = [np.concatenate(parts) for parts in zip(merges, joined, strict=True)]
        return cls(*merges)

    @property
    def n_leaves(self) -> int:
        return len(self.kept) + 1

    # --- cuts ---------------------------------------------------------------------------------------------------------

    def cut(self, n_clusters: int) -> np.ndarray:
        """Return the label of each leaf, 0 … n_clusters - 1 in the order of the clusters' smallest leaves."""
        n_clusters = checks.check_n_clusters(n_clusters, self.n_leaves)
        merges = self.n_leaves - n_clusters
        labels = np.empty(self.n_leaves, dtype=np.int64)
        cpu.cut_merges(self.kept[:merges], self.absorbed[:merges], labels)
        return labels

    def n_clusters_at(self, distance: float) -> int:
        """Return the number of clusters after all merges at a distance (1 - similarity) below ``distance``."""
        distance = checks.check_real(distance, "distance")
        return self.n_leaves - int(np.count_nonzero(1.0 - self.similarities < distance))

    def n_large(self, counts: np.ndarray, min_size: int) -> np.ndarray:
        """Return the number of regions of at least ``min_size`` objects after 0, 1, … n - 1 merges, (n,) int64.

        ``counts`` (n,) are the numbers of objects of the leaves. A merge changes the result by at most 1.
        """
        n_large = np.empty(self.n_leaves, dtype=np.int64)
        cpu.count_large(self.kept, self.absorbed, counts, min_size, n_large)
        return n_large

    def lifetimes(self, leaves_made_at: float | None = None, n_large: np.ndarray | None = None) -> np.ndarray:
        """Return the lifetimes of 2, 3, … clusters (Fred & Jain 2005), float64.

        The lifetime of k clusters is the length of the range of distances at which a cut gives k clusters. The range
        begins at the distance of the merge that leaves k clusters, and ends at the distance of the next merge.
        ``leaves_made_at`` is the distance at which the n leaves are complete; None means that leaves are single
        objects, whose lifetime does not count. If ``n_large``, a result of the method `n_large`, is given, only large
        regions count as clusters. Their number can rise and fall, so the range is then that around the cut of
        `coarsest`, between the two nearest changes of the number.
        """
        if n_large is None:
            n_large = np.arange(self.n_leaves, 0, -1)
        ended = coarsest(n_large)[2:]
        changes = np.arange(self.n_leaves)
        changes[1:][n_large[1:] == n_large[:-1]] = 0
        begun = np.maximum.accumulate(changes)[ended]
        distances: np.ndarray = 1.0 - self.similarities
        if leaves_made_at is None:
            begun, ended = begun[begun > 0], ended[begun > 0]
        else:
            leaves_made_at = distances[:1].min(initial=leaves_made_at)
        return distances[ended] - np.append(leaves_made_at or 0.0, distances)[begun]

    # --- formats of SciPy and scikit-learn ----------------------------------------------------------------------------

    def expand(self, membership: np.ndarray, self_similarities: np.ndarray) -> "Dendrogram":
        """Return the dendrogram of all objects, for a dendrogram whose leaves are groups of objects.

        ``membership`` (N,) is the group of each object. The objects of group g merge with each other at
        ``self_similarities[g]``, before the group merges with other groups.
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
        """Return the similarity at which the objects of each leaf merge, not below that of the leaf's first merge."""
        within = self_similarities.copy()
        for side in (self.kept, self.absorbed):  # rounding could otherwise put a merge before the merges of its parts
            np.maximum.at(within, side, self.similarities)
        return within

    def children(self) -> tuple[np.ndarray, np.ndarray]:
        """Return scikit-learn's ``children_`` (n - 1, 2) and the number of leaves of each merge (n - 1,), int64."""
        n_merges = len(self.kept)
        children, n_leaves = np.empty((n_merges, 2), dtype=np.int64), np.empty(n_merges, dtype=np.int64)
        cpu.number_nodes(self.kept, self.absorbed, children, n_leaves)
        return children, n_leaves

    def linkage_matrix(self) -> np.ndarray:
        """Return SciPy's linkage matrix Z (n - 1, 4): two nodes, distance 1 - similarity, and number of leaves.

        SciPy raises an error for negative distances. So if similarities are above 1, the distance is the largest
        similarity minus the similarity.
        """
        children, counts = self.children()
        return np.column_stack([children, self.most - self.similarities, counts])

    @property
    def most(self) -> float:
        """The similarity at distance 0: 1, or the largest similarity if it is above 1 (as ECRMC's can be)."""
        return float(self.similarities.max(initial=1.0))


def coarsest(n_large: np.ndarray) -> np.ndarray:
    """Return, for each number 0, 1, 2, … of large regions, the number of merges of its coarsest cut, int64.

    ``n_large`` is the result of `Dendrogram.n_large`; the result ends at the largest number in ``n_large``. If no cut
    has 0 large regions, the first entry has no meaning.
    """
    merges = np.zeros(int(n_large.max()) + 1, dtype=np.int64)
    merges[n_large] = np.arange(len(n_large))  # if an index occurs several times, the last assignment counts
    return merges


def name_merges(first: np.ndarray, second: np.ndarray, n_leaves: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the kept and absorbed region of each merge, named by their smallest leaves, from nodes within them.

    A node is a leaf, or n_leaves + i for the union of merge i.
    """
    kept, absorbed, _ = empty_merges(len(first))
    cpu.name_merges(first, second, n_leaves, kept, absorbed)
    return kept, absorbed


def empty_merges(n: int) -> cpu.Merges:
    """Return arrays of n merges, not filled: kept and absorbed regions, and heights (similarities)."""
    return cpu.Merges(np.empty(n, dtype=np.int64), np.empty(n, dtype=np.int64), np.empty(n))

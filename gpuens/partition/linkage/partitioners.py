"""Partitioners by linkage: a dendrogram of the rows is cut at a number of clusters or at a distance."""

import numbers
from bisect import bisect_left
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np

from gpuens.labels.rows import Rows
from gpuens.labels.weights import integer_unit
from gpuens.partition.base import ANY, CLUSTERS, OBSERVED, MostSimilar, Partition, Partitioner
from gpuens.partition.linkage.average import average_linkage, drops_clusters, refuse_heavy, refuse_too_many
from gpuens.partition.linkage.complete import check_pair_memory, complete_linkage, linkage_of_pairs
from gpuens.partition.linkage.dendrogram import Dendrogram, Work, coarsest
from gpuens.partition.linkage.single import check_list_memory, single_linkage
from gpuens.runtime import checks
from gpuens.runtime import device as devices
from gpuens.runtime.native import cpu

AUTO = "auto"  # value of min_size that chooses the size from the tree
PARTS_OF_A_CLUSTER = 5  # with "auto", a cluster has at least 1/5 of the mean size of clusters


@dataclass
class CutTree(Partition):
    """A partition from the cut of a dendrogram."""

    dendrogram: Any = None
    self_similarities: Any = None  # (G,), similarity of two different objects of the same row
    min_size: int | float | str | None = None
    unit: int = 1  # weight of a count of 1, in which ``min_size`` is

    def cut(self, n_clusters: int, similarity: Any, rows: Rows) -> tuple[np.ndarray, np.ndarray | None]:
        """Return the labels (G,), int64, of the rows for another number of clusters, and the mask (G,) of the rest.

        The mask is None if no branch is small.
        """
        min_objects = _min_objects(self.min_size, self.dendrogram, rows, n_clusters, self.unit)
        n_merges = coarsest(self.dendrogram.n_large(rows.counts, min_objects))[n_clusters]
        return _cut(self.dendrogram, self.dendrogram.n_leaves - n_merges, min_objects, similarity, rows)

    def expand(self, row_of: np.ndarray) -> Dendrogram:
        """Return the dendrogram of all objects; ``row_of`` (N,) is the row of each object."""
        return self.dendrogram.expand(row_of, self.self_similarities)


@dataclass(frozen=True)
class Linkage(Partitioner):
    """Base of the linkages; a subclass implements ``_link``.

    Parameters
    ----------
    distance_threshold : float, optional
        Merge only below this distance (1 - similarity), instead of down to a number of clusters.
    min_size : int, float or "auto", optional
        The smallest number of objects of a cluster, or its share (0, 1) of all objects. The tree is cut where it has
        `n_clusters` branches of this size; objects in smaller branches (the rest) are assigned to the most similar
        clusters. "auto": a fifth of the mean size of `n_clusters` clusters, or less if the tree has no such cut; with
        ``distance_threshold`` it is 1. Beside weights of objects, the size is a weight, in the unit of the weights.
    """

    distance_threshold: float | None = None
    min_size: int | float | str | None = None
    _fewer_will_do: bool = field(default=False, repr=False)
    _unit: int | float = field(default=1, repr=False)  # weight of a count of 1
    any_sign = True
    real_weights = True

    @property
    def chooses_n_clusters(self) -> bool:
        return self.distance_threshold is not None

    def at_most(self) -> "Linkage":
        return replace(self, _fewer_will_do=True)

    def in_units(self, unit: int | float) -> "Linkage":
        return replace(self, _unit=unit)

    @property
    def _size_unit(self) -> int:
        """The unit of the weights if it is an integer, else 1; a fractional unit excludes an integer ``min_size``."""
        return integer_unit(self._unit) or 1

    def most_clusters(self, n_objects: int) -> int:
        return n_objects // least_objects(self.min_size, n_objects, None, self._size_unit)

    def counts_objects(self, n_clusters: int | None) -> str | None:
        return f"min_size={self.min_size}" if isinstance(self.min_size, numbers.Integral) else None

    def __post_init__(self) -> None:
        if self.min_size is None or (isinstance(self.min_size, str) and self.min_size == AUTO):
            return
        if isinstance(self.min_size, numbers.Integral):
            checks.check_integer(self.min_size, "min_size", minimum=1)
            return
        size = checks.check_number(self.min_size, "min_size", "a whole number of objects, a share below 1, or 'auto'")
        if not 0.0 < size < 1.0:
            raise ValueError(f"min_size must be a whole number of objects or a share between 0 and 1, but is {size}.")

    def check(self, n_clusters: Any, *, any_sign: bool = False) -> None:
        if self.distance_threshold is None:
            return
        if n_clusters is not None:
            raise ValueError(
                "n_clusters and distance_threshold are both given; give one of them and leave the other None."
            )
        checks.check_real(self.distance_threshold, "distance_threshold", above=-np.inf if any_sign else 0.0)

    def refuse_too_many(self, rows: Rows, n_clusters: int, kind: str) -> None:
        min_objects = least_objects(self.min_size, rows.n_objects, n_clusters, self._size_unit)
        if n_clusters * min_objects > rows.n_objects:
            raise ValueError(
                f"min_size={self.min_size}: {n_clusters} cluster(s) of {min_objects * self._unit} objects are more "
                f"than the {rows.n_objects * self._unit} objects; take a smaller min_size, or fewer clusters."
            )

    def __call__(self, similarity: Any, rows: Rows, n_clusters: int | None) -> CutTree:
        work = Work()
        dendrogram = self._link(similarity, rows, work)
        self_similarities = similarity.self_similarities(rows)
        repeated = self_similarities[rows.counts > 1]
        leaves_made_at = (
            1.0 - float(repeated.min()) if len(repeated) else None
        )  # distance at which the last equal rows merge
        min_objects = _min_objects(self.min_size, dendrogram, rows, n_clusters, self._size_unit)
        n_large = dendrogram.n_large(rows.counts, min_objects)
        lifetimes = dendrogram.lifetimes(leaves_made_at, None if self.min_size == AUTO else n_large)
        n_merges = self._n_merges(dendrogram, n_large, n_clusters)
        n_branches = dendrogram.n_leaves - n_merges
        self._warn(similarity, dendrogram, n_clusters, n_branches)
        results = {"dendrogram": dendrogram, "lifetimes": lifetimes, "work": work, "n_branches": n_branches}
        if similarity.needs_common_labels:
            results["n_unobserved_merges"] = _unobserved_merges(dendrogram, rows, n_branches, int(n_large[n_merges]))
        labels, rest = _cut(dendrogram, n_branches, min_objects, similarity, rows)
        return CutTree(
            labels, int(n_large[n_merges]), results=results, rest=rest, dendrogram=dendrogram,
            self_similarities=self_similarities, min_size=self.min_size, unit=self._size_unit,
        )  # fmt: skip

    def _n_merges(self, dendrogram: Dendrogram, n_large: np.ndarray, n_clusters: int | None) -> int:
        """Return the number of merges below the cut; raise ValueError if no cut has enough large clusters."""
        if self.distance_threshold is not None:
            n_merges = dendrogram.n_leaves - dendrogram.n_clusters_at(self.distance_threshold)
            if not n_large[n_merges]:
                raise ValueError(
                    f"min_size={self.min_size}: no cluster is as large at distance_threshold="
                    f"{self.distance_threshold}; take a smaller min_size, or a larger distance."
                )
            return n_merges
        n_clusters = checks.check_n_clusters(n_clusters, dendrogram.n_leaves)
        most_clusters = int(n_large.max())
        if self._fewer_will_do:
            n_clusters = min(n_clusters, most_clusters)
        if most_clusters < n_clusters:
            raise ValueError(
                f"min_size={self.min_size}: no cut of the tree has more than {most_clusters} cluster(s) of this size, "
                f"but n_clusters={n_clusters}; take a smaller min_size, or fewer clusters."
            )
        return int(coarsest(n_large)[n_clusters])

    def _link(self, similarity: Any, rows: Rows, work: Work) -> Dendrogram:
        raise NotImplementedError

    def _warn(self, similarity: Any, dendrogram: Dendrogram, n_clusters: int | None, n_branches: int) -> None:
        """Warn if ties make the cut arbitrary."""


class AverageLinkage(Linkage):
    """Average linkage, exact, without the N × N matrix.

    Parameters are those of `Linkage`.

    >>> import gpuens as ge
    >>> labels = [[0, 0, 0, 1, 1, 1], [0, 0, 1, 1, 2, 2], [0, 0, 0, 0, 1, 1]]
    >>> ge.Consensus(2, similarity=ge.similarity.LWCA(), partitioner="average").fit_predict(labels).tolist()
    [0, 0, 0, 0, 1, 1]
    """

    takes: ClassVar[tuple[str, ...]] = CLUSTERS + OBSERVED

    def refuse_too_many(self, rows: Rows, n_clusters: int, kind: str) -> None:
        super().refuse_too_many(rows, n_clusters, kind)
        refuse_heavy(rows, self._unit)
        if not drops_clusters(kind):  # if clusters are dropped, the memory is checked later, before long work
            refuse_too_many(rows, kind)

    def ask_memory(self, rows: Rows, n_clusters: int, kind: str) -> None:
        super().refuse_too_many(rows, n_clusters, kind)
        refuse_too_many(rows, kind)

    def _link(self, similarity: Any, rows: Rows, work: Work) -> Dendrogram:
        return average_linkage(rows, similarity, work=work)


class SingleLinkage(Linkage):
    """Single linkage, exact, without the N × N matrix.

    Parameters are those of `Linkage`. Unless S is diagonal, the similarities of all pairs of rows are computed about
    log2 G times.
    """

    takes = ANY + OBSERVED

    def refuse_too_many(self, rows: Rows, n_clusters: int, kind: str) -> None:
        super().refuse_too_many(rows, n_clusters, kind)
        if kind == "diagonal":
            check_list_memory(rows)

    def _link(self, similarity: Any, rows: Rows, work: Work) -> Dendrogram:
        return single_linkage(rows, similarity, work=work)


class CompleteLinkage(Linkage):
    """Complete linkage, with all pairs of rows in memory.

    Parameters are those of `Linkage`. Merging usually ends with dozens of clusters of similarity 0; cuts to fewer
    clusters are arbitrary and cause a warning.
    """

    takes = ANY + OBSERVED
    bytes_each_pair = 8

    def refuse_too_many(self, rows: Rows, n_clusters: int, kind: str) -> None:
        super().refuse_too_many(rows, n_clusters, kind)
        check_pair_memory(rows, "complete")

    def _link(self, similarity: Any, rows: Rows, work: Work) -> Dendrogram:
        return complete_linkage(rows, similarity)

    def _warn(self, similarity: Any, dendrogram: Dendrogram, n_clusters: int | None, n_branches: int) -> None:
        n_separate = int(np.count_nonzero(dendrogram.similarities <= 0)) + 1
        if n_clusters is not None and n_branches < n_separate and not similarity.any_sign:
            checks.warn(
                f"n_clusters={n_clusters} merges {n_separate} clusters that have similarity 0 in complete linkage, in "
                "arbitrary order; average linkage does not have this problem."
            )


class EvenLinkage(Linkage):
    """Average linkage in which each row counts once, whatever its number of objects; all pairs of rows are in memory.

    Parameters are those of `Linkage`.
    """

    takes = ANY
    bytes_each_pair = 8

    def refuse_too_many(self, rows: Rows, n_clusters: int, kind: str) -> None:
        super().refuse_too_many(rows, n_clusters, kind)
        check_pair_memory(rows, "average")

    def _link(self, similarity: Any, rows: Rows, work: Work) -> Dendrogram:
        return linkage_of_pairs(rows, similarity, "average")


LINKAGES = {"average": AverageLinkage, "complete": CompleteLinkage, "single": SingleLinkage}


def linkage(name: str, distance_threshold: float | None = None, min_size: int | float | str | None = None) -> Linkage:
    """Return a new linkage of the class with this name."""
    return LINKAGES[checks.check_choice(name, "linkage", LINKAGES)](distance_threshold, min_size)


def least_objects(min_size: Any, n_objects: int, n_clusters: int | None, unit: int = 1) -> int:
    """Return the smallest number of objects, each of weight ``unit``, that ``min_size`` allows a cluster."""
    if min_size is None:
        return 1
    if isinstance(min_size, str):
        return 1 if n_clusters is None else max(1, n_objects // (n_clusters * PARTS_OF_A_CLUSTER))
    if isinstance(min_size, numbers.Integral):
        return -(-int(min_size) // unit)
    size_guess, share = (
        round(float(min_size) * n_objects),
        float(min_size),
    )  # ``size_guess`` may be wrong by 1; corrected below
    return next(size for size in range(max(1, size_guess - 1), size_guess + 3) if size / n_objects >= share)


def _min_objects(min_size: Any, dendrogram: Dendrogram, rows: Rows, n_clusters: int | None, unit: int) -> int:
    """Return the result of `least_objects`; with "auto", lower it until ``n_clusters`` branches have that size."""
    largest = least_objects(min_size, rows.n_objects, n_clusters, unit)
    if n_clusters is None or not isinstance(min_size, str):
        return largest
    sizes = range(2, largest + 1)
    return 1 + bisect_left(sizes, True, key=lambda size: dendrogram.n_large(rows.counts, size).max() < n_clusters)


def _cut(
    dendrogram: Dendrogram, n_branches: int, min_objects: int, similarity: Any, rows: Rows
) -> tuple[np.ndarray, np.ndarray | None]:
    """Return the labels of the rows (G,) at a cut, and a mask of the rows in branches of fewer than ``min_objects``.

    Rows in such small branches get the label of the most similar cluster. If no branch is small, the mask is None.
    """
    branch = dendrogram.cut(n_branches)
    large = np.bincount(branch, weights=rows.counts) >= min_objects
    if large.all():
        return branch, None
    labels, rest = (np.cumsum(large) - 1)[branch], ~large[branch]
    labels[rest] = MostSimilar.of(similarity, rows, labels, rest)(rows.take(np.flatnonzero(rest)))
    return labels, rest


def _unobserved_merges(dendrogram: Dendrogram, rows: Rows, n_branches: int, n_clusters: int) -> int:
    """Return the number of merges of regions that no clustering labels in common; warn if the cut needs such merges."""
    first = int(np.count_nonzero(dendrogram.similarities > 0))  # merges of such regions have similarity 0 and come last
    region = dendrogram.cut(dendrogram.n_leaves - first)
    observed = np.zeros((region.max() + 1, rows.n_clusterings), dtype=bool)
    np.logical_or.at(observed, region, devices.to_host(rows.codes != rows.ensemble.missing_code))
    is_apart = np.empty(len(dendrogram.kept) - first, dtype=bool)
    cpu.find_apart(region[dendrogram.kept[first:]], region[dendrogram.absorbed[first:]], observed, is_apart)
    apart = first + np.flatnonzero(is_apart)
    if n_made := int(np.count_nonzero(apart < dendrogram.n_leaves - n_branches)):
        without = dendrogram.n_leaves - apart[0] if n_clusters == n_branches else "more"
        checks.warn(
            f"{n_clusters} cluster(s) take {n_made} merge(s) of objects that no clustering labels together, in "
            f"arbitrary order; ask for {without} clusters, or add clusterings that label objects of both."
        )
    return len(apart)

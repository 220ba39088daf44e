"""ROCK: greedy merging of the pair of clusters with the best goodness (Guha, Rastogi & Shim, 2000).

    goodness(A, B) = link(A, B) / ((n_A + n_B)^p - n_A^p - n_B^p),   p = 1 + 2 f,  f = (1 - θ) / (1 + θ)

link(A, B) is the sum of the links of all pairs of an object of A and an object of B; n_A is the number of objects of A.
When clusters merge, their links are added, and stay integers. For p < 2, which means θ > 1/3, goodness is not
reducible: a union can fit a third cluster better than either part did. So merging all mutually best pairs in a round
would not give the greedy merges. Instead each cluster stores its best partner among the clusters with a larger number.
When that partner merges, the stored goodness becomes an upper bound. The cluster searches again only when no other
goodness exceeds this bound.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from gpuens.labels.rows import Rows
from gpuens.partition.base import Partition, Partitioner
from gpuens.partition.metis import check_vertex_weights
from gpuens.runtime import checks, progress
from gpuens.runtime import device as devices
from gpuens.runtime.native import cpu

LARGEST_THETA = 0.999999  # largest θ; at θ = 1 every goodness would be infinite
BLOCK = 128  # rows of links computed at a time
TABLE = 2**20  # numbers of objects up to which the powers of all sizes are in a table
SHRINK_AT = 0.75  # the triangle of pairs is compacted when this share of its clusters remains


class Rock(NamedTuple):
    """Labels and merges, where the number of a cluster is the smallest group in it."""

    labels: np.ndarray  # (G,) int64, in the order of the clusters' smallest groups
    kept: np.ndarray  # (G - k,) int64: the clusters that merge, in the order of the merges
    absorbed: np.ndarray  # (G - k,) int64, larger than ``kept``
    goodness: np.ndarray  # (G - k,) float64: goodness of each merge; a later merge can have a larger goodness


def rock(links_of: Callable[[int, int], np.ndarray], sizes: np.ndarray, n_clusters: int, theta: float) -> Rock:
    """Merge G groups of objects until ``n_clusters`` clusters are left; each merge takes the pair of best goodness.

    Between pairs of equal goodness, the total order of `linkage.nearest` decides; without links the smaller union is
    preferred. The merges are those of a plain greedy search over all pairs. It takes 8 bytes per pair of groups and
    about G² steps.

    Parameters
    ----------
    links_of : callable
        ``links_of(start, stop)`` returns the links of groups start … stop - 1 with all groups from ``start`` on, int64
        (stop - start, G - start): sums over pairs of their objects, ≥ 0. The diagonal and what is below it are ignored.
    sizes : ndarray (G,), int64
        Number of objects in each group.
    n_clusters : int
    theta : float
        θ of the neighbourhoods that the links were counted in, from 0 to .999999 (at 1 every goodness is infinite).

    Raises
    ------
    MemoryError
        Before work starts, if the links of all pairs do not fit the memory budget.

    Warns
    -----
    UserWarning
        If more than ``n_clusters`` clusters are left without links between them: then the smallest two merge, so that
        outliers are collected before a large cluster is touched.

    Examples
    --------
    >>> import numpy as np
    >>> from gpuens.partition import rock
    >>> links = np.array([[0, 1, 9, 0], [1, 0, 2, 6], [9, 2, 0, 0], [0, 6, 0, 0]])
    >>> found = rock(lambda start, stop: links[start:stop, start:], np.ones(4, dtype=int), 2, theta=0.5)
    >>> found.labels.tolist(), found.kept.tolist(), found.absorbed.tolist(), found.goodness.round(2).tolist()
    ([0, 1, 0, 1], [0, 1], [2, 3], [7.66, 5.11])
    """
    n = len(sizes)
    checks.check_n_clusters(n_clusters, n)
    theta = check_theta(theta)
    sizes = check_vertex_weights(sizes)
    n_objects = int(sizes.sum())
    check_link_memory(n, n_objects)
    power = 1 + 2 * (1 - theta) / (1 + theta)
    n_powers = n_objects + 1 if n_objects < TABLE else 0
    powers = np.fromiter((math.pow(size, power) for size in range(n_powers)), np.float64, n_powers), power
    links = _collect_links(links_of, n)
    n_merges = n - n_clusters
    kept, absorbed = np.empty(n_merges, dtype=np.int64), np.empty(n_merges, dtype=np.int64)
    goodness = np.empty(n_merges)
    with progress.bar(n_merges, "merges") as bar:
        cpu.merge_by_goodness(links, sizes, powers, SHRINK_AT, kept, absorbed, goodness, bar.update)
    if n_clusters < (n_separate := n - int(np.count_nonzero(goodness > 0))):
        checks.warn(
            f"n_clusters={n_clusters} merges {n_separate} clusters without links between them, the smallest first; ask "
            "for more clusters or take a smaller theta."
        )
    return Rock(_label_groups(kept, absorbed, n), kept, absorbed, goodness)


@dataclass(frozen=True)
class ROCK(Partitioner):
    """ROCK: greedy merging of the pair of clusters with the best goodness; links are sums of similarities.

    Parameters
    ----------
    threshold : float from 0 to .999999, optional
        θ of the goodness; None is the threshold of the similarity's neighbourhoods, or .5 if it has none.
    """

    threshold: float | None = None
    bytes_each_pair = 4

    def __post_init__(self) -> None:
        if self.threshold is not None:
            check_theta(self.threshold)

    def refuse_too_many(self, rows: Rows, n_clusters: int, kind: str) -> None:
        check_link_memory(len(rows), rows.n_objects)

    def __call__(self, similarity: Any, rows: Rows, n_clusters: int) -> Partition:
        threshold = self.threshold
        if threshold is None:
            threshold = min(similarity.results.get("threshold", 0.5), LARGEST_THETA)
        links_of, unit = similarity.links(rows)
        rock_merges = rock(links_of, rows.counts, n_clusters, threshold)
        merges = rock_merges._replace(goodness=rock_merges.goodness * unit)
        return Partition.of_labels(rock_merges.labels, merges=merges, threshold=threshold)


def check_theta(theta: Any) -> float:
    """Return the checked θ of ROCK's goodness; a θ near 1 would make the denominators 0."""
    number = checks.check_number(theta, "theta")
    if not 0.0 <= number <= LARGEST_THETA:
        raise ValueError(
            f"theta must be from 0 to {LARGEST_THETA}, because at 1 every goodness is infinite, but is {number}."
        )
    return number


def check_link_memory(n_rows: int, n_objects: int) -> None:
    """Raise MemoryError, before neighbours are searched, if the links of these rows do not fit in memory."""
    checks.check_memory(
        8 * (n_rows * (n_rows - 1) // 2 + (n_objects if n_objects < TABLE else 0)),
        devices.memory_budget(),
        f"the links of all pairs of the {n_rows:,} distinct label rows",
        "work on a sample, reduction=Sample(…)",
    )


def _label_groups(kept: np.ndarray, absorbed: np.ndarray, n: int) -> np.ndarray:
    cluster = np.arange(n)
    for kept_cluster, absorbed_cluster in zip(kept[::-1].tolist(), absorbed[::-1].tolist(), strict=True):
        cluster[absorbed_cluster] = cluster[kept_cluster]  # final, because merges are read in reverse order
    return np.unique(cluster, return_inverse=True)[1]


# --- the triangle of all pairs ----------------------------------------------------------------------------------------


def _collect_links(links_of: Callable[[int, int], Any], n: int) -> np.ndarray:
    links = np.empty(n * (n - 1) // 2, dtype=np.int64)
    total = 0.0
    for start in progress.bar(range(0, n, BLOCK), "links"):
        stop = min(start + BLOCK, n)
        rows = np.asarray(links_of(start, stop))
        _check_links(rows, (stop - start, n - start))
        total += float(rows.sum(dtype=np.float64))
        if total > 2.0**62:
            raise ValueError("links add up to more than int64 holds; work on a sample, reduction=Sample(…).")
        cpu.copy_links(start, np.ascontiguousarray(rows, dtype=np.int64), n, links)
    return links


def _check_links(rows: np.ndarray, expected: tuple[int, int]) -> None:
    """Raise ValueError if links are not integers ≥ 0 of the expected shape."""
    if rows.shape != expected or rows.dtype.kind not in "iu":
        raise ValueError(
            f"links must be integers of shape {expected}, but have shape {rows.shape} and dtype {rows.dtype}."
        )
    if rows.size and rows.min() < 0:
        raise ValueError(f"links must be at least 0, but {rows.min()} was found.")

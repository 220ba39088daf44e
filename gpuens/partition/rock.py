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
from gpuens.partition.linkage.order import NO_HASH, pair_hash
from gpuens.partition.metis import check_vertex_weights
from gpuens.runtime import checks, progress
from gpuens.runtime import device as devices
from gpuens.runtime.compiled import njit

LARGEST_THETA = 0.999999  # largest θ; at θ = 1 every goodness would be infinite
BLOCK = 128  # rows of links computed at a time
SHRINK_AT = 0.75  # the triangle of pairs is compacted when this share of its clusters remains


class Rock(NamedTuple):
    """Labels and merges, where the number of a cluster is the smallest group in it."""

    labels: np.ndarray  # (G,) int64, in the order of the clusters' smallest groups
    kept: np.ndarray  # (G - k,) int64: the clusters that merge, in the order of the merges
    absorbed: np.ndarray  # (G - k,) int64, larger than ``kept``
    goodness: np.ndarray  # (G - k,) float64: goodness of each merge; a later merge can have a larger goodness


def rock(links_of: Callable[[int, int], np.ndarray], sizes: np.ndarray, n_clusters: int, theta: float) -> Rock:
    """Merge G groups of objects until ``n_clusters`` clusters are left; each merge takes the pair of best goodness.

    `linkage.order` decides between pairs of equal goodness; without links the smaller union is preferred. The merges
    are those of a plain greedy search over all pairs. It takes 8 bytes per pair of groups and about G² steps.

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
    links_fit(n, n_objects)
    power = 1 + 2 * (1 - theta) / (1 + theta)
    powers = np.fromiter((math.pow(size, power) for size in range(n_objects + 1)), np.float64, n_objects + 1)
    names = np.arange(n)
    links = _all_links(links_of, n)
    found = _Partners(np.full(n, -1), np.full(n, -1.0), np.full(n, NO_HASH), np.zeros(n, dtype=bool))
    if n > n_clusters:
        devices.over_ranges(lambda a, b: _search(a, b, links, names, sizes, powers, found), n, grain=64)
    merged = []
    with progress.bar(n - n_clusters, "merges") as bar:
        while len(names) > n_clusters:
            target = max(n_clusters, int(SHRINK_AT * len(names)))
            merged.append(_merge(links, names, sizes, powers, found, len(names) - target))
            bar.update(len(names) - target)
            left = np.flatnonzero(np.isin(names, merged[-1][1], invert=True))
            _close_gaps(links, len(names), left)
            found = _those_left(found, left)
            names, sizes = names[left], sizes[left]
    kept, absorbed, goodness = (np.concatenate(parts) for parts in zip(*merged, strict=True)) if merged else _none()
    if n_clusters < (n_separate := n - int(np.count_nonzero(goodness > 0))):
        checks.warn(
            f"n_clusters={n_clusters} merges {n_separate} clusters without links between them, the smallest first; ask "
            "for more clusters or take a smaller theta."
        )
    return Rock(_labels(kept, absorbed, n), kept, absorbed, goodness)


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
        links_fit(len(rows), rows.n_objects)

    def __call__(self, similarity: Any, rows: Rows, n_clusters: int) -> Partition:
        threshold = self.threshold
        if threshold is None:
            threshold = min(similarity.found.get("threshold", 0.5), LARGEST_THETA)
        links_of, unit = similarity.links(rows)
        found = rock(links_of, rows.counts, n_clusters, threshold)
        merges = found._replace(goodness=found.goodness * unit)
        return Partition.of_labels(found.labels, merges=merges, threshold=threshold)


def check_theta(theta: Any) -> float:
    """Return the checked θ of ROCK's goodness; a θ near 1 would make the denominators 0."""
    found = checks.check_number(theta, "theta")
    if not 0.0 <= found <= LARGEST_THETA:
        raise ValueError(
            f"theta must be from 0 to {LARGEST_THETA}, because at 1 every goodness is infinite, but is {found}."
        )
    return found


def links_fit(n_rows: int, n_objects: int) -> None:
    """Raise MemoryError, before neighbours are searched, if the links of these rows do not fit in memory."""
    checks.check_memory(
        8 * (n_rows * (n_rows - 1) // 2 + n_objects),
        devices.memory_budget(),
        f"the links of all pairs of the {n_rows} distinct label rows",
        "work on a sample, reduction=Sample(…)",
    )


def _none() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64), np.empty(0)


def _labels(kept: np.ndarray, absorbed: np.ndarray, n: int) -> np.ndarray:
    cluster = np.arange(n)
    for into, gone in zip(kept[::-1].tolist(), absorbed[::-1].tolist(), strict=True):
        cluster[gone] = cluster[into]  # final, because merges are read in reverse order
    return np.unique(cluster, return_inverse=True)[1]


# --- the triangle of all pairs ----------------------------------------------------------------------------------------


@njit(cache=True, nogil=True, inline="always")
def _row(i, n):
    """Return the position of pair (i, j) minus j, for j > i, in the row-wise upper triangle of n clusters."""
    return i * (2 * n - i - 1) // 2 - i - 1


def _all_links(links_of: Callable[[int, int], Any], n: int) -> np.ndarray:
    links = np.empty(n * (n - 1) // 2, dtype=np.int64)
    total = 0.0
    for start in progress.bar(range(0, n, BLOCK), "links"):
        stop = min(start + BLOCK, n)
        rows = np.asarray(links_of(start, stop))
        _check_links(rows, (stop - start, n - start))
        total += float(rows.sum(dtype=np.float64))
        if total > 2.0**62:
            raise ValueError("links add up to more than int64 holds; work on a sample, reduction=Sample(…).")
        _copy_rows(start, rows, n, links)
    return links


def _check_links(rows: np.ndarray, expected: tuple[int, int]) -> None:
    """Raise ValueError if links are not integers ≥ 0 of the expected shape."""
    if rows.shape != expected or rows.dtype.kind not in "iu":
        raise ValueError(
            f"links must be integers of shape {expected}, but have shape {rows.shape} and dtype {rows.dtype}."
        )
    if rows.size and rows.min() < 0:
        raise ValueError(f"links must be at least 0, but {rows.min()} was found.")


@njit(cache=True, nogil=True)
def _copy_rows(start, rows, n, links):
    for r in range(rows.shape[0]):
        row = _row(start + r, n) + start
        for j in range(r + 1, rows.shape[1]):
            links[row + j] = rows[r, j]


@njit(cache=True, nogil=True)
def _close_gaps(links, n, left):
    """Move the pairs of the remaining clusters to the front, in place; no pair is overwritten before it has moved."""
    filled = 0
    for a in range(len(left)):
        row = _row(left[a], n)
        for b in range(a + 1, len(left)):
            links[filled] = links[row + left[b]]
            filled += 1


# --- merging ----------------------------------------------------------------------------------------------------------


class _Partners(NamedTuple):
    """Best partner of each cluster among later clusters; stale entries have the goodness of an earlier partner.

    The goodness is -1 if the cluster has merged, or if no later cluster is left.
    """

    partner: np.ndarray  # (n,) int64
    best: np.ndarray  # (n,) float64
    ties: np.ndarray  # (n,) uint64
    stale: np.ndarray  # (n,) bool


def _those_left(found: _Partners, left: np.ndarray) -> _Partners:
    place = np.full(len(found.partner) + 1, -1)  # partner -1 (no partner) reads the last entry
    place[left] = np.arange(len(left))
    return _Partners(place[found.partner[left]], found.best[left], found.ties[left], found.stale[left])


@njit(cache=True, nogil=True)
def _search(start, stop, links, names, sizes, powers, found):
    """Find the best partners of clusters start … stop - 1; no cluster has merged yet."""
    alive, values = np.ones(len(names), dtype=np.bool_), np.empty(len(names))
    for i in range(start, stop):
        _find_partner(i, links, names, sizes, powers, alive, values, found)


@njit(cache=True, nogil=True)
def _merge(links, names, sizes, powers, found, n_merges):
    """Do the next ``n_merges`` merges; a union replaces the part with the smaller index in all arrays."""
    n = len(names)
    alive, values, of_b = np.ones(n, dtype=np.bool_), np.empty(n), np.empty(n, dtype=np.int64)
    partner, best, ties, stale = found
    whole = best.view(np.int64)
    kept = np.empty(n_merges, dtype=np.int64)
    absorbed = np.empty(n_merges, dtype=np.int64)
    goodness = np.empty(n_merges)
    for m in range(n_merges):
        while True:
            largest = _largest(whole)
            a = -1
            for i in range(n):
                if whole[i] == largest and (a < 0 or ties[i] < ties[a]):
                    a = i
            if not stale[a]:
                break
            _find_partner(a, links, names, sizes, powers, alive, values, found)
        b = partner[a]
        kept[m], absorbed[m], goodness[m] = names[a], names[b], best[a]
        alive[b], best[b] = False, -1.0
        sizes[a] += sizes[b]
        row_a, row_b = _row(a, n), _row(b, n)
        # copied without branches, even for clusters that have merged, because these reads are far apart in memory
        for c in range(b):
            of_b[c] = links[_row(c, n) + b]
        _join(a, of_b, links, sizes, powers, values)
        for c in range(a):
            value = values[c]
            if alive[c] and value >= best[c]:
                tie = _tie(c, a, value, names, sizes)
                if value > best[c] or tie <= ties[c]:
                    partner[c], best[c], ties[c], stale[c] = a, value, tie, False
                    continue
            stale[c] |= partner[c] == a or partner[c] == b
        for c in range(a + 1, b):
            links[row_a + c] += of_b[c]
            stale[c] |= partner[c] == b
        for c in range(b + 1, n):
            links[row_a + c] += links[row_b + c]
        _find_partner(a, links, names, sizes, powers, alive, values, found)
    return kept, absorbed, goodness


@njit(cache=True, nogil=True, makes_arrays=False, error_model="numpy")  # nothing is divided by 0
def _join(a, of_b, links, sizes, powers, values):
    """Add the links of b with clusters before a to those of a; write the goodness of a with them to ``values``."""
    n, earlier = len(sizes), np.uint64(a)
    for c in range(a):
        row = _row(c, n)
        links[row + a] += of_b[c]
        of_b[c] = links[row + a]
    for c in range(earlier):
        values[c] = _goodness(of_b[c], sizes[c], sizes[a], powers)


@njit(cache=True, nogil=True, makes_arrays=False, error_model="numpy")  # nothing is divided by 0
def _find_partner(i, links, names, sizes, powers, alive, values, found):
    """Write cluster i's best later partner (-1 if none is left), its goodness and tie-break; overwrite ``values``."""
    later = np.uint64(len(names) - i - 1)
    row = _row(i, len(names)) + i + 1
    of_links, of_sizes, others = links[row : row + later], sizes[i + 1 :], alive[i + 1 :]
    for j in range(later):
        value = _goodness(of_links[j], sizes[i], of_sizes[j], powers)
        values[j] = value if others[j] else -1.0
    whole = values[:later].view(np.int64)
    largest = _largest(whole)
    partner, best, best_tie = -1, -1.0, NO_HASH
    for j in range(later):
        if whole[j] == largest:
            tie = _tie(i, i + 1 + j, values[j], names, sizes)
            if partner < 0 or tie < best_tie:
                partner, best, best_tie = i + 1 + j, values[j], tie
    found.partner[i], found.best[i], found.ties[i], found.stale[i] = partner, best, best_tie, False


@njit(cache=True, nogil=True, makes_arrays=False)
def _largest(whole):
    """Return the largest of integers, or -1 for none, in a loop that compilers vectorise.

    The bits of floats ≥ 0, read as integers, have the order of the floats.
    """
    most = np.int64(-1)
    for i in range(len(whole)):
        most = max(most, whole[i])
    return most


@njit(cache=True, nogil=True, inline="always")
def _tie(i, j, value, names, sizes):
    """Return a pair's tie-break among pairs of equal goodness: a hash, or first the union's size if it has no links."""
    tie = pair_hash(names[i], names[j])
    if value > 0.0:
        return tie
    return (np.uint64(sizes[i] + sizes[j]) << np.uint64(32)) | (tie >> np.uint64(32))


@njit(cache=True, nogil=True, inline="always")
def _goodness(link, size, other_size, powers):
    # the powers of the parts are added first, so that (A, B) and (B, A) give the same number
    return link / (powers[size + other_size] - (powers[size] + powers[other_size]))

"""Domains: classes of objects that tend to have neighbours of their own class, though they need not be connected.

walk ─▶ regions ─▶ a method on their mean shares ─▶ the class of each region for its objects ─▶ refinement
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from gpuens.labels.graph import Graph
from gpuens.labels.rows import Rows
from gpuens.neighbors.refinement import Refinement, refine
from gpuens.neighbors.regions import regions_of, rows_of_regions
from gpuens.neighbors.shares import ShareRows
from gpuens.neighbors.walk import ONE, walk, walked_blocks
from gpuens.partition.base import Partition
from gpuens.partition.label_kmeans import Nearest
from gpuens.partition.mixture import FLOOR
from gpuens.partition.utilities import Utility
from gpuens.reduction import Reduction
from gpuens.runtime import checks
from gpuens.runtime import device as devices
from gpuens.runtime.exponentials import logarithms

SAMPLE = 20_000  # number of objects that give the classes, if there are more and no regions
KEPT_BYTES = 2**29  # shares of all objects of at most this size are kept; larger ones are computed twice
ROWS_AT_ONCE = 2**14  # rows of a product
COHERENT = 0.25  # smallest coherence of a class that may be lost; a line of cells with 6 neighbours has .33
THIN = 0.1  # largest share of the objects of a thin class that have all neighbours in it; noise is thin, not coherent
KEPT = 0.2  # largest Jaccard index of a lost class and the most similar domain


class Domains(NamedTuple):
    """The domains of N objects."""

    labels: np.ndarray  # (N,), int64, each of 0 … k - 1 in use
    smoothed: np.ndarray  # (N,), int64: the labels before the refinement; classes that it empties are k, k + 1, …
    regions: np.ndarray | None  # (N,), int64
    refinement: Refinement | None  # with the memberships (N, k) of the k classes in use


def find_domains(
    groups: Reduction,
    graph: Graph,
    partition: Callable[[ShareRows], Partition],
    *,
    steps: int,
    n_regions: int | None,
    refined: bool,
) -> Domains:
    """Return the domains of the objects of core groups.

    Parameters
    ----------
    groups : Reduction
        The core groups of N objects.
    graph : Graph
        The neighbours of the N objects.
    partition : callable
        A method: rows of shares → their partition.
    steps : int
        The steps of the walk.
    n_regions : int or None
        The number of regions; None: the method takes the single objects.
    refined : bool
        Whether a Potts prior refines the classes.
    """
    rows, row_of = groups.rows, devices.to_host(groups.row_of)
    objects = Rows.of(rows.ensemble.take(groups.row_of), np.ones(len(row_of), dtype=np.int64), rows.device)
    regions = None
    if n_regions is None:
        smoothed, classes = _classes_of_objects(objects, graph, partition, steps)
    else:
        shares = walk(objects, graph, steps)
        regions = regions_of(shares, graph, n_regions)
        classes = partition(rows_of_regions(shares, regions, rows.offsets))
        smoothed = devices.to_host(classes.labels)[regions]
        del shares
    if not refined:
        return Domains(smoothed, smoothed, regions, None)
    refinement = refine(rows, row_of, graph, smoothed, classes.n_clusters)
    in_use = np.unique(refinement.labels)
    checks.warn_of_fewer(len(in_use), classes.n_clusters)
    order = np.concatenate([in_use, np.setdiff1d(np.arange(classes.n_clusters), in_use)])  # empty classes come last
    number = np.argsort(order)
    membership = refinement.membership[:, in_use]
    membership /= membership.sum(axis=1, keepdims=True)
    return Domains(number[refinement.labels], number[smoothed], regions, refinement._replace(membership=membership))


def _classes_of_objects(
    objects: Rows, graph: Graph, partition: Callable[[ShareRows], Partition], steps: int
) -> tuple[np.ndarray, Partition]:
    """Return the class (N,) of each object, and the partition of the objects, or of a sample of them.

    Above 20,000 objects, a sample of so many gives the classes, and all objects go to the class with the nearest mean
    shares; so the shares of all objects are never in memory together.
    """
    n = objects.n_rows
    if n <= SAMPLE:
        classes = partition(ShareRows.of_objects(walk(objects, graph, steps), objects.offsets))
        return devices.to_host(classes.labels), classes
    sample = np.sort(np.random.default_rng(0).choice(n, SAMPLE, replace=False))
    blocks: Any = partial(walked_blocks, objects, graph, steps)
    if 2 * n * objects.n_clusters <= KEPT_BYTES:
        block_list = list(blocks())
        blocks = partial(iter, block_list)
    rows = ShareRows.of_dense(np.hstack([block[sample] for _, block in blocks()]), objects.offsets)
    classes = partition(rows)
    means = rows.label_histograms(devices.to_host(classes.labels), classes.n_clusters)
    means /= np.bincount(devices.to_host(classes.labels))
    table, distances = (-2 / ONE * means).astype(np.float32), np.empty((n, classes.n_clusters), dtype=np.float32)
    distances[:] = (means * means).sum(axis=0)
    for first, block in blocks():
        table_part = table[first : first + block.shape[1]]

        def add(start: int, stop: int, block: np.ndarray = block, table_part: np.ndarray = table_part) -> None:
            distances[start:stop] += block[start:stop].astype(np.float32) @ table_part

        with devices.library_threads(1):
            devices.over_ranges(add, n, grain=ROWS_AT_ONCE)
    return distances.argmin(axis=1), classes


def groups_with_labels(groups: Reduction, labels: np.ndarray, k: int) -> tuple[Reduction, np.ndarray]:
    """Return a reduction to the distinct pairs (label row, label in ``labels`` (N,)), and the label of each pair."""
    row_of = devices.to_host(groups.row_of)
    pairs, pair_of, counts = np.unique(row_of * k + labels, return_inverse=True, return_counts=True)
    rows = groups.rows.take(pairs // k, counts)
    return Reduction(rows, groups.rows.xp.asarray(pair_of), rows_decide=False), pairs % k


def profile_rule(rows: Rows, labels: np.ndarray, k: int) -> Nearest:
    """Return the rule that gives a row its likeliest class, by the distributions of the labels in the k classes.

    The labels of the clusterings are independent in each class (`gpuens.partition.mixture`); neighbours have no part.
    """
    members = devices.to_host(rows.label_histograms(rows.xp.asarray(labels), k)).astype(np.float64)
    sizes = np.bincount(labels, weights=rows.counts, minlength=k)
    table = logarithms(np.maximum(Utility.of(rows).distributions(members), FLOOR))
    return Nearest(-table, -logarithms(np.maximum(sizes / sizes.sum(), FLOOR)), np.arange(k))


def warn_of_lost_classes(labels: np.ndarray, domains: np.ndarray, graph: Graph) -> None:
    """Warn of thin coherent classes of ``labels`` (N,), a consensus without neighbours, that are not among ``domains``.

    With s the share of the neighbours of a class's objects that are in the class, and p that of all objects, the class
    is coherent if (s - p) / (1 - p) is large, and thin if hardly any of its objects has neighbours in it alone.
    """
    n, k = int(labels.max()) + 1, int(domains.max()) + 1
    of_tails, sizes = labels[graph.tails], np.bincount(labels, minlength=n)
    is_same = of_tails == labels[graph.heads]
    n_same = np.bincount(graph.tails, is_same, len(labels))
    thin = np.bincount(labels, (n_same == graph.degrees) & (n_same > 0), n) <= THIN * sizes
    around = np.maximum(np.bincount(of_tails, graph.weights, n), np.finfo(float).tiny)
    inside = np.bincount(of_tails, graph.weights * is_same, n) / around
    shares = sizes / len(labels)
    coherent = inside - shares >= COHERENT * (1 - shares)
    common = np.bincount(labels * k + domains, minlength=n * k).reshape(n, k)
    either = common.sum(axis=1, keepdims=True) + common.sum(axis=0) - common
    lost = np.flatnonzero(thin & coherent & ((common / either).max(axis=1) < KEPT))
    if len(lost):
        of_lost = ", ".join(f"{size:,}" for size in np.sort(sizes[lost])[::-1])
        checks.warn(
            f"labels alone give {checks.counted(len(lost), 'thin cluster')} ({of_lost} objects) that no domain "
            "resembles: clusters that are one or two objects wide are lost among their neighbours; compare steps=1, or "
            "the method without graph."
        )

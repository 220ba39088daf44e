"""Exact average linkage without an N × N matrix, by rounds of reciprocal nearest neighbours.

The similarity S of clusters is diag(w) / M or any symmetric matrix, or `Observed`. On the CPU all rounds are one call
(kernels/cpu/linkage/rounds.h explains them), on a GPU a loop of launches (`rounds`). Unless weights are whole numbers,
rows that differ only in clusters of a single row are one leaf (`singletons`). For few rows, a matrix of all pairs of
rows gives the same merges and the same bits (`few_rows`).

With S = diag(w) / M, a region whose similarity with every other region is 0 retires. At the end, the retired regions
are joined at similarity 0, in the order of their ids. With any other S no region retires, even if similarities are
negative: the rounds end when one region is left.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from math import isqrt
from typing import Any

import numpy as np

from gpuens.labels.rows import Rows
from gpuens.partition.linkage import all_pairs, conduct, few_rows, rounds
from gpuens.partition.linkage.conduct import Conduct, RowIndex
from gpuens.partition.linkage.dendrogram import Dendrogram, Work, empty_merges
from gpuens.partition.linkage.nearest import Shortlists, nearest_index, nearest_lists, share_compared
from gpuens.partition.linkage.regions import bounding_weights
from gpuens.partition.linkage.singletons import equal_leaves, without_singletons
from gpuens.runtime import checks, progress
from gpuens.runtime import device as devices
from gpuens.runtime.native import cpu

SMALLEST_WEIGHT = 1e-150  # smallest weight whose products do not become 0
LARGEST_WEIGHT = 1e150  # largest weight whose products do not overflow


def average_linkage(rows: Rows, similarity: Any, *, work: Work | None = None) -> Dendrogram:
    """Return the average-linkage dendrogram of distinct label rows.

    Parameters
    ----------
    rows : Rows
        Distinct label rows in lexicographic order.
    similarity : Similarity
        A `Diagonal` of weights from 1e-150 to 1e150 (int64 ones for exact integer arithmetic); `Blocks` or a `Full` S
        of any sign; or an `Observed` co-association, where the similarity of two regions is
        Σ_c w_c n_A[c] n_B[c] / Σ_m λ_m p_A[m] p_B[m] with p_A[m] the number of objects of A that m labels; 0 if no
        clustering labels both objects of any pair.
    work : Work, optional
        Counters to which the work is added.

    Raises
    ------
    ValueError
        For weights out of that range, and for so many objects, or so large weights of them, that 64-bit integers cannot
        count their pairs.
    MemoryError
        Before work starts, if the lists and histograms of all rows do not fit the memory budget.
    """
    refuse_heavy(rows)
    similarity = similarity.simplest(rows)
    link = {"diagonal": _link_diagonal, "observed": _link_observed}.get(similarity.kind, _link_general)
    return link(rows, similarity, Work() if work is None else work)


def constrained_merges(rows: Rows, similarity: Any, links: cpu.Links, work: Work) -> cpu.Merges:
    """Return the G - 1 merges of average linkage with links, on the CPU.

    ``similarity`` is a `Diagonal`. Rows of a must-link group merge first, at similarity ∞. The last merges join the
    clusters that cannot-links keep apart, at similarity -∞.
    """
    refuse_heavy(rows)
    rows, similarity = Rows.of(rows.ensemble, rows.counts, "cpu"), similarity.simplest(rows)
    if len(rows) == 1:
        return empty_merges(0)
    _refuse_extreme(similarity.weights)
    rows, similarity = without_singletons(rows, similarity)
    refuse_too_many(rows, "diagonal")
    return _merges_by_lists(rows, similarity.weights, work, links)


def refuse_heavy(rows: Rows, unit: int | float = 1) -> None:
    """Refuse rows of so many objects, of weight ``unit`` each, that int64 cannot count the labels that they share."""
    # counts of histograms are int32, and two regions have at most N² // 4 common labels in each clustering, below 2⁶³
    largest = min(2**31 - 1, isqrt(4 * ((2**63 - 1) // rows.n_clusterings) + 3))
    subject = f"average linkage of {rows.n_clusterings} clusterings"
    checks.refuse_total(rows.n_objects * unit, largest * unit, subject)


def drops_clusters(kind: str) -> bool:
    """Return whether clusters of a single row are left out before the memory is computed, for this kind of S."""
    return kind in ("diagonal", "observed")


def bytes_needed(rows: Rows, kind: str) -> int:
    """Return the largest number of bytes that the linkage of these rows takes, for this kind of S."""
    needed = conduct.bytes_of_lists(rows)
    if not drops_clusters(kind):
        return needed + all_pairs.bytes_needed(len(rows), rows.n_clusters)
    return needed + (conduct.bytes_of_tiles(rows.codes, rows.n_clusters) if rows.device == "cpu" else 0)


def refuse_too_many(rows: Rows, kind: str) -> None:
    """Raise MemoryError if the linkage of these rows does not fit the memory budget."""
    instead = "or use a method of the transfer cut (lwgp, hbgf)"
    checks.check_memory(
        bytes_needed(rows, kind),
        devices.memory_budget(rows.device),
        f"average linkage of {len(rows):,} distinct rows",
        f"reduce the rows first, {instead if drops_clusters(kind) else 'reduction=CATree(…) or Sample(…)'}",
    )


def _refuse_extreme(weights: np.ndarray) -> None:
    """Raise ValueError for cluster weights with which similarities or their bounds would overflow or become 0."""
    smallest, largest = weights.min(), weights.max()
    if not SMALLEST_WEIGHT <= smallest <= largest <= LARGEST_WEIGHT:
        extreme = largest if smallest >= SMALLEST_WEIGHT else smallest
        raise ValueError(
            f"weights differ too much for average linkage: that of a cluster would be {extreme:.3g}, and must be from "
            f"{SMALLEST_WEIGHT} to {LARGEST_WEIGHT}; leave out the clusterings that are to count so little."
        )


@contextmanager
def _report_progress(total: int, description: str) -> Iterator[Callable[[int], None]]:
    """Show the progress of a call that reports how much of ``total`` is done."""
    with progress.bar(total=total, description=description) as bar:
        n_reported = 0

        def report(n: int) -> None:
            nonlocal n_reported
            bar.update(n - n_reported)
            n_reported = n

        yield report


# --- kinds of similarities --------------------------------------------------------------------------------------------


def _link_diagonal(rows: Rows, similarity: Any, work: Work) -> Dendrogram:
    _refuse_extreme(similarity.weights)
    leaves = None if similarity.integral else equal_leaves(rows, similarity.weights)
    if leaves is not None:
        rows = rows.take(leaves.first, leaves.sum(rows.counts))
    if few_rows.suits(rows, similarity.integral):
        dendrogram = few_rows.link(rows, similarity, work)
    else:
        rows, similarity = without_singletons(rows, similarity)
        refuse_too_many(rows, "diagonal")
        link = _link_by_lists if rows.device == "cpu" else rounds.link_diagonal
        dendrogram = link(rows, similarity.weights, work)
    return dendrogram if leaves is None else dendrogram.expand(leaves.leaf_of, leaves.similarities)


def _link_by_lists(rows: Rows, weights: np.ndarray, work: Work) -> Dendrogram:
    return Dendrogram(*_merges_by_lists(rows, weights, work))


def _merges_by_lists(rows: Rows, weights: np.ndarray, work: Work, links: cpu.Links | None = None) -> cpu.Merges:
    n_rows, n_listed = len(rows), conduct.n_listed(rows)
    index = nearest_index(rows.codes, rows.offsets, weights, rows.counts, device="cpu")
    room = conduct.room_for_table(rows, weights) if links is None else 0
    if conduct.pays_at_once(index, room) and share_compared(index, Shortlists.empty(n_rows, n_listed)) > 0.5:
        lists = Shortlists.empty(n_rows, 0)
    else:
        lists = nearest_lists(index, n_listed)
    work.comparisons += index.comparisons
    columns, merges = np.ascontiguousarray(rows.codes.T), empty_merges(n_rows - 1)
    diagonal = cpu.Diagonal(weights, *bounding_weights(weights), rows.n_clusterings)
    setting = columns, RowIndex.of(index), diagonal, lists, Conduct.of(index, room)
    with _report_progress(n_rows - 1, "average linkage") as report:
        if links is None:
            work.add(*cpu.link_diagonal(*setting, merges, report))
        else:
            work.add(*cpu.link_constrained(*setting, links, merges, report))
    return merges


def _link_general(rows: Rows, similarity: Any, work: Work) -> Dendrogram:
    refuse_too_many(rows, similarity.kind)
    matrix = similarity.full()
    affinities = all_pairs.affinities_of(rows.codes, rows.offsets, matrix, rows.counts, device=rows.device)
    margin = all_pairs.margin(matrix, len(rows), rows.n_clusterings)
    if rows.device != "cpu":
        return rounds.link_general(rows, affinities, margin, work)
    return _link_all_pairs(cpu.link_general, rows, affinities, margin, work)


def _link_observed(rows: Rows, similarity: Any, work: Work) -> Dendrogram:
    _refuse_extreme(similarity.weights)
    labelled = rows.codes != rows.ensemble.missing_code
    rows, weights = all_pairs.with_labelled(*without_singletons(rows, similarity), labelled)
    refuse_too_many(rows, "observed")
    if rows.device != "cpu":
        return rounds.link_observed(rows, weights, work)
    bounding = all_pairs.bounding_weights_of_ratio(weights, rows.n_clusterings // 2)
    return _link_all_pairs(cpu.link_observed, rows, weights, bounding, work)


def _link_all_pairs(link: Any, rows: Rows, weights: np.ndarray, bounds: Any, work: Work) -> Dendrogram:
    n_rows, merges = len(rows), empty_merges(len(rows) - 1)
    label_rows = cpu.LabelRows(np.ascontiguousarray(rows.codes.T), rows.offsets, rows.counts)
    with (
        _report_progress(n_rows, "nearest regions") as searched,
        _report_progress(n_rows - 1, "average linkage") as report,
    ):
        work.add(*link(label_rows, weights, bounds, conduct.n_listed(rows), merges, searched, report))
    return Dendrogram(*merges)

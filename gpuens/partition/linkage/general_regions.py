"""Regions under any symmetric S: their affinities to all clusters, and searches over all pairs.

The average similarity of regions A and R is p_Aᵀ S p_R. With the affinities V_R = M S n_R, stored for every region and
added when two merge, it is Σ_c n_A[c] V_R[c] / (|A| |R| M): one look-up per entry of A. The look-ups are made for the
region with fewer entries (of equally many for the one with the smaller id), so that both directions give the same bits.

A search visits each region once for eight queries, whose affinities are stored side by side, so that one entry of a
region meets eight adjacent numbers. Regions near the last entry of a list are scored again in the one exact order.
"""

from typing import Any

import numpy as np

from gpuens import device as devices
from gpuens import kernels, progress
from gpuens.compiled import njit
from gpuens.incidence import row_lookups
from gpuens.partition.linkage.nearest import Lists
from gpuens.partition.linkage.order import NO_HASH, insert, pair_hash
from gpuens.partition.linkage.regions import Regions, similarity_of

LANES = 8  # queries that are searched for together


def bytes_needed(n_rows: int, n_clusters: int) -> int:
    """Return what the affinities of all rows take, in bytes."""
    return 8 * n_clusters * (n_rows + n_clusters)


def affinities_of(codes: Any, offsets: np.ndarray, similarity: Any, sizes: Any, *, device: str = "cpu") -> Any:
    """Return V = M S n of each row as a region, (G, N_c) float64; ``similarity`` is M S."""
    affinities = row_lookups(codes, offsets, similarity, device=device)
    affinities *= sizes[:, None]
    return affinities


def margin(similarity: np.ndarray, n_rows: int, n_clusterings: int) -> float:
    """Return the rounding tolerance of an average similarity after any number of merges."""
    largest = float(abs(similarity).max()) * n_clusterings
    return 4 * float(np.finfo(np.float64).eps) * (len(similarity) + n_rows + 8) * largest


@kernels.primitive
def merge_affinities(affinities: np.ndarray, kept: np.ndarray, absorbed: np.ndarray, n_pairs: np.ndarray) -> None:
    """Add the affinities of the first ``n_pairs`` (1,) of ``absorbed`` regions to those of the ``kept`` ones."""
    devices.over_ranges(lambda a, b: _add(affinities, kept[a:b], absorbed[a:b]), int(n_pairs[0]), grain=64)


@merge_affinities.kernel
def _(affinities: Any, kept: Any, absorbed: Any, n_pairs: Any, *, device: str) -> None:
    kernels.launch(
        "merge_affinities", kernels.blocks(len(kept) * affinities.shape[1], 256), 256,
        (kept, absorbed, n_pairs, affinities.shape[1], affinities), device=device, COUNT="i32",
    )  # fmt: skip


@njit(cache=True, nogil=True)
def _add(affinities, kept, absorbed):
    for p in range(len(kept)):
        for c in range(affinities.shape[1]):
            affinities[kept[p], c] += affinities[absorbed[p], c]


@kernels.primitive
def search_general(
    queries: np.ndarray, active: np.ndarray, regions: Regions, affinities: np.ndarray, n_clusterings: int,
    margin: float, lists: Lists, compared: np.ndarray,
) -> None:  # fmt: skip
    """List anew the nearest of all ``active`` regions for each of ``queries``; add to ``compared`` (1,) uint64.

    A list that is not full holds all others, and its bound is minus infinity. ``margin``: see the function.
    """
    at_once = max(4096, -(-len(queries) // 100))
    with progress.bar(total=len(queries), description="nearest regions") as shown:
        for first in range(0, len(queries), at_once):
            some = queries[first : first + at_once]

            def work(start: int, stop: int, some: np.ndarray = some) -> int:
                return int(_search(start, stop, some, active, regions, affinities, n_clusterings, margin, *lists))

            compared += np.uint64(sum(devices.over_ranges(work, len(some), grain=LANES)))
            shown.update(len(some))


@njit(cache=True, nogil=True)
def _search(start, stop, queries, active, regions, affinities, n_clusterings, margin, ids, similarities, bound, hashes):
    n_clusters, n_listed = affinities.shape[1], ids.shape[1]
    table = np.zeros((n_clusters, LANES))
    score = np.empty(LANES)
    floor = np.empty(LANES)  # the score that a region of one object needs to be listed
    listed = np.empty(LANES, dtype=np.int64)
    ties = np.empty((LANES, n_listed), dtype=np.uint64)
    compared = 0
    for first in range(start, stop, LANES):
        width = min(LANES, stop - first)
        for j in range(width):
            a = queries[first + j]
            for c in range(n_clusters):
                table[c, j] = affinities[a, c]
            for s in range(n_listed):
                ids[a, s] = -1
                similarities[a, s] = 0.0
            listed[j], floor[j] = 0, -np.inf
        for r in active:
            for j in range(LANES):
                score[j] = 0.0
            for e in range(regions.start[r], regions.start[r] + regions.length[r]):
                count = np.float64(regions.counts[e])
                row = table[regions.clusters[e]]
                for j in range(LANES):
                    score[j] += count * row[j]
            compared += regions.length[r] * width
            for j in range(width):
                a = queries[first + j]
                if score[j] < floor[j] * regions.size[r] or r == a:
                    continue
                similarity = similarity_of(regions, affinities, n_clusterings, a, r)
                listed[j] = insert(ids, similarities, ties, a, j, listed[j], r, similarity, pair_hash(a, r))
                if listed[j] == n_listed:
                    least = similarities[a, n_listed - 1] - margin
                    floor[j] = least * (regions.size[a] * n_clusterings)
        for j in range(width):
            a = queries[first + j]
            full = listed[j] == n_listed
            bound[a] = similarities[a, n_listed - 1] if full else -np.inf
            hashes[a] = ties[j, n_listed - 1] if full else NO_HASH
    return compared


# --- kernels/general_regions.cu ---------------------------------------------------------------------------------------


@search_general.kernel
def _(
    queries: Any, active: Any, regions: Regions, affinities: Any, n_clusterings: int, margin: float, lists: Lists,
    compared: Any, *, device: str,
) -> None:  # fmt: skip
    kernels.launch(
        "search_general", kernels.blocks(len(queries), 4), 128,
        (queries, len(queries), active, len(active), regions.clusters, regions.counts, regions.start, regions.length,
         regions.size, affinities, affinities.shape[1], n_clusterings, np.int32(lists.ids.shape[1]),
         np.float64(-np.inf), *lists, compared),
        device=device, COUNT=kernels.c_name(regions.counts.dtype),
    )  # fmt: skip

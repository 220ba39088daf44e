"""Regions under any symmetric S: their affinities to all clusters, and searches over all pairs.

The average similarity of regions A and R is p_Aᵀ S p_R. With the affinities V_R = M S n_R, stored for every region and
added when two merge, it is Σ_c n_A[c] V_R[c] / (|A| |R| M): one look-up per entry of A. The look-ups are made for the
region with fewer entries (of equally many for the one with the smaller id), so that both directions give the same bits.

A search visits each region once for up to 64 queries, whose affinities are stored side by side in float32, each query's
largest being 1, so that one entry of a region meets four vectors. Regions that come near the last entry of a list, or
nearer than rounding can tell, are scored again in the one exact order. It begins where those like the queries are, so
that few come near.
"""

from typing import Any

import numpy as np

from gpuens.labels.incidence import row_lookups
from gpuens.partition.linkage.comparisons import scores_of_vectors, vectors_for
from gpuens.partition.linkage.lists import insert
from gpuens.partition.linkage.nearest import Lists
from gpuens.partition.linkage.order import NO_HASH, pair_hash
from gpuens.partition.linkage.regions import Regions, similarity_of
from gpuens.runtime import device as devices
from gpuens.runtime import kernels, progress
from gpuens.runtime.compiled import njit
from gpuens.runtime.lanes import FLOAT_LANES, aligned_zeros, lowest, reaching


def bytes_needed(n_rows: int, n_clusters: int) -> int:
    """Return the bytes of the affinities of all rows."""
    return 8 * n_clusters * (n_rows + n_clusters)


def affinities_of(codes: Any, offsets: np.ndarray, similarity: Any, sizes: Any, *, device: str = "cpu") -> Any:
    """Return V = M S n of each row as a region, (G, N_c) float64; ``similarity`` is M S."""
    affinities = row_lookups(codes, offsets, similarity, device=device)
    affinities *= sizes[:, None]
    return affinities


def margin(similarity: np.ndarray, n_rows: int, n_clusterings: int) -> float:
    """Return the rounding tolerance of an average similarity after any number of merges."""
    largest = float(max(similarity.max(), -similarity.min())) * n_clusterings
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
    longest = int(regions.length[active].max(initial=0))
    slack = (longest + 8) * float(np.finfo(np.float32).eps) * n_clusterings  # largest change of a score by rounding
    begins = np.searchsorted(active, queries)  # where those like a query are
    vectors = vectors_for(len(queries))
    lanes = vectors * FLOAT_LANES
    at_once = lanes * max(64, -(-len(queries) // (100 * lanes)))
    with progress.bar(total=len(queries), description="nearest regions") as shown:
        for first in range(0, len(queries), at_once):
            some = slice(first, first + at_once)

            def work(start: int, stop: int, queries: Any = queries[some], begins: Any = begins[some]) -> int:
                part = slice(start * lanes, stop * lanes)
                return int(_search(
                    queries[part], begins[part], active, regions, affinities, n_clusterings, margin, slack,
                    _scratch(vectors, affinities.shape[1], lists.ids.shape[1]), *lists,
                ))  # fmt: skip

            compared += np.uint64(sum(devices.over_ranges(work, -(-len(queries[some]) // lanes))))
            shown.update(len(queries[some]))


def _scratch(vectors: int, n_clusters: int, n_listed: int) -> tuple[np.ndarray, ...]:
    """Return the working memory of `_search` by so many vectors."""
    lanes = vectors * FLOAT_LANES
    return (
        aligned_zeros(vectors * n_clusters, FLOAT_LANES, np.float32),
        aligned_zeros(vectors, FLOAT_LANES, np.float32),
        aligned_zeros(vectors, FLOAT_LANES, np.float32),
        np.empty(lanes),
        np.empty(lanes, dtype=np.int64),
        np.empty((lanes, n_listed), dtype=np.uint64),
    )


@njit(cache=True, nogil=True, makes_arrays=False)
def _search(
    queries, begins, active, regions, affinities, n_clusterings, margin, slack, scratch,
    ids, similarities, bound, hashes,
):  # fmt: skip
    n_clusters, n_listed = affinities.shape[1], ids.shape[1]
    clusters, counts, start, length, size, _ = regions
    # floor: the score that is worth scoring exactly; per_similarity: what a similarity is as a score
    table, sums, floor, per_similarity, listed, ties = scratch
    vectors, lanes, compared = len(floor), len(listed), 0
    for first in range(0, len(queries), lanes):
        width = min(lanes, len(queries) - first)
        for j in range(width):
            a, v, lane = queries[first + j], j // FLOAT_LANES, j % FLOAT_LANES
            largest = 0.0
            for c in range(n_clusters):
                largest = max(largest, abs(affinities[a, c]))
            scale = 1.0 / largest if largest > 1e-300 else 1.0  # the quotient is finite
            for c in range(n_clusters):
                table[c * vectors + v, lane] = np.float32(affinities[a, c] * scale)
            for s in range(n_listed):
                ids[a, s] = -1
                similarities[a, s] = 0.0
            listed[j], floor[v, lane] = 0, -np.inf
            per_similarity[j] = scale * (size[a] * n_clusterings)
        for j in range(width, lanes):
            floor[j // FLOAT_LANES, j % FLOAT_LANES] = np.inf
        for step in range(len(active)):
            place = begins[first] + step
            r = active[place if place < len(active) else place - len(active)]
            scores_of_vectors(clusters, counts, start[r], start[r] + length[r], size[r], table, sums)
            compared += length[r] * width
            for v in range(vectors):
                hits = reaching(sums, v, floor, v)
                while hits:
                    lane = lowest(hits)
                    hits &= hits - np.uint64(1)
                    j = v * FLOAT_LANES + lane
                    a = queries[first + j]
                    if r == a:
                        continue
                    similarity = similarity_of(regions, affinities, n_clusterings, a, r)
                    listed[j] = insert(ids, similarities, ties, a, j, listed[j], r, similarity, pair_hash(a, r))
                    if listed[j] == n_listed:
                        least = similarities[a, n_listed - 1] - margin
                        floor[v, lane] = np.float32(least * per_similarity[j] - slack)
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

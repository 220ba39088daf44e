"""Regions compared over the clusterings that label both: ratios of two sums, and searches over all pairs.

The similarity of regions A and R is Σ_c w_c n_A[c] n_R[c] / Σ_m λ_m p_A[m] p_R[m], where p_A[m] counts the objects of A
that clustering m labels: of all pairs of their objects, what share of the clusterings that label both puts them
together; 0 where none does. A union's similarity is the mediant of its parts', and so lies between them: average
linkage stays reducible.

A clustering's labelled objects are one more cluster, behind those of all clusterings: `with_labelled` adds these M to
the rows, so that a histogram holds n_A and then p_A, and merges as any other. Weights are (2, N_c + M): those of the
sum above, 0 for the last M, and those of the sum below, 0 for all others.

No bound excludes tiles of rows here, as any row may have few labels that all match. A search visits each region once
for up to 64 queries, and bounds both sums in float32; what may enter a list is scored exactly. It begins where those
like the queries are, so that little enters.
"""

from typing import Any

import numpy as np

from gpuens.labels.rows import Rows
from gpuens.partition.linkage.comparisons import scores_of_vectors, vectors_for
from gpuens.partition.linkage.lists import insert
from gpuens.partition.linkage.nearest import WARPS, Lists
from gpuens.partition.linkage.order import NO_HASH, comes_before, pair_hash
from gpuens.partition.linkage.regions import SMALLEST, Regions, shared
from gpuens.runtime import device as devices
from gpuens.runtime import kernels, progress
from gpuens.runtime.compiled import njit
from gpuens.runtime.lanes import FLOAT_LANES, aligned_zeros, lowest, reaching


def with_labelled(rows: Rows, similarity: Any, labelled: Any) -> tuple[Rows, np.ndarray]:
    """Return rows of 2 M clusterings, with a cluster of the labelled objects of each, and the weights (2, N_c + M).

    ``labelled`` (G, M) says which labels there are, those of clusters that ``rows`` have dropped among them. Weights
    are whole numbers if they were and float64 holds all sums, so that a similarity is rounded once.
    """
    codes, xp, n_clusters, n_clusterings = rows.codes, rows.xp, rows.n_clusters, rows.n_clusterings
    one, missing = codes.dtype.type(0), codes.dtype.type(rows.ensemble.missing_code)
    dtype = similarity.weights.dtype if float(rows.n_objects) ** 2 * n_clusterings < 2.0**53 else np.float64
    weights = np.zeros((2, n_clusters + n_clusterings), dtype=dtype)
    weights[0, :n_clusters], weights[1, n_clusters:] = similarity.weights, similarity.of_clusterings
    codes = xp.concatenate([codes, xp.where(labelled, one, missing).astype(codes.dtype)], axis=1)
    offsets = np.concatenate([rows.offsets, n_clusters + 1 + np.arange(n_clusterings)])
    return Rows.of_codes(codes, offsets, rows.counts, rows.device), weights


@kernels.primitive
def search_observed(
    queries: np.ndarray, active: np.ndarray, regions: Regions, weights: np.ndarray, n_clusterings: int, lists: Lists,
    compared: np.ndarray,
) -> None:  # fmt: skip
    """List anew the nearest of all ``active`` regions for each of ``queries``; add to ``compared`` (1,) uint64.

    A list that is not full holds all others of a similarity above 0. A bound says nothing about ties where no
    clustering labels both the query and some region: if that merges with one as similar as the bound, so is the union,
    but by another name.
    """
    n_clusters = weights.shape[1] - n_clusterings
    of_labelled = _first_of_labelled(active, regions, n_clusters)
    bounding = weights.sum(axis=0) / weights.max()
    bounding[:n_clusters] = np.maximum(bounding[:n_clusters], SMALLEST[np.float32])  # from above, the others from below
    bounding = bounding.astype(np.float32)
    most = 1.0 if weights.dtype.kind == "i" else np.inf  # largest possible similarity
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
                    queries[part], begins[part], active, of_labelled, regions, weights, bounding, most,
                    _scratch(vectors, len(bounding), regions.counts.dtype, lists.ids.shape[1]), *lists,
                ))  # fmt: skip

            compared += np.uint64(sum(devices.over_ranges(work, -(-len(queries[some]) // lanes))))
            shown.update(len(queries[some]))


def _scratch(vectors: int, n_clusters: int, counts: np.dtype, n_listed: int) -> tuple[np.ndarray, ...]:
    """Return the working memory of `_search` by so many vectors."""
    lanes = vectors * FLOAT_LANES
    return (
        aligned_zeros(vectors * n_clusters, FLOAT_LANES, np.float32),
        np.zeros((lanes, n_clusters), dtype=counts),
        *(aligned_zeros(vectors, FLOAT_LANES, np.float32) for _ in range(5)),
        np.empty(lanes, dtype=np.int64),
        np.empty((lanes, n_listed), dtype=np.uint64),
    )


@njit(cache=True, nogil=True)
def _first_of_labelled(active, regions, n_clusters):
    """Return where the entries of labelled objects begin for each of ``active`` regions."""
    first = np.empty(len(active), dtype=np.int64)
    for place in range(len(active)):
        start = regions.start[active[place]]
        e = start + regions.length[active[place]]
        while e > start and regions.clusters[e - 1] >= n_clusters:
            e -= 1
        first[place] = e
    return first


@njit(cache=True, nogil=True, makes_arrays=False)
def _search(
    queries, begins, active, of_labelled, regions, weights, bounding, most, scratch,
    ids, similarities, bound, bound_hash,
):  # fmt: skip
    n_listed = ids.shape[1]
    clusters, counts = regions.clusters, regions.counts  # once: each look takes a reference
    start, length, size = regions.start, regions.length, regions.size
    # needed: the sum above that is worth scoring exactly, by ``floor``, the ratio that is; least: of the sums below
    table, held, together, both, needed, floor, least, listed, ties = scratch
    vectors, lanes = len(floor), len(listed)
    smallest = np.float32(np.finfo(np.float32).tiny)
    compared = 0
    for first in range(0, len(queries), lanes):
        width = min(lanes, len(queries) - first)
        for v in range(vectors):
            for lane in range(FLOAT_LANES):
                floor[v, lane], least[v, lane] = 0.0, np.inf
        for j in range(width):
            a, v, lane = queries[first + j], j // FLOAT_LANES, j % FLOAT_LANES
            for e in range(start[a], start[a] + length[a]):
                table[clusters[e] * vectors + v, lane] = bounding[clusters[e]] * (counts[e] / size[a])
                held[j, clusters[e]] = counts[e]
            for s in range(n_listed):
                ids[a, s] = -1
                similarities[a, s] = 0.0
            listed[j] = 0
        for step in range(len(active)):
            place = begins[first] + step
            if place >= len(active):
                place -= len(active)
            r, middle = active[place], of_labelled[place]
            begin, end = start[r], start[r] + length[r]
            compared += length[r] * width
            scores_of_vectors(clusters, counts, begin, middle, size[r], table, together)
            scores_of_vectors(clusters, counts, middle, end, size[r], table, both)
            for v in range(vectors):
                for lane in range(FLOAT_LANES):
                    needed[v, lane] = max(smallest, floor[v, lane] * both[v, lane])
                    least[v, lane] = min(least[v, lane], both[v, lane])
                hits = reaching(together, v, needed, v)
                while hits:
                    lane = lowest(hits)
                    hits &= hits - np.uint64(1)
                    j, last = v * FLOAT_LANES + lane, n_listed - 1
                    a = queries[first + j]
                    full, tie = listed[j] == n_listed, pair_hash(a, r)
                    if r == a or (full and not comes_before(most, tie, similarities[a, last], ties[j, last])):
                        continue
                    similarity = shared(clusters, counts, begin, middle, held[j], weights[0])
                    similarity /= shared(clusters, counts, middle, end, held[j], weights[1])
                    listed[j] = insert(ids, similarities, ties, a, j, listed[j], r, similarity, tie)
                    if listed[j] == n_listed:
                        # lower by all that sums of float32 can be off by
                        floor[v, lane] = similarities[a, last] * max(0.0, 1.0 - 4e-6 - 2.4e-7 * length[a])
        for j in range(width):
            a, v, lane = queries[first + j], j // FLOAT_LANES, j % FLOAT_LANES
            full = listed[j] == n_listed
            bound[a] = similarities[a, n_listed - 1] if full else 0.0
            bound_hash[a] = (ties[j, n_listed - 1] if full else NO_HASH) if least[v, lane] > 0.0 else np.uint64(0)
            for e in range(start[a], start[a] + length[a]):
                table[clusters[e] * vectors + v, lane] = 0.0
                held[j, clusters[e]] = 0
    return compared


# --- kernels/observed_regions.cu --------------------------------------------------------------------------------------


@search_observed.kernel
def _(
    queries: Any, active: Any, regions: Regions, weights: Any, n_clusterings: int, lists: Lists, compared: Any, *,
    device: str,
) -> None:  # fmt: skip
    n_columns = weights.shape[1]
    room = devices.scratch(device) // (WARPS * n_columns * regions.counts.itemsize) + 1
    n_blocks = kernels.blocks(len(queries), WARPS, room)
    tables = devices.namespace(device).zeros((n_blocks * WARPS, n_columns), dtype=regions.counts.dtype)
    kernels.launch(
        "search_observed", n_blocks, 32 * WARPS,
        (queries, len(queries), active, len(active), regions.clusters, regions.counts, regions.start, regions.length,
         weights, n_columns, n_columns - n_clusterings, np.int32(lists.ids.shape[1]), tables, *lists, compared),
        device=device, COUNT=kernels.c_name(regions.counts.dtype), WEIGHT=kernels.c_name(weights.dtype),
    )  # fmt: skip

"""Searches over all pairs of regions, for two similarities whose bounds would exclude too few tiles of rows.

Any symmetric S. The average similarity of regions A and R is p_Aᵀ S p_R. Every region stores its affinities
V_R = M S n_R; when two regions merge, their affinities are added. The similarity of A and R is then
Σ_c n_A[c] V_R[c] / (|A| |R| M), with one look-up in V_R per entry of A. A is the region with fewer entries (if both
have equally many, the region with the smaller id), so that the similarity of A and R has the same bits as that of R
and A.

Observed clusterings. The similarity is Σ_c w_c n_A[c] n_R[c] / Σ_m λ_m p_A[m] p_R[m], where p_A[m] counts the objects
of A that clustering m labels. With unit weights, the numerator counts, for all pairs of an object of A and an object of
R, the clusterings that put the pair into one cluster; the denominator counts the clusterings that label both objects.
The similarity is 0 if no clustering labels both objects of any pair. The similarity of a union is the mediant of the
similarities of its parts and lies between them, so average linkage stays reducible. `with_labelled` adds M clusters to
the rows, after the N_c clusters: one cluster for each clustering, with all objects that the clustering labels. So a
histogram holds n_A and then p_A, and histograms merge as for other similarities. The weights are (2, N_c + M). The
first row has the weights of the numerator, with 0 for the last M clusters. The second row has the weights of the
denominator, with 0 for the first N_c clusters.

A search reads each region once for up to 64 queries. The float32 tables of the queries are interleaved, so that one
entry of a region is used in four vectors. The table of a query holds its affinities, scaled so that the largest is 1;
for observed clusterings it holds bounds on the terms of numerator and denominator. If a region may come before the last
entry of a query's list, its similarity is computed again, exactly and in a fixed order of summation. A search begins at
regions similar to the queries, so that only few of the remaining regions need exact similarities.
"""

from typing import Any, NamedTuple

import numpy as np

from gpuens.labels.incidence import row_lookups
from gpuens.labels.rows import Rows
from gpuens.partition.linkage.comparisons import scores_of_vectors, vectors_for
from gpuens.partition.linkage.lists import emptied, insert
from gpuens.partition.linkage.nearest import WARPS, Shortlists
from gpuens.partition.linkage.order import NO_HASH, comes_before, pair_hash
from gpuens.partition.linkage.regions import SMALLEST, Regions, shared, similarity_of
from gpuens.runtime import device as devices
from gpuens.runtime import kernels, progress
from gpuens.runtime.compiled import njit
from gpuens.runtime.lanes import FLOAT_LANES, aligned_zeros, lowest, reaching

# --- any symmetric S --------------------------------------------------------------------------------------------------


def bytes_needed(n_rows: int, n_clusters: int) -> int:
    """Return the number of bytes that the affinities of all rows take."""
    return 8 * n_clusters * (n_rows + n_clusters)


def affinities_of(codes: Any, offsets: np.ndarray, similarity: Any, sizes: Any, *, device: str = "cpu") -> Any:
    """Return the affinities V = M S n of the regions of one row each, (G, N_c) float64; ``similarity`` is M S."""
    affinities = row_lookups(codes, offsets, similarity, device=device)
    affinities *= sizes[:, None]
    return affinities


def margin(similarity: np.ndarray, n_rows: int, n_clusterings: int) -> float:
    """Return the rounding tolerance of an average similarity after any number of merges."""
    largest = float(max(similarity.max(), -similarity.min())) * n_clusterings
    return 4 * float(np.finfo(np.float64).eps) * (len(similarity) + n_rows + 8) * largest


@kernels.primitive
def merge_affinities(affinities: np.ndarray, kept: np.ndarray, absorbed: np.ndarray, n_pairs: np.ndarray) -> None:
    """Add the affinities of ``absorbed`` regions to those of ``kept`` regions, for the first ``n_pairs`` (1,) pairs."""
    devices.over_ranges(lambda a, b: _add(affinities, kept[a:b], absorbed[a:b]), int(n_pairs[0]), grain=64)


@njit(cache=True, nogil=True)
def _add(affinities, kept, absorbed):
    for p in range(len(kept)):
        for c in range(affinities.shape[1]):
            affinities[kept[p], c] += affinities[absorbed[p], c]


@kernels.primitive
def search_general(
    queries: np.ndarray, active: np.ndarray, regions: Regions, affinities: np.ndarray, n_clusterings: int,
    margin: float, lists: Shortlists, compared: np.ndarray,
) -> None:  # fmt: skip
    """Rebuild the list of nearest regions of each region in ``queries``, from all ``active`` regions.

    The number of comparisons is added to ``compared`` (1,) uint64. A list that is not full holds all other active
    regions, and its bound is minus infinity. ``margin`` is the result of `margin`.
    """
    longest = int(regions.length[active].max(initial=0))
    slack = (longest + 8) * float(np.finfo(np.float32).eps) * n_clusterings  # largest rounding error of a score
    limits = Limits(-np.inf, np.inf, margin, slack)
    _search_all(queries, active, None, regions, affinities, n_clusterings, limits, lists, compared)


# --- observed clusterings ---------------------------------------------------------------------------------------------


def with_labelled(rows: Rows, similarity: Any, labelled: Any) -> tuple[Rows, np.ndarray]:
    """Return rows of 2 M clusterings, and weights (2, N_c + M).

    Clustering M + m has a single cluster: all objects that clustering m labels. ``labelled`` (G, M) tells which labels
    exist, including labels of clusters that ``rows`` no longer has. Weights stay whole numbers if float64 holds all
    sums exactly, so that a similarity is rounded only once.
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
    queries: np.ndarray, active: np.ndarray, regions: Regions, weights: np.ndarray, n_clusterings: int,
    lists: Shortlists, compared: np.ndarray,
) -> None:  # fmt: skip
    """Rebuild the list of nearest regions of each region in ``queries``, from all ``active`` regions.

    The number of comparisons is added to ``compared`` (1,) uint64. A list that is not full holds all other active
    regions with a similarity above 0. If no clustering labels objects of both the query and a region R, the bound of
    the query's list does not exclude ties: if R merges with a region whose similarity equals the bound, the similarity
    of the union equals the bound, too, but the union has another name and therefore another tie-break.
    """
    middles = _first_of_labelled(active, regions, weights.shape[1] - n_clusterings)
    limits = Limits(0.0, 1.0 if weights.dtype.kind == "i" else np.inf, 0.0, 0.0)
    _search_all(queries, active, middles, regions, weights, n_clusterings, limits, lists, compared)


@njit(cache=True, nogil=True)
def _first_of_labelled(active, regions, n_clusters):
    """Return, for each of ``active`` regions, the index of its first entry that counts labelled objects."""
    first = np.empty(len(active), dtype=np.int64)
    for place in range(len(active)):
        start = regions.start[active[place]]
        e = start + regions.length[active[place]]
        while e > start and regions.clusters[e - 1] >= n_clusters:
            e -= 1
        first[place] = e
    return first


def _bounding(weights: np.ndarray, n_clusterings: int) -> np.ndarray:
    """Return float32 weights (N_c + M,) for an upper bound: no smaller numerator and no larger denominator."""
    n_clusters = weights.shape[1] - n_clusterings
    bounding: np.ndarray = weights.sum(axis=0) / weights.max()
    bounding[:n_clusters] = np.maximum(bounding[:n_clusters], SMALLEST[np.float32])
    return bounding.astype(np.float32)


# --- both similarities ------------------------------------------------------------------------------------------------


class Limits(NamedTuple):
    """Bounds of lists, and tolerances that decide for which regions the exact similarity is computed."""

    nothing: float  # bound of a list that holds all other active regions
    most: float  # largest possible similarity
    margin: float  # rounding tolerance of a similarity
    slack: float  # rounding tolerance of a float32 score


def _search_all(
    queries: np.ndarray, active: np.ndarray, middles: np.ndarray | None, regions: Regions, weights: np.ndarray,
    n_clusterings: int, limits: Limits, lists: Shortlists, compared: np.ndarray,
) -> None:  # fmt: skip
    """Rebuild the lists of ``queries``: by ratios of sums if ``middles`` is given, else by affinities.

    ``middles`` is the result of `_first_of_labelled`.
    """
    bounding = None if middles is None else _bounding(weights, n_clusterings)
    begins = np.searchsorted(active, queries)  # where each query is among ``active``: regions nearby are similar to it
    vectors = vectors_for(len(queries))
    lanes = vectors * FLOAT_LANES
    at_once = lanes * max(64, -(-len(queries) // (100 * lanes)))
    n_held = 0 if middles is None else lanes
    with progress.bar(total=len(queries), description="nearest regions") as shown:
        for first in range(0, len(queries), at_once):
            some = slice(first, first + at_once)

            def work(start: int, stop: int, queries: Any = queries[some], begins: Any = begins[some]) -> int:
                part = slice(start * lanes, stop * lanes)
                scratch = (
                    aligned_zeros(vectors * weights.shape[1], FLOAT_LANES, np.float32),
                    np.zeros((n_held, weights.shape[1]), dtype=regions.counts.dtype),
                    *(aligned_zeros(vectors, FLOAT_LANES, np.float32) for _ in range(5)),
                    np.empty(lanes),
                    np.empty(lanes, dtype=np.int64),
                    np.empty((lanes, lists.ids.shape[1]), dtype=np.uint64),
                )
                return int(_search_pairs(
                    queries[part], begins[part], active, middles, regions, weights, bounding, n_clusterings, limits,
                    scratch, *lists,
                ))  # fmt: skip

            compared += np.uint64(sum(devices.over_ranges(work, -(-len(queries[some]) // lanes))))
            shown.update(len(queries[some]))


@njit(cache=True, nogil=True, makes_arrays=False)
def _search_pairs(
    queries, begins, active, middles, regions, weights, bounding, n_clusterings, limits, scratch, ids, similarities,
    bound, bound_hash,
):  # fmt: skip
    # Numba knows at compile time whether ``middles`` is None, and compiles only the branches that are used
    nothing, most, margin, slack = limits
    clusters, counts = (
        regions.clusters,
        regions.counts,
    )  # local, as Numba counts references at each attribute access
    start, length, size = regions.start, regions.length, regions.size
    # a region whose score reaches ``floor`` gets an exact similarity (for a ratio, ``floor`` is multiplied by the
    # denominator); ``least`` is the smallest denominator
    table, held, sums, both, floor, needed, least, to_score, listed, ties = scratch
    vectors, lanes, last = len(floor), len(listed), ids.shape[1] - 1
    smallest = np.float32(np.finfo(np.float32).tiny)
    compared = 0
    for first in range(0, len(queries), lanes):
        width = min(lanes, len(queries) - first)
        for j in range(lanes):
            v, lane = j // FLOAT_LANES, j % FLOAT_LANES
            floor[v, lane] = needed[v, lane] = nothing if j < width else -nothing
            least[v, lane] = np.inf
        for j in range(width):
            a, v, lane = queries[first + j], j // FLOAT_LANES, j % FLOAT_LANES
            emptied(ids, similarities, a)
            listed[j] = 0
            if middles is None:
                largest = 0.0
                for c in range(weights.shape[1]):
                    largest = max(largest, abs(weights[a, c]))
                scale = 1.0 / largest if largest > 1e-300 else 1.0  # a smaller number would make the quotient infinite
                for c in range(weights.shape[1]):
                    table[c * vectors + v, lane] = np.float32(weights[a, c] * scale)
                to_score[j] = scale * (size[a] * n_clusterings)
            else:
                for e in range(start[a], start[a] + length[a]):
                    table[clusters[e] * vectors + v, lane] = bounding[clusters[e]] * (counts[e] / size[a])
                    held[j, clusters[e]] = counts[e]
                to_score[j] = max(0.0, 1.0 - 4e-6 - 2.4e-7 * length[a])  # 1 minus the rounding of float32 sums
        for step in range(len(active)):
            place = begins[first] + step
            if place >= len(active):
                place -= len(active)
            r = active[place]
            begin, end = start[r], start[r] + length[r]
            compared += length[r] * width
            if middles is None:
                scores_of_vectors(clusters, counts, begin, end, size[r], table, sums)
            else:
                scores_of_vectors(clusters, counts, begin, middles[place], size[r], table, sums)
                scores_of_vectors(clusters, counts, middles[place], end, size[r], table, both)
                for v in range(vectors):
                    for lane in range(FLOAT_LANES):
                        needed[v, lane] = max(smallest, floor[v, lane] * both[v, lane])
                        least[v, lane] = min(least[v, lane], both[v, lane])
            for v in range(vectors):
                hits = reaching(sums, v, needed, v)
                while hits:
                    lane = lowest(hits)
                    hits &= hits - np.uint64(1)
                    j = v * FLOAT_LANES + lane
                    a = queries[first + j]
                    full, tie = listed[j] > last, pair_hash(a, r)
                    if r == a or (full and not comes_before(most, tie, similarities[a, last], ties[j, last])):
                        continue
                    if middles is None:
                        similarity = similarity_of(regions, weights, n_clusterings, a, r)
                    else:
                        similarity = shared(clusters, counts, begin, middles[place], held[j], weights[0])
                        similarity /= shared(clusters, counts, middles[place], end, held[j], weights[1])
                    listed[j] = insert(ids, similarities, ties, a, j, listed[j], r, similarity, tie)
                    if listed[j] > last:
                        floor[v, lane] = (similarities[a, last] - margin) * to_score[j] - slack
                        if middles is None:
                            needed[v, lane] = floor[v, lane]
        for j in range(width):
            a, v, lane = queries[first + j], j // FLOAT_LANES, j % FLOAT_LANES
            full = listed[j] > last
            bound[a] = similarities[a, last] if full else nothing
            bound_hash[a] = ties[j, last] if full else NO_HASH
            if middles is not None:
                if least[v, lane] <= 0.0:
                    bound_hash[a] = 0
                for e in range(start[a], start[a] + length[a]):
                    table[clusters[e] * vectors + v, lane] = 0.0
                    held[j, clusters[e]] = 0
    return compared


# --- kernels/general_regions.cu and kernels/observed_regions.cu -------------------------------------------------------


@merge_affinities.kernel
def _(affinities: Any, kept: Any, absorbed: Any, n_pairs: Any, *, device: str) -> None:
    kernels.launch(
        "merge_affinities", kernels.blocks(len(kept) * affinities.shape[1], 256), 256,
        (kept, absorbed, n_pairs, affinities.shape[1], affinities), device=device, COUNT="i32",
    )  # fmt: skip


@search_general.kernel
def _(
    queries: Any, active: Any, regions: Regions, affinities: Any, n_clusterings: int, margin: float, lists: Shortlists,
    compared: Any, *, device: str,
) -> None:  # fmt: skip
    kernels.launch(
        "search_general", kernels.blocks(len(queries), 4), 128,
        (queries, len(queries), active, len(active), regions.clusters, regions.counts, regions.start, regions.length,
         regions.size, affinities, affinities.shape[1], n_clusterings, np.int32(lists.ids.shape[1]),
         np.float64(-np.inf), *lists, compared),
        device=device, COUNT=kernels.c_name(regions.counts.dtype),
    )  # fmt: skip


@search_observed.kernel
def _(
    queries: Any, active: Any, regions: Regions, weights: Any, n_clusterings: int, lists: Shortlists, compared: Any, *,
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

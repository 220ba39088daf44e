"""Regions (sets of objects) as histograms over clusters: exact similarities, merges and searches of nearest regions.

A region A is a set of objects, stored as the histogram n_A[c] of their clusters. Its average similarity to region R is
Σ_c w_c n_A[c] n_R[c] / (|A| |R| M), which needs no loop over pairs of objects. With int64 unit weights the sum is an
exact integer; with float64 weights the terms are added in ascending order of the clusters, on every device.

For any symmetric S (`all_pairs`) the similarity is Σ_c n_A[c] V_R[c] / (|A| |R| M), where V_R = M S n_R are the
affinities of R. The affinities of all regions (G, N_c) then take the place of the weights (N_c,).

For `Observed` similarities (`all_pairs`), the similarity is a ratio of two sums Σ_c w_c n_A[c] n_R[c]. The weights
(2, N_c + M) are those of both sums, and neither sum is divided by M.
"""

from typing import Any, NamedTuple

import numpy as np

from gpuens.partition.linkage.nearest import Shortlists
from gpuens.partition.linkage.weights import weight_of
from gpuens.runtime import device as devices
from gpuens.runtime import kernels
from gpuens.runtime.compiled import njit
from gpuens.runtime.native import cpu

TILE = 32  # regions in a tile, which a search skips or visits as a whole
CEILINGS = 2**26  # largest number of ceilings in all tiles together; tiles are made so large that it is not exceeded
# for each dtype of `BoundingWeights`: the smallest weight, if the largest weight is between 0.5 and 1
SMALLEST = {np.float32: 2.0**-60, np.float64: 2.0**-900}
BLOCK = 128  # GPU threads that search for one query
OFFERS = 1024  # regions that a GPU block scores between two barriers


class Regions(NamedTuple):
    """Histograms of G regions in one arena, where the id of a region is the smallest group in it.

    ``clusters``, ``counts``: the arena; clusters are in ascending order within a region. ``start``, ``length``,
    ``size`` (G,) int64: the first entry of a region, its number of entries, and its number of objects. ``used`` (1,)
    int64: the number of entries of the arena used so far. All arrays are in the memory of the device.
    """

    clusters: Any
    counts: Any
    start: Any
    length: Any
    size: Any
    used: Any


def count_dtype(n_objects: int) -> np.dtype:
    """Return the dtype of the counts in histograms of ``n_objects`` objects in total."""
    return np.dtype(np.int32 if n_objects <= np.iinfo(np.int32).max else np.int64)


def regions_of(codes: Any, offsets: np.ndarray, sizes: Any, *, device: str = "cpu") -> Regions:
    """Return a region for each row of ``codes`` (G, M), with ``sizes`` (G,) objects each."""
    xp = devices.namespace(device)
    sizes = xp.asarray(sizes, dtype=np.int64)
    known = codes != np.iinfo(codes.dtype).max
    length = known.sum(axis=1).astype(np.int64)
    total = int(length.sum())
    regions = Regions(
        xp.empty(total + total // 2, dtype=np.int32),
        xp.empty(total + total // 2, dtype=count_dtype(int(sizes.sum()))),
        xp.cumsum(length) - length,
        length,
        sizes.copy(),
        xp.full(1, total, dtype=np.int64),
    )
    if device == "cpu":
        cpu.lay_out_rows(np.ascontiguousarray(codes.T), offsets, regions)
        return regions
    regions.clusters[:total] = xp.add(codes, xp.asarray(offsets[:-1], dtype=np.int32), dtype=np.int32)[known]
    counts = sizes.astype(regions.counts.dtype)
    regions.counts[:total] = xp.broadcast_to(counts[:, None], known.shape)[known]
    return regions


def make_room(regions: Regions, live: Any, capacity: int, *, device: str = "cpu") -> Regions:
    """Return regions in a new arena of ``capacity`` entries, with only the histograms of ``live`` regions."""
    xp = devices.namespace(device)
    roomy = regions._replace(
        clusters=xp.empty(capacity, dtype=regions.clusters.dtype),
        counts=xp.empty(capacity, dtype=regions.counts.dtype),
        start=xp.empty_like(regions.start),
        length=xp.zeros_like(regions.length),  # regions that are not live become empty
    )
    roomy.used.fill(0)
    move_histograms(regions, roomy, live, device=device)
    return roomy


def compact(regions: Regions, live: np.ndarray) -> None:
    """Move the histograms of ``live`` regions to the beginning of their arena, on the CPU, and drop all others."""
    cpu.compact(regions, live)


@kernels.primitive
def move_histograms(regions: Regions, roomy: Regions, live: np.ndarray) -> None:
    """Copy the histograms of ``live`` regions to the free end of the arena of ``roomy``."""
    cpu.move_histograms(regions, roomy, live)


@kernels.primitive
def merge_histograms(regions: Regions, kept: np.ndarray, absorbed: np.ndarray, n_pairs: np.ndarray) -> None:
    """Write the histograms of unions of ``kept`` and ``absorbed`` regions to the end of the arena.

    There are ``n_pairs`` (1,) unions: those of the first pairs. Afterwards absorbed regions have no entries.
    """
    pairs = (np.ascontiguousarray(some[: n_pairs[0]]) for some in (kept, absorbed))
    cpu.merge_histograms(regions, *pairs)


@njit(cache=True, nogil=True, makes_arrays=False)
def similarity_of(regions, weights, n_clusterings, a, b):
    """Return the average similarity of regions a and b; if a and b are exchanged, the result has the same bits."""
    if regions.length[a] > regions.length[b] or (regions.length[a] == regions.length[b] and a > b):
        a, b = b, a
    if weights.ndim == 2:  # known when this function is compiled
        if n_clusterings is None:  # known when this function is compiled
            together, both = _total(regions, weights[0], a, b), _total(regions, weights[1], a, b)
            return together / both if both > 0 else 0.0
        cluster, count, score = regions.clusters, regions.counts, 0.0
        for e in range(regions.start[a], regions.start[a] + regions.length[a]):
            score += count[e] * weights[b, cluster[e]]
        return score / (regions.size[a] * regions.size[b] * n_clusterings)
    return _total(regions, weights, a, b) / (regions.size[a] * regions.size[b] * n_clusterings)


@njit(cache=True, nogil=True, makes_arrays=False)
def _total(regions, weights, a, b):
    """Return Σ_c w_c n_A[c] n_B[c] of regions a and b, where region a does not have more entries than region b."""
    cluster, count = regions.clusters, regions.counts
    i, j = regions.start[a], regions.start[b]
    end_a, end_b = i + regions.length[a], j + regions.length[b]
    leap = regions.length[b] > 8 * regions.length[a]
    total = weights[0] * 0
    while i < end_a and j < end_b:
        wanted = cluster[i]
        if leap:
            high = end_b
            while j < high:
                middle = (j + high) // 2
                if cluster[middle] < wanted:
                    j = middle + 1
                else:
                    high = middle
        else:
            while j < end_b and cluster[j] < wanted:
                j += 1
        if j < end_b and cluster[j] == wanted:
            total += weights[wanted] * (np.int64(count[i]) * np.int64(count[j]))
            j += 1
        i += 1
    return total


@njit(cache=True, nogil=True, makes_arrays=False)
def lay_out(regions, a, held):
    """Write the histogram of region a into the dense array ``held`` (N_c,)."""
    clusters, counts = regions.clusters, regions.counts
    for e in range(np.uint64(regions.start[a]), np.uint64(regions.start[a] + regions.length[a])):
        held[clusters[e]] = counts[e]


@njit(cache=True, nogil=True, makes_arrays=False)
def clear(regions, a, held):
    """Set those entries of ``held`` to 0 that `lay_out` wrote for region a."""
    clusters = regions.clusters
    for e in range(np.uint64(regions.start[a]), np.uint64(regions.start[a] + regions.length[a])):
        held[clusters[e]] = 0


@njit(cache=True, nogil=True, makes_arrays=False)
def shared(clusters, counts, begin, end, held, weights):
    """Return Σ_c w_c n_A[c] n_R[c] from the dense histogram ``held`` of A and the entries begin … end - 1 of R."""
    return plus_shared(weights[0] * 0, clusters, counts, begin, end, held, weights)


@njit(cache=True, nogil=True, makes_arrays=False)
def plus_shared(total, clusters, counts, begin, end, held, weights):
    """Return ``total`` plus the terms of `shared`, added one after another."""
    for e in range(np.uint64(begin), np.uint64(end)):  # unsigned, to save checks for negative indices
        total += weight_of(weights, clusters[e]) * (np.int64(held[clusters[e]]) * np.int64(counts[e]))
    return total


@njit(cache=True, nogil=True, makes_arrays=False)
def similarity_to(regions, held, weights, n_clusterings, a, b):
    """Return the same bits as `similarity_of` for regions a and b, by the dense histogram ``held`` of region a."""
    if weights.ndim == 2:  # known when this function is compiled
        return similarity_of(regions, weights, n_clusterings, a, b)
    begin, length = regions.start[b], regions.length[b]
    if len(held) == 0 or length > 8 * regions.length[a]:
        return similarity_of(regions, weights, n_clusterings, a, b)
    total = shared(regions.clusters, regions.counts, begin, begin + length, held, weights)
    return total / (regions.size[a] * regions.size[b] * n_clusterings)


class BoundingWeights(NamedTuple):
    """Weights for upper bounds of similarities.

    Apart from rounding, a weight is at least ``unit`` times the true weight. ``weights`` (N_c,) are float32, or float64
    if the true weights differ too much for float32. ``unit`` is a power of two. The product of a weight and two shares
    of fewer than 2³² objects is a normal number, so the bound on a similarity is 0 only if the similarity is 0, whether
    or not subnormal numbers are flushed to 0.
    """

    weights: Any
    unit: float


def bounding_weights(cluster_weights: np.ndarray, *, device: str = "cpu") -> BoundingWeights:
    """Return, on the device, the weights for bounds in `search`, from the true ``cluster_weights`` (N_c,) > 0."""
    unit = 2.0 ** -float(np.frexp(cluster_weights.max())[1])
    scaled = cluster_weights * unit
    dtype = np.float32 if scaled.min() >= SMALLEST[np.float32] else np.float64
    return BoundingWeights(devices.namespace(device).asarray(np.maximum(scaled, SMALLEST[dtype]).astype(dtype)), unit)


@kernels.primitive
def search(
    queries: np.ndarray, active: np.ndarray, regions: Regions, weights: np.ndarray, bounding: BoundingWeights,
    n_clusterings: int, whole: bool, lists: Shortlists, compared: np.ndarray,
) -> None:  # fmt: skip
    """Rebuild the list of nearest regions of each region in ``queries``, from all ``active`` regions.

    The number of comparisons is added to ``compared`` (1,) uint64. The similarity of the query with any region of a
    tile is at most Σ_c w_c (share of c in the query) (ceiling of c in the tile) / M, where w is ``bounding`` and the
    ceiling is the largest share of c in any region of the tile. Tiles are visited in descending bands of that bound; a
    tile is skipped if its bound is below the last similarity in a full list. The regions of a tile are compared with 16
    queries at a time, also by ``bounding``, and exact similarities are computed for regions that may enter a list. If a
    list is full before the search, it holds active regions with current similarities, so regions below its last
    similarity can be skipped from the beginning.
    """
    diagonal = weights, *bounding, n_clusterings
    compared += np.uint64(cpu.search_regions(queries, active, regions, diagonal, lists, CEILINGS))


def _tiles(n_active: int, n_clusters: int, most: int) -> tuple[int, int]:
    """Return the number of regions in a tile and the number of tiles, for at most ``most`` ceilings in total."""
    tile = max(TILE, -(-n_active * n_clusters // most))
    return tile, -(-n_active // tile)


# --- kernels/regions.cu -----------------------------------------------------------------------------------------------


def _types(regions: Regions, weight: Any = np.float64, bound: Any = np.float32) -> dict[str, Any]:
    """Return the macros that define the dtypes in the kernels."""
    return {
        "COUNT": kernels.c_name(regions.counts.dtype),
        "WEIGHT": kernels.c_name(weight),
        "BOUND": kernels.c_name(bound),
    }


@move_histograms.kernel
def _(regions: Regions, roomy: Regions, live: Any, *, device: str) -> None:
    kernels.launch(
        "move_histograms", kernels.blocks(len(live), 4), 128,
        (live, len(live), regions.clusters, regions.counts, regions.start, regions.length, roomy.clusters, roomy.counts,
         roomy.start, roomy.length, roomy.used),
        device=device, **_types(regions),
    )  # fmt: skip


@merge_histograms.kernel
def _(regions: Regions, kept: Any, absorbed: Any, n_pairs: Any, *, device: str) -> None:
    kernels.launch(
        "merge_histograms", kernels.blocks(len(kept), 4), 128, (kept, absorbed, n_pairs, *regions), device=device,
        **_types(regions),
    )  # fmt: skip


@search.kernel
def _(
    queries: Any, active: Any, regions: Regions, weights: Any, bounding: BoundingWeights, n_clusterings: int,
    whole: bool, lists: Shortlists, compared: Any, *, device: str,
) -> None:  # fmt: skip
    xp, n_clusters = devices.namespace(device), len(weights)
    scratch = devices.scratch(device)
    bound_dtype = bounding.weights.dtype
    tile, n_tiles = _tiles(len(active), n_clusters, scratch // bound_dtype.itemsize)
    types = _types(regions, weights.dtype, bound_dtype)
    histograms = regions.clusters, regions.counts, regions.start, regions.length, regions.size
    ceilings = xp.zeros((n_clusters, n_tiles), dtype=bound_dtype)
    kernels.launch(
        "raise_ceilings", kernels.blocks(len(active), 4), 128,
        (active, len(active), tile, n_tiles, *histograms, ceilings.view(f"i{bound_dtype.itemsize}")), device=device,
        **types,
    )  # fmt: skip
    n_blocks = min(len(queries), scratch // (8 * n_clusters + bound_dtype.itemsize * n_tiles) + 1)
    room = min(TILE, max(1, OFFERS // tile))
    at_once = min(OFFERS, room * tile)
    scores = weights.dtype if weights.dtype.kind == "i" else bound_dtype
    kernels.launch(
        "search_regions", n_blocks, BLOCK,
        (queries, len(queries), active, len(active), tile, n_tiles, ceilings, *histograms, weights,
         bounding.weights, np.float64(bounding.unit), n_clusters, n_clusterings, np.int32(whole), np.int32(room),
         at_once, np.int32(lists.ids.shape[1]), xp.zeros((n_blocks, n_clusters), scores),
         xp.empty((n_blocks, n_tiles), bound_dtype), *lists, compared),
        device=device, shared=16 * at_once, **types,
    )  # fmt: skip

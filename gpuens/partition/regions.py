"""Regions while they grow: histograms over clusters, exact similarities, and searches over all of them.

A region A is a set of objects with the histogram n_A[c] of the clusters they are in. Its average similarity to another
region R is Σ_c w_c n_A[c] n_R[c] / (|A| |R| M), which needs no pair of objects. With int64 unit weights the sum is an
exact whole number; with float64 weights it is taken in ascending order of the clusters, on every device.

For any symmetric S (`gpuens.partition.general_regions`) it is Σ_c n_A[c] V_R[c] / (|A| |R| M), where V_R = M S n_R are
the affinities of R: in the place of the weights (N_c,) come those of all regions (G, N_c).
"""

from typing import Any, NamedTuple

import numpy as np

from gpuens import device as devices
from gpuens import kernels
from gpuens.compiled import njit
from gpuens.partition.nearest import Lists
from gpuens.partition.order import NO_HASH, comes_before, insert, pair_hash

TILE = 32  # regions that a search passes over together
CEILINGS = 2**26  # numbers of all tiles' ceilings; beyond, tiles grow
SMALLEST = {np.float32: 2.0**-60, np.float64: 2.0**-900}  # weight in a bound, the largest being from 0.5 to 1
BLOCK = 128  # threads of a GPU that search for one region
OFFERS = 1024  # regions that they look at between two meetings


class Regions(NamedTuple):
    """Histograms of G regions in one arena; a region is named by its smallest group.

    ``clusters``, ``counts``: the arena, clusters ascending within a region. ``start``, ``length``, ``size`` (G,) int64:
    where a region's entries are, how many, and how many objects it holds. All of them are where the device works, but
    ``used`` (1,) int64, the entries of the arena taken so far, is on the host.
    """

    clusters: Any
    counts: Any
    start: Any
    length: Any
    size: Any
    used: np.ndarray


def regions_of(codes: Any, offsets: np.ndarray, sizes: Any, *, device: str = "cpu") -> Regions:
    """Return one region a row of ``codes`` (G, M), with ``sizes`` (G,) objects each."""
    xp = devices.namespace(device)
    sizes = xp.asarray(sizes, dtype=np.int64)
    known = codes != np.iinfo(codes.dtype).max
    length = known.sum(axis=1).astype(np.int64)
    count_dtype = np.int32 if int(sizes.sum()) <= np.iinfo(np.int32).max else np.int64
    total = int(length.sum())
    regions = Regions(
        xp.empty(total + total // 2, dtype=np.int32),
        xp.empty(total + total // 2, dtype=count_dtype),
        xp.cumsum(length) - length,
        length,
        sizes.copy(),
        np.array([total]),
    )
    regions.clusters[:total] = (codes.astype(np.int32) + xp.asarray(offsets[:-1], dtype=np.int32))[known]
    regions.counts[:total] = xp.broadcast_to(sizes[:, None], known.shape)[known]
    return regions


def make_room(regions: Regions, live: Any, needed: int, *, device: str = "cpu") -> Regions:
    """Return regions whose arena has ``needed`` free entries, dropping the histograms of all but ``live`` regions."""
    if regions.used[0] + needed <= len(regions.clusters):
        return regions
    xp = devices.namespace(device)
    gone = xp.ones(len(regions.length), dtype=bool)
    gone[live] = False
    regions.length[gone] = 0  # their starts mean nothing in the new arena
    total = int(regions.length.sum())
    capacity = total + total // 2 + needed
    roomy = regions._replace(
        clusters=xp.empty(capacity, dtype=regions.clusters.dtype), counts=xp.empty(capacity, dtype=regions.counts.dtype)
    )
    move_histograms(regions, roomy, live, device=device)
    roomy.used[0] = total
    return roomy


@kernels.primitive
def move_histograms(regions: Regions, roomy: Regions, live: np.ndarray) -> None:
    """Copy the histograms of ``live`` regions, one after the other, into the arena of ``roomy``, and their starts."""
    _move(regions.clusters, regions.counts, roomy.clusters, roomy.counts, live, regions.start, regions.length)


@njit(cache=True, nogil=True)
def _move(cluster, count, new_cluster, new_count, live, start, length):
    used = 0
    for r in live:
        begin = start[r]
        start[r] = used
        for e in range(begin, begin + length[r]):  # slices would take Numba seconds to compile
            new_cluster[used] = cluster[e]
            new_count[used] = count[e]
            used += 1


@kernels.primitive
def merge_histograms(regions: Regions, kept: np.ndarray, absorbed: np.ndarray) -> None:
    """Give each ``kept`` region the histogram of its union with the ``absorbed`` one, at the arena's free end.

    The absorbed one has no entries afterwards.
    """
    _merge(regions, kept, absorbed)


@njit(cache=True, nogil=True)
def _merge(regions, kept, absorbed):
    cluster, count = regions.clusters, regions.counts
    for p in range(len(kept)):
        a, b = kept[p], absorbed[p]
        i, j = regions.start[a], regions.start[b]
        end_a, end_b = i + regions.length[a], j + regions.length[b]
        begin = regions.used[0]
        at = begin
        while i < end_a or j < end_b:
            if j == end_b or (i < end_a and cluster[i] < cluster[j]):
                cluster[at], count[at] = cluster[i], count[i]
                i += 1
            elif i == end_a or cluster[j] < cluster[i]:
                cluster[at], count[at] = cluster[j], count[j]
                j += 1
            else:
                cluster[at], count[at] = cluster[i], count[i] + count[j]
                i += 1
                j += 1
            at += 1
        regions.start[a], regions.length[a] = begin, at - begin
        regions.size[a] += regions.size[b]
        regions.length[b] = 0
        regions.used[0] = at


@njit(cache=True, nogil=True)
def similarity_of(regions, weights, n_clusterings, a, b):
    """Return the average similarity of two regions; the same bits whichever comes first."""
    if regions.length[a] > regions.length[b] or (regions.length[a] == regions.length[b] and a > b):
        a, b = b, a
    cluster, count = regions.clusters, regions.counts
    if weights.ndim == 2:  # known when this is compiled
        score = 0.0
        for e in range(regions.start[a], regions.start[a] + regions.length[a]):
            score += count[e] * weights[b, cluster[e]]
        return score / (regions.size[a] * regions.size[b] * n_clusterings)
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
    return total / (regions.size[a] * regions.size[b] * n_clusterings)


class BoundingWeights(NamedTuple):
    """Weights that bound similarities from above: at least ``unit`` times the true ones, but for their rounding.

    ``weights`` (N_c,) are float32, or float64 where the true ones differ by more than float32 can tell apart. ``unit``
    is a power of two. A product of a weight and two shares of fewer than 2³² objects is a normal number, so that the
    bound of a similarity is 0 only where the similarity is, whether or not subnormal numbers are flushed to 0.
    """

    weights: Any
    unit: float


def bounding_weights(cluster_weights: np.ndarray, *, device: str = "cpu") -> BoundingWeights:
    """Return weights (N_c,) for the bounds of `search`, where the device works; ``cluster_weights`` are positive."""
    unit = 2.0 ** -float(np.frexp(cluster_weights.max())[1])
    scaled = cluster_weights * unit
    dtype = np.float32 if scaled.min() >= SMALLEST[np.float32] else np.float64
    return BoundingWeights(devices.namespace(device).asarray(np.maximum(scaled, SMALLEST[dtype]).astype(dtype)), unit)


@kernels.primitive
def search(
    queries: np.ndarray, active: np.ndarray, regions: Regions, weights: np.ndarray, bounding: BoundingWeights,
    n_clusterings: int, whole: bool, lists: Lists,
) -> int:  # fmt: skip
    """List anew the nearest of all ``active`` regions for each of ``queries``; return the comparisons made.

    No region of a tile is nearer to the query than Σ_c w_c (share of c in the query) (ceiling of c in the tile) / M,
    w being ``bounding`` and the ceiling the largest share of c in any region of the tile. Tiles are visited in falling
    bands of that bound, and not at all where it is under the last entry of a full list. With unit weights (``whole``)
    the sum of products is the numerator itself; otherwise it is rounded in another order than the exact one, so that
    what may enter a list is scored again.
    """
    entries = len(queries) * int(regions.length[active].sum())  # to look at without ceilings, which are to save work
    tile, n_tiles = _tiles(len(active), len(weights), min(CEILINGS, entries))
    ceilings = np.zeros((len(weights), n_tiles), dtype=bounding.weights.dtype)

    def raise_range(start: int, stop: int) -> None:
        _raise_ceilings(start, stop, active, tile, regions, ceilings)

    def search_range(start: int, stop: int) -> int:
        return _search(
            start, stop, queries, active, tile, ceilings, regions, weights, *bounding, n_clusterings, whole,
            lists.ids, lists.similarities, lists.bound, lists.bound_hash,
        )  # fmt: skip

    devices.over_ranges(raise_range, n_tiles, grain=32)
    return sum(devices.over_ranges(search_range, len(queries), grain=8))


def _tiles(n_active: int, n_clusters: int, most: int) -> tuple[int, int]:
    """Return how many of the active regions make a tile, and how many tiles there are, for so many ceilings at most."""
    tile = max(TILE, -(-n_active * n_clusters // most))
    return tile, -(-n_active // tile)


@njit(cache=True, nogil=True)
def _raise_ceilings(start, stop, active, tile, regions, ceilings):
    for t in range(start, stop):
        for r in active[t * tile : (t + 1) * tile]:
            for e in range(regions.start[r], regions.start[r] + regions.length[r]):
                share = ceilings.dtype.type(regions.counts[e] / regions.size[r] * (1.0 + 1e-6))  # rounded up
                if share > ceilings[regions.clusters[e], t]:
                    ceilings[regions.clusters[e], t] = share


@njit(cache=True, nogil=True)
def _search(
    start, stop, queries, active, tile, ceilings, regions, weights, bounding, unit, n_clusterings, whole,
    ids, similarities, bound, bound_hash,
):  # fmt: skip
    n_tiles = ceilings.shape[1]
    n_listed = ids.shape[1]
    query = np.zeros(len(weights))
    held = np.zeros(len(weights), dtype=np.int64)
    reach = np.empty(n_tiles, dtype=ceilings.dtype)
    ties = np.empty(n_listed, dtype=np.uint64)
    compared = 0
    for i in range(start, stop):
        a = queries[i]
        begin, end = regions.start[a], regions.start[a] + regions.length[a]
        for t in range(n_tiles):
            reach[t] = 0.0
        for e in range(begin, end):
            cluster = regions.clusters[e]
            query[cluster] = weights[cluster] * regions.counts[e]
            held[cluster] = regions.counts[e]
            share = ceilings.dtype.type(bounding[cluster] * (regions.counts[e] / regions.size[a]))
            ceiling = ceilings[cluster]
            for t in range(n_tiles):
                reach[t] += share * ceiling[t]
        compared += regions.length[a] * n_tiles
        best = 0.0
        for t in range(n_tiles):
            best = max(best, float(reach[t]))

        for s in range(n_listed):
            ids[a, s] = -1
            similarities[a, s] = 0.0
        listed = 0
        floor = 0.0  # the score that a region of one object needs to be listed
        least = 0.0  # the reach that a tile needs to be visited: lower by all that float32 sums can be off by
        lowered = unit * n_clusterings * (1.0 - 2e-6 - 1.2e-7 * regions.length[a])
        high = np.inf
        low = 0.75 * best
        while high > least:
            if low < 0.02 * best:
                low = 0.0
            for t in range(n_tiles):
                if reach[t] < low or reach[t] >= high or reach[t] < least or reach[t] <= 0.0:
                    continue
                for r in active[t * tile : (t + 1) * tile]:
                    score = 0.0
                    for e in range(regions.start[r], regions.start[r] + regions.length[r]):
                        score += regions.counts[e] * query[regions.clusters[e]]
                    compared += regions.length[r]
                    if score <= 0.0 or score < floor * regions.size[r] or r == a:
                        continue
                    pairs = regions.size[a] * regions.size[r] * n_clusterings
                    if whole:
                        similarity = score / pairs
                    else:
                        total = weights[0] * 0  # with the bits of `similarity_of`: what they do not share adds 0
                        for e in range(regions.start[r], regions.start[r] + regions.length[r]):
                            cluster = regions.clusters[e]
                            total += weights[cluster] * (held[cluster] * np.int64(regions.counts[e]))
                        similarity = total / pairs
                    tie, last = pair_hash(a, r), n_listed - 1
                    if listed == n_listed and not comes_before(similarity, tie, similarities[a, last], ties[last]):
                        continue
                    listed = insert(ids[a], similarities[a], ties, listed, r, similarity, tie)
                    if listed == n_listed:
                        # a little lower than the last entry's, because products and quotients are rounded
                        floor = similarities[a, n_listed - 1] * regions.size[a] * n_clusterings * (1.0 - 1e-9)
                        least = max(0.0, similarities[a, n_listed - 1] * lowered)
            high = low
            low *= 0.75
        full = listed == n_listed
        bound[a] = similarities[a, n_listed - 1] if full else 0.0
        bound_hash[a] = ties[n_listed - 1] if full else NO_HASH
        for e in range(begin, end):
            query[regions.clusters[e]] = 0.0
            held[regions.clusters[e]] = 0
    return compared


# --- kernels/regions.cu -----------------------------------------------------------------------------------------------


def _types(regions: Regions, weight: Any = np.float64, bound: Any = np.float32) -> dict[str, Any]:
    """Return the macros of the kernels."""
    return {
        "COUNT": kernels.c_name(regions.counts.dtype),
        "WEIGHT": kernels.c_name(weight),
        "BOUND": kernels.c_name(bound),
    }


@move_histograms.kernel
def _(regions: Regions, roomy: Regions, live: Any, *, device: str) -> None:
    length = regions.length[live]
    starts = length.cumsum() - length
    kernels.launch(
        "move_histograms", kernels.blocks(len(live), 4), 128,
        (live, len(live), regions.start, regions.length, starts, regions.clusters, regions.counts, roomy.clusters,
         roomy.counts),
        device=device, **_types(regions),
    )  # fmt: skip
    regions.start[live] = starts


@merge_histograms.kernel
def _(regions: Regions, kept: Any, absorbed: Any, *, device: str) -> None:
    room = regions.length[kept] + regions.length[absorbed]
    starts = room.cumsum() - room + int(regions.used[0])
    kernels.launch(
        "merge_histograms", kernels.blocks(len(kept), 64), 64,
        (kept, absorbed, starts, len(kept), regions.clusters, regions.counts, regions.start, regions.length,
         regions.size),
        device=device, **_types(regions),
    )  # fmt: skip
    regions.used[0] += int(room.sum())


@search.kernel
def _(
    queries: Any, active: Any, regions: Regions, weights: Any, bounding: BoundingWeights, n_clusterings: int,
    whole: bool, lists: Lists, *, device: str,
) -> int:  # fmt: skip
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
    compared = xp.zeros(1, dtype=np.uint64)
    kernels.launch(
        "search_regions", n_blocks, BLOCK,
        (queries, len(queries), active, len(active), tile, n_tiles, ceilings, *histograms, weights,
         bounding.weights, np.float64(bounding.unit), n_clusters, n_clusterings, np.int32(whole), np.int32(room),
         np.int32(lists.ids.shape[1]), xp.zeros((n_blocks, n_clusters)), xp.empty((n_blocks, n_tiles), bound_dtype),
         *lists, compared),
        device=device, shared=16 * room * tile, **types,
    )  # fmt: skip
    return int(compared[0])

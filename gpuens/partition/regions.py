"""Regions while they grow: histograms over clusters, exact similarities, and searches over all of them.

A region A is a set of objects with the histogram n_A[c] of the clusters they are in. Its average similarity to another
region R is Σ_c w_c n_A[c] n_R[c] / (|A| |R| M), which needs no pair of objects. With int64 unit weights the sum is an
exact whole number; with float64 weights it is taken in ascending order of the clusters, on every device.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from gpuens.partition.order import NO_HASH, insert, pair_hash

TILE = 32  # regions that a search passes over together
CEILINGS = 2**26  # numbers of the tiles' ceilings, beyond which tiles grow


class Regions(NamedTuple):
    """Histograms of G regions in one arena; a region is named by its smallest group.

    ``clusters``, ``counts``: the arena, clusters ascending within a region. ``start``, ``length``, ``size`` (G,) int64:
    where a region's entries are, how many, and how many objects it holds. ``used`` (1,) int64: entries of the arena
    taken so far.
    """

    clusters: np.ndarray
    counts: np.ndarray
    start: np.ndarray
    length: np.ndarray
    size: np.ndarray
    used: np.ndarray


def regions_of(codes: np.ndarray, offsets: np.ndarray, sizes: np.ndarray) -> Regions:
    """Return one region a row of ``codes`` (G, M), with ``sizes`` (G,) objects each."""
    known = codes != np.iinfo(codes.dtype).max
    length = known.sum(axis=1)
    clusters = codes.astype(np.int32) + offsets[:-1].astype(np.int32)
    count_dtype = np.int32 if sizes.sum() <= np.iinfo(np.int32).max else np.int64
    total = int(length.sum())
    regions = Regions(
        np.empty(total + total // 2, dtype=np.int32),
        np.empty(total + total // 2, dtype=count_dtype),
        np.cumsum(length) - length,
        length.astype(np.int64),
        sizes.astype(np.int64),
        np.array([total]),
    )
    regions.clusters[:total] = clusters[known]
    regions.counts[:total] = np.repeat(sizes, length)
    return regions


def make_room(regions: Regions, live: np.ndarray, needed: int) -> Regions:
    """Return regions whose arena has ``needed`` free entries, dropping the histograms of all but ``live`` regions."""
    if regions.used[0] + needed <= len(regions.clusters):
        return regions
    total = int(regions.length[live].sum())
    capacity = total + total // 2 + needed
    roomy = regions._replace(
        clusters=np.empty(capacity, dtype=regions.clusters.dtype), counts=np.empty(capacity, dtype=regions.counts.dtype)
    )
    _move(regions.clusters, regions.counts, roomy, live)
    return roomy


@njit(cache=True, nogil=True)
def _move(cluster, count, roomy, live):
    used = 0
    for r in live:
        begin, length = roomy.start[r], roomy.length[r]
        roomy.start[r] = used
        for e in range(begin, begin + length):  # slices would take Numba seconds to compile
            roomy.clusters[used] = cluster[e]
            roomy.counts[used] = count[e]
            used += 1
    roomy.used[0] = used


@njit(cache=True, nogil=True)
def merge_histograms(regions, kept, absorbed):
    """Give each ``kept`` region the histogram of its union with the ``absorbed`` one, at the arena's free end."""
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
        regions.used[0] = at


@njit(cache=True, nogil=True)
def similarity_of(regions, weights, n_clusterings, a, b):
    """Return the average similarity of two regions; the same bits whichever comes first."""
    if regions.length[a] > regions.length[b]:
        a, b = b, a
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
    return total / (regions.size[a] * regions.size[b] * n_clusterings)


def tile_length(n_active: int, n_clusters: int) -> int:
    """Return how many of the active regions make a tile."""
    return max(TILE, -(-n_active * n_clusters // CEILINGS))


@njit(cache=True, nogil=True)
def raise_ceilings(start, stop, active, tile, regions, ceilings):
    """Write, for tiles ``start`` … ``stop - 1`` of ``active`` regions, the largest share of each cluster in a tile.

    ``ceilings`` (N_c, n_tiles) float32 comes filled with zeros.
    """
    for t in range(start, stop):
        for r in active[t * tile : (t + 1) * tile]:
            for e in range(regions.start[r], regions.start[r] + regions.length[r]):
                share = np.float32(regions.counts[e] / regions.size[r] * (1.0 + 1e-6))  # rounded up
                if share > ceilings[regions.clusters[e], t]:
                    ceilings[regions.clusters[e], t] = share


@njit(cache=True, nogil=True)
def search(
    start, stop, queries, active, tile, ceilings, regions, weights, n_clusterings, whole,
    ids, similarities, bound, bound_hash,
):  # fmt: skip
    """List anew the nearest of all ``active`` regions for ``queries[start:stop]``; return the comparisons made.

    No region of a tile is nearer to the query than Σ_c w_c (share of c in the query) (ceiling of c in the tile) / M.
    Tiles are visited in falling bands of that bound, and not at all where it is under the last entry of a full list.
    With unit weights (``whole``) the sum of products is the numerator itself; otherwise it is rounded in another order
    than the exact one, so that what may enter a list is scored again.
    """
    n_tiles = ceilings.shape[1]
    n_listed = ids.shape[1]
    query = np.zeros(len(weights))
    reach = np.empty(n_tiles, dtype=np.float32)
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
            share = np.float32(query[cluster] / regions.size[a])
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
        lowered = n_clusterings * (1.0 - 2e-6 - 1.2e-7 * regions.length[a])
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
                    if whole:
                        similarity = score / (regions.size[a] * regions.size[r] * n_clusterings)
                    else:
                        similarity = similarity_of(regions, weights, n_clusterings, a, r)
                    listed = insert(ids[a], similarities[a], ties, listed, r, similarity, pair_hash(a, r))
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
    return compared

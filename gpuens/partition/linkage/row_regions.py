"""Searches over the label rows of regions, for ensembles whose rows share few labels.

The similarity of regions A and R is the mean similarity of A to the objects of R. If histograms have hardly fewer
entries than their rows have labels, and bounds exclude no tiles, rows of bytes are compared faster than histograms: 64
queries at once, by 16-bit integers that bound Σ_c w_c (share of c in A) from above for a chunk of the clusterings.
Regions whose mean may enter a list are scored exactly by their histograms.
"""

import numpy as np

from gpuens import device as devices
from gpuens.compiled import njit
from gpuens.lanes import LANES, lowest, reaching
from gpuens.partition.linkage.comparisons import chunks_of, label_scores
from gpuens.partition.linkage.nearest import TILE, Lists, NearestIndex
from gpuens.partition.linkage.order import NO_HASH, comes_before, insert, pair_hash
from gpuens.partition.linkage.regions import Regions, shared

NEVER = 2**32 - 1  # a score above all others


def worthwhile(n_queries: int, n_entries: int, shape: tuple[int, int]) -> bool:
    """Return whether comparing rows (G, M) is faster than comparing histograms with ``n_entries`` in total."""
    n_labels = shape[0] * shape[1]
    return n_queries >= LANES and 2 * n_entries > n_labels and n_queries * n_labels > 10**7


def search_rows(
    queries: np.ndarray, active: np.ndarray, region: np.ndarray, index: NearestIndex, regions: Regions,
    weights: np.ndarray, lists: Lists,
) -> int:  # fmt: skip
    """List the nearest of all ``active`` regions for each of ``queries`` anew; return the number of comparisons.

    ``region`` (G,) is the region of each row. As in `regions.search`, a full list holds active regions with their
    current similarities.
    """
    n_rows = len(region)
    position = np.full(n_rows, n_rows)
    position[active] = np.arange(len(active))
    of_place = position[region[index.order]]
    members = np.argsort(of_place, kind="stable")
    rows, sizes = index.rows[members], index.sizes[index.order[members]]
    ends = np.cumsum(np.bincount(of_place, minlength=len(active))[: len(active)])
    queries = queries[np.argsort(position[queries])]
    starts, offsets = index.starts, index.starts - np.arange(len(index.starts))
    chunks = chunks_of(starts, np.dtype(np.uint16).itemsize)

    def work(start: int, stop: int) -> int:
        return _search(
            queries[start * LANES : stop * LANES], active, ends, rows, sizes, starts, offsets, chunks, regions, weights,
            *lists,
        )  # fmt: skip

    return sum(devices.over_ranges(work, -(-len(queries) // LANES)))


@njit(cache=True, nogil=True)
def _search(
    queries, active, ends, rows, sizes, starts, offsets, chunks, regions, weights,
    ids, similarities, bound, bound_hash,
):  # fmt: skip
    n_clusterings, n_chunks, n_listed = rows.shape[1], len(chunks) - 1, ids.shape[1]
    clusters, counts = regions.clusters, regions.counts  # once: each look takes a reference
    first_entry, length, size = regions.start, regions.length, regions.size
    to_score = np.empty(LANES)
    scales = np.empty(LANES)
    widest = 0
    for c in range(n_chunks):
        widest = max(widest, starts[chunks[c + 1]] - starts[chunks[c]])
    table = np.zeros((widest, LANES), dtype=np.uint16)
    held = np.zeros((LANES, len(weights)), dtype=counts.dtype)
    floor = np.full((1, LANES), NEVER, dtype=np.uint32)  # the score that is worth scoring exactly
    listed = np.empty(LANES, dtype=np.int64)
    ties = np.empty((LANES, n_listed), dtype=np.uint64)
    n_members = ends[-1]
    n_batch = 4 * TILE if n_chunks == 1 else n_members  # a table is filled once
    sums = np.empty((n_batch, LANES), dtype=np.uint32)
    total = np.zeros(LANES, dtype=np.float32)
    mean = np.zeros((1, LANES), dtype=np.uint32)
    compared = 0
    for first in range(0, len(queries), LANES):
        width = min(LANES, len(queries) - first)
        own = queries[first : first + width]
        for j in range(width):
            a = own[j]
            scales[j] = _scale(a, offsets, chunks, regions, weights)
            to_score[j] = n_clusterings * scales[j] * (1.0 - 1e-9)
            least = np.inf
            for s in range(n_listed):
                least = min(least, similarities[a, s] if ids[a, s] >= 0 else 0.0)
                ids[a, s] = -1
                similarities[a, s] = 0.0
            floor[0, j] = max(1, int(least * to_score[j]))
            listed[j] = 0
            for e in range(first_entry[a], first_entry[a] + length[a]):
                held[j, clusters[e]] = counts[e]
        for j in range(width, LANES):
            floor[0, j] = NEVER
        at_region = 0
        begin_region = 0
        for at in range(0, n_members, n_batch):
            n_here = min(n_batch, n_members - at)
            for c in range(n_chunks):
                begin, end = chunks[c], chunks[c + 1]
                if n_chunks > 1 or at == 0:
                    _fill(table, own, begin, end, starts, offsets, regions, weights, scales)
                label_scores(rows, at, n_here, starts, begin, end, table, sums, 0)
            compared += n_here * n_clusterings * width
            for i in range(n_here):
                last = at + i + 1 == ends[at_region]
                if last and at + i == begin_region:  # a row alone
                    hits = reaching(sums, i, floor)
                else:
                    weight = np.float32(sizes[at + i])
                    for j in range(LANES):
                        total[j] += weight * np.float32(sums[i, j])
                    if not last:
                        continue
                    # rounded up, by more than the sums can be off by
                    n_rows = at + i + 1 - begin_region
                    per_object = np.float32((1.0 + 1e-6 + 1.2e-7 * n_rows) / size[active[at_region]])
                    for j in range(LANES):
                        mean[0, j] = np.uint32(total[j] * per_object + np.float32(1.0))
                        total[j] = 0.0
                    hits = reaching(mean, 0, floor)
                r = active[at_region]
                at_region += 1
                begin_region = at + i + 1
                while hits:
                    j = lowest(hits)
                    hits &= hits - np.uint64(1)
                    a = own[j]
                    if r == a or j >= width:
                        continue
                    product = shared(clusters, counts, first_entry[r], first_entry[r] + length[r], held[j], weights)
                    similarity = product / (size[a] * size[r] * n_clusterings)
                    tie, end_of_list = pair_hash(a, r), n_listed - 1
                    if similarity <= 0.0 or (
                        listed[j] == n_listed
                        and not comes_before(similarity, tie, similarities[a, end_of_list], ties[j, end_of_list])
                    ):
                        continue
                    listed[j] = insert(ids[a], similarities[a], ties[j], listed[j], r, similarity, tie)
                    if listed[j] == n_listed:
                        floor[0, j] = max(1, int(similarities[a, end_of_list] * to_score[j]))
        for j in range(width):
            a = own[j]
            full = listed[j] == n_listed
            bound[a] = similarities[a, n_listed - 1] if full else 0.0
            bound_hash[a] = ties[j, n_listed - 1] if full else NO_HASH
            for e in range(first_entry[a], first_entry[a] + length[a]):
                held[j, clusters[e]] = 0
    return compared


@njit(cache=True, nogil=True)
def _fill(table, own, begin, end, starts, offsets, regions, weights, scales):
    """Write what an object of each cluster of clusterings ``begin`` … ``end`` is worth to regions, rounded up."""
    clusters, counts = regions.clusters, regions.counts
    for c in range(starts[end] - starts[begin]):
        for j in range(LANES):
            table[c, j] = 0
    for j in range(len(own)):
        a = own[j]
        e, last = regions.start[a], regions.start[a] + regions.length[a]
        high = last
        while e < high:  # the first entry of these clusterings
            middle = (e + high) // 2
            if clusters[middle] < offsets[begin]:
                e = middle + 1
            else:
                high = middle
        per_object = scales[j] / regions.size[a]
        m = begin
        while e < last and clusters[e] < offsets[end]:
            while clusters[e] >= offsets[m + 1]:
                m += 1
            unit = np.ceil(weights[clusters[e]] * counts[e] * per_object)
            table[clusters[e] + m - starts[begin], j] = np.uint16(unit)
            e += 1


@njit(cache=True, nogil=True)
def _scale(a, offsets, chunks, regions, weights):
    """Return the units of a similarity of 1 / M: as many as 16 bits hold of the labels of any chunk, rounded up."""
    e, last = regions.start[a], regions.start[a] + regions.length[a]
    units = np.inf
    for c in range(len(chunks) - 1):
        most = 0.0
        for m in range(chunks[c], chunks[c + 1]):
            best = 0.0
            while e < last and regions.clusters[e] < offsets[m + 1]:
                best = max(best, weights[regions.clusters[e]] * (regions.counts[e] / regions.size[a]))
                e += 1
            most += best
        if most > 0.0:
            units = min(units, (65_535 - (chunks[c + 1] - chunks[c])) / most)
    return units * (1.0 - 1e-9) if units < np.inf else 1.0

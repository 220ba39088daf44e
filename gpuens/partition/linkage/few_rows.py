"""Average linkage of few rows by a matrix of all pairs of rows, in one compiled function without further threads.

Below about 1,500 rows, lists, threads and a NumPy call for each step cost more than the arithmetic. The rounds are the
same as in `average`, to the bit: the nearest regions, ties, similarities of merges and number of rounds are equal.

The matrix (G, G) holds Σ_c w_c n_A[c] n_R[c] of every two regions; the sums of a union are the sums of its parts. Sums
of whole numbers are exact in float64. Other sums depend on the order of addition, so they only select candidates. The
candidates are all regions whose score is within the rounding ``slack`` of the best score; their similarities are then
computed from their histograms.
"""

from typing import Any

import numpy as np

from gpuens.labels.rows import Rows
from gpuens.partition.linkage.dendrogram import Dendrogram
from gpuens.partition.linkage.order import NO_HASH, comes_before, pair_hash
from gpuens.partition.linkage.regions import Regions, count_dtype, merge_some, move_some, regions_of, similarity_of
from gpuens.partition.linkage.rounds import RETIRED, UNKNOWN
from gpuens.partition.linkage.work import Work
from gpuens.runtime import device as devices
from gpuens.runtime.compiled import njit

MOST = 1500  # largest number of rows; the matrix of so many rows takes 18 MB
BLOCK = 64  # columns in a block, for which the highest score is stored; also the rows mirrored at a time
ARENAS = 6.5  # size of three arenas, relative to the entries of all rows: 1.5 at first, 2.5 in each of `_with_room`
NEVER = np.iinfo(np.int64).max // 2  # larger than the bits of any score, read as an integer


def suits(rows: Rows, whole: bool) -> bool:
    """Return whether `link` can be used: for few rows on the CPU, if memory holds all pairs.

    If weights are ``whole``, float64 must also hold all sums exactly.
    """
    if rows.device != "cpu" or len(rows) > MOST:
        return False
    entry = 4 + count_dtype(rows.n_objects).itemsize
    if len(rows) * (8 * len(rows) + ARENAS * entry * rows.n_clusterings + 112) > devices.memory_budget():
        return False
    return not whole or float(rows.n_objects) ** 2 * rows.n_clusterings < 2.0**53


def link(rows: Rows, similarity: Any, work: Work) -> Dendrogram:
    """Return the dendrogram of distinct label rows under a diagonal S; parameters are those of `average_linkage`."""
    codes, offsets, sizes = rows.codes, rows.offsets, rows.counts
    n_rows, n_clusterings = codes.shape
    exact, weights = similarity.whole, similarity.weights.astype(np.float64)
    sums = np.zeros((n_rows, n_rows))
    _add_labels(codes, offsets, weights, sizes, sums)
    # largest difference, in units in the last place, between scores from sums that were added in different orders
    slack = 16 * (len(weights) + n_rows + 8)
    regions = regions_of(codes, offsets, sizes)
    kept, absorbed, heights = np.empty(n_rows, dtype=np.int64), np.empty(n_rows, dtype=np.int64), np.empty(n_rows)
    made, rounds, searches = _link(
        sums, regions, weights, n_clusterings, exact, slack, np.full(n_rows, UNKNOWN), np.zeros(n_rows), kept, absorbed,
        heights,
    )  # fmt: skip
    work.comparisons += n_rows * (n_rows - 1) // 2 * n_clusterings
    work.searches += searches - n_rows  # the first search of each row is not counted, as in `average`
    work.rounds += rounds
    return Dendrogram.from_merges(kept[:made], absorbed[:made], heights[:made], n_rows)


@njit(cache=True, nogil=True)
def _add_labels(codes, offsets, weights, sizes, sums):
    """Add to ``sums`` the weight of the common labels of two rows times the product of their sizes.

    The diagonal stays 0.
    """
    n_rows, n_clusterings = codes.shape
    missing = codes.dtype.type(-1)
    for low in range(0, n_rows, BLOCK):
        high = min(low + BLOCK, n_rows)
        for i in range(low, high):
            for m in range(n_clusterings):
                label = codes[i, m]
                if label == missing:
                    continue
                weight = weights[offsets[m] + label]
                for j in range(i):
                    sums[i, j] += weight if codes[j, m] == label else 0.0
            for j in range(i):
                sums[i, j] *= sizes[i] * sizes[j]
        for first in range(0, high, BLOCK):
            for j in range(first, min(first + BLOCK, high)):
                for i in range(max(low, j + 1), high):
                    sums[j, i] = sums[i, j]


@njit(cache=True, nogil=True)
def _link(sums, regions, weights, n_clusterings, exact, slack, nearest, similarity, kept, absorbed, heights):
    """Merge regions and write each merge to the output arrays; return the numbers of merges, rounds and searches.

    ``nearest`` (G,) is the nearest region of each row in the first round, or UNKNOWN; ``similarity`` (G,) is the
    similarity with it.
    """
    # loops instead of NumPy functions, because Numba takes tenths of a second to compile each of these functions
    n_rows, size, length = len(sums), regions.size, regions.length
    active, into = np.arange(n_rows), np.arange(n_rows)
    per_object, scores = np.empty(n_rows), np.empty(n_rows)
    # floats ≥ 0 have the same order as their bits, read as integers; vector instructions find the largest integer
    bits = scores.view(np.int64)
    highest = np.empty((n_rows + BLOCK - 1) // BLOCK, dtype=np.int64)  # highest score in each block
    bound = np.empty(n_rows, dtype=np.int64)  # upper bound on the scores of all regions except the nearest
    caught_up = np.empty(n_rows, dtype=np.int64)  # for each row, number of merges whose columns it has added
    merged = np.empty(n_rows, dtype=np.bool_)  # whether a region merged in this round
    begins = np.empty(n_rows, dtype=np.int64)
    for a in range(n_rows):
        per_object[a], bound[a], caught_up[a], merged[a] = 1.0 / size[a], NEVER, 0, False
    used, n_active = regions.used[0], n_rows
    n_merges, n_pairs, rounds, searches = 0, -1, 0, 0
    while n_active > 0:
        searched = 0
        for i in range(n_active):
            a = active[i]
            if nearest[a] == UNKNOWN:
                _catch_up(sums, a, kept, absorbed, caught_up[a], n_merges)
                caught_up[a] = n_merges
                nearest[a], similarity[a], bound[a] = _nearest(
                    a, sums, per_object, regions, weights, n_clusterings, exact, slack, scores, bits, highest
                )  # fmt: skip
                searched += 1
        searches += searched
        if n_pairs == 0 and searched == 0:  # rounding errors made the nearest regions form a cycle; merge the best pair
            best = active[0]
            for i in range(n_active):
                if similarity[active[i]] > similarity[best]:
                    best = active[i]
            nearest[nearest[best]], similarity[nearest[best]] = best, similarity[best]

        first, entries, room = n_merges, 0, 0
        for i in range(n_active):
            a = active[i]
            b = nearest[a]
            entries += length[a]
            if a < b and nearest[b] == a:
                kept[n_merges], absorbed[n_merges], heights[n_merges], begins[n_merges] = a, b, similarity[a], room
                merged[a] = merged[b] = True
                into[b] = a
                room += length[a] + length[b]
                n_merges += 1
        n_pairs = n_merges - first
        rounds += n_pairs > 0
        if used + room > len(regions.clusters):
            regions = _with_room(regions, active[:n_active], 5 * entries // 2)
            length, used = regions.length, entries
        for p in range(first, n_merges):
            begins[p] += used
        merge_some(regions, kept[first:n_merges], absorbed[first:n_merges], begins[first:n_merges])
        used += room

        n_left = 0
        for i in range(n_active):
            a = active[i]
            if nearest[a] >= 0 and into[a] == a:
                active[n_left] = a
                n_left += 1
        n_active = n_left
        for p in range(first, n_merges):
            a, b = kept[p], absorbed[p]
            _catch_up(sums, a, kept, absorbed, caught_up[a], first)
            _catch_up(sums, b, kept, absorbed, caught_up[b], first)
            for c in range(n_rows):
                sums[a, c] += sums[b, c]
            sums[a, a] = sums[a, b] = 0.0
            caught_up[a] = first
            per_object[a], per_object[b] = 1.0 / size[a], 0.0
        for i in range(n_active):
            c = active[i]
            if merged[c]:
                nearest[c] = UNKNOWN
            elif merged[nearest[c]]:
                union = into[nearest[c]]
                scores[0] = sums[union, c] * per_object[union]
                if bits[0] > bound[c] + slack:  # no other region is nearer
                    nearest[c] = union
                    similarity[c] = _similarity(union, c, sums, regions, weights, n_clusterings, exact)
                else:
                    nearest[c] = UNKNOWN
        for p in range(first, n_merges):
            merged[kept[p]] = merged[absorbed[p]] = False
    return n_merges, rounds, searches


@njit(cache=True, nogil=True)
def _catch_up(sums, a, kept, absorbed, start, stop):
    """Add the columns of absorbed regions to those of kept regions in row a, for the merges start … stop - 1."""
    for p in range(start, stop):
        sums[a, kept[p]] += sums[a, absorbed[p]]


@njit(cache=True, nogil=True)
def _nearest(a, sums, per_object, regions, weights, n_clusterings, exact, slack, scores, bits, highest):
    """Return the nearest region of region a, the similarity with it, and an upper bound on the scores of all others.

    The nearest is RETIRED if region a shares no cluster with any other region. Scores are proportional to similarities.
    """
    n_rows, row = np.uint64(len(scores)), np.uint64(a)  # unsigned, to save checks for negative indices
    for b in range(n_rows):
        scores[b] = sums[row, b] * per_object[b]
    most = np.int64(0)
    for t in range(len(highest)):
        highest[t] = _highest(bits, t, n_rows)
        most = max(most, highest[t])
    nearest, best, best_tie = RETIRED, 0.0, NO_HASH
    if most == 0:
        return nearest, best, most
    at_least = max(1, most - slack)
    for t in range(len(highest)):
        if highest[t] < at_least:
            continue
        for b in range(t * BLOCK, min((t + 1) * BLOCK, len(scores))):
            if bits[b] < at_least:
                continue
            similarity = _similarity(a, b, sums, regions, weights, n_clusterings, exact)
            tie = pair_hash(a, b)
            if nearest < 0 or comes_before(similarity, tie, best, best_tie):
                nearest, best, best_tie = b, similarity, tie
    bits[nearest] = 0
    highest[nearest // BLOCK] = _highest(bits, nearest // BLOCK, n_rows)
    most = np.int64(0)
    for t in range(len(highest)):
        most = max(most, highest[t])
    return nearest, best, most


@njit(cache=True, nogil=True)
def _highest(bits, t, n_rows):
    """Return the largest of the integers ``bits`` in block t."""
    found, begin = np.int64(0), np.uint64(t) * np.uint64(BLOCK)
    for b in range(begin, min(begin + np.uint64(BLOCK), n_rows)):
        found = max(found, bits[b])
    return found


@njit(cache=True, nogil=True)
def _similarity(a, b, sums, regions, weights, n_clusterings, exact):
    if exact:
        return sums[a, b] / (regions.size[a] * regions.size[b] * n_clusterings)
    return similarity_of(regions, weights, n_clusterings, a, b)


@njit(cache=True, nogil=True)
def _with_room(regions, live, capacity):
    """Return regions with a new arena, at whose beginning are copies of the histograms of ``live`` regions."""
    n_rows, used = len(regions.size), 0
    clusters = np.empty(capacity, dtype=regions.clusters.dtype)
    counts = np.empty(capacity, dtype=regions.counts.dtype)
    start, length = np.empty(n_rows, dtype=np.int64), np.empty(n_rows, dtype=np.int64)
    for r in range(n_rows):
        start[r] = length[r] = 0
    for r in live:
        start[r], length[r] = used, regions.length[r]
        used += length[r]
    roomy = Regions(clusters, counts, start, length, regions.size, regions.used)
    move_some(regions, roomy, live)
    return roomy

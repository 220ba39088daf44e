"""Searches over the label rows of regions, for ensembles whose rows share few labels.

The similarity of regions A and R is the mean similarity of A to the objects of R. Where bounds exclude few tiles, most
regions are small and their histograms have hardly fewer entries than their rows have labels: rows of bytes are compared
faster than histograms, 64 queries at once, by 16-bit integers that bound Σ_c w_c (share of c in A) from above for a
chunk of the clusterings. The scores also tell below what score no region can be among the K nearest, so that few are
scored exactly, by their histograms. With unit weights the sums of regions of few objects are exact as they are. Regions
of more than 64 rows, for which comparing rows would be slower, are compared as histograms.
"""

from typing import NamedTuple

import numpy as np

from gpuens import device as devices
from gpuens.compiled import njit
from gpuens.lanes import LANES, aligned_zeros, lowest, reaching
from gpuens.partition.linkage.comparisons import (
    CANDIDATES,
    UNITS,
    are_exact,
    chunks_of,
    forget_scores,
    label_scores,
    no_scores,
    rows_of_tables,
    take_score,
)
from gpuens.partition.linkage.nearest import TILE, Lists, NearestIndex
from gpuens.partition.linkage.order import NO_HASH, emptied, insert, pair_hash
from gpuens.partition.linkage.regions import (
    LAID,
    Regions,
    clear,
    histograms,
    lay_out,
    shared,
    shared_by_shorter,
)

NEVER = 2**32 - 1  # a score above all others
EXACT = 256  # objects of which float32 adds up sums of 16 bits exactly


class Members(NamedTuple):
    """The rows of each of G regions as a chain, in arrays (G,).

    Region a begins with row a, and ``follows`` leads from row to row, to -1 behind the ``last`` of ``n_rows``.
    """

    follows: np.ndarray
    last: np.ndarray
    n_rows: np.ndarray

    @classmethod
    def of_rows(cls, n_rows: int) -> "Members":
        return cls(np.full(n_rows, -1), np.arange(n_rows), np.ones(n_rows, dtype=np.int64))

    def unite(self, kept: np.ndarray, absorbed: np.ndarray) -> None:
        self.follows[self.last[kept]] = absorbed
        self.last[kept] = self.last[absorbed]
        self.n_rows[kept] += self.n_rows[absorbed]

    def of_regions(self, some: np.ndarray, place: np.ndarray, sizes: np.ndarray) -> tuple[np.ndarray, ...]:
        """Return the ``place`` and ``sizes`` of the rows of ``some`` regions, and where those of each end."""
        ends = np.cumsum(self.n_rows[some])
        places, theirs = np.empty((2, int(ends[-1]) if len(ends) else 0), dtype=np.int64)
        _follow(some, self.follows, place, sizes, places, theirs)
        return places, theirs, ends


@njit(cache=True, nogil=True, makes_arrays=False)
def _follow(some, follows, place, sizes, places, theirs):
    n = 0
    for row in some:
        while row >= 0:
            places[n], theirs[n] = place[row], sizes[row]
            row = follows[row]
            n += 1


def search_rows(
    queries: np.ndarray, active: np.ndarray, members: Members, index: NearestIndex, regions: Regions,
    weights: np.ndarray, lists: Lists,
) -> int:  # fmt: skip
    """List the nearest of all ``active`` regions for each of ``queries`` anew; return the number of comparisons.

    Both are in the order of the rows, like ones together. As in `regions.search`, a full list holds active regions with
    their current similarities.
    """
    small, large = apart(active, members, len(weights))
    laid = histograms(regions, large, len(weights))
    places, sizes, ends = members.of_regions(small, index.place, index.sizes)
    starts, offsets = index.starts, index.offsets
    chunks, tables = chunks_of(starts, np.dtype(np.uint16).itemsize)

    n_listed, widest = lists.ids.shape[1], rows_of_tables(starts, chunks, tables)
    n_batch = TILE if len(tables) == 2 else max(1, len(places))  # a table is filled once

    def scratch() -> tuple[np.ndarray, ...]:
        return (
            np.empty(LANES),
            np.empty(LANES),
            aligned_zeros(widest, LANES, np.uint16),
            np.zeros(len(weights), dtype=regions.counts.dtype),
            np.full((1, LANES), NEVER, dtype=np.uint32),
            no_scores(LANES, n_listed, np.uint32),
            np.empty((LANES, CANDIDATES), dtype=np.int64),
            np.empty((LANES, CANDIDATES), dtype=np.uint32),
            np.empty((LANES, CANDIDATES), dtype=np.float32),
            np.empty(LANES, dtype=np.int64),
            np.empty(LANES, dtype=np.int64),
            np.empty((LANES, n_listed), dtype=np.uint64),
            aligned_zeros(n_batch + 1, LANES, np.uint32),
            np.zeros(LANES, dtype=np.float32),
        )

    def work(start: int, stop: int) -> int:
        return int(_search(
            queries[start * LANES : stop * LANES], small, ends, large, laid, places, index.rows, sizes, starts,
            offsets, chunks, tables, regions, weights, weights.dtype.kind == "i", scratch(), *lists,
        ))  # fmt: skip

    return sum(devices.over_ranges(work, -(-len(queries) // LANES)))


def apart(active: np.ndarray, members: Members, n_clusters: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the regions whose rows are compared, and the largest of more than 64 rows, as whole histograms are."""
    n_rows = members.n_rows[active]
    large = np.flatnonzero(n_rows > LANES)
    large = large[np.argsort(-n_rows[large], kind="stable")][: LAID // n_clusters]
    return np.delete(active, large), active[large]


@njit(cache=True, nogil=True, makes_arrays=False)
def _search(
    queries, small, ends, large, laid, members, rows, sizes, starts, offsets, chunks, tables, regions, weights, whole,
    scratch, ids, similarities, bound, bound_hash,
):  # fmt: skip
    n_clusterings, n_members, n_listed = rows.shape[1], len(members), ids.shape[1]
    length, size = regions.length, regions.size
    # floor: the score that is worth scoring exactly; best: scores; behind the sums of rows are a region's
    (
        to_score, scales, table, held, floor, best, candidates, scores, totals, n_candidates, listed, ties, sums,
        total,
    ) = scratch  # fmt: skip
    n_batch = len(sums) - 1
    compared = 0
    for first in range(0, len(queries), LANES):
        width = min(LANES, len(queries) - first)
        own = queries[first : first + width]
        for j in range(width):
            a = own[j]
            scales[j] = _scale(a, offsets, chunks, regions, weights, whole)
            to_score[j] = n_clusterings * scales[j] * (1.0 - 1e-9)
            forget_scores(best, j)
            floor[0, j] = max(1, int(emptied(ids, similarities, a) * to_score[j]))
            listed[j], n_candidates[j] = 0, 0
            if len(large) > 0:
                lay_out(regions, a, held)
                for i in range(len(large)):
                    r = large[i]
                    if r == a:
                        continue
                    compared += min(length[a], length[r])
                    similarity = shared_by_shorter(regions, weights, a, held, r, laid[i])
                    similarity /= size[a] * size[r] * n_clusterings
                    if similarity > 0.0:
                        listed[j] = insert(ids, similarities, ties, a, j, listed[j], r, similarity, pair_hash(a, r))
                if listed[j] == n_listed:
                    floor[0, j] = max(floor[0, j], int(similarities[a, n_listed - 1] * to_score[j]))
                clear(regions, a, held)
        for j in range(width, LANES):
            floor[0, j] = NEVER
        at_region = 0
        begin_region = 0
        for at in range(0, n_members, n_batch):
            n_here = min(n_batch, n_members - at)
            row_scores(
                own, rows, members, at, n_here, starts, offsets, chunks, tables, at == 0, regions, weights, scales,
                table, sums,
            )  # fmt: skip
            compared += n_here * n_clusterings * width
            for i in range(n_here):
                last = at + i + 1 == ends[at_region]
                n_rows = at + i + 1 - begin_region
                row, weight = i, np.float32(sizes[at + i])
                if not last:
                    before = np.float32(n_rows > 1)  # a region's first row writes over the last one's total
                    for j in range(LANES):
                        total[j] = before * total[j] + weight * np.float32(sums[i, j])
                    continue
                if n_rows > 1:
                    row = n_batch
                    # rounded up, by more than the sums can be off by
                    per_object = np.float32((1.0 + 1e-6 + 1.2e-7 * n_rows) / size[small[at_region]])
                    for j in range(LANES):
                        total[j] += weight * np.float32(sums[i, j])
                        sums[row, j] = np.uint32(total[j] * per_object + np.float32(1.0))
                r = small[at_region]
                at_region += 1
                begin_region = at + i + 1
                hits = reaching(sums, row, floor)
                while hits:
                    j = lowest(hits)
                    hits &= hits - np.uint64(1)
                    a = own[j]
                    if r == a:
                        continue
                    score = sums[row, j]
                    n = n_candidates[j]
                    candidates[j, n], scores[j, n] = r, score
                    totals[j, n] = total[j] if n_rows > 1 else weight * np.float32(score)
                    n_candidates[j] = n + 1
                    if n_rows <= LANES and score > best[j, n_listed - 1]:
                        # rounding up has added less than 1 a label, and a share of all that sums can be off by
                        take_score(best, j, score)
                        sure = best[j, n_listed - 1] * (1.0 - 4e-5) - n_clusterings - 2.0
                        floor[0, j] = max(floor[0, j], int(max(sure, 0.0)))
                    if n_candidates[j] == CANDIDATES:
                        listed[j] = _score(
                            a, j, candidates, scores, totals, n_candidates[j], floor[0, j], scales[j], regions, held,
                            weights, n_clusterings, whole, ids, similarities, ties, listed[j],
                        )  # fmt: skip
                        n_candidates[j] = 0
                        if listed[j] == n_listed:
                            floor[0, j] = max(floor[0, j], int(similarities[a, n_listed - 1] * to_score[j]))
        for j in range(width):
            a = own[j]
            listed[j] = _score(
                a, j, candidates, scores, totals, n_candidates[j], floor[0, j], scales[j], regions, held, weights,
                n_clusterings, whole, ids, similarities, ties, listed[j],
            )  # fmt: skip
            full = listed[j] == n_listed
            bound[a] = similarities[a, n_listed - 1] if full else 0.0
            bound_hash[a] = ties[j, n_listed - 1] if full else NO_HASH
    return compared


@njit(cache=True, nogil=True, makes_arrays=False)
def row_scores(
    own, rows, members, at, n_here, starts, offsets, chunks, tables, fresh, regions, weights, scales, table, sums
):  # fmt: skip
    """Write the scores of ``n_here`` rows, those of ``members`` from ``at`` on, with the regions ``own`` into ``sums``.

    ``fresh`` says whether the table is of other regions as yet; one of several tables is filled anyway.
    """
    n_tables = len(tables) - 1
    for t in range(n_tables):
        begin, end = chunks[tables[t]], chunks[tables[t + 1]]
        if n_tables > 1 or fresh:
            _fill(table, own, begin, end, starts, offsets, regions, weights, scales)
        for c in range(tables[t], tables[t + 1]):
            label_scores(rows, members, at, n_here, starts, chunks[c], chunks[c + 1], starts[begin], table, sums, 0)


@njit(cache=True, nogil=True, makes_arrays=False)
def _score(
    a, j, candidates, scores, totals, n, floor, scale, regions, held, weights, n_clusterings, whole, ids, similarities,
    ties, listed,
):  # fmt: skip
    """List lane j's candidates that reach the floor by their similarity to region a; return the list's length."""
    size, length, start = regions.size, regions.length, regions.start
    exact, laid, per_unit = are_exact(size[a], n_clusterings, whole), False, size[a] / scale
    for i in range(n):
        if scores[j, i] < floor:
            continue
        r = candidates[j, i]
        if exact and size[r] <= EXACT:
            product = weights[0] * np.int64(totals[j, i] * per_unit + 0.5)  # the weights are ones
        else:
            if not laid:
                laid = True
                lay_out(regions, a, held)
            product = shared(regions.clusters, regions.counts, start[r], start[r] + length[r], held, weights)
        similarity = product / (size[a] * size[r] * n_clusterings)
        if similarity > 0.0:
            listed = insert(ids, similarities, ties, a, j, listed, r, similarity, pair_hash(a, r))
    if laid:
        clear(regions, a, held)
    return listed


@njit(cache=True, nogil=True, makes_arrays=False)
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


@njit(cache=True, nogil=True, makes_arrays=False)
def _scale(a, offsets, chunks, regions, weights, whole):
    """Return the units of a similarity of 1 / M: as many as 16 bits hold of the labels of any chunk, rounded up.

    Where sums `are_exact`, an object is worth a whole number of units.
    """
    n_clusterings = len(offsets) - 1
    if are_exact(regions.size[a], n_clusterings, whole):
        return np.float64(regions.size[a] * (UNITS // (regions.size[a] * n_clusterings)))
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
            units = min(units, (UNITS - (chunks[c + 1] - chunks[c])) / most)
    return units * (1.0 - 1e-9) if units < np.inf else 1.0

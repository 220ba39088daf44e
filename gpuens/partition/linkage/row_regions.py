"""Searches over the label rows of regions, for ensembles whose rows share few labels.

The similarity of regions A and R is the mean similarity of A with the objects of R. If bounds exclude few tiles, most
regions are small, and their histograms have nearly as many entries as their rows have labels. Then rows of labels are
compared faster than histograms: 64 queries at a time, by sums of 16-bit integers that are upper bounds of
Σ_c w_c (share of c in A) for a chunk of the clusterings. The scores also give a floor: no region whose score is below
the floor can be among the K nearest. So exact similarities, from histograms, are needed for few regions only. With unit
weights, the sums are exact for queries of few objects, and fit bytes for queries of very few objects. Regions of more
than 64 rows are compared as histograms, which is faster for such regions.
"""

from typing import Any, NamedTuple

import numpy as np

from gpuens.partition.linkage.comparisons import (
    BYTE,
    CANDIDATES,
    UNITS,
    above_rounding,
    are_exact,
    chunks_of,
    forget_scores,
    label_scores,
    no_scores,
    rows_of_tables,
    take_score,
)
from gpuens.partition.linkage.lists import emptied, insert
from gpuens.partition.linkage.nearest import TILE, NearestIndex, Shortlists
from gpuens.partition.linkage.order import NO_HASH, pair_hash
from gpuens.partition.linkage.regions import (
    LAID,
    Regions,
    clear,
    histograms,
    lay_out,
    shared,
    shared_by_shorter,
)
from gpuens.partition.linkage.weights import weight_of
from gpuens.runtime import device as devices
from gpuens.runtime.compiled import njit
from gpuens.runtime.lanes import LANES, aligned_zeros, lowest, reaching

NEVER = 2**32 - 1  # a floor that no score reaches
EXACT = 256  # number of objects up to which 16-bit sums add up exactly in float32


class Members(NamedTuple):
    """The rows of each of G regions as a linked chain, in arrays (G,).

    The chain of region a begins with row a. ``follows`` is the next row in the chain of each row, or -1 at the end of
    the chain. ``last`` is the last row and ``n_rows`` the number of rows of each region.
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
        """Return the places and sizes of all rows of the regions ``some``, and the end (n,) of each region's rows."""
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
    weights: np.ndarray, lists: Shortlists,
) -> int:  # fmt: skip
    """Rebuild the list of nearest regions of each region in ``queries``, from all ``active`` regions.

    Returns the number of comparisons. ``queries`` and ``active`` are in the order of the rows, so that adjacent regions
    are similar. As in `regions.search`, a full list holds active regions with current similarities.
    """
    small, large = apart(active, members, len(weights))
    laid = histograms(regions, large, len(weights))
    places, sizes, ends = members.of_regions(small, index.place, index.sizes)
    per_object = (above_rounding(np.diff(ends, prepend=0)) / regions.size[small]).astype(np.float32)
    starts, offsets, n_listed, whole = index.starts, index.offsets, lists.ids.shape[1], weights.dtype.kind == "i"
    few = (regions.size[queries] * (len(offsets) - 1) <= BYTE) & whole
    parts = _Part.of(queries[few], starts, np.uint8), _Part.of(queries[~few], starts, np.uint16)

    def scratch(part: _Part) -> tuple[np.ndarray, ...]:
        # with all rows in one batch, a single table is filled only once
        n_batch = TILE if len(part.tables) == 2 else max(1, len(places))
        summed: Any = np.uint8 if part.kind is np.uint8 else np.uint32
        return (
            np.empty(LANES),
            np.empty(LANES),
            np.empty(LANES, dtype=np.uint32),
            aligned_zeros(rows_of_tables(starts, part.chunks, part.tables), LANES, part.kind),
            np.zeros(len(weights), dtype=regions.counts.dtype),
            np.empty((1, LANES), dtype=np.uint32),
            np.empty((1, LANES), dtype=summed),
            no_scores(LANES, n_listed, np.uint32),
            np.empty((LANES, CANDIDATES), dtype=np.int64),
            np.empty((LANES, CANDIDATES), dtype=np.uint32),
            np.empty((LANES, CANDIDATES), dtype=np.float32),
            np.empty(LANES, dtype=np.int64),
            np.empty(LANES, dtype=np.int64),
            np.empty((LANES, n_listed), dtype=np.uint64),
            aligned_zeros(n_batch, LANES, summed),
            np.zeros(LANES, dtype=np.float32),
            aligned_zeros(1, LANES, np.uint32),
        )

    def work(start: int, stop: int) -> int:
        compared = 0
        for part in parts:  # the numbers of blocks continue from the first part to the second
            some = part.queries[max(0, start) * LANES : max(0, stop) * LANES]
            start, stop = start - part.n_blocks, stop - part.n_blocks
            if len(some):
                compared += int(_search_by_rows(
                    some, small, ends, per_object, large, laid, places, index.rows, sizes, starts, offsets,
                    part.chunks, part.tables, regions, weights, whole, scratch(part), *lists,
                ))  # fmt: skip
        return compared

    return sum(devices.over_ranges(work, sum(part.n_blocks for part in parts)))


class _Part(NamedTuple):
    """Queries, in blocks of 64, whose tables have the dtype ``kind``."""

    queries: np.ndarray
    kind: Any
    chunks: np.ndarray
    tables: np.ndarray
    n_blocks: int

    @classmethod
    def of(cls, queries: np.ndarray, starts: np.ndarray, kind: Any) -> "_Part":
        return cls(queries, kind, *chunks_of(starts, np.dtype(kind).itemsize), -(-len(queries) // LANES))


def apart(active: np.ndarray, members: Members, n_clusters: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the regions to compare by rows, and large regions (of more than 64 rows) to compare by histograms."""
    n_rows = members.n_rows[active]
    large = np.flatnonzero(n_rows > LANES)
    large = large[np.argsort(-n_rows[large], kind="stable")][: LAID // n_clusters]
    return np.delete(active, large), active[large]


@njit(cache=True, nogil=True, makes_arrays=False)
def _search_by_rows(
    queries, small, ends, per_object, large, laid, members, rows, sizes, starts, offsets, chunks, tables, regions,
    weights, whole, scratch, ids, similarities, bound, bound_hash,
):  # fmt: skip
    n_clusterings, n_members, n_listed = rows.shape[1], len(members), ids.shape[1]
    length, size = regions.length, regions.size
    # ``floor``: the smallest score for which an exact similarity is computed; ``least``: the smallest sum of a row with
    # which a region can reach the floor; ``best``: the best scores
    (
        to_score, units, per_unit, table, held, floor, least, best, candidates, scores, totals, n_candidates, listed,
        ties, sums, total, of_region,
    ) = scratch  # fmt: skip
    n_batch = len(sums)
    compared = 0
    for first in range(0, len(queries), LANES):
        width = min(LANES, len(queries) - first)
        own = queries[first : first + width]
        for j in range(width):
            a = own[j]
            scale = _scale(a, offsets, chunks, regions, weights, whole)
            units[j], per_unit[j] = scale, 1
            if table.itemsize == 1:  # an object has one unit
                units[j] = size[a]
                per_unit[j] = scale / size[a]
            to_score[j] = n_clusterings * scale * (1.0 - 1e-9)
            forget_scores(best, j)
            floor[0, j] = 0
            _raise(floor, least, j, max(1, int(emptied(ids, similarities, a) * to_score[j])), per_unit)
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
                    _raise(floor, least, j, int(similarities[a, n_listed - 1] * to_score[j]), per_unit)
                clear(regions, a, held)
        for j in range(width, LANES):
            floor[0, j], least[0, j] = NEVER, NEVER  # stored in a byte, NEVER becomes 255
        at_region = 0
        begin_region = 0
        for at in range(0, n_members, n_batch):
            n_here = min(n_batch, n_members - at)
            row_scores(
                own, rows, members, at, n_here, starts, offsets, chunks, tables, at == 0, regions, weights, units,
                table, sums,
            )  # fmt: skip
            compared += n_here * n_clusterings * width
            for i in range(n_here):
                last = at + i + 1 == ends[at_region]
                n_rows = at + i + 1 - begin_region
                weight = np.float32(sizes[at + i])
                if not last:
                    # 0 if this is a region's first row, so that the previous region's total is dropped
                    before = np.float32(n_rows > 1)
                    for j in range(LANES):
                        total[j] = before * total[j] + weight * np.float32(sums[i, j])
                    continue
                if n_rows > 1:
                    share = per_object[at_region]
                    for j in range(LANES):
                        total[j] += weight * np.float32(sums[i, j])
                        score = total[j] * (share * np.float32(per_unit[j]))
                        of_region[0, j] = np.uint32(score + np.float32(1.0))
                    hits = reaching(of_region, 0, floor, 0)
                else:
                    hits = reaching(sums, i, least, 0)
                r = small[at_region]
                at_region += 1
                begin_region = at + i + 1
                while hits:
                    j = lowest(hits)
                    hits &= hits - np.uint64(1)
                    a = own[j]
                    if r == a:
                        continue
                    n, row_sum = n_candidates[j], np.uint32(sums[i, j])
                    score = of_region[0, j] if n_rows > 1 else row_sum * per_unit[j]
                    candidates[j, n], scores[j, n] = r, score
                    totals[j, n] = total[j] if n_rows > 1 else weight * np.float32(row_sum)
                    n_candidates[j] = n + 1
                    if n_rows <= LANES and score > best[j, n_listed - 1]:
                        # the score is lowered by 1 per label, because units are rounded up, and by the relative error
                        # of sums
                        take_score(best, j, score)
                        sure = best[j, n_listed - 1] * (1.0 - 4e-5) - n_clusterings - 2.0
                        _raise(floor, least, j, int(sure), per_unit)
                    if n_candidates[j] == CANDIDATES:
                        listed[j] = _score(
                            a, j, candidates, scores, totals, n_candidates[j], floor[0, j], units[j], regions, held,
                            weights, n_clusterings, whole, ids, similarities, ties, listed[j],
                        )  # fmt: skip
                        n_candidates[j] = 0
                        if listed[j] == n_listed:
                            _raise(floor, least, j, int(similarities[a, n_listed - 1] * to_score[j]), per_unit)
        for j in range(width):
            a = own[j]
            listed[j] = _score(
                a, j, candidates, scores, totals, n_candidates[j], floor[0, j], units[j], regions, held, weights,
                n_clusterings, whole, ids, similarities, ties, listed[j],
            )  # fmt: skip
            full = listed[j] == n_listed
            bound[a] = similarities[a, n_listed - 1] if full else 0.0
            bound_hash[a] = ties[j, n_listed - 1] if full else NO_HASH
    return compared


@njit(cache=True, nogil=True, makes_arrays=False)
def _raise(floor, least, j, to, per_unit):
    """Raise lane j's floor to the score ``to`` if ``to`` is higher; also raise the smallest sufficient row sum."""
    if to > floor[0, j]:
        floor[0, j] = to
        least[0, j] = (to + per_unit[j] - 1) // per_unit[j]


@njit(cache=True, nogil=True, makes_arrays=False)
def row_scores(
    own, rows, members, at, n_here, starts, offsets, chunks, tables, fresh, regions, weights, units, table, sums
):  # fmt: skip
    """Write the scores of the regions ``own`` with the rows ``members[at : at + n_here]`` to ``sums``.

    ``fresh`` tells whether a single table must be filled for these regions; if there are several tables, each of them
    is always filled.
    """
    n_tables = len(tables) - 1
    for t in range(n_tables):
        begin, end = chunks[tables[t]], chunks[tables[t + 1]]
        if n_tables > 1 or fresh:
            _fill(table, own, begin, end, starts, offsets, regions, weights, units)
        for c in range(tables[t], tables[t + 1]):
            label_scores(rows, members, at, n_here, starts, chunks[c], chunks[c + 1], starts[begin], table, sums, 0)


@njit(cache=True, nogil=True, makes_arrays=False)
def _score(
    a, j, candidates, scores, totals, n, floor, units, regions, held, weights, n_clusterings, whole, ids, similarities,
    ties, listed,
):  # fmt: skip
    """Insert lane j's candidates whose score reaches the floor into the list of region a; return the list's length."""
    size, length, start = regions.size, regions.length, regions.start
    exact, laid, per_unit = are_exact(size[a], n_clusterings, whole), False, size[a] / units
    for i in range(n):
        if scores[j, i] < floor:
            continue
        r = candidates[j, i]
        if exact and size[r] <= EXACT:
            product = weight_of(weights, 0) * np.int64(totals[j, i] * per_unit + 0.5)
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
def _fill(table, own, begin, end, starts, offsets, regions, weights, units):
    """Fill the table of clusterings begin … end - 1: for each cluster, the score of an object in it, rounded up."""
    clusters, counts = regions.clusters, regions.counts
    for c in range(starts[end] - starts[begin]):
        for j in range(LANES):
            table[c, j] = 0
    for j in range(len(own)):
        a = own[j]
        e, last = regions.start[a], regions.start[a] + regions.length[a]
        high = last
        while e < high:  # binary search for the region's first entry in these clusterings
            middle = (e + high) // 2
            if clusters[middle] < offsets[begin]:
                e = middle + 1
            else:
                high = middle
        per_object = units[j] / regions.size[a]
        m = begin
        while e < last and clusters[e] < offsets[end]:
            while clusters[e] >= offsets[m + 1]:
                m += 1
            table[clusters[e] + m - starts[begin], j] = np.ceil(weights[clusters[e]] * counts[e] * per_object)
            e += 1


@njit(cache=True, nogil=True, makes_arrays=False)
def _scale(a, offsets, chunks, regions, weights, whole):
    """Return the number of units in a similarity of 1 / M: as large as possible, but a chunk's sums must fit 16 bits.

    If sums are exact (`are_exact`), an object has a whole number of units.
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

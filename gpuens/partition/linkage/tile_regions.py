"""Searches over tiles of label rows, one region at a time, for ensembles in which bounds exclude most tiles.

Adjacent regions are similar (`locality`), so a region is near the regions of a few tiles and far from all other
regions. The ceilings of a tile (`regions.ceilings_of`) bound the similarity with the regions of the tile. Groups of 16
tiles have ceilings, too. The ceilings of a group's tiles are read only if the bound of the group is high enough.

In a tile, the labels of 64 rows are adjacent for each clustering, so that one operation compares them with an entry of
the region's histogram. The sums are 16-bit numbers of units; they are upper bounds of Σ_c w_c (share of c in the
region) for each row. The similarity with a region is at most that with its nearest row, so the largest sum is enough to
exclude most tiles. At the end, exact similarities are computed for the near regions that the K best sums do not
exclude.

Tiles are used for many rounds. The similarity with a union is a mean of the similarities with its parts, so a bound on
all parts is a bound on the union. So tiles stay the same when regions merge; only when a region of a tile is near, the
union that contains it now takes its place.

Searches for many regions together, as in `regions.search` and `row_regions`, must visit every tile that any of these
regions needs; this search visits only the tiles that one region needs.
"""

import numpy as np

from gpuens.partition.linkage.comparisons import CANDIDATES, UNITS, are_exact, forget_scores, no_scores, take_score
from gpuens.partition.linkage.lists import emptied, insert
from gpuens.partition.linkage.nearest import TILE, NearestIndex, Shortlists
from gpuens.partition.linkage.order import NO_HASH, pair_hash
from gpuens.partition.linkage.regions import (
    CEILINGS,
    WHOLE,
    BoundingWeights,
    Regions,
    ceilings_of,
    clear,
    histograms,
    lay_out,
    lowered_by_rounding,
    reach_tiles,
    shared_by_shorter,
    similarity_to,
)
from gpuens.partition.linkage.rounds import now
from gpuens.partition.linkage.row_regions import Members, apart
from gpuens.runtime import device as devices
from gpuens.runtime.compiled import njit
from gpuens.runtime.lanes import (
    FLOAT_LANES,
    LANES,
    aligned_zeros,
    at_least,
    lowest,
    nothing,
    plus_bytes,
    plus_where,
    scaled_sum,
    store,
)

MOST = 2**12  # largest number of clusterings; with more clusterings, 16-bit sums would be too coarse


def bytes_needed(codes: np.ndarray, n_clusters: int) -> int:
    """Return the largest number of bytes that tiles and a search in them take, without lists."""
    n_rows, n_clusterings = map(int, codes.shape)
    tiles = min(CEILINGS, 2 * n_rows * n_clusters // TILE) // FLOAT_LANES + n_clusters
    ceilings = (FLOAT_LANES + 1) * tiles
    seen = 4 * (devices.n_threads() + 1)
    return n_rows * (2 * n_clusterings * int(codes.itemsize) + 48 + seen) + ceilings


class Tiles:
    """Tiles of the ``n_parts`` regions, with ``n_rows`` rows in total, that were active when the tiles were built."""

    def __init__(
        self, active: np.ndarray, members: Members, index: NearestIndex, regions: Regions, bounding: BoundingWeights
    ) -> None:
        n_clusters = len(bounding.weights)
        small, self.large = apart(active, members, n_clusters)
        places, self.sizes, self.ends = members.of_regions(small, index.place, index.sizes)
        self.of_row = np.repeat(np.arange(len(small)), members.n_rows[small])
        self.bounds, self.rows_to, self.blocks = _tiles(self.ends, n_clusters)
        self.n_clusterings: int = index.rows.shape[1]
        self.labels = aligned_zeros(int(self.blocks[-1]) * self.n_clusterings, LANES, index.rows.dtype)
        given = self.rows_to, self.blocks, places, index.rows, self.labels
        devices.over_ranges(lambda a, b: _lay_out_labels(a, b, *given), len(self.bounds) - 1, grain=32)
        self.small, self.part_sizes = small, regions.size[small]
        # a large region is a tile of its own; the last group of tiles is padded with empty tiles
        own_tiles = np.append(self.bounds, len(small) + 1 + np.arange(len(self.large)))
        own_tiles = np.pad(own_tiles, (0, (1 - len(own_tiles)) % FLOAT_LANES), mode="edge")
        self.ceilings = ceilings_of(np.append(small, self.large), own_tiles, regions, n_clusters)
        self.over_groups = np.empty((n_clusters, self.ceilings.shape[1] // FLOAT_LANES), dtype=np.uint8)
        devices.over_ranges(lambda a, b: _raise_over_groups(a, b, self.ceilings, self.over_groups), n_clusters)
        self.laid_at = np.full(len(regions.length), -1, dtype=np.int32)
        self.offsets, self.bounding = index.offsets, bounding
        self.n_parts, self.n_rows = len(active), len(places)
        self._scratch: list[tuple[np.ndarray, ...]] = []

    def search(
        self, queries: np.ndarray, into: np.ndarray, regions: Regions, weights: np.ndarray, lists: Shortlists
    ) -> int:  # fmt: skip
        """Rebuild the list of nearest regions of each region in ``queries``, from all active regions.

        Returns the number of comparisons. ``into`` is the region that absorbed each region. As in `regions.search`, a
        full list holds active regions with current similarities.
        """
        large = self.large
        while not np.array_equal(into[large], large):
            large = into[large]
        large = np.unique(large)
        laid = histograms(regions, large, len(weights))
        self.laid_at[large] = np.arange(len(large))

        def work(start: int, stop: int) -> int:
            try:
                scratch = self._scratch.pop()
            except IndexError:  # other threads use all working memory made so far
                scratch = self._make_scratch(regions, lists.ids.shape[1])
            try:
                return int(_search_tiles(
                    queries[start:stop], self.small, self.part_sizes, self.ends, self.of_row, self.rows_to, self.blocks,
                    self.ceilings, self.over_groups, self.large, laid, self.laid_at, into, self.labels, self.sizes,
                    self.n_clusterings, self.offsets, regions, weights, weights.dtype.kind == "i", *self.bounding,
                    scratch, *lists,
                ))  # fmt: skip
            finally:
                self._scratch.append(scratch)

        compared: int = sum(devices.over_ranges(work, len(queries), grain=16))
        self.laid_at[large] = -1
        return compared

    def _make_scratch(self, regions: Regions, n_listed: int) -> tuple[np.ndarray, ...]:
        """Return the working memory of `_search_tiles`."""
        (n_clusters, n_groups), dtype = self.over_groups.shape, self.bounding.weights.dtype
        most_blocks = int(np.diff(self.blocks).max(initial=0))
        return (
            np.zeros(n_clusters, dtype=regions.counts.dtype),
            np.zeros(len(regions.length), dtype=np.int32),
            np.zeros(1, dtype=np.int32),
            np.empty((1, n_groups), dtype=dtype),
            aligned_zeros(n_groups, FLOAT_LANES, dtype),
            np.empty(n_groups, dtype=bool),
            np.empty(n_clusters, dtype=dtype),
            np.empty((2, n_clusters), dtype=np.int64),
            np.empty(n_clusters, dtype=np.uint16),
            aligned_zeros(most_blocks, LANES, np.uint16),
            np.empty((1, n_listed), dtype=np.uint64),
            no_scores(1, n_listed, np.uint32),
            np.empty(CANDIDATES, dtype=np.int64),
            np.empty(CANDIDATES, dtype=np.uint32),
            np.empty(1, dtype=np.int64),
        )


def _tiles(ends: np.ndarray, n_clusters: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the first region, first row and first block of 64 rows of each tile, each (n_tiles + 1,).

    The last entries are the ends of the last tile. The rows of region i end at ``ends[i]``. A tile has at most 64 rows,
    or a multiple of 64 if there are many rows.
    """
    tile = TILE * max(1, -(-(int(ends[-1]) if len(ends) else 0) * n_clusters // (TILE // 2 * CEILINGS)))
    bounds = np.empty(len(ends) + 1, dtype=np.int64)
    bounds = bounds[: _fill_tiles(ends, tile, bounds) + 1]
    rows_to = np.append(0, ends)[bounds]
    return bounds, rows_to, np.append(0, np.cumsum(-(-np.diff(rows_to) // LANES)))


@njit(cache=True, nogil=True, makes_arrays=False)
def _fill_tiles(ends, tile, bounds):
    """Write the first region of each tile, so that a tile has at most ``tile`` rows; return the number of tiles."""
    n_tiles = begin = 0
    bounds[0] = 0
    for i in range(len(ends)):
        if ends[i] - begin > tile and i > bounds[n_tiles]:
            n_tiles += 1
            bounds[n_tiles], begin = i, ends[i - 1]
    if len(ends) > 0:
        n_tiles += 1
        bounds[n_tiles] = len(ends)
    return n_tiles


@njit(cache=True, nogil=True, makes_arrays=False)
def _lay_out_labels(start, stop, rows_to, blocks, places, rows, labels):
    """Write the labels of tiles ``start`` … ``stop`` - 1; for each clustering, the labels of 64 rows are adjacent."""
    n_clusterings = rows.shape[1]
    for t in range(start, stop):
        for p in range(rows_to[t], rows_to[t + 1]):
            i, row = p - rows_to[t], rows[places[p]]
            first = (blocks[t] + i // LANES) * n_clusterings
            for m in range(n_clusterings):
                labels[first + m, i % LANES] = row[m]


@njit(cache=True, nogil=True, makes_arrays=False)
def _search_tiles(
    queries, small, part_sizes, ends, of_row, rows_to, blocks, ceilings, over_groups, large, laid, laid_at, into,
    labels, sizes, n_clusterings, offsets, regions, weights, whole, bounding, unit, scratch,
    ids, similarities, bound, bound_hash,
):  # fmt: skip
    # ``best``: the best scores; ``candidates``: regions whose scores are upper bounds; at the end, their exact
    # similarities are computed
    (
        held, seen, n_searched, of_groups, reach, reached, worth, entries, units, sums, ties, best, candidates, scores,
        n_candidates,
    ) = scratch  # fmt: skip
    length, size = regions.length, regions.size
    n_groups, n_listed = len(reach), ids.shape[1]
    dtype, smallest = reach.dtype.type, np.finfo(reach.dtype).tiny
    n_small, rounding = len(rows_to) - 1, n_clusterings + 2  # ``rounding``: largest excess of a score, in units
    compared = 0
    for a in queries:
        least, listed, n_candidates[0] = emptied(ids, similarities, a), 0, 0
        forget_scores(best, 0)
        n_searched[0] += 1
        seen[a] = this = n_searched[0]
        lay_out(regions, a, held)
        exact = are_exact(size[a], n_clusterings, whole)
        scale = _units(a, offsets, regions, weights, exact, entries, units)
        to_score, to_reach = n_clusterings * scale * (1.0 - 1e-9), n_clusterings * unit * lowered_by_rounding(length[a])
        floor = _floor(least * to_score)
        low = dtype(0.75) * reach_tiles(regions, a, bounding, over_groups, of_groups, 0)
        _be_worth(regions, a, bounding, worth)
        compared += length[a] * n_groups
        for g in range(n_groups):
            reached[g] = False
        more = True
        while more:
            limit = max(low, smallest, dtype(least * to_reach))
            for g in range(n_groups):
                if of_groups[0, g] < limit:
                    continue
                if not reached[g]:
                    reached[g] = True
                    compared += length[a] * FLOAT_LANES
                    _reach_group(regions, a, worth, ceilings, reach, g)
                near = at_least(reach, g, limit)
                while near:
                    i = lowest(near)
                    near &= near - np.uint64(1)
                    if reach[g, i] < limit:  # the limit may have risen since ``near`` was computed
                        continue
                    reach[g, i] = -1.0  # a tile is visited only once
                    t = g * FLOAT_LANES + i
                    if t < n_small:
                        at, n_here = rows_to[t], rows_to[t + 1] - rows_to[t]
                        compared += length[a] * n_here
                        _add_units(labels, blocks[t], blocks[t + 1], n_clusterings, entries, units, length[a], sums)
                        listed = _look_into_tile(
                            a, at, n_here, of_row, small, part_sizes, ends, sizes, sums, floor, least, to_score, exact,
                            into, seen, this, held, laid, laid_at, regions, weights, n_clusterings, best, candidates,
                            scores, n_candidates, ids, similarities, ties, listed,
                        )  # fmt: skip
                    else:
                        r = now(into, large[t - n_small])
                        if seen[r] != this:
                            seen[r] = this
                            similarity = _similarity(a, r, held, laid, laid_at, regions, weights, n_clusterings)
                            take_score(best, 0, np.uint32(similarity * to_score))
                            listed = _list(a, r, similarity, ids, similarities, ties, listed)
                    # so many regions that they fill the list have at least the similarity ``proven``
                    proven = (best[0, n_listed - 1] - np.float64(rounding)) / (n_clusterings * scale) * (1.0 - 1e-9)
                    if listed == n_listed:
                        proven = max(proven, similarities[a, n_listed - 1])
                    if proven > least:
                        least = proven
                        floor = _floor(least * to_score)
                        limit = max(low, smallest, dtype(least * to_reach))
            more = low > max(smallest, dtype(least * to_reach))
            low *= dtype(0.75)

        listed = _list_candidates(
            a, candidates, scores, n_candidates[0], least * to_score, held, laid, laid_at, regions, weights,
            n_clusterings, ids, similarities, ties, listed,
        )  # fmt: skip
        clear(regions, a, held)
        full = listed == n_listed
        bound[a] = similarities[a, n_listed - 1] if full else 0.0
        bound_hash[a] = ties[0, n_listed - 1] if full else NO_HASH
    return compared


@njit(cache=True, nogil=True, makes_arrays=False)
def _raise_over_groups(start, stop, ceilings, over_groups):
    for c in range(start, stop):
        for g in range(over_groups.shape[1]):
            highest, t, end = np.uint8(0), g * FLOAT_LANES, (g + 1) * FLOAT_LANES
            while (
                t < end and highest < WHOLE
            ):  # without this second condition LLVM takes a second to vectorise the loop
                highest = max(highest, ceilings[c, t])
                t += 1
            over_groups[c, g] = highest


@njit(cache=True, nogil=True, makes_arrays=False)
def _be_worth(regions, a, bounding, worth):
    """Write, for each cluster of region a, the score that one unit (1/255) of the cluster's ceiling contributes."""
    each = 1.0 / (WHOLE * regions.size[a])
    for i in range(regions.length[a]):
        e = regions.start[a] + i
        worth[i] = worth.dtype.type(bounding[regions.clusters[e]] * (regions.counts[e] * each))


@njit(cache=True, nogil=True, makes_arrays=False)
def _reach_group(regions, a, worth, ceilings, reach, g):
    """Write the same bounds as `regions.reach_tiles`, only for the tiles of group g, to ``reach[g]``."""
    even, odd = nothing(reach), nothing(reach)  # two sums, so that consecutive additions are independent
    begin, length, i, one = np.uint64(regions.start[a]), np.uint64(regions.length[a]), np.uint64(0), np.uint64(1)
    while i + one < length:
        even = plus_bytes(even, ceilings, regions.clusters[begin + i], g * FLOAT_LANES, worth[i])
        odd = plus_bytes(odd, ceilings, regions.clusters[begin + i + one], g * FLOAT_LANES, worth[i + one])
        i += one + one
    if i < length:
        even = plus_bytes(even, ceilings, regions.clusters[begin + i], g * FLOAT_LANES, worth[i])
    store(scaled_sum(even, odd, reach.dtype.type(1.0)), reach, g)


@njit(cache=True, nogil=True, makes_arrays=False)
def _look_into_tile(
    a, at, n_rows, of_row, small, part_sizes, ends, sizes, sums, floor, least, to_score, exact, into, seen, this, held,
    laid, laid_at, regions, weights, n_clusterings, best, candidates, scores, n_candidates, ids, similarities, ties,
    listed,
):  # fmt: skip
    """Insert the regions near region a that have parts in one tile into its list; return the list's length.

    ``sums`` are the units of the tile's ``n_rows`` rows, which begin at row ``at``. A part is near if at least one of
    its rows reaches ``floor`` and the mean of its rows reaches ``least``. If a region has grown since the tiles were
    built, its similarity is computed immediately, from its histogram.
    """
    enough, last = least * to_score * (1.0 - 1e-9), ids.shape[1] - 1
    for first in range(0, n_rows, LANES):
        hits = at_least(sums, first // LANES, floor)
        if n_rows - first < LANES:
            hits &= (np.uint64(1) << np.uint64(n_rows - first)) - np.uint64(1)
        while hits:
            i = of_row[at + first + lowest(hits)]
            hits &= hits - np.uint64(1)
            r = now(into, small[i])
            if seen[r] == this:
                continue
            total = _total_units(i, ends, at, sizes, sums)
            if total < enough * part_sizes[i]:
                continue
            seen[r] = this
            grown = part_sizes[i] != regions.size[r]
            if grown:
                similarity = _similarity(a, r, held, laid, laid_at, regions, weights, n_clusterings)
            elif exact:
                similarity = np.int64(total) / (regions.size[a] * regions.size[r] * n_clusterings)
            if grown or exact:
                # if sums are exact, all near regions are listed, and the list's last entry gives a better floor
                if not exact:
                    take_score(best, 0, np.uint32(similarity * to_score))
                listed = _list(a, r, similarity, ids, similarities, ties, listed)
                continue
            score = np.uint32(total / part_sizes[i] + 1.0)
            n = n_candidates[0]
            candidates[n], scores[n] = r, score
            n_candidates[0] = n + 1
            if score > best[0, last]:
                take_score(best, 0, score)
            if n + 1 == CANDIDATES:
                listed = _list_candidates(
                    a, candidates, scores, n + 1, enough, held, laid, laid_at, regions, weights, n_clusterings,
                    ids, similarities, ties, listed,
                )  # fmt: skip
                n_candidates[0] = 0
    return listed


@njit(cache=True, nogil=True, makes_arrays=False)
def _list_candidates(
    a, candidates, scores, n, enough, held, laid, laid_at, regions, weights, n_clusterings, ids, similarities, ties,
    listed,
):  # fmt: skip
    """Insert the candidates with at least ``enough`` units into the list of region a; return the list's length."""
    for i in range(n):
        if scores[i] >= enough:
            r = candidates[i]
            similarity = _similarity(a, r, held, laid, laid_at, regions, weights, n_clusterings)
            listed = _list(a, r, similarity, ids, similarities, ties, listed)
    return listed


@njit(cache=True, nogil=True, makes_arrays=False)
def _similarity(a, r, held, laid, laid_at, regions, weights, n_clusterings):
    """Return the similarity of regions a and r; ``held`` is the dense histogram of region a.

    If ``laid`` has a dense histogram of region r, it is used.
    """
    if laid_at[r] < 0:
        return similarity_to(regions, held, weights, n_clusterings, a, r)
    total = shared_by_shorter(regions, weights, a, held, r, laid[laid_at[r]])
    return total / (regions.size[a] * regions.size[r] * n_clusterings)


@njit(cache=True, nogil=True, makes_arrays=False)
def _list(a, r, similarity, ids, similarities, ties, listed):
    """Insert region r into the list of region a if the similarity is above 0; return the length of the list."""
    if similarity > 0.0:
        listed = insert(ids, similarities, ties, a, 0, listed, r, similarity, pair_hash(a, r))
    return listed


@njit(cache=True, nogil=True, makes_arrays=False)
def _units(a, offsets, regions, weights, exact, entries, units):
    """Write the clustering and label of each entry of region a, and the units of an object with that label, rounded up.

    Returns the number of units in a similarity of 1 / M. It is as large as possible, but any row's sum must fit 16
    bits. If ``exact``, an object of region a has one unit, so that the number is the size of region a.
    """
    clusters, counts, begin, length = regions.clusters, regions.counts, regions.start[a], regions.length[a]
    per_object = 1.0 / regions.size[a]
    m, most, best = 0, 0.0, 0.0
    for i in range(length):
        cluster = clusters[begin + i]
        while cluster >= offsets[m + 1]:
            m += 1
            most, best = most + best, 0.0
        entries[0, i], entries[1, i] = m, cluster - offsets[m]
        best = max(best, weights[cluster] * (counts[begin + i] * per_object))
    most += best
    scale = (UNITS - len(offsets)) / most * (1.0 - 1e-9) if most > 0.0 else 1.0
    for i in range(length):
        if exact:
            units[i] = np.uint16(counts[begin + i])
        else:
            units[i] = np.uint16(np.ceil(weights[clusters[begin + i]] * (counts[begin + i] * per_object) * scale))
    return np.float64(regions.size[a]) if exact else scale


@njit(cache=True, nogil=True, makes_arrays=False)
def _floor(units):
    """Return the smallest sum of units at which a row is a candidate."""
    return np.uint16(max(1.0, min(units, float(UNITS))))


@njit(cache=True, nogil=True, makes_arrays=False)
def _add_units(labels, begin, end, n_clusterings, entries, units, n_entries, sums):
    """Write the units of all rows of blocks ``begin`` … ``end`` - 1 to ``sums`` (n, LANES), one block per row."""
    one, n = np.uint64(1), np.uint64(n_entries)
    for block in range(begin, end):
        total, first, e = nothing(sums), block * n_clusterings, np.uint64(0)
        while e < n:
            total = plus_where(total, labels, first + entries[0, e], labels.dtype.type(entries[1, e]), units[e])
            e += one
        store(total, sums, block - begin)


@njit(cache=True, nogil=True, makes_arrays=False)
def _total_units(i, ends, at, sizes, sums):
    """Return the units of all objects of region i, whose rows end at ``ends[i]``; sums begin at row ``at``."""
    total = 0.0
    for p in range(0 if i == 0 else ends[i - 1], ends[i]):
        total += np.float64(sizes[p]) * np.float64(sums[(p - at) // LANES, (p - at) % LANES])
    return total

"""Searches over tiles of label rows, one region at a time, for ensembles most of whose tiles bounds exclude.

Regions side by side are like ones (`likeness`), so a region is near those of a few tiles and far from all others: no
region of a tile is nearer than `regions.ceilings_of` allow. Of a tile that has to be looked at, the labels of some 64
rows lie side by side for each clustering: each entry of the region's histogram is compared with all of them at once,
and 16-bit units bound Σ_c w_c (share of c in the region) of each row from above. The similarity to a region is at most
that to its nearest row, so that most tiles are done with after one look at the largest sum.

Searching for regions together, as `regions.search` and `row_regions` do, looks at all tiles that any of them wants.
"""

import numpy as np

from gpuens import device as devices
from gpuens.compiled import njit
from gpuens.lanes import LANES, aligned_zeros, lowest, nothing, plus_where, reaching, store
from gpuens.partition.linkage.nearest import TILE, Lists, NearestIndex
from gpuens.partition.linkage.order import NO_HASH, emptied, insert, pair_hash
from gpuens.partition.linkage.regions import (
    CEILINGS,
    BoundingWeights,
    Regions,
    ceilings_of,
    clear,
    lay_out,
    lowered_by_rounding,
    reach_tiles,
    shared,
    shared_by_shorter,
)
from gpuens.partition.linkage.row_regions import Members, apart

UNITS = 65_535  # the largest sum of units
ENTRY = 3  # labels that are compared in the time of an entry of a histogram of the tiles that 16 regions want
LAYING = 40  # entries that 16 regions are compared with in the time that it takes to lay out a label
FEWEST = 10**5  # labels that are worth laying out
LOOSE = 0.5  # the share of what is looked at in spite of bounds, from which on they are not worth their time
MOST = 2**12  # clusterings, whose labels 16 bits can sum up without many candidates more


def worthwhile(
    n_queries: int, length: int, n_entries: int, n_rows: int, n_clusterings: int, screened: float
) -> bool:  # fmt: skip
    """Return whether searching by tiles of ``n_rows`` is faster than by histograms of ``n_entries`` in all.

    Queries have ``length`` entries each, and ``screened`` is the share of what bounds leave of the histograms.
    """
    return (
        screened < LOOSE
        and n_clusterings <= MOST
        and LAYING * n_rows * n_clusterings < n_queries * screened * n_entries
        and FEWEST < n_rows * length < ENTRY * n_entries
    )


def bytes_needed(codes: np.ndarray, n_clusters: int) -> int:
    """Return what a search takes at most beside its lists, in bytes."""
    n_rows, n_clusterings = map(int, codes.shape)
    ceilings = 4 * min(CEILINGS, n_rows * n_clusters // TILE + n_clusters)
    return n_rows * (2 * n_clusterings * int(codes.itemsize) + 32) + ceilings


def search_tiles(
    queries: np.ndarray, active: np.ndarray, members: Members, index: NearestIndex, regions: Regions,
    weights: np.ndarray, bounding: BoundingWeights, lists: Lists,
) -> int:  # fmt: skip
    """List the nearest of all ``active`` regions for each of ``queries`` anew; return the number of comparisons.

    Both are in the order of the rows, like ones together. As in `regions.search`, a full list holds active regions with
    their current similarities.
    """
    small, large, laid = apart(active, members, regions, len(weights))
    places, sizes, ends = members.of_regions(small, index.place, index.sizes)
    labels = np.empty((index.rows.shape[1], len(places) + LANES), dtype=index.rows.dtype)
    labels[:, : len(places)] = index.rows.take(places, axis=0).T
    labels[:, len(places) :] = 0  # of nobody: lanes behind the last row
    of_row = np.repeat(np.arange(len(small)), members.n_rows[small])
    bounds, rows_to = _tiles(ends, len(weights))
    # a large region is a tile of its own
    own_tiles = np.append(bounds, len(small) + 1 + np.arange(len(large)))
    ceilings = ceilings_of(np.append(small, large), own_tiles, regions, bounding)
    most_rows = int(np.diff(rows_to).max(initial=0))

    def work(start: int, stop: int) -> int:
        return int(_search(
            queries[start:stop], small, ends, of_row, bounds, rows_to, ceilings, large, laid, labels, sizes,
            index.offsets, regions, weights, weights.dtype.kind == "i", *bounding,
            _scratch(ceilings, regions, most_rows, lists.ids.shape[1]), *lists,
        ))  # fmt: skip

    return sum(devices.over_ranges(work, len(queries), grain=16))


def _tiles(ends: np.ndarray, n_clusters: int) -> tuple[np.ndarray, np.ndarray]:
    """Return tiles of regions side by side, of some 64 rows: where the regions and the rows of each begin.

    Both are (n_tiles + 1,) and end with where those of one more would begin. The rows of region i end at ``ends[i]``.
    """
    if not len(ends):
        return np.zeros(1, dtype=np.int64), np.zeros(1, dtype=np.int64)
    tile = max(TILE, -(-int(ends[-1]) * n_clusters // CEILINGS))
    bounds = np.append(np.flatnonzero(np.diff((ends - 1) // tile, prepend=-1)), len(ends))
    return bounds, np.append(0, ends)[bounds]


def _scratch(ceilings: np.ndarray, regions: Regions, most_rows: int, n_listed: int) -> tuple[np.ndarray, ...]:
    """Return the working memory of `_search`."""
    n_clusters, n_tiles = ceilings.shape
    return (
        np.zeros(n_clusters, dtype=regions.counts.dtype),
        np.empty((1, n_tiles), dtype=ceilings.dtype),
        np.empty((2, n_clusters), dtype=np.int64),
        np.empty(n_clusters, dtype=np.uint16),
        aligned_zeros(-(-most_rows // LANES), LANES, np.uint16),
        np.empty((1, LANES), dtype=np.uint16),
        np.empty((1, n_listed), dtype=np.uint64),
    )


@njit(cache=True, nogil=True, makes_arrays=False)
def _search(
    queries, small, ends, of_row, bounds, rows_to, ceilings, large, laid, labels, sizes, offsets, regions, weights,
    whole, bounding, unit, scratch, ids, similarities, bound, bound_hash,
):  # fmt: skip
    held, reach, entries, units, sums, floor, ties = scratch
    length, size = regions.length, regions.size
    n_clusterings, n_tiles, n_listed = len(labels), ceilings.shape[1], ids.shape[1]
    dtype = ceilings.dtype.type
    smallest = dtype(np.finfo(ceilings.dtype).tiny)
    n_small = len(bounds) - 1
    compared = 0
    for a in queries:
        least, listed = emptied(ids, similarities, a), 0
        lay_out(regions, a, held)
        exact = whole and size[a] * n_clusterings <= UNITS
        scale = _units(a, offsets, regions, weights, exact, entries, units)
        to_score, to_reach = n_clusterings * scale * (1.0 - 1e-9), n_clusterings * unit * lowered_by_rounding(length[a])
        floor[:] = _floor(least * to_score)
        low = dtype(0.75) * reach_tiles(regions, a, bounding, ceilings, reach, 0)
        compared += length[a] * n_tiles
        more = True
        while more:
            limit = max(low, smallest, dtype(least * to_reach))
            for t in range(n_tiles):
                if reach[0, t] < limit:
                    continue
                reach[0, t] = -1.0  # once
                if t < n_small:
                    at, n_here = rows_to[t], rows_to[t + 1] - rows_to[t]
                    compared += length[a] * n_here
                    _add_units(labels, at, n_here, entries, units, length[a], sums)
                    listed = _list_tile(
                        a, at, n_here, of_row, small, ends, sizes, sums, floor, least * to_score * (1.0 - 1e-9), exact,
                        held, regions, weights, n_clusterings, ids, similarities, ties, listed,
                    )  # fmt: skip
                elif large[t - n_small] != a:
                    r = large[t - n_small]
                    compared += min(length[a], length[r])
                    of_all = shared_by_shorter(regions, weights, a, held, r, laid[t - n_small])
                    listed = _list(a, r, of_all, regions, n_clusterings, ids, similarities, ties, listed)
                if listed == n_listed and similarities[a, n_listed - 1] > least:
                    least = similarities[a, n_listed - 1]
                    floor[:] = _floor(least * to_score)
                    limit = max(low, smallest, dtype(least * to_reach))
            more = low > max(smallest, dtype(least * to_reach))
            low *= dtype(0.75)

        clear(regions, a, held)
        full = listed == n_listed
        bound[a] = similarities[a, n_listed - 1] if full else 0.0
        bound_hash[a] = ties[0, n_listed - 1] if full else NO_HASH
    return compared


@njit(cache=True, nogil=True, makes_arrays=False)
def _list_tile(
    a, at, n_rows, of_row, small, ends, sizes, sums, floor, least, exact, held, regions, weights, n_clusterings,
    ids, similarities, ties, listed,
):  # fmt: skip
    """List the regions of a tile that are near region a; return the list's length.

    ``sums`` are the units of its ``n_rows`` rows from row ``at`` on. One row at least of a near region reaches the
    ``floor``, and all of them together reach ``least`` units an object.
    """
    clusters, counts, start, length = regions.clusters, regions.counts, regions.start, regions.length
    done = -1
    for first in range(0, n_rows, LANES):
        hits = reaching(sums, first // LANES, floor)
        if n_rows - first < LANES:
            hits &= (np.uint64(1) << np.uint64(n_rows - first)) - np.uint64(1)
        while hits:
            i = of_row[at + first + lowest(hits)]
            hits &= hits - np.uint64(1)
            if i == done or small[i] == a:
                continue
            done, r = i, small[i]
            total = _total_units(i, ends, at, sizes, sums)
            if total < least * regions.size[r]:
                continue
            of_all = weights[0] * 0
            if exact:
                of_all += np.int64(total)
            else:
                of_all += shared(clusters, counts, start[r], start[r] + length[r], held, weights)
            listed = _list(a, r, of_all, regions, n_clusterings, ids, similarities, ties, listed)
    return listed


@njit(cache=True, nogil=True, makes_arrays=False)
def _list(a, r, of_all, regions, n_clusterings, ids, similarities, ties, listed):
    """List region r for region a, whose pairs of objects sum up to ``of_all``, if it is near; return the length."""
    similarity = of_all / (regions.size[a] * regions.size[r] * n_clusterings)
    if similarity > 0.0:
        listed = insert(ids, similarities, ties, a, 0, listed, r, similarity, pair_hash(a, r))
    return listed


@njit(cache=True, nogil=True, makes_arrays=False)
def _units(a, offsets, regions, weights, exact, entries, units):
    """Write the clustering and label of each entry of region a, and what an object that has it is worth, rounded up.

    Return the units of a similarity of 1 / M: as many as 16 bits hold of any row, or one an object where that is
    ``exact``.
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
    """Return the sum of units from which on a row is worth a look."""
    return np.uint16(max(1.0, min(units, float(UNITS))))


@njit(cache=True, nogil=True, makes_arrays=False)
def _add_units(labels, at, n_rows, entries, units, n_entries, sums):
    """Write the units of ``n_rows`` rows from ``at`` on into ``sums`` (n, LANES), side by side."""
    one, n = np.uint64(1), np.uint64(n_entries)
    for block in range((n_rows + LANES - 1) // LANES):
        total, first, e = nothing(sums), at + block * LANES, np.uint64(0)
        while e < n:
            total = plus_where(total, labels, entries[0, e], first, labels.dtype.type(entries[1, e]), units[e])
            e += one
        store(total, sums, block)


@njit(cache=True, nogil=True, makes_arrays=False)
def _total_units(i, ends, at, sizes, sums):
    """Return the units of all objects of region i, whose rows end at ``ends[i]``; sums begin at row ``at``."""
    total = 0.0
    for p in range(0 if i == 0 else ends[i - 1], ends[i]):
        total += np.float64(sizes[p]) * np.float64(sums[(p - at) // LANES, (p - at) % LANES])
    return total

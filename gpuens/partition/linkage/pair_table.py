"""Average linkage by a table of all pairs of regions, for ensembles of many clusterings whose bounds exclude little.

If bounds exclude few tiles, every search compares a region with all rows, and a region is searched several times. A
table of the mean similarity of every two regions needs only one comparison of every two rows: the sums of a union
follow from the sums of its parts, |A ∪ B| s(A ∪ B, R) = |A| s(A, R) + |B| s(B, R).

The table (n, n) holds 16-bit integers: similarities in small units, rounded up. It takes 2 n² bytes. A region that has
not merged keeps its own table row. When two regions merge, their two table rows together hold the 32-bit sums of the
union, half of the columns in each row. Columns always belong to the n initial regions; a search adds up, for each
region, the columns of the initial regions in it.

The number of units bounds a similarity from above and, minus ``slack`` and the rounding of sums, from below. Each
region has a list of the regions nearest by units, and a bound on all regions outside the list. If more than one
candidate for the nearest region is left, exact similarities from histograms decide, so no bit of a result depends on
the table. A candidate is skipped if its upper bound is below an exact similarity already computed. A similarity of 1
has at least ``unit`` units.
"""

from typing import Any, NamedTuple

import numpy as np

from gpuens.labels.incidence import row_sums
from gpuens.partition.linkage.comparisons import UNITS, chunks_of
from gpuens.partition.linkage.nearest import NearestIndex
from gpuens.partition.linkage.order import NO_HASH, comes_before, pair_hash
from gpuens.partition.linkage.regions import Regions, clear, lay_out, shared, similarity_of, similarity_to
from gpuens.partition.linkage.rounds import RETIRED, UNKNOWN, State
from gpuens.partition.linkage.row_regions import Members, RowIndex
from gpuens.runtime import device as devices
from gpuens.runtime.compiled import njit
from gpuens.runtime.lanes import FLOAT_LANES, LANES, aligned_zeros, lowest, reaching
from gpuens.runtime.native import cpu

MOST = 2**30  # largest size of a table in bytes
PAIR = 64  # cost of a pair of rows in addition to its label comparisons, in label comparisons
LISTED = 16  # regions in a list
EPS = 6e-8  # relative rounding error of a float32 sum, for each term
OTHERS = 16  # number of roundings of a similarity in addition to the roundings of its sum
LAID = 2**22  # largest number of counts in dense histograms
TRIFLE = 2.0**-20  # number subtracted from a label's units, so that rounding never makes them exceed a whole number
WEIGHTS = 2.0**-10  # smallest weight that units can represent, divided by the largest weight


def bytes_needed(n_regions: int) -> int:
    """Return the number of bytes of a table of ``n_regions`` regions."""
    return 2 * n_regions * _padded(n_regions)


def comparisons_needed(n_rows: int, n_clusterings: int) -> int:
    """Return the cost, in label comparisons, of a table of regions that have ``n_rows`` rows in total."""
    return n_rows**2 // 2 * (n_clusterings + PAIR)


def _padded(n_regions: int) -> int:
    return -(-n_regions // LANES) * LANES


class PairSums(NamedTuple):
    """Sums of the n initial regions and of their unions, where a union takes the place of the kept region.

    ``units`` (n, columns) uint16, and ``wide`` the same memory as float32. ``first``, ``second`` (n,): the rows of
    ``units`` with the sums of a union, -1 for a region that has not merged. ``place`` (G,): the place of each region;
    ``ids`` (n,): the region at each place. ``worth`` (columns,): the number of objects of each initial region.
    ``follows``, ``last``, ``members`` (n,): a chain of the columns of each region, and their number. ``near``
    (n, LISTED): the places of the nearest regions, -1 for none; ``reach`` (n, LISTED): upper bounds on the similarity
    to each of them, ``bound`` (n,): to all other regions, in units. ``merged`` (n,): whether the region at a place has
    merged since the last update of lists. ``laid`` (some, N_c): dense histograms of long unions, which are near many
    regions; ``laid_at`` (n,): the row there, -1 for none; ``free``: the unused rows of ``laid``, all zeros, ``n_free``
    (1,) many.
    """

    units: Any
    wide: Any
    first: Any
    second: Any
    place: Any
    ids: Any
    worth: Any
    follows: Any
    last: Any
    members: Any
    near: Any
    reach: Any
    bound: Any
    merged: Any
    laid: Any
    laid_at: Any
    free: Any
    n_free: Any


class PairTable:
    """A table of all pairs of ``active`` regions, which finds the nearest region of each active region."""

    def __init__(
        self, active: np.ndarray, members: Members, index: NearestIndex, regions: Regions, weights: np.ndarray
    ) -> None:
        n = len(active)
        place = np.full(len(index.rows), -1)
        place[active] = np.arange(n)
        units, self.slack, self.unit = _units_of(active, members, index, regions, weights)
        self.weights = weights
        self.n_clusterings = index.rows.shape[1]
        self.comparisons = len(index.rows) ** 2 // 2 * self.n_clusterings
        worth = np.pad(regions.size[active].astype(np.float32), (0, units.shape[1] - n))
        n_laid = min(n, LAID // len(weights))
        self.table = PairSums(
            units, units.view(np.float32), np.full(n, -1), np.full(n, -1), place, active.copy(),
            worth, np.full(n, -1), np.arange(n), np.ones(n, dtype=np.int64),
            np.full((n, LISTED), -1, dtype=np.int32), np.zeros((n, LISTED)), np.full(n, np.inf),
            np.zeros(n, dtype=bool), np.zeros((n_laid, len(weights)), dtype=regions.counts.dtype), np.full(n, -1),
            np.arange(n_laid), np.array([n_laid]),
        )  # fmt: skip

    def find_nearest(self, state: State, active: np.ndarray, regions: Regions) -> int:
        """Find the nearest region of each of ``active`` regions after the last round's merges; count the searches.

        Returns the number of searches. Only for pairs that are each other's nearest, the similarity is written.
        """
        unknown = np.zeros(len(active), dtype=bool)
        given = state.into, regions, self.table, self.weights, self.n_clusterings, self.slack, self.unit

        def look_up(start: int, stop: int) -> None:
            _look_up(active[start:stop], *given, state.nearest, unknown[start:stop])

        devices.over_ranges(look_up, len(active), grain=1024)
        queries = active[unknown]
        places = self.table.place[active]
        members = self.table.members[places]
        unions = places[members > 1]
        columns, ends = np.empty(len(self.table.ids), dtype=np.uint32), np.empty(len(unions), dtype=np.int64)
        _columns_of(unions, self.table.follows, columns, ends)
        per_object = np.zeros(len(self.table.worth), dtype=np.float32)
        per_object[places] = (1.0 + EPS * members) / regions.size[active]

        def search(start: int, stop: int) -> None:
            _search_sums(
                queries[start:stop], active, unions, columns, ends, per_object, regions, self.table, self.weights,
                self.n_clusterings, self.slack, self.unit, state.nearest,
                aligned_zeros(len(per_object) // FLOAT_LANES, FLOAT_LANES, np.float32),
            )  # fmt: skip

        devices.over_ranges(search, len(queries), grain=8)
        self.table.merged.fill(False)

        def score(start: int, stop: int) -> None:
            _score_pairs(
                active[start:stop], regions, self.weights, self.n_clusterings, state.nearest, state.nearest_similarity
            )

        devices.over_ranges(score, len(active), grain=256)
        return len(queries)

    def score_all(self, state: State, active: np.ndarray, regions: Regions) -> None:
        """For each active region, store its similarity with its nearest region."""
        for a in active[state.nearest[active] >= 0].tolist():
            nearest = int(state.nearest[a])
            state.nearest_similarity[a] = similarity_of(regions, self.weights, self.n_clusterings, a, nearest)

    def unite(self, kept: np.ndarray, absorbed: np.ndarray, regions: Regions) -> None:
        """Add the sums of absorbed regions to those of kept regions."""
        for some in (kept, absorbed):
            self.table.merged[self.table.place[some]] = True
        _lay_out_long(kept, absorbed, 2 * self.n_clusterings, regions, self.table)

        def add(start: int, stop: int) -> None:
            _unite(kept[start:stop], absorbed[start:stop], self.table)

        devices.over_ranges(add, len(kept), grain=8)


def _units_of(
    active: np.ndarray, members: Members, index: NearestIndex, regions: Regions, weights: np.ndarray
) -> tuple[np.ndarray, float, float]:
    """Return the similarities of all pairs of active regions in units (n, columns), the largest excess, and ``unit``.

    The excess is the units of a pair minus its exact similarity, in units. ``unit`` is the smallest number of units in
    a similarity of 1.
    """
    n = len(active)
    most_rows = int(members.n_rows[active].max())
    n_clusterings = index.rows.shape[1]
    starts, offsets = index.starts, index.offsets
    exact = index.exact and most_rows == 1 and n_clusterings <= UNITS
    chunks, _ = chunks_of(starts, 1 if exact else 2)  # bytes of a label's units
    largest = np.maximum.reduceat(weights, offsets[:-1]).astype(np.float64)
    # the sum of a chunk's units must fit 16 bits, and the sum of all units must fit 32 bits
    scale = (UNITS - np.diff(chunks).max()) / np.add.reduceat(largest, chunks[:-1]).max() * (1.0 - 1e-9)
    scale = min(scale, 2.0**31 / largest.sum())
    worth, to_worth = weights, 1.0 if exact else scale
    if exact:
        scale, to_units, up, slack = 1.0, UNITS // n_clusterings, 0.5, 0.0
    else:
        above, below = float(n_clusterings), 0.0  # how far a row's units can be above and below the exact number
        if most_rows == 1:
            to_worth, (worth, above, below) = 1.0, _to_nearest(weights * scale, index)
        rounding = 2e-6 + 2.4e-7 * most_rows
        to_units = 65_533 / (largest.sum() * scale * (1.0 + rounding) + 2.0 * n_clusterings)
        up, slack = 1.0 + 1.001 * to_units * below, 2.0 + to_units * (above + below) + UNITS * rounding
    units = np.empty((n, _padded(n)), dtype=np.uint16)
    scales = float(to_worth), exact, float(to_units), float(up)
    cpu.fill_units(active, members, RowIndex.of(index), regions, worth, scales, units)
    return units, slack, to_units * scale * n_clusterings * (1.0 - 1e-9)


def _to_nearest(worth: np.ndarray, index: NearestIndex) -> tuple[np.ndarray, float, float]:
    """Return the units (N_c,) of labels if each region is one row, and the two largest rounding errors of a row.

    Units are rounded to the nearest whole number above 0, and then lowered by `TRIFLE`. The errors are the largest
    total excess and the largest total deficit of a row. The bounds on similarities are then a fourth as far apart as
    with units that are all rounded up.
    """
    whole = np.maximum(np.rint(worth), 1.0)
    above, below = (
        float(row_sums(index.codes, index.offsets, np.maximum(errors, 0.0)).max())
        for errors in (whole - worth, worth - whole)
    )
    return whole - TRIFLE, above, below


@njit(cache=True, nogil=True)
def _sums_at(table, p, q):
    """Return the sum at place p and column q; if p is an initial region, the mean over its objects."""
    if table.first[p] < 0:
        return np.float64(table.units[p, q])
    half = table.wide.shape[1]
    return np.float64(table.wide[table.first[p], q] if q < half else table.wide[table.second[p], q - half])


@njit(cache=True, nogil=True)
def _upper(p, q, size_p, size_q, table):
    """Return an upper bound of the similarity of the regions at places p and q."""
    members = table.members
    if members[p] > members[q]:
        p, q, size_p, size_q = q, p, size_q, size_p
    total, column = 0.0, p
    while column >= 0:
        total += table.worth[column] * _sums_at(table, q, column)
        column = table.follows[column]
    if table.first[q] >= 0:
        total /= size_q
    return total / size_p * (1.0 + EPS * (members[p] + members[q] + OTHERS))


@njit(cache=True, nogil=True)
def _lower(reach, p, q, table, slack):
    return reach * (1.0 - 2.0 * EPS * (table.members[p] + table.members[q] + OTHERS)) - slack


@njit(cache=True, nogil=True)
def _lay_out_long(kept, absorbed, length, regions, table):
    """Write dense histograms of those unions ``kept`` that have more than ``length`` entries, while rows are free."""
    laid_at, n_free = table.laid_at, table.n_free
    for i in range(len(kept)):
        p, q = table.place[kept[i]], table.place[absorbed[i]]
        if laid_at[q] >= 0 and laid_at[p] < 0:
            laid_at[p] = laid_at[q]
        elif laid_at[q] >= 0:
            table.laid[laid_at[q]][:] = 0
            table.free[n_free[0]] = laid_at[q]
            n_free[0] += 1
        laid_at[q] = -1
        if laid_at[p] < 0 and n_free[0] > 0 and regions.length[kept[i]] > length:
            n_free[0] -= 1
            laid_at[p] = table.free[n_free[0]]
        if laid_at[p] >= 0:
            lay_out(regions, kept[i], table.laid[laid_at[p]])


@njit(cache=True, nogil=True)
def _is_laid(a, r, regions, table):
    """Return whether region r has a dense histogram in the table, and at least as many entries as region a."""
    return table.laid_at[table.place[r]] >= 0 and regions.length[a] <= regions.length[r]


@njit(cache=True, nogil=True)
def _similarity(a, r, held, regions, table, weights, n_clusterings):
    """Return the same bits as `similarity_of` for regions a and r, by the dense histogram ``held`` of region a."""
    if not _is_laid(a, r, regions, table):
        return similarity_to(regions, held, weights, n_clusterings, a, r)
    begin, laid = regions.start[a], table.laid[table.laid_at[table.place[r]]]
    total = shared(regions.clusters, regions.counts, begin, begin + regions.length[a], laid, weights)
    return total / (regions.size[a] * regions.size[r] * n_clusterings)


@njit(cache=True, nogil=True)
def _decide(a, regions, table, weights, n_clusterings, slack, unit, held):
    """Return the nearest region of region a if its list decides it, else UNKNOWN."""
    p = table.place[a]
    near, reach = table.near[p], table.reach[p]
    least, listed = -np.inf, 0
    while listed < len(near) and near[listed] >= 0:
        least = max(least, _lower(reach[listed], p, near[listed], table, slack))
        listed += 1
    if table.bound[p] > 0.0 and table.bound[p] >= least:
        return UNKNOWN
    candidates = 0
    found = RETIRED
    for s in range(listed):
        if reach[s] >= least:
            candidates += 1
            found = table.ids[near[s]]
    if candidates < 2:
        return found
    found, best, best_tie = RETIRED, 0.0, NO_HASH
    lay = False
    for s in range(listed):
        if reach[s] >= least:
            lay |= not _is_laid(a, table.ids[near[s]], regions, table)
    if lay:
        lay_out(regions, a, held)
    for s in range(listed):
        if reach[s] >= least:
            r = table.ids[near[s]]
            similarity, tie = _similarity(a, r, held, regions, table, weights, n_clusterings), pair_hash(a, r)
            if comes_before(similarity, tie, best, best_tie):
                found, best, best_tie = r, similarity, tie
                least = max(least, similarity * unit)
    if lay:
        clear(regions, a, held)
    return found


@njit(cache=True, nogil=True)
def _look_up(active, into, regions, table, weights, n_clusterings, slack, unit, nearest, unknown):
    """Update the lists by the merges of the previous round, and find nearest regions in the lists.

    ``unknown`` marks the regions whose list does not decide the nearest region.
    """
    held = np.zeros(len(weights), dtype=regions.counts.dtype)
    place, ids, merged = table.place, table.ids, table.merged  # local, as Numba counts references at each access
    near, reach, size, n_listed = table.near, table.reach, regions.size, table.near.shape[1]
    for i in range(len(active)):
        a = active[i]
        p = place[a]
        if nearest[a] == UNKNOWN or merged[p]:
            nearest[a], unknown[i] = UNKNOWN, True
            continue
        gone, changed = merged[place[nearest[a]]], False
        for s in range(n_listed):
            changed |= near[p, s] >= 0 and merged[near[p, s]]
        if not (gone or changed):
            continue
        kept = 0
        for s in range(n_listed):
            q, upper = np.int64(near[p, s]), reach[p, s]
            if q < 0:
                break
            if merged[q]:
                r = into[ids[q]]
                q = place[r]
                seen = False
                for earlier in range(kept):
                    seen = seen or near[p, earlier] == q
                if seen:
                    continue
                upper = _upper(p, q, size[a], size[r], table)
            near[p, kept], reach[p, kept] = q, upper
            kept += 1
        for s in range(kept, n_listed):
            near[p, s] = -1
        if gone:
            nearest[a] = UNKNOWN
            if kept > 0:
                nearest[a] = _decide(a, regions, table, weights, n_clusterings, slack, unit, held)
            unknown[i] = nearest[a] == UNKNOWN


@njit(cache=True, nogil=True)
def _columns_of(unions, follows, columns, ends):
    """Write the columns of each union, one union after another, and the end of each union's columns."""
    n = 0
    for i in range(len(unions)):
        column = unions[i]
        while column >= 0:
            columns[n] = column
            n += 1
            column = follows[column]
        ends[i] = n


@njit(cache=True, nogil=True)
def _search_sums(
    queries, active, unions, columns, ends, per_object, regions, table, weights, n_clusterings, slack, unit, nearest,
    in_lanes,
):  # fmt: skip
    """Rebuild the list of each region in ``queries`` from all active regions, and find its nearest region."""
    held = np.zeros(len(weights), dtype=regions.counts.dtype)
    uppers = in_lanes.reshape(-1)  # upper bound on the similarity with the region at each place
    n_listed = table.near.shape[1]
    near, reach = np.empty(n_listed + 1, dtype=np.int32), np.empty(n_listed + 1, dtype=np.float32)
    limits = np.empty((1, FLOAT_LANES), dtype=np.float32)
    for a in queries:
        p = table.place[a]
        _bound_all(a, unions, columns, ends, per_object, regions, table, uppers)
        listed = 0
        limits[:] = np.finfo(np.float32).tiny
        for i in range(len(in_lanes)):
            hits = reaching(in_lanes, i, limits, 0)
            while hits:
                q = i * FLOAT_LANES + lowest(hits)
                hits &= hits - np.uint64(1)
                if listed <= n_listed:
                    listed += 1
                elif uppers[q] <= reach[n_listed]:
                    continue
                s = listed - 1
                while s > 0 and reach[s - 1] < uppers[q]:
                    near[s], reach[s] = near[s - 1], reach[s - 1]
                    s -= 1
                near[s], reach[s] = q, uppers[q]
                if listed > n_listed:
                    limits[:] = reach[n_listed]
        table.bound[p] = reach[n_listed] if listed > n_listed else 0.0
        for s in range(n_listed):
            table.near[p, s], table.reach[p, s] = near[s] if s < listed else -1, reach[s]
        nearest[a] = _decide(a, regions, table, weights, n_clusterings, slack, unit, held)
        if nearest[a] == UNKNOWN:  # more regions may be the nearest than fit into a list
            least = 0.0
            for s in range(min(listed, n_listed)):
                least = max(least, _lower(reach[s], p, near[s], table, slack))
            best, best_tie = 0.0, NO_HASH
            lay_out(regions, a, held)
            for r in active:
                upper = uppers[table.place[r]]
                if upper > 0.0 and upper >= least:
                    similarity = _similarity(a, r, held, regions, table, weights, n_clusterings)
                    tie = pair_hash(a, r)
                    if comes_before(similarity, tie, best, best_tie):
                        nearest[a], best, best_tie = r, similarity, tie
                        least = max(least, similarity * unit)
            clear(regions, a, held)


@njit(cache=True, nogil=True)
def _bound_all(a, unions, columns, ends, per_object, regions, table, uppers):
    """Write, for each place, an upper bound on the similarity of region a with its region; 0 if it has no region."""
    p, half = table.place[a], table.wide.shape[1]
    factor = 1.0 + EPS * (table.members[p] + OTHERS)
    if table.first[p] < 0:
        _weigh(table.units[p], table.worth, uppers)
    else:
        factor /= regions.size[a]
        _weigh(table.wide[table.first[p]], table.worth[:half], uppers[:half])
        _weigh(table.wide[table.second[p]], table.worth[half:], uppers[half:])
    begin = 0
    for i in range(len(ends)):
        end = ends[i]
        total, other = np.float32(0.0), np.float32(0.0)
        while begin + 1 < end:  # two sums, so that consecutive additions are independent
            total += uppers[columns[begin]]
            other += uppers[columns[begin + 1]]
            begin += 2
        if begin < end:
            total += uppers[columns[begin]]
            begin += 1
        uppers[unions[i]] = total + other
    for q in range(len(uppers)):
        uppers[q] *= per_object[q] * np.float32(factor)
    uppers[p] = 0.0


@njit(cache=True, nogil=True)
def _weigh(sums, worth, uppers):
    for q in range(len(sums)):
        uppers[q] = worth[q] * np.float32(sums[q])


@njit(cache=True, nogil=True)
def _score_pairs(active, regions, weights, n_clusterings, nearest, nearest_similarity):
    """Store the similarity of each pair of regions that are each other's nearest."""
    for a in active:
        b = nearest[a]
        if b > a and nearest[b] == a:
            nearest_similarity[a] = similarity_of(regions, weights, n_clusterings, a, b)


@njit(cache=True, nogil=True)
def _unite(kept, absorbed, table):
    units, wide, first, second, worth = table.units, table.wide, table.first, table.second, table.worth
    half = wide.shape[1]
    both = np.empty((2, half), dtype=np.float32)
    for i in range(len(kept)):
        p, q = table.place[kept[i]], table.place[absorbed[i]]
        if first[p] < 0 and first[q] < 0:
            for part in range(2):
                for c in range(half):
                    column = part * half + c
                    both[part, c] = worth[p] * np.float32(units[p, column]) + worth[q] * np.float32(units[q, column])
            first[p], second[p] = p, q
            for part, row in enumerate((p, q)):
                for c in range(half):
                    wide[row, c] = both[part, c]
        elif first[p] < 0 or first[q] < 0:
            alone, union = (p, q) if first[p] < 0 else (q, p)
            for part, row in enumerate((first[union], second[union])):
                for c in range(half):
                    wide[row, c] += worth[alone] * np.float32(units[alone, part * half + c])
            first[p], second[p] = first[union], second[union]
        else:
            for to, of in ((first[p], first[q]), (second[p], second[q])):
                for c in range(half):
                    wide[to, c] += wide[of, c]
        table.follows[table.last[p]] = q
        table.last[p] = table.last[q]
        table.members[p] += table.members[q]

"""The steps of a round of reciprocal nearest neighbours, on the CPU and by kernels (kernels/rounds.cu).

The steps leave their counts in the memory of the device, so that the next step can be launched before the host knows
the counts; the host reads all counts once in each round.
"""

from typing import Any, NamedTuple

import numpy as np

from gpuens.partition.linkage.lists import insert
from gpuens.partition.linkage.nearest import Shortlists
from gpuens.partition.linkage.order import NO_HASH, comes_before, pair_hash
from gpuens.partition.linkage.regions import (
    LAID,
    Regions,
    clear,
    histograms,
    lay_out,
    plus_shared,
    similarity_of,
    similarity_to,
)
from gpuens.partition.linkage.weights import weight_of
from gpuens.runtime import device as devices
from gpuens.runtime import kernels
from gpuens.runtime.compiled import njit

RETIRED = -1  # in place of the nearest region, if a region has similarity 0 with every other region
UNKNOWN = -2  # in place of the nearest region, while it is not known
AT_ONCE = 4  # pairs of regions compared in one loop
PAIRING = 256  # threads in a block of the kernel pair_up
CHAINED = 32  # largest number of blocks of pair_up (a thread has up to 32 regions); each waits for the previous block


class Counts(NamedTuple):
    """Counts of a round that the host reads."""

    active: int = 0  # regions that are neither absorbed nor retired
    unknown: int = 0  # active regions whose list does not decide which region is nearest
    entries: int = 0  # entries in the histograms of active regions
    pairs: int = -1  # pairs that merged in the previous round, -1 in the first round
    merges: int = 0  # merges so far
    rounds: int = 0  # rounds so far
    used: int = 0  # used entries of the arena of histograms
    compared: int = 0  # label comparisons in searches so far


ACTIVE, UNKNOWNS, ENTRIES, PAIRS, MERGES, ROUNDS, USED, COMPARED = range(len(Counts._fields))
OF_KERNELS = 4  # number of further counts, by which the blocks of pair_up wait for each other


class State(NamedTuple):
    """State of G regions between rounds, in arrays on the device.

    ``active`` (G,): the first ``counts[ACTIVE]`` entries are the active regions, with similar regions adjacent;
    ``survivors`` (G,): the regions that remain after the pairing of this round. ``unknown`` (G,): the first
    ``counts[UNKNOWNS]`` entries are active regions whose list does not decide which region is nearest. ``nearest``
    (G,): the nearest region of each active region, or RETIRED, or UNKNOWN; ``nearest_similarity`` (G,): the similarity
    with the nearest region. ``into`` (G,): the region that absorbed each region; ``partner`` (G,): the region that each
    region absorbed in this round, or -1. ``kept``, ``absorbed``, ``merged_at`` (G,): the kept region, absorbed region
    and similarity of the ``counts[MERGES]`` merges. ``counts``: the fields of `Counts`, int64.
    """

    active: Any
    survivors: Any
    unknown: Any
    nearest: Any
    nearest_similarity: Any
    into: Any
    partner: Any
    kept: Any
    absorbed: Any
    merged_at: Any
    counts: Any

    @classmethod
    def of_rows(cls, order: Any, device: str) -> "State":
        """Return the state in which each row is an active region; ``order`` (G,) is the order of the regions."""
        xp, n_rows = devices.namespace(device), len(order)
        counts = xp.zeros(len(Counts._fields) + OF_KERNELS, dtype=np.int64)
        counts[ACTIVE], counts[PAIRS] = n_rows, -1
        ids = (xp.empty(n_rows, dtype=np.int64) for _ in range(5))
        survivors, unknown, nearest, kept, absorbed = ids
        return cls(
            order.copy(), survivors, unknown, nearest, xp.empty(n_rows), xp.arange(n_rows),
            xp.full(n_rows, -1, dtype=np.int64), kept, absorbed, xp.empty(n_rows), counts,
        )  # fmt: skip


# --- on the CPU -------------------------------------------------------------------------------------------------------


class Certain(NamedTuple):
    """Size up to which each region's nearest region stays the nearest, in arrays (G,) on the CPU.

    See `reverse_neighbors` for the reason.

    While the nearest region has at most ``until`` objects, its similarity exceeds that of all other regions by at least
    the relative difference ``margin``, which is more than rounding errors. ``seen`` is the round in which a list was
    made, and ``merged`` is the round in which a region last merged.
    """

    until: np.ndarray
    seen: np.ndarray
    merged: np.ndarray
    margin: float

    @classmethod
    def of_rows(cls, n_rows: int, slack: float) -> "Certain":
        seen, merged = np.zeros((2, n_rows), dtype=np.int64)
        return cls(np.zeros(n_rows), seen, merged, 1e-12 + 4.0 * slack)

    def note(self, rows: np.ndarray, state: State, lists: Shortlists, size: np.ndarray) -> None:
        """Store, for rows with new lists, the size up to which their nearest region stays the nearest."""
        _note(rows, state, size, self, lists.similarities, lists.bound)


@kernels.primitive
def look_up(state: State, regions: Regions, lists: Shortlists, most: int, nothing: float = 0.0) -> None:
    """Find each UNKNOWN nearest region in the region's list, and record regions whose list does not decide it.

    A region has no nearest region if its list is empty and its bound is ``nothing``. This function also clears the
    partners of the previous round, and counts the entries of active regions. At most ``most`` regions are active.
    """
    active = state.active[: state.counts[ACTIVE]]
    certain = Certain.of_rows(len(state.nearest), 0.0)
    state.counts[UNKNOWNS] = look_up_some(active, state, regions.size, nothing, certain, *lists)
    state.counts[ENTRIES] = regions.length[active].sum()


@kernels.primitive
def take_first_listed(rows: Any, state: State, lists: Shortlists, slack: float, margin: float) -> None:
    """Take the first entry of each new list as the nearest region; raise the list's bound by the rounding tolerance.

    A raised bound also comes before all pairs of its similarity in the total order, whatever their hashes.
    """
    first = lists.ids[rows, 0]
    state.nearest[rows] = np.where(first >= 0, first, RETIRED)
    state.nearest_similarity[rows] = lists.similarities[rows, 0]
    if slack or margin:
        lists.bound[rows] = lists.bound[rows] * (1.0 + slack) + margin
        lists.bound_hash[rows] = 0


@kernels.primitive
def pair_up(state: State, most: int) -> None:
    """Pair regions that are each other's nearest, and write the survivors: all except absorbed and retired regions.

    At most ``most`` regions are active.
    """
    _pair_up(state)


@kernels.primitive
def update_lists(
    state: State, regions: Regions, weights: np.ndarray, lists: Shortlists, most: int, n_clusterings: int | None,
    slack: float = 0.0, margin: float = 0.0, nothing: float = 0.0,
) -> None:  # fmt: skip
    """Update the lists of active regions, at most ``most``, by the merges of this round.

    ``n_clusterings`` is None if similarities are ratios of sums, see `all_pairs`. ``slack`` and ``margin`` are the
    relative and absolute rounding tolerances of a similarity; ``nothing`` is the bound of a list that holds all
    regions.
    """
    active, certain = state.active[: state.counts[ACTIVE]], Certain.of_rows(len(state.nearest), 0.0)
    update_some(active, state, regions, weights, n_clusterings, slack, margin, nothing, certain, lists)
    state.counts[UNKNOWNS] = state.counts[ENTRIES] = 0  # reset, because the kernel of `look_up` adds to these counts


def update_some(
    some: np.ndarray, state: State, regions: Regions, weights: np.ndarray, n_clusterings: int | None, slack: float,
    margin: float, nothing: float, certain: Certain, lists: Shortlists,
) -> None:  # fmt: skip
    """Update only the lists of the regions ``some``; otherwise the same as `update_lists`."""
    merges, pairs = state.counts[MERGES], state.counts[PAIRS]
    laid, laid_at = _lay_out_longest(state, regions, weights, n_clusterings)
    certain.merged[state.kept[merges - pairs : merges]] = state.counts[ROUNDS]

    def update_range(start: int, stop: int) -> None:
        _update(
            some[start:stop], state, regions, laid, laid_at, weights, n_clusterings, slack, margin, nothing, certain,
            _scratch(stop - start, weights, regions, lists.ids.shape[1]), *lists,
        )  # fmt: skip

    devices.over_ranges(update_range, len(some), grain=256)


def _lay_out_longest(
    state: State, regions: Regions, weights: np.ndarray, n_clusterings: int | None
) -> tuple[np.ndarray, np.ndarray]:
    """Return dense histograms (n, N_c) of the n largest merged regions, and each region's row in them (G,), or -1.

    These few regions are in many lists, and the regions that have these lists mostly have fewer entries.
    """
    merges, pairs = state.counts[MERGES], state.counts[PAIRS]
    merged = state.kept[merges - pairs : merges]
    if n_clusterings is None or weights.ndim == 2:
        merged = merged[:0]
    else:
        merged = merged[regions.length[merged] > n_clusterings]
        room = min(LAID, int(state.counts[ACTIVE]) * n_clusterings) // len(weights)
        if len(merged) > room:
            merged = merged[np.argsort(-regions.length[merged], kind="stable")[:room]]
    laid_at = np.full(len(state.nearest), -1, dtype=np.int32)
    laid_at[merged] = np.arange(len(merged))
    return histograms(regions, merged, len(weights)), laid_at


@njit(cache=True, nogil=True, makes_arrays=False)
def score_grown(some, others, similarities, regions, weights, n_clusterings):
    """Replace similarities that are NaN by those of ``some`` with ``others``; -1 or -2 in ``others`` is no region."""
    for i in range(len(some)):
        if np.isnan(similarities[i]) and others[i] >= 0:
            similarities[i] = similarity_of(regions, weights, n_clusterings, some[i], others[i])


@njit(cache=True, nogil=True, makes_arrays=False)
def _note(rows, state, size, certain, similarities, bound):
    for a in rows:
        second = similarities[a, 1] if similarities.shape[1] > 1 else 0.0
        _be_certain(a, state, max(second, bound[a]), size, certain)


@njit(cache=True, nogil=True, makes_arrays=False)
def _be_certain(a, state, rival, size, certain):
    """Store the size up to which region a's new nearest region stays nearer than a region of similarity ``rival``."""
    certain.seen[a] = state.counts[ROUNDS]
    certain.until[a] = np.inf
    if rival > 0.0 and state.nearest[a] >= 0:
        certain.until[a] = state.nearest_similarity[a] / rival * (1.0 - certain.margin) * size[state.nearest[a]]


@njit(cache=True, nogil=True, makes_arrays=False)
def look_up_some(some, state, size, nothing, certain, ids, similarities, bound, bound_hash):
    """Do the same as `look_up`, for the regions ``some``; return the number of lists that do not decide the nearest."""
    nearest, unknown = state.nearest, 0
    for a in some:
        state.partner[a] = -1
        if nearest[a] != UNKNOWN:
            continue
        best = -1
        best_similarity = 0.0
        best_tie = NO_HASH
        rival = bound[a]
        for s in range(ids.shape[1]):
            if ids[a, s] < 0:
                break
            tie = pair_hash(a, ids[a, s])
            if best < 0 or comes_before(similarities[a, s], tie, best_similarity, best_tie):
                rival = max(rival, best_similarity)
                best, best_similarity, best_tie = ids[a, s], similarities[a, s], tie
            else:
                rival = max(rival, similarities[a, s])
        if best >= 0 and not comes_before(bound[a], bound_hash[a], best_similarity, best_tie):
            nearest[a] = best
            state.nearest_similarity[a] = best_similarity
            _be_certain(a, state, rival, size, certain)
        elif best < 0 and bound[a] <= nothing:
            nearest[a] = RETIRED
        else:
            state.unknown[unknown] = a
            unknown += 1
    return unknown


@njit(cache=True, nogil=True, makes_arrays=False)
def _pair_up(state):
    nearest, counts = state.nearest, state.counts
    survivors, merges = 0, counts[MERGES]
    for a in state.active[: counts[ACTIVE]]:
        b = nearest[a]
        mutual = b >= 0 and nearest[b] == a
        if b < 0 or (mutual and b < a):
            continue
        state.survivors[survivors] = a
        survivors += 1
        if mutual:
            state.kept[merges], state.absorbed[merges] = a, b
            state.merged_at[merges] = state.nearest_similarity[a]
            state.partner[a], state.into[b] = b, a
            merges += 1
    pairs = merges - counts[MERGES]
    counts[ACTIVE], counts[PAIRS], counts[MERGES] = survivors, pairs, merges
    counts[ROUNDS] += pairs > 0


def _scratch(n_active: int, weights: np.ndarray, regions: Regions, n_listed: int) -> tuple[np.ndarray, ...]:
    """Return the working memory of `_update`.

    The first array is for the dense histogram of a region (N_c,); it is empty if there are so many clusters that
    clearing it would cost too much. The other arrays are for the regions of two lists, the tie-breaks of these regions,
    and the regions that wait to be compared, with their places in lists.
    """
    dense = weights.ndim == 1 and len(weights) <= 256 * n_active
    return (
        np.zeros(len(weights) if dense else 0, dtype=regions.counts.dtype),
        np.empty(2 * n_listed, dtype=np.int64),
        np.empty((1, n_listed), dtype=np.uint64),
        np.empty((AT_ONCE, 2), dtype=np.int64),
    )


@njit(cache=True, nogil=True, makes_arrays=False)
def _update(
    active, state, regions, laid, laid_at, weights, n_clusterings, slack, margin, nothing, certain, scratch,
    ids, similarities, bound, bound_hash,
):  # fmt: skip
    n_listed = ids.shape[1]
    nearest, partner, into = state.nearest, state.partner, state.into
    seen_in, merged_in = certain.seen, certain.merged
    this_round = state.counts[ROUNDS]
    held, pooled, ties, waiting = scratch
    nobody, n_waiting = held[:0], 0
    for a in active:
        since = seen_in[a]
        if partner[a] < 0:
            old = nearest[a]
            if old >= 0 and (partner[old] >= 0 or into[old] != old):
                nearest[a] = UNKNOWN
            seen_in[a] = this_round
            changed = 0
            for s in range(n_listed):
                new = now(into, ids[a, s]) if ids[a, s] >= 0 else a
                changed += merged_in[new] > since and laid_at[new] < 0
            lay = (
                changed > 2 and len(held) > 0
            )  # from three similarities on, writing a dense histogram costs less than it saves
            if lay:
                lay_out(regions, a, held)
            near = held if lay else nobody
            kept = 0
            while kept < n_listed and ids[a, kept] >= 0 and merged_in[now(into, ids[a, kept])] <= since:
                kept += 1  # entries before the first changed entry stay as they are
            for s in range(kept, n_listed):
                old = ids[a, s]
                if old < 0:
                    break
                new = now(into, old)
                if merged_in[new] <= since:
                    ids[a, kept], similarities[a, kept] = old, similarities[a, s]
                    kept += 1
                    continue
                seen = False
                for earlier in range(kept):
                    seen = seen or ids[a, earlier] == new
                if seen:
                    continue
                ids[a, kept] = new
                if laid_at[new] < 0 or regions.length[a] > regions.length[new]:
                    similarities[a, kept] = similarity_to(regions, near, weights, n_clusterings, a, new)
                else:
                    waiting[n_waiting, 0], waiting[n_waiting, 1] = a, kept
                    n_waiting += 1
                if n_waiting == AT_ONCE:
                    _score_laid(waiting, regions, laid, laid_at, weights, n_clusterings, ids, similarities)
                    n_waiting = 0
                kept += 1
            if lay:
                clear(regions, a, held)
            for s in range(kept, n_listed):
                ids[a, s] = -1
            continue

        seen_in[a] = this_round
        _unite(
            a, state, regions, weights, n_clusterings, slack, margin, nothing, held, pooled, ties,
            ids, similarities, bound, bound_hash,
        )  # fmt: skip
    if n_waiting > 0:
        for i in range(n_waiting, AT_ONCE):
            waiting[i, 0], waiting[i, 1] = waiting[0, 0], waiting[0, 1]
        _score_laid(waiting, regions, laid, laid_at, weights, n_clusterings, ids, similarities)


@njit(cache=True, nogil=True, makes_arrays=False)
def _unite(
    a, state, regions, weights, n_clusterings, slack, margin, nothing, held, pooled, ties,
    ids, similarities, bound, bound_hash,
):  # fmt: skip
    """Write the list of a union from the lists of its two parts, and the bound on regions outside both lists."""
    n_listed, into, b = ids.shape[1], state.into, state.partner[a]
    state.nearest[a] = UNKNOWN
    if n_clusterings is None:  # known at compile time; a union's similarity is between those of its parts
        if bound[a] != bound[b] or bound_hash[b] == 0:
            bound_hash[a] = 0
        bound[a] = max(bound[a], bound[b])
    elif bound[a] != bound[b]:
        part = (regions.size[a] - regions.size[b]) / regions.size[a]  # share of region a's objects before the merge
        bound[a] = (part * bound[a] + (1.0 - part) * bound[b]) * (1.0 + 1e-15) + margin
        bound_hash[a] = 0
    n_pooled = 0
    for side in (a, b):
        for s in range(n_listed):
            if ids[side, s] < 0:
                break
            new = now(into, ids[side, s])
            seen = new == a
            for earlier in range(n_pooled):
                seen = seen or pooled[earlier] == new
            if not seen:
                pooled[n_pooled] = new
                n_pooled += 1
    for s in range(n_listed):
        ids[a, s] = -1
    listed = 0
    if len(held):
        lay_out(regions, a, held)
    for p in range(n_pooled):
        similarity = similarity_to(regions, held, weights, n_clusterings, a, pooled[p])
        tie = pair_hash(a, pooled[p])
        dropped, dropped_tie = nothing, NO_HASH
        if listed == n_listed:
            dropped, dropped_tie = similarities[a, n_listed - 1], ties[0, n_listed - 1]
            if not comes_before(similarity, tie, dropped, dropped_tie):
                dropped, dropped_tie = similarity, tie
        listed = insert(ids, similarities, ties, a, 0, listed, pooled[p], similarity, tie)
        if slack > 0.0 or margin > 0.0:
            dropped, dropped_tie = dropped * (1.0 + slack) + margin, np.uint64(0)
        if n_clusterings is None and bound_hash[a] == 0:
            dropped_tie = np.uint64(0)
        if dropped > nothing and comes_before(dropped, dropped_tie, bound[a], bound_hash[a]):
            bound[a], bound_hash[a] = dropped, dropped_tie
    if len(held):
        clear(regions, a, held)


@njit(cache=True, nogil=True, makes_arrays=False)
def now(into, r):
    """Return the region, not absorbed so far, that contains region r."""
    while into[r] != r:
        r = into[r]
    return r


@njit(cache=True, nogil=True, makes_arrays=False)
def _score_laid(waiting, regions, laid, laid_at, weights, n_clusterings, ids, similarities):
    """Write the same similarities as `similarity_of` for four waiting pairs, by dense histograms of listed regions."""
    if weights.ndim == 2:  # known when this is compiled
        return
    clusters, counts, start, length = regions.clusters, regions.counts, regions.start, regions.length
    a, b, c, d = waiting[0, 0], waiting[1, 0], waiting[2, 0], waiting[3, 0]
    with_a, with_b = laid[laid_at[ids[a, waiting[0, 1]]]], laid[laid_at[ids[b, waiting[1, 1]]]]
    with_c, with_d = laid[laid_at[ids[c, waiting[2, 1]]]], laid[laid_at[ids[d, waiting[3, 1]]]]
    common = min(length[a], length[b], length[c], length[d])
    nothing = weights[0] * 0
    of_a, of_b, of_c, of_d = nothing, nothing, nothing, nothing
    for i in range(np.uint64(common)):
        e, f = np.uint64(start[a]) + i, np.uint64(start[b]) + i
        g, h = np.uint64(start[c]) + i, np.uint64(start[d]) + i
        of_a += weight_of(weights, clusters[e]) * (np.int64(with_a[clusters[e]]) * np.int64(counts[e]))
        of_b += weight_of(weights, clusters[f]) * (np.int64(with_b[clusters[f]]) * np.int64(counts[f]))
        of_c += weight_of(weights, clusters[g]) * (np.int64(with_c[clusters[g]]) * np.int64(counts[g]))
        of_d += weight_of(weights, clusters[h]) * (np.int64(with_d[clusters[h]]) * np.int64(counts[h]))
    of_a = plus_shared(of_a, clusters, counts, start[a] + common, start[a] + length[a], with_a, weights)
    of_b = plus_shared(of_b, clusters, counts, start[b] + common, start[b] + length[b], with_b, weights)
    of_c = plus_shared(of_c, clusters, counts, start[c] + common, start[c] + length[c], with_c, weights)
    of_d = plus_shared(of_d, clusters, counts, start[d] + common, start[d] + length[d], with_d, weights)
    for i, total in enumerate((of_a, of_b, of_c, of_d)):
        one, place = waiting[i, 0], waiting[i, 1]
        size = regions.size[one] * regions.size[ids[one, place]]
        similarities[one, place] = total / (size * n_clusterings)


# --- kernels/rounds.cu ------------------------------------------------------------------------------------------------

ANY: dict[str, Any] = {"COUNT": "i32", "WEIGHT": "f64"}  # macros of kernels that read no counts and no weights


@look_up.kernel
def _(state: State, regions: Regions, lists: Shortlists, most: int, nothing: float = 0.0, *, device: str) -> None:
    kernels.launch(
        "look_up", kernels.blocks(most, 128), 128,
        (state.active, np.int32(lists.ids.shape[1]), np.float64(nothing), regions.length, state.nearest,
         state.nearest_similarity, state.partner, state.unknown, *lists, state.counts),
        device=device, **ANY,
    )  # fmt: skip


@take_first_listed.kernel
def _(rows: Any, state: State, lists: Shortlists, slack: float, margin: float, *, device: str) -> None:
    kernels.launch(
        "take_first_listed", kernels.blocks(len(rows), 128), 128,
        (rows, len(rows), np.int32(lists.ids.shape[1]), np.float64(slack), np.float64(margin), state.nearest,
         state.nearest_similarity, *lists),
        device=device, **ANY,
    )  # fmt: skip


@pair_up.kernel
def _(state: State, most: int, *, device: str) -> None:
    steps = min(32, -(-most // (CHAINED * PAIRING)))
    kernels.launch(
        "pair_up", kernels.blocks(most, PAIRING * steps), PAIRING,
        (state.active, np.int32(steps), state.nearest, state.nearest_similarity, state.partner, state.into,
         state.survivors, state.kept, state.absorbed, state.merged_at, state.counts),
        device=device, **ANY,
    )  # fmt: skip


@update_lists.kernel
def _(
    state: State, regions: Regions, weights: Any, lists: Shortlists, most: int, n_clusterings: int | None,
    slack: float = 0.0, margin: float = 0.0, nothing: float = 0.0, *, device: str,
) -> None:  # fmt: skip
    kernels.launch(
        "update_lists", kernels.blocks(most, 4), 128,
        (state.active, np.int32(lists.ids.shape[1]), state.partner, state.into, regions.clusters, regions.counts,
         regions.start, regions.length, regions.size, weights, weights.shape[1] if weights.ndim == 2 else 0,
         n_clusterings or 0, np.float64(slack), np.float64(margin), np.float64(nothing), state.nearest, *lists,
         state.counts),
        device=device, COUNT=kernels.c_name(regions.counts.dtype), WEIGHT=kernels.c_name(weights.dtype),
    )  # fmt: skip

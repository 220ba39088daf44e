"""Reverse nearest neighbours on the CPU: a round updates only regions whose nearest may have changed.

If A is the nearest region of F, then F is a follower of A.

While A, of similarity s with F, grows from n to n' objects, the similarity stays at least s n / n'. No other union is
nearer to F than the nearer of its parts. So A remains the nearest region of F, whatever A merges with, until it has
more than ``until`` objects: up to that size A is nearer than all other regions, in F's list or not, by more than
rounding errors. Up to that size, the list of F needs no update.

A region with many followers merges in nearly every round, but only few followers need an update each time. So the
followers of a region wait in a heap, with the smallest ``until`` on top. When regions merge, their heaps are melded.
They are skew heaps (Sleator and Tarjan: Self-adjusting heaps, SIAM J. Comput. 15, 1986).
"""

from typing import NamedTuple

import numpy as np

from gpuens.partition.linkage.nearest import Shortlists
from gpuens.partition.linkage.regions import Regions
from gpuens.partition.linkage.rounds import (
    ACTIVE,
    ENTRIES,
    MERGES,
    PAIRS,
    RETIRED,
    ROUNDS,
    UNKNOWN,
    UNKNOWNS,
    Certain,
    State,
    look_up_some,
    now,
    update_some,
)
from gpuens.runtime.compiled import njit

NOBODY = -1  # in place of a node: there is no node
BYTES = 96  # bytes that `ReverseNeighbors` takes for each region


class Heaps(NamedTuple):
    """A heap of followers for each of G regions, in arrays of regions (G,) and arrays of at least 2 G nodes.

    ``top`` (G,): the node on top of each region's heap; ``node`` (G,): the node in which each region waits now (older
    nodes of the region are ignored). ``until``, ``owner``, ``left`` and ``right`` describe nodes, of which ``used``
    (1,) exist.
    """

    top: np.ndarray
    node: np.ndarray
    until: np.ndarray
    owner: np.ndarray
    left: np.ndarray
    right: np.ndarray
    used: np.ndarray

    @classmethod
    def of_rows(cls, n_rows: int, n_nodes: int) -> "Heaps":
        top, node = np.full((2, n_rows), NOBODY, dtype=np.int32)
        owner, left, right = np.empty((3, n_nodes), dtype=np.int32)
        return cls(top, node, np.empty(n_nodes), owner, left, right, np.zeros(1, dtype=np.int64))


class ReverseNeighbors:
    """The steps of `rounds`, restricted to the regions ``due``, whose nearest region is unknown or was just found.

    ``place`` (G,) is the place of each region in the order of active regions.
    """

    def __init__(self, state: State, regions: Regions, place: np.ndarray, slack: float) -> None:
        n_rows = len(place)
        self.place = place
        self.certain = Certain.of_rows(n_rows, slack)
        self.heaps = Heaps.of_rows(n_rows, 2 * n_rows)
        self.due = state.active.copy()
        self.unsure = np.empty(n_rows, dtype=np.int64)
        self.gone = np.zeros(n_rows, dtype=bool)
        state.counts[ENTRIES] = regions.length.sum()

    def look_up(self, state: State, regions: Regions, lists: Shortlists) -> None:
        """Look up the nearest region of each region that is due; see `rounds.look_up`."""
        state.counts[UNKNOWNS] = look_up_some(self.due, state, regions.size, 0.0, self.certain, *lists)

    def settle(self, state: State, active: np.ndarray) -> None:
        """Write the current nearest region of each of ``active``; if it has grown, its similarity becomes NaN."""
        _settle(active, state, self.certain)

    def pair_up(self, state: State, regions: Regions) -> None:
        """Pair regions that are each other's nearest, and write the survivors: all except absorbed and retired regions.

        At least one region of a new pair is due, because the two were not each other's nearest before.
        """
        counts, due, n_active = state.counts, self.due, state.counts[ACTIVE]
        follow(due, state.active[:n_active], state.nearest, self.certain.until, state.into, self.heaps)
        kept = np.empty(len(due), dtype=np.int64)
        kept = kept[: _pair_up(due, state, kept)]
        kept = kept[np.argsort(self.place[kept])]
        absorbed = state.partner[kept]
        _settle(kept, state, self.certain)
        merged = slice(counts[MERGES], counts[MERGES] + len(kept))
        state.kept[merged], state.absorbed[merged] = kept, absorbed
        state.merged_at[merged] = state.nearest_similarity[kept]
        state.into[absorbed] = kept
        retired = due[state.nearest[due] == RETIRED]
        for some in (absorbed, retired):
            self.gone[some] = True
            counts[ENTRIES] -= regions.length[some].sum()
        counts[ENTRIES] -= regions.length[kept].sum()  # added again after their unions exist
        counts[ACTIVE] = _survivors(state.active[:n_active], self.gone, state.survivors)
        counts[PAIRS] = len(kept)
        counts[MERGES] += len(kept)
        counts[ROUNDS] += len(kept) > 0

    def update_lists(
        self, state: State, regions: Regions, weights: np.ndarray, lists: Shortlists, n_clusterings: int, slack: float
    ) -> None:  # fmt: skip
        """Update the lists of regions that are due: unions, and followers whose nearest may have changed."""
        merges, pairs = state.counts[MERGES], state.counts[PAIRS]
        made = slice(merges - pairs, merges)
        kept, absorbed = state.kept[made], state.absorbed[made]
        unsure = self.unsure[: meet(kept, absorbed, regions.size, self.heaps, self.unsure)]
        state.nearest[unsure] = UNKNOWN
        due = np.concatenate([kept, unsure])
        self.due = due[np.argsort(self.place[due])]
        update_some(self.due, state, regions, weights, n_clusterings, slack, 0.0, 0.0, self.certain, lists)
        state.counts[ENTRIES] += regions.length[kept].sum()


@njit(cache=True, nogil=True, makes_arrays=False)
def _settle(some, state, certain):
    nearest, similarity = state.nearest, state.nearest_similarity
    for a in some:
        if nearest[a] >= 0:
            nearest[a] = now(state.into, nearest[a])
            if certain.merged[nearest[a]] > certain.seen[a]:
                similarity[a] = np.nan


@njit(cache=True, nogil=True, makes_arrays=False)
def _pair_up(due, state, kept):
    nearest, partner, into, n = state.nearest, state.partner, state.into, 0
    for a in due:
        if nearest[a] < 0:
            continue
        b = now(into, nearest[a])
        if nearest[b] < 0 or now(into, nearest[b]) != a:
            continue
        if partner[min(a, b)] < 0:  # not yet paired from the other side
            partner[min(a, b)] = max(a, b)
            kept[n] = min(a, b)
            n += 1
    return n


@njit(cache=True, nogil=True, makes_arrays=False)
def _survivors(active, gone, survivors):
    n = 0
    for a in active:
        survivors[n] = a
        n += not gone[a]
    return n


@njit(cache=True, nogil=True, makes_arrays=False)
def follow(some, active, nearest, until, into, heaps):
    """Insert each region in ``some`` into the heap of its nearest region.

    If there are not enough free nodes, all heaps are rebuilt from the ``active`` regions.
    """
    if heaps.used[0] + len(some) > len(heaps.owner):
        heaps.used[0] = 0
        for a in active:
            heaps.top[a] = NOBODY
        for a in active:
            if heaps.node[a] != NOBODY:
                _wait(a, nearest, until, into, heaps)
    for a in some:
        _wait(a, nearest, until, into, heaps)


@njit(cache=True, nogil=True, makes_arrays=False)
def _wait(a, nearest, until, into, heaps):
    heaps.node[a] = NOBODY
    if nearest[a] < 0 or until[a] == np.inf:
        return
    n = np.int32(heaps.used[0])
    heaps.used[0] += 1
    heaps.node[a], heaps.owner[n], heaps.until[n] = n, a, until[a]
    heaps.left[n] = heaps.right[n] = NOBODY
    with_whom = now(into, nearest[a])
    heaps.top[with_whom] = _melded(heaps.top[with_whom], n, heaps)


@njit(cache=True, nogil=True, makes_arrays=False)
def meet(kept, absorbed, size, heaps, unsure):
    """Meld the heaps of merged regions, and write the followers whose nearest region may have changed to ``unsure``.

    Returns the number of these followers. They leave the heaps, and so do regions that have merged.
    """
    left, right, until = heaps.left, heaps.right, heaps.until
    n_unsure = 0
    for p in range(len(kept)):
        heaps.node[kept[p]] = heaps.node[absorbed[p]] = NOBODY
    for p in range(len(kept)):
        a, b = kept[p], absorbed[p]
        top = _melded(heaps.top[a], heaps.top[b], heaps)
        while top != NOBODY and until[top] < size[a]:
            owner = heaps.owner[top]
            if heaps.node[owner] == top:
                heaps.node[owner] = NOBODY
                unsure[n_unsure] = owner
                n_unsure += 1
            top = _melded(left[top], right[top], heaps)
        heaps.top[a], heaps.top[b] = top, NOBODY
    return n_unsure


@njit(cache=True, nogil=True, makes_arrays=False)
def _melded(one, other, heaps):
    """Meld two heaps and return the node on top."""
    left, right, until = heaps.left, heaps.right, heaps.until
    if one == NOBODY:
        return other
    if other == NOBODY:
        return one
    if until[other] < until[one]:
        one, other = other, one
    top = one
    while right[one] != NOBODY:
        below = right[one]
        if until[other] < until[below]:
            below, other = other, below
        right[one], left[one] = left[one], below
        one = below
    right[one], left[one] = left[one], other
    return top

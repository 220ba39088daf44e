"""The steps of a round of reciprocal nearest neighbours, on the CPU and by kernels (kernels/rounds.cu).

The steps leave their counts in the memory of the device, so that the next step can be launched before the host knows
the counts. The host reads all counts once in several rounds.
"""

from typing import Any, NamedTuple

import numpy as np

from gpuens.partition.linkage.nearest import Shortlists
from gpuens.partition.linkage.regions import ANY_WEIGHT, Regions
from gpuens.runtime import device as devices
from gpuens.runtime import kernels
from gpuens.runtime.native import cpu

RETIRED = -1  # in place of the nearest region, if a region has similarity 0 with every other region
UNKNOWN = -2  # in place of the nearest region, while it is not known
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
    searched: int = 0  # searches so far


ACTIVE, UNKNOWNS, ENTRIES, PAIRS, MERGES, ROUNDS, USED, COMPARED, SEARCHED = range(len(Counts._fields))
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


class Heights(NamedTuple):
    """Places of merges in the order of a greedy algorithm, in arrays (G,) on the device.

    ``of_merge``: the height of a merge, which is its similarity, but at most the heights of the merges of its parts;
    ``wait_of_merge``: the largest hash of the merge and of all merges within it at the same height, uint64.
    ``of_region``, ``wait_of_region``: those of the last merge of each region, infinity before the first.
    """

    of_region: Any
    wait_of_region: Any
    of_merge: Any
    wait_of_merge: Any

    @classmethod
    def of_rows(cls, n_rows: int, device: str) -> "Heights":
        xp = devices.namespace(device)
        waits = (xp.zeros(n_rows, dtype=np.uint64) for _ in range(2))
        return cls(xp.full(n_rows, np.inf), next(waits), xp.empty(n_rows), next(waits))


# --- on the CPU -------------------------------------------------------------------------------------------------------


@kernels.primitive
def look_up(state: State, regions: Regions, lists: Shortlists, most: int, nothing: float = 0.0) -> None:
    """Find each UNKNOWN nearest region in the region's list, and record regions whose list does not decide it.

    A region has no nearest region if its list is empty and its bound is ``nothing``. This function also clears the
    partners of the previous round, and counts the entries of active regions. At most ``most`` regions are active.
    """
    cpu.look_up(state, regions, nothing, lists)


@kernels.primitive
def take_first_listed(rows: Any, n_rows: Any, state: State, lists: Shortlists, slack: float, margin: float) -> None:
    """Take the first entry of each new list as the nearest region; raise the list's bound by the rounding tolerance.

    The new lists are those of the first ``n_rows`` (1,) rows. A raised bound also comes before all pairs of its
    similarity in the total order, whatever their hashes.
    """
    cpu.take_first_listed(rows[: n_rows[0]], state, (slack, margin, 0.0), lists)


@kernels.primitive
def pair_up(state: State, most: int) -> None:
    """Pair regions that are each other's nearest, and write the survivors: all except absorbed and retired regions.

    At most ``most`` regions are active. The searches of this round are counted.
    """
    state.counts[SEARCHED] += state.counts[UNKNOWNS]
    cpu.pair_up(state)


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
    cpu.update_lists(state, regions, (weights, n_clusterings), (slack, margin, nothing), lists)


# --- kernels/rounds.cu ------------------------------------------------------------------------------------------------


@look_up.kernel
def _(state: State, regions: Regions, lists: Shortlists, most: int, nothing: float = 0.0, *, device: str) -> None:
    kernels.launch(
        "look_up", kernels.blocks(most, 128), 128,
        (state.active, np.int32(lists.ids.shape[1]), np.float64(nothing), regions.length, state.nearest,
         state.nearest_similarity, state.partner, state.unknown, *lists, state.counts),
        device=device, **ANY_WEIGHT,
    )  # fmt: skip


@take_first_listed.kernel
def _(rows: Any, n_rows: Any, state: State, lists: Shortlists, slack: float, margin: float, *, device: str) -> None:
    kernels.launch(
        "take_first_listed", kernels.blocks(len(rows), 128), 128,
        (rows, n_rows, np.int32(lists.ids.shape[1]), np.float64(slack), np.float64(margin), state.nearest,
         state.nearest_similarity, *lists),
        device=device, **ANY_WEIGHT,
    )  # fmt: skip


@pair_up.kernel
def _(state: State, most: int, *, device: str) -> None:
    steps = min(32, -(-most // (CHAINED * PAIRING)))
    kernels.launch(
        "pair_up", kernels.blocks(most, PAIRING * steps), PAIRING,
        (state.active, np.int32(steps), state.nearest, state.nearest_similarity, state.partner, state.into,
         state.survivors, state.kept, state.absorbed, state.merged_at, state.counts),
        device=device, **ANY_WEIGHT,
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
        device=device, WEIGHT=kernels.c_name(weights.dtype),
    )  # fmt: skip


def find_heights(state: State, n_pairs: Any, n_merges: Any, heights: Heights, most: int, *, device: str) -> None:
    """Find the heights of the merges of this round: the last ``n_pairs`` (1,), at most ``most``, of ``n_merges`` (1,).

    On the CPU the heights are found when the merges are sorted (`Dendrogram.from_merges`).
    """
    kernels.launch(
        "find_heights", kernels.blocks(most, 128), 128,
        (state.kept, state.absorbed, state.merged_at, n_pairs, n_merges, *heights), device=device, **ANY_WEIGHT,
    )  # fmt: skip

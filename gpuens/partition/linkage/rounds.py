"""Average linkage on a GPU: a loop that launches the steps of rounds (kernels/rounds.cu).

Regions, lists, bounds and rounds are those of the CPU (kernels/cpu/linkage/rounds.h), to the bit. The steps leave their
counts in the memory of the device, so that the next step can be launched before the host knows the counts. The host
reads all counts once in several rounds.
"""

from enum import IntEnum
from typing import Any, NamedTuple, cast

import numpy as np

from gpuens.labels.rows import Rows
from gpuens.partition.linkage import all_pairs, conduct
from gpuens.partition.linkage.dendrogram import Dendrogram, Work
from gpuens.partition.linkage.nearest import Shortlists, nearest_index, nearest_lists
from gpuens.partition.linkage.regions import (
    ANY_WEIGHT,
    BoundingWeights,
    Regions,
    Search,
    bounding_weights,
    make_room,
    merge_histograms,
    regions_of,
    search,
)
from gpuens.runtime import device as devices
from gpuens.runtime import kernels, progress
from gpuens.runtime.native import cpu

UNATTENDED = 8  # largest number of rounds between two readings of the counts by the host
PAIRING = 256  # threads in a block of the kernel pair_up
CHAINED = 32  # largest number of blocks of pair_up (a thread has up to 32 regions); each waits for the previous block


Count = cast(Any, IntEnum)("Count", cpu.COUNTS, start=0)  # positions of counts (kernels/common/shortlists.h)
OF_KERNELS = 4  # number of further counts, by which the blocks of pair_up wait for each other


class State(NamedTuple):
    """State of G regions between rounds, in arrays on the device.

    ``active`` (G,): the first ``counts[Count.ACTIVE]`` entries are the active regions, with similar regions adjacent;
    ``survivors`` (G,): the regions that remain after the pairing of this round. ``unknown`` (G,): the first
    ``counts[Count.UNKNOWNS]`` entries are active regions whose list does not decide which region is nearest.
    ``nearest`` (G,): the nearest region of each active region, or RETIRED, or UNKNOWN; ``nearest_similarity`` (G,): the
    similarity with the nearest region. ``into`` (G,): the region that absorbed each region; ``partner`` (G,): the
    region that each region absorbed in this round, or -1. ``kept``, ``absorbed``, ``merged_at`` (G,): the kept region,
    absorbed region and similarity of the ``counts[Count.MERGES]`` merges. ``counts``: a number for each of `Count`,
    int64.
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
        counts = xp.zeros(len(Count) + OF_KERNELS, dtype=np.int64)
        counts[Count.ACTIVE], counts[Count.PAIRS] = n_rows, -1
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


Pairs = tuple[Any, Any, Any, Any]  # kept and absorbed regions, and the numbers of pairs and of merges

# --- similarities -----------------------------------------------------------------------------------------------------


class Scorer:
    """A similarity of regions: the weights of their histograms, rounding tolerances, and a search."""

    margin = 0.0  # absolute rounding tolerance of a similarity
    nothing = 0.0  # bound of a list that holds all regions with a similarity above 0

    def __init__(self, weights: Any, n_clusterings: int) -> None:
        self.weights = weights
        self.n_clusterings = n_clusterings
        self.divisor: int | None = n_clusterings  # M, by which a sum is divided; None for a ratio of sums
        # relative rounding error of a similarity
        exact = weights.dtype.kind == "i"
        self.slack = 0.0 if exact else 4 * float(np.finfo(np.float64).eps) * (weights.shape[-1] + 8)

    def search(self, task: Search, regions: Regions, device: str) -> None:
        """Rebuild the lists of the nearest regions of queries."""
        raise NotImplementedError

    def unite(self, pairs: Pairs, most_pairs: int, device: str) -> None:
        """Update numbers of regions besides histograms for the pairs of `merge_histograms`."""


class DiagonalScorer(Scorer):
    """A diagonal S, whose weights (N_c,) are exact, or for bounds (`BoundingWeights`)."""

    def __init__(self, weights: Any, bounding: BoundingWeights, n_clusterings: int, n_objects: int) -> None:
        super().__init__(weights, n_clusterings)
        self.bounding = bounding
        # whether float64 holds every numerator exactly, so that the scores of searches are exact similarities
        self.exact = weights.dtype.kind == "i" and float(n_objects) ** 2 * n_clusterings < 2.0**53

    def search(self, task: Search, regions: Regions, device: str) -> None:
        search(task, regions, self.weights, self.bounding, self.n_clusterings, self.exact, device=device)


class GeneralScorer(Scorer):
    """Any symmetric S, by affinities (G, N_c): similarities may be negative, and no region retires."""

    nothing = -np.inf

    def __init__(self, affinities: Any, n_clusterings: int, margin: float) -> None:
        super().__init__(affinities, n_clusterings)
        self.margin, self.slack = margin, 0.0

    def search(self, task: Search, regions: Regions, device: str) -> None:
        all_pairs.search_general(task, regions, self.weights, self.n_clusterings, device=device)

    def unite(self, pairs: Pairs, most_pairs: int, device: str) -> None:
        all_pairs.merge_affinities(self.weights, *pairs, most_pairs, device=device)


class ObservedScorer(Scorer):
    """`Observed` similarities, with weights (2, N_c + M)."""

    def __init__(self, weights: Any, n_clusterings: int) -> None:
        super().__init__(weights, n_clusterings)
        self.divisor = None

    def search(self, task: Search, regions: Regions, device: str) -> None:
        all_pairs.search_observed(task, regions, self.weights, self.n_clusterings, device=device)


def link_diagonal(rows: Rows, weights: np.ndarray, work: Work) -> Dendrogram:
    """Return the dendrogram of rows on a GPU under a diagonal S of weights (N_c,)."""
    device = rows.device
    regions = regions_of(rows.codes, rows.offsets, rows.counts, device=device)  # before long work, as it may not fit
    index = nearest_index(rows.codes, rows.offsets, weights, rows.counts, device=device)
    lists = nearest_lists(index, conduct.n_listed(rows))
    work.comparisons += index.comparisons
    bounding = bounding_weights(weights, device=device)
    scorer = DiagonalScorer(devices.namespace(device).asarray(weights), bounding, rows.n_clusterings, rows.n_objects)
    return Rounds(regions, scorer, lists, index.order, work, device).run()


def link_general(rows: Rows, affinities: Any, margin: float, work: Work) -> Dendrogram:
    """Return the dendrogram of rows on a GPU under any symmetric S, by affinities (G, N_c)."""
    return _link_all_pairs(rows, GeneralScorer(affinities, rows.n_clusterings, margin), work)


def link_observed(rows: Rows, weights: np.ndarray, work: Work) -> Dendrogram:
    """Return the dendrogram of rows of 2 M clusterings (`all_pairs.with_labelled`) on a GPU; weights (2, N_c + M)."""
    weights = devices.namespace(rows.device).asarray(weights)
    return _link_all_pairs(rows, ObservedScorer(weights, rows.n_clusterings // 2), work)


def _link_all_pairs(rows: Rows, scorer: Scorer, work: Work) -> Dendrogram:
    everything = devices.namespace(rows.device).arange(len(rows))
    regions = regions_of(rows.codes, rows.offsets, rows.counts, device=rows.device)
    lists = Shortlists.empty(len(rows), conduct.n_listed(rows), rows.device)
    rounds = Rounds(regions, scorer, lists, everything, work, rows.device)
    rounds.numbers[1:] = len(rows)
    rounds.search(everything, everything)
    rounds.numbers[1:] = 0
    return rounds.run()


# --- rounds -----------------------------------------------------------------------------------------------------------


class Rounds:
    """The rounds of a linkage; arrays of all regions, their lists and their nearest regions are on the device."""

    def __init__(
        self, regions: Regions, scorer: Scorer, lists: Shortlists, order: Any, work: Work, device: str
    ) -> None:
        self.device, self.scorer, self.lists, self.work = device, scorer, lists, work
        self.state = State.of_rows(order, device)
        self.heights = Heights.of_rows(len(order), device)
        self.counts = [0] * len(Count)  # the counts that the host has read last
        self.most = len(order)  # regions at most in a round
        self.launched: dict[int, list[Any]] = {}  # launches of a round, by the array of active regions
        of_state = self.state.counts
        of_state[Count.USED : Count.USED + 1] = regions.used
        self.regions = regions._replace(used=of_state[Count.USED : Count.USED + 1])
        self.n_pairs = of_state[Count.PAIRS : Count.PAIRS + 1]
        self.united = self.state.kept, self.state.absorbed, self.n_pairs, of_state[Count.MERGES : Count.MERGES + 1]
        self.numbers = of_state[Count.ACTIVE : Count.UNKNOWNS + 1]  # numbers of active regions and queries
        self.compared = of_state[Count.COMPARED : Count.COMPARED + 1].view(np.uint64)

    def run(self) -> Dendrogram:
        """Merge regions until no two regions have a similarity above 0; return the dendrogram."""
        merges, n_rows = 0, len(self.lists.ids)
        self._take_first_listed(self.state.active, Count.ACTIVE)
        with progress.bar(total=n_rows - 1, description="average linkage") as bar:
            self._look_up()
            may_merge = True
            while may_merge:
                may_merge = self.merge_reciprocal_pairs()
                bar.update(self.counts[Count.MERGES] - merges)
                merges = self.counts[Count.MERGES]
        parts = self.state.kept, self.state.absorbed, self.heights.of_merge, self.heights.wait_of_merge
        kept, absorbed, heights, waits = (part[:merges] for part in parts)
        return Dendrogram.from_heights(kept, absorbed, heights, waits, n_rows)

    def merge_reciprocal_pairs(self) -> bool:
        """Merge all pairs of regions that are each other's nearest; return whether a further round may find pairs.

        These are several rounds, before which the host waits once, to read the counts. It does not know the counts of
        later rounds, so it launches kernels for the largest possible ones.
        """
        counts = self._read_counts()
        if not counts[Count.ACTIVE]:
            return False
        if counts[Count.UNKNOWNS] == 0 == counts[Count.PAIRS]:  # rounding errors made the nearest regions form a cycle
            self._choose_best_pair(self.state.active[: counts[Count.ACTIVE]])
        self._launch_rounds(self._rounds_with_room())
        return True

    def search(self, queries: Any, active: Any) -> None:
        """Rebuild the lists of the regions nearest to queries."""
        task = Search(queries, active, self.numbers, self.lists, self.compared)
        self.scorer.search(task, self.regions, self.device)

    def _launch_rounds(self, n_rounds: int) -> None:
        """Launch rounds; repeat recorded launches while at least half of the regions of the recording are left."""
        if self.counts[Count.ACTIVE] < self.most / 2:
            self.launched.clear()
        for _ in range(n_rounds):
            active = self.state.active
            if (launches := self.launched.get(id(active))) is not None:
                for launch in launches:
                    launch()
                self._swap()
                continue
            if not self.launched:
                self.most = self.counts[Count.ACTIVE]
            with kernels.recorded() as self.launched[id(active)]:
                self._merge_pairs(self.most)

    def _swap(self) -> None:
        """Make the survivors of a round the active regions of the next one."""
        self.state = self.state._replace(active=self.state.survivors, survivors=self.state.active)

    def _look_up(self) -> None:
        look_up(self.state, self.regions, self.lists, self.most, self.scorer.nothing, device=self.device)

    def _take_first_listed(self, rows: Any, count: int) -> None:
        n_rows = self.state.counts[count : count + 1]
        tolerance = self.scorer.slack, self.scorer.margin
        take_first_listed(rows, n_rows, self.state, self.lists, *tolerance, device=self.device)

    def _merge_pairs(self, most_unknown: int) -> None:
        """Search for the nearest regions of at most ``most_unknown`` regions, merge all pairs, and look up lists."""
        state, most_active = self.state, self.most
        unknown = state.unknown[:most_unknown]
        self.search(unknown, state.active[:most_active])
        self._take_first_listed(unknown, Count.UNKNOWNS)
        pair_up(state, most_active, device=self.device)
        self._swap()
        merge_histograms(self.regions, *self.united, most_active // 2, device=self.device)
        self.scorer.unite(self.united, most_active // 2, self.device)
        find_heights(self.state, *self.united[2:], self.heights, most_active // 2, device=self.device)
        update_lists(self.state, self.regions, self.scorer, self.lists, most_active, device=self.device)
        self._look_up()

    def _read_counts(self) -> list[int]:
        before, self.counts = self.counts, devices.to_host(self.state.counts)[: len(Count)].tolist()
        self.work.add(*(self.counts[count] - before[count] for count in (Count.ROUNDS, Count.SEARCHED, Count.COMPARED)))
        return self.counts

    def _rounds_with_room(self) -> int:
        """Return the number of rounds for which the arena has room, on a GPU, after making room if there is none.

        The unions of a round have at most as many entries as all active regions have now.
        """
        regions, capacity = self.regions, len(self.regions.clusters)
        n_used: int = self.counts[Count.USED]
        entries: int = max(1, self.counts[Count.ENTRIES])
        if n_used + entries > capacity:
            affordable = devices.scratch(self.device) // (4 + regions.counts.itemsize)
            enough = min((1 + UNATTENDED) * entries, affordable)
            capacity, n_used = max(capacity, enough, 2 * entries + entries // 2), entries
            self.launched.clear()
            active = self.state.active[: self.counts[Count.ACTIVE]]
            self.regions = make_room(regions, active, capacity, device=self.device)
        return min(UNATTENDED, (capacity - n_used) // entries)

    def _choose_best_pair(self, active: Any) -> None:
        """Pair the two most similar regions, among regions whose nearest region is active."""
        arrays = active, self.state.nearest, self.state.nearest_similarity
        active, nearest, similarities = (devices.to_host(part) for part in arrays)
        paired = np.sort(active[np.isin(nearest[active], active)])
        if not len(paired):  # this means that a bound was too low; absorbed regions have no histogram to read
            raise RuntimeError(
                f"average linkage found no nearest region for one of {len(active)} regions; please report this."
            )
        best = int(paired[similarities[paired].argmax()])
        for region, partner in ((best, int(nearest[best])), (int(nearest[best]), best)):
            self.state.nearest[region], self.state.nearest_similarity[region] = partner, float(similarities[best])


# --- kernels/rounds.cu ------------------------------------------------------------------------------------------------


def look_up(
    state: State, regions: Regions, lists: Shortlists, most_active: int, nothing: float, *, device: str
) -> None:
    """Find each UNKNOWN nearest region in the region's list, and record regions whose list does not decide it.

    A region has no nearest region if its list is empty and its bound is ``nothing``. This function also clears the
    partners of the previous round, and counts the entries of active regions, of which there are at most
    ``most_active``.
    """
    kernels.launch(
        "look_up", kernels.blocks(most_active, 128), 128,
        (state.active, np.int32(lists.ids.shape[1]), np.float64(nothing), regions.length, state.nearest,
         state.nearest_similarity, state.partner, state.unknown, *lists, state.counts),
        device=device, **ANY_WEIGHT,
    )  # fmt: skip


def take_first_listed(
    rows: Any, n_rows: Any, state: State, lists: Shortlists, slack: float, margin: float, *, device: str
) -> None:
    """Take the first entry of each new list as the nearest region; raise the list's bound by the rounding tolerance.

    The new lists are those of the first ``n_rows`` (1,) rows. A raised bound also comes before all pairs of its
    similarity in the total order, whatever their hashes.
    """
    kernels.launch(
        "take_first_listed", kernels.blocks(len(rows), 128), 128,
        (rows, n_rows, np.int32(lists.ids.shape[1]), np.float64(slack), np.float64(margin), state.nearest,
         state.nearest_similarity, *lists),
        device=device, **ANY_WEIGHT,
    )  # fmt: skip


def pair_up(state: State, most_active: int, *, device: str) -> None:
    """Pair regions that are each other's nearest, and write the survivors: all except absorbed and retired regions.

    At most ``most_active`` regions are active. The searches of this round are counted.
    """
    steps = min(32, -(-most_active // (CHAINED * PAIRING)))
    kernels.launch(
        "pair_up", kernels.blocks(most_active, PAIRING * steps), PAIRING,
        (state.active, np.int32(steps), state.nearest, state.nearest_similarity, state.partner, state.into,
         state.survivors, state.kept, state.absorbed, state.merged_at, state.counts),
        device=device, **ANY_WEIGHT,
    )  # fmt: skip


def update_lists(
    state: State, regions: Regions, scorer: Scorer, lists: Shortlists, most_active: int, *, device: str
) -> None:
    """Update the lists of active regions, at most ``most_active``, by the merges of this round."""
    weights = scorer.weights
    kernels.launch(
        "update_lists", kernels.blocks(most_active, 4), 128,
        (state.active, np.int32(lists.ids.shape[1]), state.partner, state.into, regions.clusters, regions.counts,
         regions.start, regions.length, regions.size, weights, weights.shape[1] if weights.ndim == 2 else 0,
         scorer.divisor or 0, np.float64(scorer.slack), np.float64(scorer.margin), np.float64(scorer.nothing),
         state.nearest, *lists, state.counts),
        device=device, WEIGHT=kernels.c_name(weights.dtype),
    )  # fmt: skip


def find_heights(state: State, n_pairs: Any, n_merges: Any, heights: Heights, most_pairs: int, *, device: str) -> None:
    """Find the heights of this round's merges: the last ``n_pairs`` (1,), at most ``most_pairs``, of ``n_merges`` (1,).

    On the CPU the heights are found when the merges are sorted (`Dendrogram.from_merges`).
    """
    kernels.launch(
        "find_heights", kernels.blocks(most_pairs, 128), 128,
        (state.kept, state.absorbed, state.merged_at, n_pairs, n_merges, *heights), device=device, **ANY_WEIGHT,
    )  # fmt: skip

"""Exact average linkage without an N × N matrix, by rounds of reciprocal nearest neighbours.

The similarity S of clusters is diag(w) / M or any symmetric matrix.

Average linkage is reducible: the union of regions C and D is never nearer to A than the nearer one of C and D. So all
pairs of regions that are each other's nearest can merge in one round, and the dendrogram is that of the greedy
algorithm. Each region keeps a list of its nearest regions and an upper bound u on its similarity with all regions
outside the list:

- when listed regions merge, the union replaces their entries and its similarity is computed; the bound still holds;
- when C and D merge, their lists are joined, the similarities to the union are computed, and the bound of the union is
  (|C| u_C + |D| u_D) / (|C| + |D|);
- when an entry is dropped from a full list, the bound is raised to the similarity of that entry;
- if the similarity of the best entry reaches the bound, the best entry is the nearest region; otherwise all regions are
  searched.

If regions are large, searches compare histograms (`regions`). Otherwise they compare rows: only the rows of tiles that
bounds do not exclude (`tile_regions`), or all rows if bounds exclude few tiles (`row_regions`). `searches` chooses the
cheapest search; all searches give the same lists. A round reads only two kinds of regions (`reverse_neighbors`):
regions that merge, and regions whose nearest region has merged and may no longer be the nearest.

If bounds save little and there are many clusterings, a table of all pairs of regions (`pair_table`) replaces the lists,
provided that memory allows.

Unless weights are whole numbers, rows that differ only in clusters of a single row are one leaf (`singletons`).

For few rows, a matrix of all pairs of rows gives the same merges and the same bits (`few_rows`).

For `Observed` similarities (`all_pairs`), the similarity of a union lies between the similarities of its parts, and the
bound of the union is the larger of their bounds.

With S = diag(w) / M, a region whose similarity with every other region is 0 retires. At the end, the retired regions
are joined at similarity 0, in the order of their ids. With any other S no region retires, even if similarities are
negative: the rounds end when one region is left.
"""

from math import isqrt
from typing import Any

import numpy as np

from gpuens.labels.rows import Rows
from gpuens.partition.linkage import all_pairs, few_rows, pair_table, searches, tile_regions
from gpuens.partition.linkage.all_pairs import merge_affinities, search_general, search_observed
from gpuens.partition.linkage.dendrogram import Dendrogram
from gpuens.partition.linkage.nearest import Shortlists, bytes_needed, nearest_index, nearest_lists, share_compared
from gpuens.partition.linkage.pair_table import PairTable
from gpuens.partition.linkage.regions import (
    BoundingWeights,
    Regions,
    bounding_weights,
    compact,
    make_room,
    merge_histograms,
    regions_of,
    search,
)
from gpuens.partition.linkage.rounds import (
    ACTIVE,
    COMPARED,
    MERGES,
    PAIRS,
    UNKNOWN,
    UNKNOWNS,
    USED,
    Counts,
    Heights,
    State,
    find_heights,
    look_up,
    pair_up,
    take_first_listed,
    update_lists,
)
from gpuens.partition.linkage.row_regions import Members, RowIndex, bytes_of_thread
from gpuens.partition.linkage.singletons import equal_leaves, without_singletons
from gpuens.partition.linkage.work import Work
from gpuens.runtime import checks, kernels, progress
from gpuens.runtime import device as devices
from gpuens.runtime.native import cpu

N_LISTED = 16  # regions in a list
LEAST_WEIGHT = 1e-150  # smallest weight whose products do not become 0
MOST_WEIGHT = 1e150  # largest weight whose products do not overflow
FOLLOWER = 96  # bytes of each region for its followers
NODES = 2  # nodes of heaps of followers, for each region
UNATTENDED = 8  # largest number of rounds that a GPU does before the host reads the counts
RETAINED = 2  # memory of a thread divided by the scratch of a search: allocators keep what threads free
FEWEST = 4096  # smallest number of rows for which a sample of rows decides between a table and lists


def average_linkage(rows: Rows, similarity: Any, *, work: Work | None = None) -> Dendrogram:
    """Return the average-linkage dendrogram of distinct label rows.

    Parameters
    ----------
    rows : Rows
        Distinct label rows in lexicographic order.
    similarity : Similarity
        A `Diagonal` of weights from 1e-150 to 1e150 (int64 ones for exact integer arithmetic); `Blocks` or a `Full` S
        of any sign; or an `Observed` co-association, where the similarity of two regions is
        Σ_c w_c n_A[c] n_B[c] / Σ_m λ_m p_A[m] p_B[m] with p_A[m] the number of objects of A that m labels; 0 if no
        clustering labels both objects of any pair.
    work : Work, optional
        Counters to which the work is added.

    Raises
    ------
    ValueError
        For weights out of that range, and for so many objects, or so large weights of them, that 64-bit integers cannot
        count their pairs.
    MemoryError
        Before work starts, if the lists and histograms of all rows do not fit the memory budget.
    """
    refuse_heavy(rows)
    similarity = similarity.simplest(rows)
    return ROUNDS[similarity.kind].link(rows, similarity, Work() if work is None else work)


def refuse_heavy(rows: Rows, unit: int | float = 1) -> None:
    """Refuse rows of so many objects, of weight ``unit`` each, that int64 cannot count the labels that they share."""
    # counts of histograms are int32, and two regions have at most N² // 4 common labels in each clustering, below 2⁶³
    largest = min(2**31 - 1, isqrt(4 * ((2**63 - 1) // rows.n_clusterings) + 3))
    subject = f"average linkage of {rows.n_clusterings} clusterings"
    checks.refuse_total(rows.n_objects * unit, largest * unit, subject)


def _refuse_extreme(weights: np.ndarray) -> None:
    """Raise ValueError for cluster weights with which similarities or their bounds would overflow or become 0."""
    least, most = weights.min(), weights.max()
    if not LEAST_WEIGHT <= least <= most <= MOST_WEIGHT:
        raise ValueError(
            f"weights differ too much for average linkage: that of a cluster would be "
            f"{most if least >= LEAST_WEIGHT else least:.3g}, and must be from {LEAST_WEIGHT} to {MOST_WEIGHT}; leave "
            "out the clusterings that are to count so little."
        )


def _room_for_table(rows: Rows, weights: np.ndarray) -> int:
    """Return the number of bytes available for a `PairTable`; 0 if weights differ too much for the table's units."""
    if rows.device != "cpu" or weights.min() < pair_table.WEIGHTS * weights.max():
        return 0
    return min(pair_table.MOST, devices.memory_budget() - _Rounds.bytes_needed(rows))


def _at_once(index: Any, room: int) -> bool:
    """Return whether a table of all pairs of rows fits the memory and costs less than lists, as bounds save little."""
    n_rows, n_clusterings = index.codes.shape
    return (
        n_rows >= FEWEST
        and pair_table.bytes_needed(n_rows) <= room
        and pair_table.comparisons_needed(n_rows, n_clusterings) < n_rows**2 * n_clusterings
    )


def _n_listed(rows: Rows) -> int:
    return min(N_LISTED, max(1, len(rows) - 1))


def _bytes_of_lists(rows: Rows) -> int:
    """Return the largest number of bytes that lists, histograms and searches take, without tiles of regions."""
    n_rows, n_clusters = len(rows), rows.n_clusters
    # an entry takes 8 bytes; while histograms move, there are two arenas, and at most half of each is empty
    needed = bytes_needed(rows.codes, n_clusters, _n_listed(rows)) + n_rows * (4 * 8 * rows.n_clusterings + 112)
    if rows.device != "cpu":
        return needed + 32 * n_rows
    of_thread = max(4 * cpu.LANES * n_clusters, bytes_of_thread(n_rows, n_clusters))
    return needed + RETAINED * devices.n_threads() * of_thread


class _Rounds:
    """The rounds of a linkage, with arrays of all regions, their lists and their nearest regions on ``device``.

    This class is for a diagonal S with weights (N_c,); its subclasses are for other similarities.
    """

    nothing = 0.0  # bound of a list that holds all regions with a similarity above 0
    margin = 0.0  # absolute rounding tolerance of a similarity, for similarities without a relative tolerance
    drops_clusters = True  # whether clusters of a single row are removed before the memory is computed
    instead = "reduce the rows first, or use a method of the transfer cut (lwgp, hbgf)"

    @classmethod
    def link(cls, rows: Rows, similarity: Any, work: Work) -> Dendrogram:
        """Return the dendrogram of `average_linkage`."""
        _refuse_extreme(similarity.weights)
        leaves = None if similarity.whole else equal_leaves(rows, similarity.weights)
        if leaves is not None:
            rows = rows.take(leaves.first, leaves.of_sums(rows.counts))
        if few_rows.suits(rows, similarity.whole):
            found = few_rows.link(rows, similarity, work)
        else:
            found = cls._of(*without_singletons(rows, similarity), work).run()
        return found if leaves is None else found.expand(leaves.leaf_of, leaves.similarities)

    @classmethod
    def _of(cls, rows: Rows, similarity: Any, work: Work) -> "_Rounds":
        cls.refuse_too_many(rows)
        weights, device, n_listed = similarity.weights, rows.device, _n_listed(rows)
        regions = regions_of(rows.codes, rows.offsets, rows.counts, device=device)
        index = nearest_index(rows.codes, rows.offsets, weights, rows.counts, device=device)
        room = _room_for_table(rows, weights)
        if _at_once(index, room) and share_compared(index, Shortlists.empty(len(rows), n_listed)) > 0.5:
            lists = Shortlists.empty(len(rows), 0)
        else:
            lists = nearest_lists(index, n_listed)
        work.comparisons += index.comparisons
        bounding = bounding_weights(weights, device=device)
        return cls(lists, regions, weights, rows.n_clusterings, work, device, bounding, index, room)

    @classmethod
    def refuse_too_many(cls, rows: Rows) -> None:
        """Raise MemoryError if the linkage of these rows does not fit the memory budget."""
        checks.check_memory(
            cls.bytes_needed(rows),
            devices.memory_budget(rows.device),
            f"average linkage of {len(rows):,} distinct rows",
            cls.instead,
        )

    @classmethod
    def bytes_needed(cls, rows: Rows) -> int:
        """Return the largest number of bytes that lists, histograms and searches take."""
        needed = _bytes_of_lists(rows)
        if rows.device == "cpu":
            needed += tile_regions.bytes_needed(rows.codes, rows.n_clusters) + FOLLOWER * len(rows)
        return needed

    def __init__(
        self,
        lists: Shortlists,
        regions: Regions,
        cluster_weights: Any,
        n_clusterings: int,
        work: Work,
        device: str,
        bounding: BoundingWeights | None = None,
        index: Any = None,
        room: int = 0,
    ) -> None:
        n_rows = len(lists.ids)
        xp = devices.namespace(device)
        whole_numbers = cluster_weights.dtype.kind == "i"
        self.lists = lists
        self.weights = xp.asarray(cluster_weights)
        self.bounding = bounding  # weights for upper bounds in searches
        self.index = index
        self.room = room  # bytes available for a table
        self.members = Members.of_rows(n_rows)  # used on the CPU only
        self.n_clusterings = n_clusterings
        self.divisor: int | None = n_clusterings  # M, by which a sum is divided; None for a ratio of sums
        self.work = work
        self.device = device
        # whether float64 holds every numerator exactly, so that the scores of searches are exact similarities
        self.whole = whole_numbers and float(regions.size.sum()) ** 2 * n_clusterings < 2.0**53
        # relative rounding error of a similarity, by which bounds are raised; if terms have both signs, ``margin`` is
        # used instead, which is an absolute error
        exact = whole_numbers or self.margin > 0.0
        self.slack = 0.0 if exact else 4 * np.finfo(np.float64).eps * (cluster_weights.shape[-1] + 8)
        self.state = State.of_rows(xp.arange(n_rows) if index is None else index.order, device)
        self.counts = Counts(active=n_rows)  # the counts that the host has read last
        self.most = n_rows  # regions at most in a round
        self.launched: dict[int, list[Any]] = {}  # launches of a round, by the array of active regions
        self.state.counts[USED : USED + 1] = regions.used
        self.regions = regions._replace(used=self.state.counts[USED : USED + 1])
        self.n_pairs = self.state.counts[PAIRS : PAIRS + 1]
        self.united = self.state.kept, self.state.absorbed, self.n_pairs, self.state.counts[MERGES : MERGES + 1]
        self.heights = None if device == "cpu" else Heights.of_rows(n_rows, device)
        self.numbers = self.state.counts[ACTIVE : UNKNOWNS + 1]  # numbers of active regions and queries
        self.compared = self.state.counts[COMPARED : COMPARED + 1].view(np.uint64)
        # all rounds in one call; for other similarities, updates of lists may not wait for a region's nearest to grow
        self.native = device == "cpu" and bounding is not None and lists.ids.shape[1] > 0
        self.at_once = lists.ids.shape[1] == 0  # a table of all rows replaces the lists from the beginning
        if self.at_once:
            self.state.nearest.fill(UNKNOWN)
        elif not self.native:
            self._take_first_listed(self.state.active, ACTIVE)

    def run(self) -> Dendrogram:
        """Merge regions until no two regions have a similarity above 0; return the dendrogram."""
        merges, n_rows = 0, len(self.lists.ids)
        with progress.bar(total=n_rows - 1, description="average linkage") as shown:
            if self.native:
                merges = self._merge_natively(shown)
            elif self.at_once:
                merges = self._merge_by_table(shown, 0)
            self._look_up()
            while self.merge_reciprocal_pairs():
                shown.update(self.counts.merges - merges)
                merges = self.counts.merges
        if self.heights is None:
            return Dendrogram.from_merges(*self.merges(), n_rows)
        given = self.state.kept, self.state.absorbed, self.heights.of_merge, self.heights.wait_of_merge
        kept, absorbed, heights, waits = (part[: self.counts.merges] for part in given)
        return Dendrogram.from_heights(kept, absorbed, heights, waits, n_rows)

    def _merge_natively(self, shown: Any) -> int:
        """Merge regions on the CPU until none has a similarity above 0 with another, or a table pays.

        Returns the number of merges.
        """
        index = self.index
        diagonal = cpu.Diagonal(self.weights, *self.bounding, self.n_clusterings)  # type: ignore[misc, call-arg]
        left = min(1.0, index.comparisons / max(1, len(index.rows) ** 2 * self.n_clusterings))
        table = pair_table.most_regions(self.room), pair_table.comparisons_needed(len(index.rows), self.n_clusterings)
        conduct = self.slack, left, tile_regions.sizes(), searches.only_kind(), NODES * len(index.rows), table
        merged = 0

        def report(merges: int) -> None:
            nonlocal merged
            shown.update(merges - merged)
            merged = merges

        given = RowIndex.of(index), self.members, self.regions, diagonal, self.state, self.lists
        arena, n_searches, _, table_pays = cpu.average_linkage(*given, conduct, report)
        self.work.searches += n_searches
        if arena is not None:
            self.regions = self.regions._replace(clusters=arena[0], counts=arena[1])
        if table_pays:
            return self._merge_by_table(shown, merged)
        report(int(self.state.counts[MERGES]))
        return merged

    def _merge_by_table(self, shown: Any, merged: int) -> int:
        """Merge regions by a table, until none has a similarity above 0 with another; ``merged``: the merges shown.

        Returns the number of merges.
        """
        state = self.state
        active = state.active[: state.counts[ACTIVE]]
        table = PairTable.of(active, self.members, self.index, self.regions, self.weights)
        self.compared += np.uint64(table.compared)

        def report(merges: int) -> None:
            nonlocal merged
            shown.update(merges - merged)
            merged = merges

        given = self.members, self.regions, self.weights, self.n_clusterings, state
        self.work.searches += table.merge_all(*given, report)
        report(int(state.counts[MERGES]))
        return merged

    def merge_reciprocal_pairs(self) -> bool:
        """Merge all pairs of regions that are each other's nearest; return whether a further round may find pairs.

        On a GPU these are several rounds, before which the host waits once, to read the counts. It does not know the
        counts of later rounds, so it launches kernels for the largest possible ones.
        """
        counts = self._read_counts()
        if not counts.active:
            return False
        if counts.unknown == 0 == counts.pairs:  # rounding errors made the nearest regions form a cycle
            self._choose_best_pair(self.state.active[: counts.active])
        if self.device == "cpu":
            self.most = counts.active
            self._merge_pairs(counts.unknown)
        else:
            self._launch_rounds(self._rounds_with_room())
        return True

    def _launch_rounds(self, n_rounds: int) -> None:
        """Launch rounds; those for about as many regions, with the same arrays, only repeat the launches of others."""
        if self.counts.active < self.most / 2:
            self.launched.clear()
        for _ in range(n_rounds):
            active = self.state.active
            if (launches := self.launched.get(id(active))) is not None:
                for launch in launches:
                    launch()
                self._swap()
                continue
            if not self.launched:
                self.most = self.counts.active
            with kernels.recorded() as self.launched[id(active)]:
                self._merge_pairs(self.most)

    def _swap(self) -> None:
        """Make the survivors of a round the active regions of the next one."""
        self.state = self.state._replace(active=self.state.survivors, survivors=self.state.active)

    def _look_up(self) -> None:
        look_up(self.state, self.regions, self.lists, self.most, self.nothing, device=self.device)

    def _merge_pairs(self, most_unknown: int) -> None:
        """Search for the nearest regions of at most ``most_unknown`` regions, merge all pairs, and look up lists."""
        state, most = self.state, self.most
        active = state.active[:most]
        if most_unknown:
            unknown = state.unknown[:most_unknown]
            self._search(unknown, active)
            self._take_first_listed(unknown, UNKNOWNS)
        pair_up(state, most, device=self.device)
        self._swap()
        if self.device == "cpu":
            made = slice(self.counts.merges, self.counts.merges + int(self.n_pairs[0]))
            self._make_room(active, state.kept[made], state.absorbed[made])
            self.members.unite(state.kept[made], state.absorbed[made])
        self._unite(most // 2)
        if self.heights is not None:
            find_heights(self.state, *self.united[2:], self.heights, most // 2, device=self.device)
        update_lists(
            self.state, self.regions, self.weights, self.lists, most, self.divisor, self.slack, self.margin,
            self.nothing, device=self.device,
        )  # fmt: skip
        self._look_up()

    def merges(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the kept region, the absorbed region and the similarity of all merges so far, as host arrays."""
        found, made = self.state, slice(self.counts.merges)
        kept, absorbed, similarities = (
            devices.to_host(part[made]) for part in (found.kept, found.absorbed, found.merged_at)
        )
        return kept, absorbed, similarities

    def _read_counts(self) -> Counts:
        before, read = self.counts, devices.to_host(self.state.counts)[: len(Counts._fields)]
        self.counts = Counts(*read.tolist())
        self.work.rounds += self.counts.rounds - before.rounds
        self.work.comparisons += self.counts.compared - before.compared
        self.work.searches += self.counts.searched - before.searched
        return self.counts

    def _take_first_listed(self, rows: Any, count: int) -> None:
        n_rows = self.state.counts[count : count + 1]
        take_first_listed(rows, n_rows, self.state, self.lists, self.slack, self.margin, device=self.device)

    def _search(self, queries: Any, active: Any) -> None:
        """Rebuild the list of nearest regions of each region in ``queries``, from all ``active`` regions."""
        search(
            queries, active, self.regions, self.weights, self.bounding, self.n_clusterings, self.whole, self.lists,
            self.compared, self.numbers, device=self.device,
        )  # fmt: skip

    def _make_room(self, active: np.ndarray, kept: np.ndarray, absorbed: np.ndarray) -> None:
        """Make room in the arena for the unions, on the CPU.

        Mostly the unions have far fewer entries than all ``active`` regions, so that the arena can be compacted in
        place.
        """
        regions, entries, capacity = self.regions, self.counts.entries, len(self.regions.clusters)
        needed = int(regions.length[kept].sum() + regions.length[absorbed].sum())
        if self.counts.used + needed <= capacity:
            return
        if entries + needed <= capacity:
            compact(regions, active)
        else:
            capacity = max(capacity, entries + needed + entries // 2)
            self.regions = make_room(regions, active, capacity)

    def _rounds_with_room(self) -> int:
        """Return the number of rounds for which the arena has room, on a GPU, after making room if there is none.

        The unions of a round have at most as many entries as all active regions have now.
        """
        regions, counts, capacity = self.regions, self.counts, len(self.regions.clusters)
        entries, used = max(1, counts.entries), counts.used
        if used + entries > capacity:
            affordable = devices.scratch(self.device) // (4 + regions.counts.itemsize)
            wanted = min((1 + UNATTENDED) * entries, affordable)
            capacity, used = max(capacity, wanted, 2 * entries + entries // 2), entries
            self.launched.clear()
            self.regions = make_room(regions, self.state.active[: counts.active], capacity, device=self.device)
        return min(UNATTENDED, (capacity - used) // entries)

    def _unite(self, most: int) -> None:
        """Merge the histograms of this round's pairs, at most ``most``."""
        merge_histograms(self.regions, *self.united, most, device=self.device)

    def _choose_best_pair(self, active: Any) -> None:
        """Pair the two most similar regions, among regions whose nearest region is active."""
        given = active, self.state.nearest, self.state.nearest_similarity
        active, nearest, similarities = (devices.to_host(part) for part in given)
        paired = np.sort(active[np.isin(nearest[active], active)])
        if not len(paired):  # this means that a bound was too low; absorbed regions have no histogram to read
            raise RuntimeError(
                f"average linkage found no nearest region for one of {len(active)} regions; please report this."
            )
        best = int(paired[similarities[paired].argmax()])
        for one, other in ((best, int(nearest[best])), (int(nearest[best]), best)):
            self.state.nearest[one], self.state.nearest_similarity[one] = other, float(similarities[best])


class _GeneralRounds(_Rounds):
    """`_Rounds` for any symmetric S, by affinities (G, N_c): similarities may be negative, and no region retires."""

    nothing = -np.inf
    drops_clusters = False
    instead = "reduce the rows first, reduction=CATree(…) or Sample(…)"

    @classmethod
    def link(cls, rows: Rows, similarity: Any, work: Work) -> Dendrogram:
        cls.refuse_too_many(rows)
        device, n_clusterings, matrix = rows.device, rows.n_clusterings, similarity.full()
        regions = regions_of(rows.codes, rows.offsets, rows.counts, device=device)
        affinities = all_pairs.affinities_of(rows.codes, rows.offsets, matrix, regions.size, device=device)
        margin = all_pairs.margin(matrix, len(rows), n_clusterings)
        lists = Shortlists.empty(len(rows), _n_listed(rows), device)
        return cls(lists, regions, affinities, n_clusterings, work, device, margin).run()

    @classmethod
    def bytes_needed(cls, rows: Rows) -> int:
        return _bytes_of_lists(rows) + all_pairs.bytes_needed(len(rows), rows.n_clusters)

    def __init__(
        self,
        lists: Shortlists,
        regions: Regions,
        affinities: Any,
        n_clusterings: int,
        work: Work,
        device: str,
        margin: float,
    ) -> None:
        self.margin = margin
        xp = devices.namespace(device)
        everything, compared = xp.arange(len(lists.ids)), xp.zeros(1, dtype=np.uint64)
        numbers = xp.full(2, len(everything))
        search_general(
            everything, everything, regions, affinities, n_clusterings, margin, lists, compared, numbers, device=device
        )
        super().__init__(lists, regions, affinities, n_clusterings, work, device)
        self.compared[:] = compared

    def _search(self, queries: Any, active: Any) -> None:
        search_general(
            queries, active, self.regions, self.weights, self.n_clusterings, self.margin, self.lists, self.compared,
            self.numbers, device=self.device,
        )  # fmt: skip

    def _unite(self, most: int) -> None:
        super()._unite(most)
        merge_affinities(self.weights, *self.united, most, device=self.device)


class _ObservedRounds(_Rounds):
    """`_Rounds` for `Observed` similarities, with weights (2, N_c + M)."""

    @classmethod
    def link(cls, rows: Rows, similarity: Any, work: Work) -> Dendrogram:
        _refuse_extreme(similarity.weights)
        labelled, n_clusterings, device = rows.codes != rows.ensemble.missing_code, rows.n_clusterings, rows.device
        rows, weights = all_pairs.with_labelled(*without_singletons(rows, similarity), labelled)
        cls.refuse_too_many(rows)
        regions = regions_of(rows.codes, rows.offsets, rows.counts, device=device)
        lists = Shortlists.empty(len(rows), _n_listed(rows), device)
        return cls(lists, regions, weights, n_clusterings, work, device).run()

    def __init__(
        self, lists: Shortlists, regions: Regions, weights: np.ndarray, n_clusterings: int, work: Work, device: str
    ) -> None:
        xp = devices.namespace(device)
        everything, compared = xp.arange(len(lists.ids)), xp.zeros(1, dtype=np.uint64)
        weights, numbers = xp.asarray(weights), xp.full(2, len(everything))
        search_observed(
            everything, everything, regions, weights, n_clusterings, lists, compared, numbers, device=device
        )
        super().__init__(lists, regions, weights, n_clusterings, work, device)
        self.compared[:] = compared
        self.divisor = None

    def _search(self, queries: Any, active: Any) -> None:
        search_observed(
            queries, active, self.regions, self.weights, self.n_clusterings, self.lists, self.compared, self.numbers,
            device=self.device,
        )  # fmt: skip


# kind of similarity -> the class of its rounds
ROUNDS: dict[str, type[_Rounds]] = {
    "diagonal": _Rounds,
    "blocks": _GeneralRounds,
    "full": _GeneralRounds,
    "observed": _ObservedRounds,
}

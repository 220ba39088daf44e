"""Exact average linkage without N × N, for S = diag(w) / M or any symmetric S: rounds of reciprocal nearest neighbours.

Average linkage is reducible: merging others never brings a region closer to A than the nearest of them was. So every
pair of regions that are each other's nearest may merge at once, and the dendrogram is the one that the greedy
algorithm makes. Each region keeps a list of near others and a bound on everything outside it:

- when others merge, entries are replaced by their union and scored again; what lies outside stays under the bound;
- when C and D merge, their lists are united and scored again, and what lies outside both is under
  (|C| u_C + |D| u_D) / (|C| + |D|);
- an entry that drops out of a full list raises the bound to its own similarity;
- while the best entry is not under the bound, the nearest region is known; otherwise all regions are searched.

With S = diag(w) / M a region that has no similarity to any other retires; what has retired is joined by id at the end,
at similarity 0. With any other S all pairs are listed, whatever their sign, until one region is left.
"""

from typing import Any

import numpy as np

from gpuens import checks, kernels, progress
from gpuens import device as devices
from gpuens.compiled import njit
from gpuens.encoding import codes_dtype
from gpuens.incidence import cluster_sums
from gpuens.lanes import LANES
from gpuens.partition.linkage import general_regions, row_regions
from gpuens.partition.linkage.dendrogram import Dendrogram
from gpuens.partition.linkage.nearest import Lists, bytes_needed, nearest_index, nearest_lists
from gpuens.partition.linkage.order import NO_HASH, comes_before, insert, pair_hash
from gpuens.partition.linkage.regions import (
    BoundingWeights,
    Regions,
    bounding_weights,
    clear,
    lay_out,
    make_room,
    merge_histograms,
    regions_of,
    search,
    similarity_to,
)
from gpuens.partition.linkage.work import Work

N_LISTED = 16
RETIRED, UNKNOWN = -1, -2  # instead of the id of a region's nearest


def average_linkage(
    codes: Any,
    offsets: np.ndarray,
    cluster_weights: np.ndarray,
    sizes: np.ndarray,
    *,
    device: str = "cpu",
    work: Work | None = None,
) -> Dendrogram:
    """Return the average-linkage dendrogram of distinct label rows.

    Parameters
    ----------
    codes : array (G, M), unsigned, columns contiguous, where ``device`` works
        Distinct label rows in lexicographic order; the dtype's last value is a missing label.
    offsets : ndarray (M + 1,), int64
        Ensemble-wide numbers of the clusters.
    cluster_weights : ndarray (N_c,) or (N_c, N_c)
        The diagonal w of S = diag(w) / M. int64 ones for exact arithmetic on whole numbers; else float64, from 1e-150
        to 1e150. Or M S in full: float64, symmetric, of any sign.
    sizes : ndarray (G,), int64
        How many objects each row stands for.
    work : Work, optional
        Where to count what it cost.

    Raises
    ------
    ValueError
        For weights beyond that range, and for more objects than whole numbers of 64 bits can count the pairs of.
    MemoryError
        Before it starts, for more rows than the memory budget holds lists and histograms of.
    """
    work = Work() if work is None else work
    n_rows, n_clusterings = codes.shape
    n_listed = min(N_LISTED, max(1, n_rows - 1))
    general = cluster_weights.ndim == 2
    _similarities_are_exact(cluster_weights, sizes, n_clusterings)
    if not general:
        codes, offsets, cluster_weights = _shared_clusters(codes, offsets, cluster_weights, device)
    linkage_fits(codes, len(cluster_weights), general=general, device=device)
    regions = regions_of(codes, offsets, sizes, device=device)
    xp = devices.namespace(device)
    rounds: _Rounds
    if general:
        affinities = general_regions.affinities_of(codes, offsets, cluster_weights, regions.size, device=device)
        margin = general_regions.margin(cluster_weights, n_rows, n_clusterings)
        lists = Lists.empty(n_rows, n_listed, device)
        rounds = _GeneralRounds(lists, regions, affinities, n_clusterings, work, device, margin)
    else:
        index = nearest_index(codes, offsets, cluster_weights, sizes, device=device)
        lists = nearest_lists(index, n_listed)
        work.comparisons += index.comparisons
        bounding = bounding_weights(cluster_weights, device=device)
        rounds = _Rounds(lists, regions, cluster_weights, n_clusterings, work, device, bounding, index)
    nothing = xp.empty(0, dtype=np.int64)
    merges = [(nothing, nothing, xp.empty(0))]
    with progress.bar(total=n_rows - 1, description="average linkage") as shown:
        while rounds.find_nearest():
            merges.append(rounds.merge_reciprocal_pairs())
            shown.update(len(merges[-1][0]))
    kept, absorbed, similarities = (devices.to_host(xp.concatenate(parts)) for parts in zip(*merges, strict=True))
    return Dendrogram.from_merges(kept, absorbed, similarities, n_rows)


def _shared_clusters(
    codes: Any, offsets: np.ndarray, cluster_weights: np.ndarray, device: str
) -> tuple[Any, np.ndarray, np.ndarray]:
    """Return codes, offsets and weights without most of the clusters in one row only, which bring it near no other.

    They stay where they are few, and each clustering's first cluster stays.
    """
    xp, n_clusters = devices.namespace(device), np.diff(offsets)
    rows_in = devices.to_host(cluster_sums(codes, offsets, xp.ones(len(codes), dtype=np.int64), device=device))
    kept = rows_in > 1
    kept[offsets[:-1]] = True
    if 2 * np.count_nonzero(kept) > len(kept):
        return codes, offsets, cluster_weights
    fewer = np.add.reduceat(kept, offsets[:-1], dtype=np.int64)
    dtype = codes_dtype(int(fewer.max()))
    shared = xp.empty(codes.shape, dtype=dtype, order="F")
    for m, k in enumerate(n_clusters.tolist()):
        own = kept[offsets[m] : offsets[m + 1]]
        number = np.where(np.append(own, False), np.cumsum(np.append(own, False)) - 1, np.iinfo(dtype).max)
        shared[:, m] = xp.asarray(number.astype(dtype))[xp.minimum(codes[:, m], k)]
    return shared, np.concatenate([[0], np.cumsum(fewer)]), cluster_weights[kept]


def _similarities_are_exact(cluster_weights: np.ndarray, sizes: Any, n_clusterings: int) -> None:
    """Refuse what similarities, or bounds of them, would overflow or vanish with."""
    n_objects, least, most = int(sizes.sum()), cluster_weights.min(), cluster_weights.max()
    if n_objects**2 // 4 * n_clusterings >= 2**63:  # pairs of objects in two halves, and their labels
        raise ValueError(
            f"average linkage of {n_objects} objects in {n_clusterings} clusterings is beyond whole numbers of 64 "
            "bits; fit a sample of the objects, reduction=Sample(…)."
        )
    if cluster_weights.ndim == 1 and not 1e-150 <= least <= most <= 1e150:
        raise ValueError(f"cluster_weights must be from 1e-150 to 1e150, not from {least} to {most}.")


def linkage_fits(codes: Any, n_clusters: int, *, general: bool, device: str = "cpu") -> None:
    """Refuse rows whose average linkage, under a diagonal or a ``general`` S, does not fit the memory budget."""
    n_rows, n_clusterings = codes.shape
    checks.check_memory(
        bytes_needed(codes, n_clusters, min(N_LISTED, max(1, n_rows - 1)))
        + n_rows * (32 * n_clusterings + 80)
        + (general_regions.bytes_needed(n_rows, n_clusters) if general else 0)
        + (0 if general or device != "cpu" else devices.n_threads() * 4 * LANES * n_clusters),  # searches by rows
        devices.memory_budget(device),
        f"average linkage of {n_rows} distinct rows of {n_clusterings} labels",
        "reduce the rows first, reduction=CATree(…) or Sample(…)"
        if general
        else "reduce the rows first, or use a method of the transfer cut (lwgp, hbgf)",
    )


class _Rounds:
    """The regions, their lists and their nearest from one round to the next, in arrays where ``device`` works."""

    nothing = 0.0  # the bound of a list outside of which there is nothing
    margin = 0.0  # by how much rounding can be off where no share of a similarity says it

    def __init__(
        self,
        lists: Lists,
        regions: Regions,
        cluster_weights: Any,
        n_clusterings: int,
        work: Work,
        device: str,
        bounding: BoundingWeights | None = None,
        index: Any = None,
    ) -> None:
        n_rows = len(lists.ids)
        xp = devices.namespace(device)
        whole_numbers = cluster_weights.dtype.kind == "i"
        self.lists = lists
        self.regions = regions
        self.weights = xp.asarray(cluster_weights)
        self.bounding = bounding  # of searches by weights
        self.index = index
        self.order = xp.arange(n_rows) if index is None else index.order
        self.unscreened = 0  # up to so many active regions the screen is known to be of no use
        self.n_clusterings = n_clusterings
        self.work = work
        self.device = device
        # float64 holds every numerator, so that searches need not score again
        self.whole = whole_numbers and float(regions.size.sum()) ** 2 * n_clusterings < 2.0**53
        # what a sum of products and a quotient can be off by, for bounds that rounding must not undercut; where
        # similarities of both signs add up, no share of them says it
        exact = whole_numbers or self.margin > 0.0
        self.slack = 0.0 if exact else 4 * np.finfo(np.float64).eps * (len(cluster_weights) + 8)
        self.nearest = xp.empty(n_rows, dtype=np.int64)
        self.nearest_similarity = xp.empty(n_rows)
        self.active = xp.arange(n_rows)
        self.into = xp.arange(n_rows)  # the region that each has become part of
        self.partner = xp.full(n_rows, -1, dtype=np.int64)  # what each has absorbed in this round
        self._take_first_listed(self.active)

    def find_nearest(self) -> bool:
        """Find the nearest of every active region, retire those that have none; return whether any is left."""
        nearest = self.nearest, self.nearest_similarity
        look_up(self.active, *nearest, self.lists, nothing=self.nothing, device=self.device)
        unknown = self.active[self.nearest[self.active] == UNKNOWN]
        if len(unknown):
            self.work.searches += len(unknown)
            self._search(unknown)
            self._take_first_listed(unknown)
        self.active = self.active[self.nearest[self.active] != RETIRED]
        return len(self.active) > 0

    def merge_reciprocal_pairs(self) -> tuple[Any, Any, Any]:
        """Merge all pairs of regions that are each other's nearest; return kept, absorbed and similarity."""
        active, nearest = self.active, self.nearest
        kept = active[mutual_pairs(active, nearest, device=self.device)]
        if not len(kept):  # rounding has made a circle of nearest neighbours: the best pair breaks it
            kept = self._best_pair()
        absorbed = nearest[kept].copy()
        merged_at = self.nearest_similarity[kept]
        self.work.rounds += 1

        needed = int(self.regions.length[kept].sum() + self.regions.length[absorbed].sum())
        self.regions = make_room(self.regions, active, needed, device=self.device)
        old_size = self.regions.size.copy()
        self._merge(kept, absorbed)
        self.into[absorbed] = kept
        self.partner[kept] = absorbed
        self.active = active[self.into[active] == active]
        update_lists(
            self.active, self.partner, self.into, old_size, self.regions, self.weights, self.n_clusterings,
            self.slack, nearest, self.lists, margin=self.margin, nothing=self.nothing, device=self.device,
        )  # fmt: skip
        self.partner[kept] = -1
        return kept, absorbed, merged_at

    def _take_first_listed(self, rows: Any) -> None:
        """Take the first entry of lists just made for the nearest, and loosen their bounds by what rounding can hide.

        A loosened bound says nothing about ties.
        """
        first = self.lists.ids[rows, 0]
        self.nearest[rows] = np.where(first >= 0, first, RETIRED)
        self.nearest_similarity[rows] = self.lists.similarities[rows, 0]
        if self.slack or self.margin:
            self.lists.bound[rows] = self.lists.bound[rows] * (1.0 + self.slack) + self.margin
            self.lists.bound_hash[rows] = 0

    def _search(self, queries: Any) -> None:
        """List anew the nearest of all active regions for each of ``queries``."""
        alike, n_rows = self._alike(), len(self.nearest)
        n_entries = int(self.regions.length[alike].sum())
        by_rows = len(alike) <= self.unscreened < 2 * len(alike)
        if by_rows and row_regions.worthwhile(len(queries), n_entries, (n_rows, self.n_clusterings)):
            self.work.comparisons += row_regions.search_rows(
                queries, alike, self._region_of_rows(), self.index, self.regions, self.weights, self.lists,
            )  # fmt: skip
            return
        compared = search(
            queries, alike, self.regions, self.weights, self.bounding, self.n_clusterings, self.whole, self.lists,
            device=self.device,
        )  # fmt: skip
        self.work.comparisons += compared
        useless = self.device == "cpu" and compared > 0.9 * n_entries * len(queries)
        self.unscreened = len(alike) if useless else 0

    def _region_of_rows(self) -> Any:
        """Return (G,) the region that each row has become part of."""
        region = self.into
        while (region != (further := region[region])).any():
            region = further
        return region

    def _alike(self) -> Any:
        """Return the active regions with like ones side by side, as the tiles of a search want them."""
        return self.order[self._is_active()[self.order]]

    def _is_active(self) -> Any:
        found = devices.namespace(self.device).zeros(len(self.nearest), dtype=bool)
        found[self.active] = True
        return found

    def _merge(self, kept: Any, absorbed: Any) -> None:
        merge_histograms(self.regions, kept, absorbed, device=self.device)

    def _best_pair(self) -> Any:
        """Return the smaller of the two regions that are most similar, of all that have an active one for nearest."""
        paired = self.active[self._is_active()[self.nearest[self.active]]]
        if not len(paired):  # a bound was below what it bounds: no reason to read histograms that are gone
            raise RuntimeError(f"average linkage lost the nearest of {len(self.active)} regions; please report this.")
        similarity = self.nearest_similarity[paired]
        best = paired[similarity == similarity.max()][:1]
        other = self.nearest[best]
        kept, absorbed = np.minimum(best, other), np.maximum(best, other)
        self.nearest_similarity[kept] = self.nearest_similarity[best]
        self.nearest[kept] = absorbed
        return kept


class _GeneralRounds(_Rounds):
    """`_Rounds` by affinities (G, N_c), for any symmetric S: similarities of any sign, and nothing retires."""

    nothing = -np.inf

    def __init__(
        self,
        lists: Lists,
        regions: Regions,
        affinities: Any,
        n_clusterings: int,
        work: Work,
        device: str,
        margin: float,
    ) -> None:
        self.margin = margin
        everything = devices.namespace(device).arange(len(lists.ids))
        work.comparisons += general_regions.search_general(
            everything, everything, regions, affinities, n_clusterings, margin, lists, device=device
        )
        super().__init__(lists, regions, affinities, n_clusterings, work, device)

    def _search(self, queries: Any) -> None:
        self.work.comparisons += general_regions.search_general(
            queries, self.active, self.regions, self.weights, self.n_clusterings, self.margin, self.lists,
            device=self.device,
        )  # fmt: skip

    def _merge(self, kept: Any, absorbed: Any) -> None:
        super()._merge(kept, absorbed)
        general_regions.merge_affinities(self.weights, kept, absorbed, device=self.device)


# --- what a round does, for the CPU -----------------------------------------------------------------------------------


@kernels.primitive
def look_up(
    active: np.ndarray, nearest: np.ndarray, nearest_similarity: np.ndarray, lists: Lists, nothing: float = 0.0
) -> None:
    """Find the nearest of each active region that is UNKNOWN in its list, where the list can tell.

    It has none where nothing is listed and the bound is that of ``nothing``.
    """
    _look_up(active, nearest, nearest_similarity, nothing, *lists)


@kernels.primitive
def mutual_pairs(active: np.ndarray, nearest: np.ndarray) -> np.ndarray:
    """Return which active regions are their nearest's nearest, and the smaller of the two."""
    of_active = nearest[active]
    return (of_active > active) & (nearest[of_active] == active)


@kernels.primitive
def update_lists(
    active: np.ndarray, partner: np.ndarray, into: np.ndarray, old_size: np.ndarray, regions: Regions,
    weights: np.ndarray, n_clusterings: int, slack: float, nearest: np.ndarray, lists: Lists, margin: float = 0.0,
    nothing: float = 0.0,
) -> None:  # fmt: skip
    """Bring the lists of ``active`` regions up to date with the merges of this round.

    ``partner`` names what each region has absorbed, or is -1; ``into`` names the region that each is part of now.
    Rounding can hide the share ``slack`` of a similarity, and ``margin``; ``nothing`` is the bound of nothing.
    """

    def update_range(start: int, stop: int) -> None:
        _update(
            start, stop, active, partner, into, old_size, regions, weights, n_clusterings, slack, margin, nothing,
            nearest, *lists,
        )  # fmt: skip

    devices.over_ranges(update_range, len(active), grain=256)


@njit(cache=True, nogil=True)
def _look_up(active, nearest, nearest_similarity, nothing, ids, similarities, bound, bound_hash):
    """Find the nearest of each region in its list, where the list can tell."""
    for a in active:
        if nearest[a] != UNKNOWN:
            continue
        best = -1
        best_similarity = 0.0
        best_tie = NO_HASH
        for s in range(ids.shape[1]):
            if ids[a, s] < 0:
                break
            tie = pair_hash(a, ids[a, s])
            if best < 0 or comes_before(similarities[a, s], tie, best_similarity, best_tie):
                best, best_similarity, best_tie = ids[a, s], similarities[a, s], tie
        if best >= 0 and not comes_before(bound[a], bound_hash[a], best_similarity, best_tie):
            nearest[a] = best
            nearest_similarity[a] = best_similarity
        elif best < 0 and bound[a] <= nothing:
            nearest[a] = RETIRED


@njit(cache=True, nogil=True)
def _update(
    start, stop, active, partner, into, old_sizes, regions, weights, n_clusterings, slack, margin, nothing, nearest,
    ids, similarities, bound, bound_hash,
):  # fmt: skip
    n_listed = ids.shape[1]
    # the histogram of the region at hand: by weights (N_c,), unless there are too many clusters to begin with zeros
    dense = weights.ndim == 1 and len(weights) <= 256 * (stop - start)
    held = np.zeros(len(weights) if dense else 0, dtype=regions.counts.dtype)
    nobody = held[:0]
    pooled = np.empty(2 * n_listed, dtype=np.int64)
    ties = np.empty(n_listed, dtype=np.uint64)
    for a in active[start:stop]:
        if partner[a] < 0:
            if nearest[a] >= 0 and (partner[nearest[a]] >= 0 or into[nearest[a]] != nearest[a]):
                nearest[a] = UNKNOWN
            changed = 0
            for s in range(n_listed):
                changed += ids[a, s] >= 0 and partner[into[ids[a, s]]] >= 0
            lay = changed > 2 and len(held) > 0  # else not worth it
            if lay:
                lay_out(regions, a, held)
            near = held if lay else nobody
            kept = 0
            while kept < n_listed and ids[a, kept] >= 0 and partner[into[ids[a, kept]]] < 0:
                kept += 1  # as it is
            for s in range(kept, n_listed):
                old = ids[a, s]
                if old < 0:
                    break
                new = into[old]
                if partner[new] < 0:
                    ids[a, kept], similarities[a, kept] = old, similarities[a, s]
                    kept += 1
                    continue
                seen = False
                for earlier in range(kept):
                    seen = seen or ids[a, earlier] == new
                if not seen:
                    ids[a, kept] = new
                    similarities[a, kept] = similarity_to(regions, near, weights, n_clusterings, a, new)
                    kept += 1
            if lay:
                clear(regions, a, held)
            for s in range(kept, n_listed):
                ids[a, s] = -1
            continue

        b = partner[a]
        nearest[a] = UNKNOWN
        if bound[a] != bound[b]:
            part = old_sizes[a] / (old_sizes[a] + old_sizes[b])
            bound[a] = (part * bound[a] + (1.0 - part) * bound[b]) * (1.0 + 1e-15) + margin
            bound_hash[a] = 0
        n_pooled = 0
        for side in (a, b):
            for s in range(n_listed):
                if ids[side, s] < 0:
                    break
                new = into[ids[side, s]]
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
                dropped, dropped_tie = similarities[a, n_listed - 1], ties[n_listed - 1]
                if not comes_before(similarity, tie, dropped, dropped_tie):
                    dropped, dropped_tie = similarity, tie
            listed = insert(ids[a], similarities[a], ties, listed, pooled[p], similarity, tie)
            if slack > 0.0 or margin > 0.0:
                dropped, dropped_tie = dropped * (1.0 + slack) + margin, np.uint64(0)
            if dropped > nothing and comes_before(dropped, dropped_tie, bound[a], bound_hash[a]):
                bound[a], bound_hash[a] = dropped, dropped_tie
        if len(held):
            clear(regions, a, held)


# --- kernels/rounds.cu ------------------------------------------------------------------------------------------------


@look_up.kernel
def _(active: Any, nearest: Any, nearest_similarity: Any, lists: Lists, nothing: float = 0.0, *, device: str) -> None:
    kernels.launch(
        "look_up", kernels.blocks(len(active), 128), 128,
        (active, len(active), np.int32(lists.ids.shape[1]), np.float64(nothing), nearest, nearest_similarity, *lists),
        device=device, COUNT="i32", WEIGHT="f64",
    )  # fmt: skip


@mutual_pairs.kernel
def _(active: Any, nearest: Any, *, device: str) -> Any:
    mutual = devices.namespace(device).empty(len(active), dtype=bool)
    kernels.launch(
        "mutual_pairs", kernels.blocks(len(active), 128), 128, (active, len(active), nearest, mutual),
        device=device, COUNT="i32", WEIGHT="f64",
    )  # fmt: skip
    return mutual


@update_lists.kernel
def _(
    active: Any, partner: Any, into: Any, old_size: Any, regions: Regions, weights: Any, n_clusterings: int,
    slack: float, nearest: Any, lists: Lists, margin: float = 0.0, nothing: float = 0.0, *, device: str,
) -> None:  # fmt: skip
    kernels.launch(
        "update_lists", kernels.blocks(len(active), 4), 128,
        (active, len(active), np.int32(lists.ids.shape[1]), partner, into, old_size, regions.clusters, regions.counts,
         regions.start, regions.length, regions.size, weights, weights.shape[1] if weights.ndim == 2 else 0,
         n_clusterings, np.float64(slack), np.float64(margin), np.float64(nothing), nearest, *lists),
        device=device, COUNT=kernels.c_name(regions.counts.dtype), WEIGHT=kernels.c_name(weights.dtype),
    )  # fmt: skip

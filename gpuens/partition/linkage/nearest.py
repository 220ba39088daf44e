"""Exact lists of the K most similar groups of every group, by weighted label matches, without an N × N matrix.

The similarity of groups A and B is Σ_c w_c n_A[c] n_B[c] / (|A| |B| M). Every group gets a list of the K most similar
other groups, sorted by the total order of `order`, best first. Without bounds this takes G² M label comparisons; bounds
save many of these comparisons:

- Rows are divided into tiles of 64 adjacent rows, in an order in which similar rows are adjacent (`locality`). The
  score of any row of a tile is at most Σ_m w_m [label m of the query occurs in the tile]. Computing these bounds takes
  1/64 of the full work. The query is compared only with tiles whose bound reaches the K-th best similarity so far.
- On the CPU 64 adjacent tiles form a segment. The bound of the segment is computed from the labels that occur in any of
  its tiles. The bounds of the tiles are computed only if the bound of the segment is high enough.
- On the CPU 64 adjacent queries are searched together, so that they share the computation of bounds (`comparisons`) and
  find tiles already in the cache. The bounds of 64 tiles are the 64 lanes of a vector, and so are the scores of the 64
  rows of a tile. The labels of these rows are adjacent in memory, so that one operation compares them with a label of
  the query.
- Weights are rounded up to small integers, so that their sums are upper bounds of scores (unit weights are not rounded,
  so their sums are exact). On the CPU, rows whose sum is high enough become candidates. Candidates that the K best sums
  exclude later are dropped. The similarities of the remaining candidates are computed in float64, four at a time.

Tiles are visited in descending bands of their bounds, because good neighbours found early exclude more tiles.
"""

from typing import Any, NamedTuple

import numpy as np

from gpuens.partition.linkage.comparisons import (
    BYTE,
    CANDIDATES,
    SEGMENT,
    chunks_of,
    forget_scores,
    label_scores,
    no_scores,
    take_score,
)
from gpuens.partition.linkage.lists import insert
from gpuens.partition.linkage.locality import locality_order
from gpuens.partition.linkage.order import NO_HASH, pair_hash
from gpuens.runtime import device as devices
from gpuens.runtime import kernels, progress
from gpuens.runtime.compiled import njit
from gpuens.runtime.lanes import LANES, aligned_zeros, at_least, lowest, nothing, plus_vector, plus_where, store

TILE = 64  # rows in a tile
BAND = 16  # number of bands; the width of a band is 1/16 of the query's best bound
AT_ONCE = 4  # rows whose exact similarities are computed together
PROBED = 4  # blocks of 64 rows in the sample that tells whether bounds save comparisons
WARPS = 4  # warps in a GPU block
# for integer ("i") and float ("f") weights: if at least so many of 32 tiles must be compared, each lane of a warp
# scores one of the 32 tiles, by bits
DENSE = {"i": 9, "f": 17}


class Shortlists(NamedTuple):
    """For each region, a list of its K nearest other regions, and a bound on all regions outside the list.

    ``ids`` (G, K) int32 and ``similarities`` (G, K) float64, best first, -1 and 0 in unused places. Every region
    outside list g comes after (``bound[g]``, ``bound_hash[g]``) in the total order.
    """

    ids: Any
    similarities: Any
    bound: Any
    bound_hash: Any

    @classmethod
    def empty(cls, n_rows: int, n_listed: int, device: str = "cpu") -> "Shortlists":
        xp = devices.namespace(device)
        return cls(
            xp.full((n_rows, n_listed), -1, dtype=np.int32),
            xp.zeros((n_rows, n_listed)),
            xp.zeros(n_rows),
            xp.full(n_rows, NO_HASH, dtype=np.uint64),
        )


class NearestIndex:
    """Index of distinct label rows ``codes`` (G, M), which finds the nearest other rows of any row.

    ``cluster_weights`` (N_c,) are int64 ones for exact integer arithmetic, else float64; ``sizes`` (G,) int64 are the
    numbers of objects of the rows. ``comparisons`` counts all label comparisons, including those for bounds.
    """

    device = "cpu"

    def __init__(self, codes: np.ndarray, offsets: np.ndarray, cluster_weights: np.ndarray, sizes: np.ndarray) -> None:
        self.codes = codes
        self.offsets = offsets
        self.sizes = sizes
        self.order = locality_order(codes, offsets)
        self.sizes_there = sizes[self.order]
        self.place = np.empty_like(self.order)
        self.everything = np.arange(len(codes))
        self.place[self.order] = self.everything
        self.exact = cluster_weights.dtype.kind == "i"
        units, self.scale = _integer_weights(cluster_weights, offsets)
        # a missing label is one more cluster of each clustering, of weight 0
        self.starts = offsets + np.arange(len(offsets))
        self.weights = np.insert(cluster_weights, offsets[1:], 0)
        bytes_do = self.exact and codes.shape[1] <= BYTE
        self.units = np.insert(units, offsets[1:], 0).astype(np.uint8 if bytes_do else np.uint16)
        self.rows = np.empty(codes.shape, dtype=codes.dtype)
        # for each tile and clustering, the labels of the tile's 64 rows, adjacent in memory
        self.labels = aligned_zeros(-(-len(codes) // TILE) * codes.shape[1], TILE, codes.dtype)
        n_segments = -(-len(codes) // (TILE * SEGMENT))
        # units of each cluster in each tile (``present``) and in each segment (``present_in``); 0 if the tile or
        # segment does not have the cluster
        self.present = np.zeros((n_segments, len(self.units), SEGMENT), dtype=self.units.dtype)
        self.present_in = np.zeros((-(-n_segments // SEGMENT), len(self.units), SEGMENT), dtype=self.units.dtype)

        def lay_out(start: int, stop: int) -> None:
            given = codes, self.order, self.starts, self.units, self.rows, self.labels, self.present, self.present_in
            _lay_out(start, stop, *given)

        devices.over_ranges(lay_out, n_segments)
        self.chunks, _ = chunks_of(self.starts, self.units.itemsize)
        self.comparisons = 0

    def search(self, queries: np.ndarray, component: np.ndarray, least: np.ndarray, lists: Shortlists) -> None:
        """Rebuild the list of each row in ``queries`` from the rows of all components except its own.

        ``component`` (G,) int64 names the component of each row. The list of query i has only rows at least as similar
        as ``least[i]``, so that bounds can exclude tiles from the beginning.
        """
        component = component[self.order]
        of_tile = _component_of_parts(component, TILE)
        of_segment = _component_of_parts(of_tile, SEGMENT)
        places = self.place[queries]
        alike = np.argsort(places)
        places, least = places[alike], least[alike]

        def work(start: int, stop: int) -> int:
            some = slice(start * LANES, stop * LANES)
            return int(_search_rows(
                places[some], least[some], component, of_tile, of_segment, self.order, self.sizes_there,
                self.everything, self.rows, self.labels, self.starts, self.chunks, self.present, self.present_in,
                self.units, self.weights, self.exact, self.scale, self._scratch(lists.ids.shape[1]), *lists,
            ))  # fmt: skip

        self.comparisons += sum(devices.over_ranges(work, -(-len(places) // LANES)))

    def _scratch(self, n_listed: int) -> tuple[np.ndarray, ...]:
        """Return the working memory of a search."""
        n_clusterings, summed = self.rows.shape[1], self.units.dtype
        return (
            np.zeros((LANES, n_clusterings), dtype=self.rows.dtype),
            np.zeros((LANES, n_clusterings), dtype=summed),
            np.empty((len(self.present_in), LANES, SEGMENT), dtype=np.uint16),
            np.empty((len(self.present), LANES, SEGMENT), dtype=np.uint16),
            np.empty(len(self.present), dtype=bool),
            np.empty(LANES, dtype=np.int64),
            np.empty(LANES, dtype=np.int64),
            np.empty(len(self.present), dtype=np.int64),
            np.empty(LANES, dtype=np.int64),
            np.empty((LANES, n_listed), dtype=np.uint64),
            aligned_zeros(1, LANES, summed),
            no_scores(LANES, n_listed, summed),
            np.empty((LANES, CANDIDATES), dtype=np.int32),
            np.empty((LANES, CANDIDATES), dtype=summed),
            np.empty(LANES, dtype=np.int64),
            np.empty(AT_ONCE, dtype=np.int64),
            np.empty(AT_ONCE, dtype=self.weights.dtype),
        )


@kernels.primitive
def nearest_index(
    codes: np.ndarray, offsets: np.ndarray, cluster_weights: np.ndarray, sizes: np.ndarray
) -> NearestIndex:
    """Return an index that finds the nearest other rows of label rows; the parameters are those of `NearestIndex`."""
    return NearestIndex(codes, offsets, cluster_weights, sizes)


@nearest_index.kernel
def _(codes: Any, offsets: Any, cluster_weights: Any, sizes: Any, *, device: str) -> "KernelIndex":
    return KernelIndex(codes, offsets, cluster_weights, sizes, device)


def nearest_lists(index: Any, n_listed: int) -> Shortlists:
    """Return the lists of the ``n_listed`` nearest other rows of every row."""
    n_rows, xp = len(index.codes), devices.namespace(index.device)
    lists = Shortlists.empty(n_rows, n_listed, index.device)
    component = xp.arange(n_rows)
    at_once = max(4096 if index.device == "cpu" else 65_536, -(-n_rows // 100))
    with progress.bar(total=n_rows, description="nearest rows") as shown:
        for start in range(0, n_rows, at_once):
            queries = index.order[start : start + at_once]  # adjacent rows are similar
            index.search(queries, component, xp.zeros(len(queries)), lists)
            shown.update(len(queries))
    return lists


def share_compared(index: NearestIndex, lists: Shortlists) -> float:
    """Return the share of label comparisons that are needed despite bounds, measured on a sample of rows."""
    n_rows, n_clusterings = index.rows.shape
    blocks = np.linspace(0, n_rows - LANES, PROBED).astype(np.int64)
    queries = index.order[(blocks[:, None] + np.arange(LANES)).ravel()]
    before = index.comparisons
    index.search(queries, index.everything, np.zeros(len(queries)), lists)
    return float((index.comparisons - before) / (len(queries) * n_rows * n_clusterings))


class KernelIndex:
    """`NearestIndex` by kernels (kernels/nearest.cu); all arrays of ``search`` are in the memory of ``device``."""

    def __init__(self, codes: Any, offsets: np.ndarray, cluster_weights: np.ndarray, sizes: Any, device: str) -> None:
        xp = devices.namespace(device)
        units, self.scale = _integer_weights(cluster_weights, offsets)
        self.device = device
        self.codes = codes
        self.offsets = xp.asarray(offsets)
        self.cluster_weights = xp.asarray(cluster_weights)
        self.units = xp.asarray(units)
        self.sizes = xp.asarray(sizes)
        self.order = locality_order(codes, offsets, device=device)
        self.tiles = _tiles(codes, self.order)
        self.present = xp.zeros((int(offsets[-1]), -(-len(self.tiles) // 32)), dtype=np.uint32)  # one bit per tile
        self._compared = xp.zeros(1, dtype=np.uint64)
        bits = [n_clusters.bit_length() for n_clusters in np.diff(offsets).tolist()]
        self.first_bit = xp.asarray(np.cumsum([0, *bits]).astype(np.int32))
        self.sliced = xp.zeros((sum(bits), 32 * self.present.shape[1]), dtype=np.uint64)
        shape = len(self.tiles), codes.shape[1]
        kernels.launch(
            "mark_present", kernels.blocks(self.tiles.size // TILE, 128), 128,
            (self.tiles, self.offsets, self.present, *shape), device=device, **self._types,
        )  # fmt: skip
        kernels.launch(
            "slice_labels", kernels.blocks(self.tiles.size, 128), 128,
            (self.tiles, self.first_bit, self.sliced.view(np.uint32), *shape), device=device, **self._types,
        )  # fmt: skip

    @property
    def comparisons(self) -> int:
        return int(self._compared[0])

    @property
    def _types(self) -> dict[str, Any]:
        return {"CODE": kernels.c_name(self.codes.dtype), "WEIGHT": kernels.c_name(self.cluster_weights.dtype)}

    def search(self, queries: Any, component: Any, least: Any, lists: Shortlists) -> None:
        n_rows, n_clusterings = self.codes.shape
        n_tiles, n_listed, xp = len(self.tiles), lists.ids.shape[1], devices.namespace(self.device)
        labels, reach = 4 * n_clusterings, 16 * self.present.shape[1]  # shared memory of a warp in 32-bit words
        warps = max(1, min(WARPS, kernels.SHARED_BYTES // (4 * labels)))
        in_shared = 4 * labels * warps <= kernels.SHARED_BYTES
        words = warps * (reach if in_shared else reach + labels)
        n_blocks = kernels.blocks(len(queries), warps, devices.scratch(self.device) // (4 * words) + 1)
        kernels.launch(
            "nearest_rows", n_blocks, 32 * warps,
            (queries, least, len(queries), self.codes.T, self.tiles, self.present, self.sliced, self.first_bit,
             np.int32(DENSE[self.cluster_weights.dtype.kind]), self.offsets, self.cluster_weights, self.units,
             self.sizes, component, _component_of_parts(component[self.order], TILE), self.order,
             np.float64(self.scale), n_rows, n_tiles, n_clusterings, np.int32(n_listed), np.int32(in_shared),
             xp.empty(0 if in_shared else n_blocks * warps * labels, dtype=np.uint32),
             xp.empty(n_blocks * warps * reach, dtype=np.uint32), *lists, self._compared),
            device=self.device, shared=4 * labels * warps if in_shared else 0, **self._types,
        )  # fmt: skip


def bytes_needed(codes: np.ndarray, n_clusters: int, n_listed: int) -> int:
    """Return the largest number of bytes that an index and its lists take."""
    n_rows, n_clusterings = map(int, codes.shape)
    segments = -(-n_rows // (TILE * SEGMENT))
    present = segments + -(-segments // SEGMENT)
    return n_rows * (3 * n_clusterings * codes.itemsize + 12 * n_listed + 48) + 2 * n_clusters * SEGMENT * present


def _tiles(codes: Any, order: Any) -> Any:
    """Return the labels (n_tiles, M, TILE), where labels of a tile's 64 rows are adjacent; the last tile is padded."""
    n_rows, n_clusterings = codes.shape
    n_tiles, missing = -(-n_rows // TILE), np.iinfo(codes.dtype).max
    tiles = np.full_like(codes, missing, order="C", shape=(n_tiles, n_clusterings, TILE))
    column = np.full_like(codes, missing, order="C", shape=n_tiles * TILE)
    for m in range(n_clusterings):
        column[:n_rows] = codes[:, m][order]
        tiles[:, m] = column.reshape(n_tiles, TILE)
    return tiles


def _component_of_parts(component: Any, length: int) -> Any:
    """Return the component of each part of ``length`` rows or tiles, -1 for a part with several components."""
    padded = np.concatenate([component, component[-1:].repeat(-len(component) % length)])
    parts = padded.reshape(-1, length)
    return np.where((parts == parts[:, :1]).all(axis=1), parts[:, 0], -1)


def _integer_weights(cluster_weights: np.ndarray, offsets: np.ndarray) -> tuple[np.ndarray, float]:
    """Return the weights as uint16 numbers of units, rounded up, and the number of units in a weight of 1.

    Units are so large that the sum of M weights fits uint16.
    """
    n_clusterings = len(offsets) - 1
    if cluster_weights.dtype.kind == "i":
        return cluster_weights.astype(np.uint16), 1.0
    largest = np.maximum.reduceat(cluster_weights, offsets[:-1]).sum()
    scale = (np.iinfo(np.uint16).max - n_clusterings) / float(largest)
    return np.ceil(cluster_weights * scale).astype(np.uint16), scale


@njit(cache=True, nogil=True, makes_arrays=False)
def _lay_out(start, stop, codes, order, starts, units, rows, labels, present, present_in):
    """Write the rows of segments ``start`` … ``stop`` - 1 in tiles, and the units of clusters that occur in each tile.

    For each tile and clustering, ``labels`` gets the labels of the tile's 64 rows, adjacent in memory. The last tile is
    padded with missing labels.
    """
    n_clusterings = rows.shape[1]
    for segment in range(start, stop):
        first = segment * SEGMENT * TILE
        for m in range(n_clusterings):
            missing = starts[m + 1] - starts[m] - 1
            for i in range(min(SEGMENT * TILE, len(rows) - first)):  # a clustering's labels are adjacent in memory
                label = min(np.int64(codes[order[first + i], m]), missing)
                rows[first + i, m] = label
                labels[(first + i) // TILE * n_clusterings + m, i % TILE] = label
                cluster = starts[m] + label
                present[segment, cluster, i // TILE] = units[cluster]
                present_in[segment // SEGMENT, cluster, segment % SEGMENT] = units[cluster]
            for i in range(len(rows), min(-(-len(rows) // TILE) * TILE, first + SEGMENT * TILE)):
                labels[i // TILE * n_clusterings + m, i % TILE] = missing


@njit(cache=True, nogil=True, makes_arrays=False)
def _search_rows(
    places, least, component, of_tile, of_segment, order, sizes, everything, rows, labels, starts, chunks, present,
    present_in, units, weights, exact, scale, scratch, ids, similarities, bound, bound_hash,
):  # fmt: skip
    # ``floor``: smallest score for which the exact similarity is computed; ``best``: the best scores so far
    (
        mine, worth, reach_in, reach, reached, floor, low, wanted, listed, ties, sums, best, candidates, scores,
        n_candidates, waiting, scored,
    ) = scratch  # fmt: skip
    n_segments, n_tiles, n_clusterings, n_listed = len(present), len(of_tile), rows.shape[1], ids.shape[1]
    # lowered, so that rounding never makes a floor higher than a score that ties with it
    to_score = n_clusterings * scale * (1.0 if exact else 1.0 - 1e-9)
    rounding = 0 if exact else n_clusterings + 1  # largest excess of a score over the exact score, in units
    compared = 0
    for first in range(0, len(places), LANES):
        width = min(LANES, len(places) - first)
        own = places[first : first + width]
        for j in range(width):
            for m in range(n_clusterings):
                mine[j, m] = rows[own[j], m]
                worth[j, m] = units[starts[m] + mine[j, m]]
        for s in range(0, n_segments, SEGMENT):
            _reach(s, of_segment, present_in, mine, width, own, component, everything, starts, chunks, reach_in)
        compared += width * n_clusterings * n_segments
        for j in range(width):
            q = order[own[j]]
            highest = 0
            for s in range(n_segments):
                highest = max(highest, reach_in[s // SEGMENT, j, s % SEGMENT])
            for s in range(n_listed):
                ids[q, s] = -1
                similarities[q, s] = 0.0
            forget_scores(best, j)
            listed[j], n_candidates[j] = 0, 0
            floor[j] = max(1, int(least[first + j] * to_score + 1e-9))
            low[j] = highest - highest // BAND
        for s in range(n_segments):
            reached[s] = False

        more = True
        while more:
            more = False
            n_wanted = _gather_segments(reach_in, width, low, floor, wanted)
            for s in wanted[:n_wanted]:
                if not reached[s]:
                    reached[s] = True
                    _reach(
                        s * SEGMENT, of_tile, present, mine, width, own, component, everything, starts, chunks, reach
                    )
                    compared += width * n_clusterings * min(SEGMENT, n_tiles - s * SEGMENT)
                for j in range(width):
                    limit = max(low[j], floor[j])
                    if reach_in[s // SEGMENT, j, s % SEGMENT] < limit:
                        continue
                    near = at_least(reach[s], j, limit)
                    while near:
                        t = lowest(near)
                        near &= near - np.uint64(1)
                        if reach[s, j, t] < floor[j]:  # the floor may have risen since ``near`` was computed
                            continue
                        reach[s, j, t] = 0  # a tile is compared only once
                        at = (s * SEGMENT + t) * TILE
                        _compare(labels, s * SEGMENT + t, mine[j], worth[j], sums)
                        compared += TILE * n_clusterings
                        hits = at_least(sums, 0, floor[j])
                        while hits:
                            i = lowest(hits)
                            hits &= hits - np.uint64(1)
                            p = own[j]
                            if component[at + i] == component[p]:
                                continue
                            score, n = sums[0, i], n_candidates[j]
                            candidates[j, n], scores[j, n] = at + i, score
                            n_candidates[j] = n + 1
                            take_score(best, j, score)
                            floor[j] = max(floor[j], best[j, n_listed - 1] - rounding)
                            if n + 1 < CANDIDATES:
                                continue
                            n_candidates[j] = _still_near(candidates[j], scores[j], floor[j])
                            if n_candidates[j] > CANDIDATES // 2:
                                _list(
                                    j, p, candidates, scores, n_candidates, floor, to_score, mine, rows, starts,
                                    weights, exact, order, sizes, least[first + j], waiting, scored, ids, similarities,
                                    ties, listed,
                                )  # fmt: skip
            for j in range(width):
                if low[j] > floor[j]:
                    more = True
                    low[j] = min(low[j] - 1, low[j] - low[j] // BAND)

        for j in range(width):
            q = order[own[j]]
            _list(
                j, own[j], candidates, scores, n_candidates, floor, to_score, mine, rows, starts, weights, exact, order,
                sizes, least[first + j], waiting, scored, ids, similarities, ties, listed,
            )  # fmt: skip
            full = listed[j] == n_listed
            bound[q] = similarities[q, n_listed - 1] if full else least[first + j]
            bound_hash[q] = ties[j, n_listed - 1] if full else NO_HASH
    return compared


@njit(cache=True, nogil=True, makes_arrays=False)
def _gather_segments(reach_in, width, low, floor, wanted):
    """Write the segments whose bound reaches the limit of any lane to ``wanted``; return the number of segments."""
    n = 0
    for group in range(len(reach_in)):
        near = np.uint64(0)
        for j in range(width):
            near |= at_least(reach_in[group], j, max(low[j], floor[j]))
        while near:
            wanted[n] = group * SEGMENT + lowest(near)
            near &= near - np.uint64(1)
            n += 1
    return n


@njit(cache=True, nogil=True, makes_arrays=False)
def _compare(labels, t, own, worth, sums):
    """Write the scores of a query row with the 64 rows of tile t; ``worth`` are the units of the query's labels."""
    even, odd = nothing(sums), nothing(sums)  # two sums, so that consecutive additions are independent
    m, one, n_clusterings = np.uint64(0), np.uint64(1), np.uint64(len(own))  # unsigned, to save checks of indices
    first = np.uint64(t) * n_clusterings
    while m + one < n_clusterings:
        even = plus_where(even, labels, first + m, own[m], worth[m])
        m += one
        odd = plus_where(odd, labels, first + m, own[m], worth[m])
        m += one
    if m < n_clusterings:
        even = plus_where(even, labels, first + m, own[m], worth[m])
    store(plus_vector(even, odd), sums, 0)


@njit(cache=True, nogil=True, makes_arrays=False)
def _reach(first, of_part, present, mine, width, own, component, everything, starts, chunks, reach):
    """Write upper bounds on each lane's scores in 64 tiles or segments from ``first`` on.

    The bound is 0 if all rows of the tile or segment belong to the component of the lane's query.
    """
    s = first // SEGMENT
    for c in range(len(chunks) - 1):
        label_scores(mine, everything, 0, width, starts, chunks[c], chunks[c + 1], 0, present[s], reach[s], 0)
    for part in range(min(SEGMENT, len(of_part) - first)):
        if of_part[first + part] < 0:
            continue
        for j in range(width):
            if of_part[first + part] == component[own[j]]:
                reach[s, j, part] = 0


@njit(cache=True, nogil=True, makes_arrays=False)
def _still_near(candidates, scores, floor):
    """Move candidates whose score still reaches the floor to the front; return the number of these candidates."""
    n = 0
    for i in range(len(candidates)):
        candidates[n], scores[n] = candidates[i], scores[i]
        n += scores[i] >= floor
    return n


@njit(cache=True, nogil=True, makes_arrays=False)
def _list(
    j, p, candidates, scores, n_candidates, floor, to_score, mine, rows, starts, weights, exact, order, sizes, least,
    waiting, scored, ids, similarities, ties, listed,
):  # fmt: skip
    """Insert the candidates of lane j whose score reaches the lane's floor into the list of row p; raise the floor.

    Scores by unit weights are exact; with float weights, exact similarities are computed for four rows at a time.
    """
    q, n, n_clusterings, n_waiting = order[p], n_candidates[j], mine.shape[1], 0
    for i in range(n):
        if scores[j, i] >= floor[j]:
            waiting[n_waiting] = candidates[j, i]
            scored[n_waiting] = scores[j, i]
            n_waiting += 1
        if n_waiting == 0 or (n_waiting < AT_ONCE and i < n - 1):
            continue
        if not exact:
            for k in range(n_waiting, AT_ONCE):
                waiting[k] = waiting[0]
            _score(mine[j], waiting, rows, starts, weights, sizes[p], sizes, scored)
        for k in range(n_waiting):
            r = order[waiting[k]]
            pairs = sizes[p] * sizes[waiting[k]]
            similarity = (pairs * scored[k] if exact else scored[k]) / (pairs * n_clusterings)
            if similarity >= least:
                listed[j] = insert(ids, similarities, ties, q, j, listed[j], r, similarity, pair_hash(q, r))
        n_waiting = 0
    n_candidates[j] = 0
    last = ids.shape[1] - 1
    if listed[j] > last:
        floor[j] = max(floor[j], int(similarities[q, last] * to_score + 1e-9))


@njit(cache=True, nogil=True, makes_arrays=False)
def _score(own, waiting, rows, starts, weights, size, sizes, scored):
    """Write the numerators of the similarities of one row with four waiting rows; terms are added in cluster order."""
    a, b, c, d = rows[waiting[0]], rows[waiting[1]], rows[waiting[2]], rows[waiting[3]]
    of_a, of_b = size * sizes[waiting[0]], size * sizes[waiting[1]]
    of_c, of_d = size * sizes[waiting[2]], size * sizes[waiting[3]]
    none = weights[0] * 0
    to_a, to_b, to_c, to_d = none, none, none, none
    for m in range(np.uint64(len(own))):
        label = own[m]
        weight = weights[np.uint64(starts[m]) + np.uint64(label)]
        to_a += weight * of_a if a[m] == label else none
        to_b += weight * of_b if b[m] == label else none
        to_c += weight * of_c if c[m] == label else none
        to_d += weight * of_d if d[m] == label else none
    scored[0], scored[1], scored[2], scored[3] = to_a, to_b, to_c, to_d

"""The nearest other groups of every group: exact top-K lists by weighted label matches, without N × N.

The similarity of groups A and B is Σ_c w_c n_A[c] n_B[c] / (|A| |B| M). Every group gets a list of the K most similar
others, best first, in the total order of `order`. That takes G² M label comparisons, minus those that bounds save:

- Rows are cut into tiles of 64 adjacent rows in an order that puts like ones side by side (`likeness`). No row of a
  tile can exceed the query's bound Σ_m w_m [label m of the query occurs in the tile], a sum of M table rows over all
  tiles: one 64th of the full work. Only tiles whose bound reaches the K-th best similarity so far are compared.
- On the CPU 64 adjacent tiles are a segment, whose bound is of the labels that occur in any of them: the bounds of its
  tiles are summed only where that one reaches what they have to.
- On the CPU 64 adjacent queries are searched together (`comparisons`), in the tiles that any of them needs; and their
  bounds of 64 tiles are sums of M table rows as well, one query after the other.
- Weights are rounded up to small integers, so that their sums are upper bounds too (exact for unit weights). On the CPU
  rows that pass wait until the K best sums so far exclude no more of them, and the others are scored in float64, four
  at once.

Tiles are visited in descending bands of their bounds, because good neighbours found early exclude more tiles.
"""

from typing import Any, NamedTuple

import numpy as np

from gpuens import device as devices
from gpuens import kernels, progress
from gpuens.compiled import njit
from gpuens.lanes import LANES, aligned_zeros, lowest
from gpuens.partition.linkage.comparisons import (
    CANDIDATES,
    SEGMENT,
    chunks_of,
    forget_scores,
    gather_hits,
    label_scores,
    mark_wanted,
    no_scores,
    rows_of_tables,
    take_score,
)
from gpuens.partition.linkage.likeness import likeness_order
from gpuens.partition.linkage.order import NO_HASH, insert, pair_hash

TILE = 64
BATCH = 16  # tiles that are compared together where a table has several chunks
BAND = 16  # the part of its best bound that a band is wide
GATHERED = 16  # rows of a tile, between which floors rise
AT_ONCE = 4  # rows that are scored exactly at once
PROBED = 4  # blocks of 64 rows that tell whether bounds save comparisons
WARPS = 4  # in a block of a GPU
UNKNOWN = -1  # how many tiles of a segment are left
DENSE = {"i": 9, "f": 17}  # tiles of 32 that a warp of it compares more quickly by bits, by the kind of the weights


class Lists(NamedTuple):
    """Lists of the K nearest others, and what bounds everything outside them.

    ``ids`` (G, K) int32 and ``similarities`` (G, K) float64, best first, -1 and 0 where fewer are listed. Everything
    outside list g comes after (``bound[g]``, ``bound_hash[g]``) in the total order.
    """

    ids: Any
    similarities: Any
    bound: Any
    bound_hash: Any

    @classmethod
    def empty(cls, n_rows: int, n_listed: int, device: str = "cpu") -> "Lists":
        xp = devices.namespace(device)
        return cls(
            xp.full((n_rows, n_listed), -1, dtype=np.int32),
            xp.zeros((n_rows, n_listed)),
            xp.zeros(n_rows),
            xp.full(n_rows, NO_HASH, dtype=np.uint64),
        )


class NearestIndex:
    """Finds the nearest others of distinct rows of ``codes`` (G, M).

    ``cluster_weights`` (N_c,) are int64 ones for exact arithmetic on whole numbers, else float64; ``sizes`` (G,) int64
    are the objects that each row stands for. ``comparisons`` counts the label comparisons made, the screen's and those
    of rows that have not wanted a tile included.
    """

    device = "cpu"

    def __init__(self, codes: np.ndarray, offsets: np.ndarray, cluster_weights: np.ndarray, sizes: np.ndarray) -> None:
        self.codes = codes
        self.offsets = offsets
        self.sizes = sizes
        self.order = likeness_order(codes, offsets)
        self.sizes_there = sizes[self.order]
        self.place = np.empty_like(self.order)
        self.everything = np.arange(len(codes))
        self.place[self.order] = self.everything
        self.exact = cluster_weights.dtype.kind == "i"
        units, self.scale = _integer_weights(cluster_weights, offsets)
        # a missing label is one more cluster of each clustering, of weight 0
        self.starts = offsets + np.arange(len(offsets))
        self.weights = np.insert(cluster_weights, offsets[1:], 0)
        self.units = np.insert(units, offsets[1:], 0).astype(np.uint8 if self.exact else np.uint16)
        self.rows = np.empty(codes.shape, dtype=codes.dtype)
        n_segments = -(-len(codes) // (TILE * SEGMENT))
        # the units of the clusters that occur in each tile of each segment, and in each segment
        self.present = np.zeros((n_segments, len(self.units), SEGMENT), dtype=self.units.dtype)
        self.present_in = np.zeros((-(-n_segments // SEGMENT), len(self.units), SEGMENT), dtype=self.units.dtype)

        def lay_out(start: int, stop: int) -> None:
            given = codes, self.order, self.starts, self.units, self.rows, self.present, self.present_in
            _lay_out(start, stop, *given)

        devices.over_ranges(lay_out, n_segments)
        self.chunks, self.tables = chunks_of(self.starts, self.units.itemsize)
        self.comparisons = 0

    def search(self, queries: np.ndarray, component: np.ndarray, least: np.ndarray, lists: Lists) -> None:
        """Write the lists of the rows ``queries`` anew: the nearest rows of another component.

        ``component`` (G,) int64 names the component of each row. Query i lists only what is at least as similar as
        ``least[i]``, which is what lets the screen begin sharp.
        """
        component = component[self.order]
        of_tile = _component_of_parts(component, TILE)
        of_segment = _component_of_parts(of_tile, SEGMENT)
        places = self.place[queries]
        alike = np.argsort(places)
        places, least = places[alike], least[alike]

        def work(start: int, stop: int) -> int:
            some = slice(start * LANES, stop * LANES)
            return int(_search(
                places[some], least[some], component, of_tile, of_segment, self.order, self.sizes_there,
                self.everything, self.rows, self.starts, self.chunks, self.tables, self.present, self.present_in,
                self.units, self.weights, self.exact, self.scale, self._scratch(lists.ids.shape[1], len(of_tile)),
                *lists,
            ))  # fmt: skip

        self.comparisons += sum(devices.over_ranges(work, -(-len(places) // LANES)))

    def _scratch(self, n_listed: int, n_tiles: int) -> tuple[np.ndarray, ...]:
        """Return the working memory of a search."""
        n_batch = 1 if len(self.chunks) == 2 else BATCH
        summed: Any = np.uint8 if self.exact and n_batch == 1 else np.uint16
        return (
            aligned_zeros(rows_of_tables(self.starts, self.chunks, self.tables), LANES, self.units.dtype),
            np.zeros((LANES, self.rows.shape[1]), dtype=self.rows.dtype),
            np.empty((len(self.present_in), LANES, SEGMENT), dtype=np.uint16),
            np.empty((len(self.present), LANES, SEGMENT), dtype=np.uint16),
            np.full((1, LANES), np.iinfo(summed).max, dtype=summed),
            np.empty(LANES, dtype=np.uint16),
            np.empty(LANES, dtype=np.uint16),
            np.empty(LANES, dtype=np.int64),
            np.empty((LANES, n_listed), dtype=np.uint64),
            np.empty(SEGMENT, dtype=bool),
            np.empty(SEGMENT, dtype=bool),
            np.empty(len(self.present), dtype=np.int64),
            np.empty(n_tiles, dtype=bool),
            np.empty(n_batch, dtype=np.int64),
            aligned_zeros(n_batch * TILE, LANES, summed),
            np.empty(GATHERED + 1, dtype=np.int64),
            np.zeros(GATHERED + 1, dtype=np.uint64),
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
    """Return what finds the nearest others of label rows; its parameters are those of `NearestIndex`."""
    return NearestIndex(codes, offsets, cluster_weights, sizes)


@nearest_index.kernel
def _(codes: Any, offsets: Any, cluster_weights: Any, sizes: Any, *, device: str) -> "KernelIndex":
    return KernelIndex(codes, offsets, cluster_weights, sizes, device)


def nearest_lists(index: Any, n_listed: int) -> Lists:
    """Return the ``n_listed`` nearest others of every row."""
    n_rows, xp = len(index.codes), devices.namespace(index.device)
    lists = Lists.empty(n_rows, n_listed, index.device)
    component = xp.arange(n_rows)
    at_once = max(4096 if index.device == "cpu" else 65_536, -(-n_rows // 100))
    with progress.bar(total=n_rows, description="nearest rows") as shown:
        for start in range(0, n_rows, at_once):
            queries = index.order[start : start + at_once]  # like ones together
            index.search(queries, component, xp.zeros(len(queries)), lists)
            shown.update(len(queries))
    return lists


def share_compared(index: NearestIndex, lists: Lists) -> float:
    """Return the share of all label comparisons that searches for the nearest of a few rows make, by blocks of them."""
    n_rows, n_clusterings = index.rows.shape
    blocks = np.linspace(0, n_rows - LANES, PROBED).astype(np.int64)
    queries = index.order[(blocks[:, None] + np.arange(LANES)).ravel()]
    before = index.comparisons
    index.search(queries, index.everything, np.zeros(len(queries)), lists)
    return float((index.comparisons - before) / (len(queries) * n_rows * n_clusterings))


class KernelIndex:
    """`NearestIndex` where kernels run (kernels/nearest.cu): all arrays of ``search`` are where ``device`` works."""

    def __init__(self, codes: Any, offsets: np.ndarray, cluster_weights: np.ndarray, sizes: Any, device: str) -> None:
        xp = devices.namespace(device)
        units, self.scale = _integer_weights(cluster_weights, offsets)
        self.device = device
        self.codes = codes
        self.offsets = xp.asarray(offsets)
        self.cluster_weights = xp.asarray(cluster_weights)
        self.units = xp.asarray(units)
        self.sizes = xp.asarray(sizes)
        self.order = likeness_order(codes, offsets, device=device)
        self.tiles = _tiles(codes, self.order)
        self.present = xp.zeros((int(offsets[-1]), -(-len(self.tiles) // 32)), dtype=np.uint32)  # a bit a tile
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

    def search(self, queries: Any, component: Any, least: Any, lists: Lists) -> None:
        n_rows, n_clusterings = self.codes.shape
        n_tiles, n_listed, xp = len(self.tiles), lists.ids.shape[1], devices.namespace(self.device)
        labels, reach = 4 * n_clusterings, 16 * self.present.shape[1]  # words of a warp
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
    """Return what an index and lists take at most, in bytes."""
    n_rows, n_clusterings = map(int, codes.shape)
    segments = -(-n_rows // (TILE * SEGMENT))
    present = segments + -(-segments // SEGMENT)
    return n_rows * (2 * n_clusterings * codes.itemsize + 12 * n_listed + 48) + 2 * n_clusters * SEGMENT * present


def _tiles(codes: Any, order: Any) -> Any:
    """Return (n_tiles, M, TILE): the rows of a tile side by side for each clustering, the last tile padded."""
    n_rows, n_clusterings = codes.shape
    n_tiles, missing = -(-n_rows // TILE), np.iinfo(codes.dtype).max
    tiles = np.full_like(codes, missing, order="C", shape=(n_tiles, n_clusterings, TILE))
    column = np.full_like(codes, missing, order="C", shape=n_tiles * TILE)
    for m in range(n_clusterings):
        column[:n_rows] = codes[:, m][order]
        tiles[:, m] = column.reshape(n_tiles, TILE)
    return tiles


def _component_of_parts(component: Any, length: int) -> Any:
    """Return the component that all of each ``length`` rows, or tiles, belong to, or -1."""
    padded = np.concatenate([component, component[-1:].repeat(-len(component) % length)])
    parts = padded.reshape(-1, length)
    return np.where((parts == parts[:, :1]).all(axis=1), parts[:, 0], -1)


def _integer_weights(cluster_weights: np.ndarray, offsets: np.ndarray) -> tuple[np.ndarray, float]:
    """Return weights as small integers, rounded up at ``scale`` units a 1.0, such that M of them fit the dtype."""
    n_clusterings = len(offsets) - 1
    if cluster_weights.dtype.kind == "i":
        return cluster_weights.astype(np.uint16), 1.0
    largest = np.maximum.reduceat(cluster_weights, offsets[:-1]).sum()
    scale = (np.iinfo(np.uint16).max - n_clusterings) / float(largest)
    return np.ceil(cluster_weights * scale).astype(np.uint16), scale


@njit(cache=True, nogil=True)
def _lay_out(start, stop, codes, order, starts, units, rows, present, present_in):
    """Write the rows of segments ``start`` … ``stop`` in order, and the units of what their tiles and they have."""
    for segment in range(start, stop):
        first = segment * SEGMENT * TILE
        for m in range(rows.shape[1]):
            missing = starts[m + 1] - starts[m] - 1
            for i in range(min(SEGMENT * TILE, len(rows) - first)):  # down a column, whose labels are side by side
                label = min(np.int64(codes[order[first + i], m]), missing)
                rows[first + i, m] = label
                cluster = starts[m] + label
                present[segment, cluster, i // TILE] = units[cluster]
                present_in[segment // SEGMENT, cluster, segment % SEGMENT] = units[cluster]


@njit(cache=True, nogil=True, makes_arrays=False)
def _search(
    places, least, component, of_tile, of_segment, order, sizes, everything, rows, starts, chunks, tables, present,
    present_in, units, weights, exact, scale, scratch, ids, similarities, bound, bound_hash,
):  # fmt: skip
    # floor: the score that is worth scoring exactly; best: scores
    (
        table, mine, reach_in, reach, floor, low, limits, listed, ties, wanted_in, wanted, unvisited, visited, batch,
        sums, near, hits, best, candidates, scores, n_candidates, waiting, scored,
    ) = scratch  # fmt: skip
    n_tiles, n_segments, n_tables = len(of_tile), len(present), len(tables) - 1
    n_rows, n_clusterings = rows.shape
    n_listed = ids.shape[1]
    # rounding must not lift a floor above a score that ties with it
    to_score = n_clusterings * scale * (1.0 if exact else 1.0 - 1e-9)
    rounding = 0 if exact else n_clusterings + 1  # by how much scores are too high at most
    compared = 0
    for first in range(0, len(places), LANES):
        width = min(LANES, len(places) - first)
        own = places[first : first + width]
        for j in range(width):
            for m in range(n_clusterings):
                mine[j, m] = rows[own[j], m]
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
            floor[0, j] = max(1, int(least[first + j] * to_score + 1e-9))
            low[j] = highest - highest // BAND
        for s in range(n_segments):
            unvisited[s] = UNKNOWN
        if n_tables == 1:
            _fill(table, mine, width, starts, 0, n_clusterings, units, True)

        more = True
        while more:
            more = False
            t = 0
            while t < n_tiles:
                n_batch = 0
                while t < n_tiles and n_batch < len(batch):
                    if t % SEGMENT == 0:
                        s = t // SEGMENT
                        for j in range(width):
                            limits[j] = max(low[j], floor[0, j])
                        if s % SEGMENT == 0:
                            mark_wanted(wanted_in, reach_in[s // SEGMENT], width, limits, 0, SEGMENT)
                        if unvisited[s] == 0 or not wanted_in[s % SEGMENT]:
                            t += SEGMENT
                            continue
                        if unvisited[s] == UNKNOWN:
                            _reach(t, of_tile, present, mine, width, own, component, everything, starts, chunks, reach)
                            unvisited[s] = min(SEGMENT, n_tiles - t)
                            compared += width * n_clusterings * unvisited[s]
                            for tile in range(t, t + unvisited[s]):
                                visited[tile] = False
                        mark_wanted(wanted, reach[s], width, limits, 0, SEGMENT)
                    if wanted[t % SEGMENT] and not visited[t]:
                        visited[t] = True
                        unvisited[t // SEGMENT] -= 1
                        batch[n_batch] = t
                        n_batch += 1
                    t += 1
                if n_batch == 0:
                    break
                for own_table in range(n_tables):
                    c, stop = tables[own_table], tables[own_table + 1]
                    begin, end = chunks[c], chunks[stop]
                    if n_tables > 1:
                        _fill(table, mine, width, starts, begin, end, units, True)
                    while c < stop:
                        for b in range(n_batch):
                            at = batch[b] * TILE
                            label_scores(
                                rows, everything, at, min(TILE, n_rows - at), starts, chunks[c], chunks[c + 1],
                                starts[begin], table, sums, b * TILE,
                            )  # fmt: skip
                        c += 1
                    if n_tables > 1:
                        _fill(table, mine, width, starts, begin, end, units, False)
                compared += n_batch * TILE * n_clusterings * width
                for of_some in range(0, n_batch * TILE, GATHERED):
                    at = batch[of_some // TILE] * TILE + of_some % TILE
                    n_hits = gather_hits(sums, of_some, min(GATHERED, n_rows - at), floor, near, hits)
                    row, left = 0, hits[0]
                    for _ in range(n_hits):
                        i, j = near[row], lowest(left)
                        left &= left - np.uint64(1)
                        row += left == np.uint64(0)  # on to the next one, without a branch
                        left |= hits[row] & (np.uint64(left != np.uint64(0)) - np.uint64(1))
                        p = own[j]
                        if component[at + i] == component[p]:
                            continue
                        score, n = sums[of_some + i, j], n_candidates[j]
                        candidates[j, n], scores[j, n] = at + i, score
                        n_candidates[j] = n + 1
                        take_score(best, j, score)
                        floor[0, j] = max(floor[0, j], best[j, n_listed - 1] - rounding)
                        if n + 1 == CANDIDATES:
                            listed[j] = _list(
                                j, p, candidates, scores, n + 1, floor[0, j], mine, rows, starts, weights, exact,
                                order, sizes, least[first + j], waiting, scored, ids, similarities, ties, listed[j],
                            )  # fmt: skip
                            n_candidates[j] = 0
                            if listed[j] == n_listed:
                                last = similarities[order[p], n_listed - 1]
                                floor[0, j] = max(floor[0, j], int(last * to_score + 1e-9))
            for j in range(width):
                if low[j] > floor[0, j]:
                    more = True
                    low[j] = min(low[j] - 1, low[j] - low[j] // BAND)

        if n_tables == 1:
            _fill(table, mine, width, starts, 0, n_clusterings, units, False)
        for j in range(width):
            p = own[j]
            q = order[p]
            listed[j] = _list(
                j, p, candidates, scores, n_candidates[j], floor[0, j], mine, rows, starts, weights, exact, order,
                sizes, least[first + j], waiting, scored, ids, similarities, ties, listed[j],
            )  # fmt: skip
            full = listed[j] == n_listed
            bound[q] = similarities[q, n_listed - 1] if full else least[first + j]
            bound_hash[q] = ties[j, n_listed - 1] if full else NO_HASH
    return compared


@njit(cache=True, nogil=True, makes_arrays=False)
def _reach(first, of_part, present, mine, width, own, component, everything, starts, chunks, reach):
    """Write what bounds the scores of each lane's row in `SEGMENT` parts, from the ``first`` on; 0 in its component."""
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
def _list(
    j, p, candidates, scores, n, floor, mine, rows, starts, weights, exact, order, sizes, least, waiting, scored,
    ids, similarities, ties, listed,
):  # fmt: skip
    """List the candidates of lane j that reach the floor by their similarity to row p; return the list's length.

    Real weights are added up exactly, for four rows at once; scores by unit weights are exact.
    """
    q, n_clusterings, n_waiting = order[p], mine.shape[1], 0
    for i in range(n):
        if scores[j, i] >= floor:
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
                listed = insert(ids, similarities, ties, q, j, listed, r, similarity, pair_hash(q, r))
        n_waiting = 0
    return listed


@njit(cache=True, nogil=True, makes_arrays=False)
def _score(own, waiting, rows, starts, weights, size, sizes, scored):
    """Write the numerators of the similarities of a row of ``size`` objects to four that wait, summed in order."""
    a, b, c, d = rows[waiting[0]], rows[waiting[1]], rows[waiting[2]], rows[waiting[3]]
    of_a, of_b = size * sizes[waiting[0]], size * sizes[waiting[1]]
    of_c, of_d = size * sizes[waiting[2]], size * sizes[waiting[3]]
    nothing = weights[0] * 0
    to_a, to_b, to_c, to_d = nothing, nothing, nothing, nothing
    for m in range(np.uint64(len(own))):
        label = own[m]
        weight = weights[np.uint64(starts[m]) + np.uint64(label)]
        to_a += weight * of_a if a[m] == label else nothing
        to_b += weight * of_b if b[m] == label else nothing
        to_c += weight * of_c if c[m] == label else nothing
        to_d += weight * of_d if d[m] == label else nothing
    scored[0], scored[1], scored[2], scored[3] = to_a, to_b, to_c, to_d


@njit(cache=True, nogil=True, makes_arrays=False)
def _fill(table, mine, width, starts, begin, end, units, on):
    """Write what the clusters of each lane's row are worth into a table, or zeros."""
    for m in range(begin, end):
        for j in range(width):
            cluster = starts[m] + mine[j, m]
            table[cluster - starts[begin], j] = units[cluster] if on else 0

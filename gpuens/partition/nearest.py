"""The nearest other groups of every group: exact top-K lists by weighted label matches, without N × N.

The similarity of groups A and B is Σ_c w_c n_A[c] n_B[c] / (|A| |B| M). For every group the K most similar others are
listed, best first, in the total order of `gpuens.partition.order`. The work is G² M label comparisons, minus what the
screen saves:

- Rows are cut into tiles of 64 neighbours in lexicographic order, which share many labels; clusterings whose clusters
  are smaller than a tile come last in that order. For a query the most that any row of a tile can reach is
  Σ_m w_m [label m of the query occurs in the tile], a sum of M table rows over all tiles: one 64th of the full work.
  Only tiles whose bound reaches the K-th best similarity so far are compared.
- Comparisons run on byte lanes: weights are rounded up to small integers, so the sums are upper bounds too (and exact
  with unit weights), and only rows that pass are scored in float64.

Tiles are visited in falling bands of their bounds, because good neighbours found early make the screen sharp.
"""

from typing import Any, NamedTuple

import numpy as np

from gpuens import device as devices
from gpuens import kernels, progress
from gpuens.compiled import njit
from gpuens.partition.order import NO_HASH, comes_before, insert, pair_hash

TILE = 64
SORTED_BY = 8  # clusterings
WARPS = 4  # in a block of a GPU


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
    """Finds the nearest others of rows of ``codes`` (G, M), which are distinct and in lexicographic order.

    ``cluster_weights`` (N_c,) are int64 ones for exact arithmetic on whole numbers, else float64; ``sizes`` (G,) int64
    are the objects that each row stands for. ``comparisons`` counts the label comparisons made, the screen's included.
    """

    device = "cpu"

    def __init__(self, codes: np.ndarray, offsets: np.ndarray, cluster_weights: np.ndarray, sizes: np.ndarray) -> None:
        self.codes = codes
        self.offsets = offsets
        self.cluster_weights = cluster_weights
        self.sizes = sizes
        self.order = likeness_order(codes, offsets)
        self.tiles = _tiles(codes, self.order)
        self.present = _present(self.tiles, offsets)
        self.units, self.scale = _integer_weights(cluster_weights, offsets)
        self.comparisons = 0

    def search(self, queries: np.ndarray, component: np.ndarray, least: np.ndarray, lists: Lists) -> None:
        """Write the lists of the rows ``queries`` anew: the nearest rows of another component.

        ``component`` (G,) int64 names the component of each row. Query i lists only what is at least as similar as
        ``least[i]``, which is what lets the screen begin sharp.
        """
        of_tile = _component_of_tiles(component[self.order])

        def work(start: int, stop: int) -> int:
            return _search(
                np.ascontiguousarray(self.codes[queries[start:stop]]), queries[start:stop], least[start:stop],
                component, of_tile, self.order, self.tiles, self.present, self.offsets, self.cluster_weights,
                self.units, self.scale, self.sizes, lists.ids, lists.similarities, lists.bound, lists.bound_hash,
            )  # fmt: skip

        self.comparisons += sum(devices.over_ranges(work, len(queries), grain=64))


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
    everything = xp.arange(n_rows)
    at_once = max(4096 if index.device == "cpu" else 65_536, -(-n_rows // 100))
    with progress.bar(total=n_rows, description="nearest rows") as shown:
        for start in range(0, n_rows, at_once):
            queries = everything[start : start + at_once]
            index.search(queries, everything, xp.zeros(len(queries)), lists)
            shown.update(len(queries))
    return lists


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
        self.present = xp.zeros((int(offsets[-1]), len(self.tiles)), dtype=np.uint8)
        self._compared = xp.zeros(1, dtype=np.uint64)
        kernels.launch(
            "mark_present", kernels.blocks(self.tiles.size // TILE, 128), 128,
            (self.tiles, self.offsets, self.present, len(self.tiles), codes.shape[1]), device=device, **self._types,
        )  # fmt: skip

    @property
    def comparisons(self) -> int:
        return int(self._compared[0])

    @property
    def _types(self) -> dict[str, Any]:
        return {"CODE": kernels.c_name(self.codes.dtype), "WEIGHT": kernels.c_name(self.cluster_weights.dtype)}

    def search(self, queries: Any, component: Any, least: Any, lists: Lists) -> None:
        n_rows, n_clusterings = self.codes.shape
        n_tiles, n_listed = len(self.tiles), lists.ids.shape[1]
        warps = min(WARPS, max(1, kernels.SHARED_BYTES // (12 * n_clusterings)))
        n_blocks = kernels.blocks(len(queries), warps, devices.scratch(self.device) // (2 * warps * n_tiles) + 1)
        reach = devices.namespace(self.device).empty(n_blocks * warps * n_tiles, dtype=np.uint16)
        kernels.launch(
            "nearest_rows", n_blocks, 32 * warps,
            (queries, least, len(queries), self.codes.T, self.tiles, self.present, self.offsets, self.cluster_weights,
             self.units, self.sizes, component, _component_of_tiles(component[self.order]), self.order,
             np.float64(self.scale), n_rows, n_tiles, n_clusterings, np.int32(n_listed), reach, *lists, self._compared),
            device=self.device, shared=12 * n_clusterings * warps, **self._types,
        )  # fmt: skip


def likeness_order(codes: Any, offsets: np.ndarray, *, device: str = "cpu") -> Any:
    """Return the rows (G,) with like ones side by side: in lexicographic order, clusterings of small clusters last."""
    n_clusters = np.diff(offsets)
    small = n_clusters * TILE > len(codes)
    first = np.argsort(np.where(small, n_clusters, 0), kind="stable")[:SORTED_BY]
    keys = devices.namespace(device).stack([codes[:, m] for m in first[::-1].tolist()])
    return devices.namespace(device).lexsort(keys)


def bytes_needed(codes: np.ndarray, n_clusters: int, n_listed: int) -> int:
    """Return what an index and lists take at most, in bytes."""
    n_rows, n_clusterings = codes.shape
    return n_rows * (2 * n_clusterings * codes.itemsize + 12 * n_listed + 40) + n_clusters * -(-n_rows // TILE)


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


def _component_of_tiles(component: Any) -> Any:
    """Return (n_tiles,) the component that all rows of a tile belong to, or -1."""
    padded = np.concatenate([component, component[-1:].repeat(-len(component) % TILE)])
    in_tiles = padded.reshape(-1, TILE)
    return np.where((in_tiles == in_tiles[:, :1]).all(axis=1), in_tiles[:, 0], -1)


def _present(tiles: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    """Return (N_c, n_tiles) uint8: whether a cluster has a row in a tile."""
    missing = np.iinfo(tiles.dtype).max
    present = np.zeros((int(offsets[-1]), len(tiles)), dtype=np.uint8)
    columns = np.arange(len(tiles))[:, None]
    for m in range(tiles.shape[1]):
        labels = tiles[:, m, :]
        known = labels != missing
        present[labels[known] + offsets[m], np.broadcast_to(columns, labels.shape)[known]] = 1
    return present


def _integer_weights(cluster_weights: np.ndarray, offsets: np.ndarray) -> tuple[np.ndarray, float]:
    """Return weights as small integers, rounded up at ``scale`` units a 1.0, such that M of them fit the dtype."""
    n_clusterings = len(offsets) - 1
    if cluster_weights.dtype.kind == "i":
        return cluster_weights.astype(np.uint16), 1.0
    largest = np.maximum.reduceat(cluster_weights, offsets[:-1]).sum()
    scale = (np.iinfo(np.uint16).max - n_clusterings) / float(largest)
    return np.ceil(cluster_weights * scale).astype(np.uint16), scale


@njit(cache=True, nogil=True)
def _search(
    rows, queries, least, component, of_tile, order, tiles, present, offsets, weights, units, scale, sizes,
    ids, similarities, bound, bound_hash,
):  # fmt: skip
    n_tiles, n_clusterings, _ = tiles.shape
    n_rows, n_listed = ids.shape
    missing = tiles.dtype.type(-1)
    exact = scale == 1.0  # unit weights: the integer score is the similarity, times M
    to_score = n_clusterings * scale * (1.0 - 1e-9)  # rounding must not lift a floor above a score that ties with it
    reach = np.empty(n_tiles, dtype=units.dtype)
    score = np.empty(TILE, dtype=units.dtype)
    clustering = np.empty(n_clusterings, dtype=np.int64)
    ties = np.empty(n_listed, dtype=np.uint64)
    compared = 0
    for i in range(len(queries)):
        q = queries[i]
        row = rows[i]
        known = 0
        for m in range(n_clusterings):
            if row[m] != missing:
                clustering[known] = m
                known += 1
        for t in range(n_tiles):
            reach[t] = 0
        for s in range(known):
            cluster = offsets[clustering[s]] + row[clustering[s]]
            unit = units[cluster]
            occurs = present[cluster]
            for t in range(n_tiles):
                reach[t] += occurs[t] * unit
        compared += known * n_tiles
        best_reach = 0
        for t in range(n_tiles):
            best_reach = max(best_reach, reach[t])

        for s in range(n_listed):
            ids[q, s] = -1
            similarities[q, s] = 0.0
        listed = 0
        floor = max(1, int(least[i] * to_score + 1e-9))  # the integer score that is worth scoring exactly
        high = best_reach + 1
        low = best_reach - best_reach // 4
        while high > floor:
            low = max(low, floor)
            for t in range(n_tiles):
                if reach[t] < low or reach[t] >= high or reach[t] < floor or of_tile[t] == component[q]:
                    continue
                tile = tiles[t]
                for j in range(TILE):
                    score[j] = 0
                for s in range(known):
                    m = clustering[s]
                    label = row[m]
                    unit = units[offsets[m] + label]
                    column = tile[m]
                    for j in range(TILE):
                        score[j] += (column[j] == label) * unit
                compared += known * TILE
                top = 0
                for j in range(TILE):
                    top = max(top, score[j])
                if top < floor:
                    continue
                for j in range(TILE):
                    if score[j] < floor or t * TILE + j >= n_rows:
                        continue
                    r = order[t * TILE + j]
                    if component[r] == component[q]:
                        continue
                    tie = pair_hash(q, r)
                    if exact and listed == n_listed and score[j] == floor and tie >= ties[n_listed - 1]:
                        continue
                    pairs = sizes[q] * sizes[r]
                    numerator = weights[0] * 0
                    for s in range(known):
                        m = clustering[s]
                        if tile[m, j] == row[m]:
                            numerator += weights[offsets[m] + row[m]] * pairs
                    similarity = numerator / (pairs * n_clusterings)
                    if similarity < least[i]:
                        continue
                    last = n_listed - 1
                    if listed == n_listed and not comes_before(similarity, tie, similarities[q, last], ties[last]):
                        continue
                    listed = insert(ids[q], similarities[q], ties, listed, r, similarity, tie)
                    if listed == n_listed:
                        floor = max(floor, int(similarities[q, n_listed - 1] * to_score + 1e-9))
            high = low
            low = min(high - 1, high - high // 4)
        if listed == n_listed:
            bound[q] = similarities[q, n_listed - 1]
            bound_hash[q] = ties[n_listed - 1]
        else:
            bound[q] = least[i]
            bound_hash[q] = NO_HASH
    return compared

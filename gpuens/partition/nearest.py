"""The nearest other groups of every group: exact top-K lists by weighted label matches, without N × N.

The similarity of groups A and B is Σ_c w_c n_A[c] n_B[c] / (|A| |B| M). For every group the K most similar others are
listed, best first, in the total order of `gpuens.partition.order`. The work is G² M label comparisons, minus what the
screen saves:

- Rows are cut into tiles of 64 neighbours in lexicographic order, which share many labels. For a query the most that
  any row of a tile can reach is Σ_m w_m [label m of the query occurs in the tile], a sum of M table rows over all
  tiles: one 64th of the full work. Only tiles whose bound reaches the K-th best similarity so far are compared.
- Comparisons run on byte lanes: weights are rounded up to small integers, so the sums are upper bounds too (and exact
  with unit weights), and only rows that pass are scored in float64.

Tiles are visited in falling bands of their bounds, because good neighbours found early make the screen sharp.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from gpuens import device as devices
from gpuens import kernels
from gpuens.partition.order import NO_HASH, insert, pair_hash

TILE = 64


class Nearest(NamedTuple):
    """Lists of the K nearest others, and what bounds everything outside them.

    ``ids`` (G, K) int32 and ``similarities`` (G, K) float64, best first, -1 and 0 where fewer than K others have any
    similarity. Everything outside list g comes after (``bound[g]``, ``bound_hash[g]``) in the total order.
    ``comparisons`` counts the label comparisons made, the screen's included.
    """

    ids: np.ndarray
    similarities: np.ndarray
    bound: np.ndarray
    bound_hash: np.ndarray
    comparisons: int


@kernels.primitive
def nearest_lists(
    codes: np.ndarray, offsets: np.ndarray, cluster_weights: np.ndarray, sizes: np.ndarray, n_listed: int
) -> Nearest:
    """Return the ``n_listed`` nearest others of every row of ``codes`` (G, M), rows in lexicographic order.

    ``cluster_weights`` (N_c,) are int64 ones for exact arithmetic on whole numbers, else float64; ``sizes`` (G,) int64
    are the objects that each row stands for.
    """
    n_rows, n_clusterings = codes.shape
    tiles = _tiles(codes)
    present = _present(tiles, offsets)
    units, scale = _integer_weights(cluster_weights, offsets)
    lists = Nearest(
        np.full((n_rows, n_listed), -1, dtype=np.int32),
        np.zeros((n_rows, n_listed)),
        np.zeros(n_rows),
        np.full(n_rows, NO_HASH, dtype=np.uint64),
        0,
    )

    def work(start: int, stop: int) -> int:
        return _nearest(
            start, stop, np.ascontiguousarray(codes[start:stop]), tiles, present, offsets, cluster_weights, units,
            scale, sizes, lists.ids, lists.similarities, lists.bound, lists.bound_hash,
        )  # fmt: skip

    return lists._replace(comparisons=sum(devices.over_ranges(work, n_rows, grain=256)))


def _tiles(codes: np.ndarray) -> np.ndarray:
    """Return (n_tiles, M, TILE): the rows of a tile side by side for each clustering, the last tile padded."""
    n_rows, n_clusterings = codes.shape
    n_tiles = -(-n_rows // TILE)
    padded = np.full((n_tiles * TILE, n_clusterings), np.iinfo(codes.dtype).max, dtype=codes.dtype)
    padded[:n_rows] = codes
    return np.ascontiguousarray(padded.reshape(n_tiles, TILE, n_clusterings).transpose(0, 2, 1))


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
def _nearest(
    start, stop, queries, tiles, present, offsets, weights, units, scale, sizes, ids, similarities, bound, bound_hash
):  # fmt: skip
    n_tiles, n_clusterings, _ = tiles.shape
    n_rows, n_listed = ids.shape
    missing = tiles.dtype.type(-1)
    reach = np.empty(n_tiles, dtype=units.dtype)
    score = np.empty(TILE, dtype=units.dtype)
    clustering = np.empty(n_clusterings, dtype=np.int64)
    best_hash = np.empty(n_listed, dtype=np.uint64)
    exact = scale == 1.0  # unit weights: the integer score is the similarity, times M
    compared = 0
    for q in range(start, stop):
        row = queries[q - start]
        known = 0
        for m in range(n_clusterings):
            if row[m] != missing:
                clustering[known] = m
                known += 1
        reach[:] = 0
        for i in range(known):
            m = clustering[i]
            cluster = offsets[m] + row[m]
            unit = units[cluster]
            occurs = present[cluster]
            for t in range(n_tiles):
                reach[t] += occurs[t] * unit
        compared += known * n_tiles
        best_reach = 0
        for t in range(n_tiles):
            best_reach = max(best_reach, reach[t])

        listed = 0
        floor = 1  # what a row's integer score must reach to be worth scoring exactly
        high = best_reach + 1
        band = best_reach - best_reach // 4
        while high > floor:
            low = max(band, floor)
            for t in range(n_tiles):
                if reach[t] < low or reach[t] >= high or reach[t] < floor:
                    continue
                tile = tiles[t]
                score[:] = 0
                for i in range(known):
                    m = clustering[i]
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
                    r = t * TILE + j
                    if score[j] < floor or r == q or r >= n_rows:
                        continue
                    tie = pair_hash(q, r)
                    if exact and listed == n_listed and score[j] == floor and tie >= best_hash[n_listed - 1]:
                        continue
                    pairs = sizes[q] * sizes[r]
                    numerator = weights[0] * 0
                    for i in range(known):
                        m = clustering[i]
                        if tile[m, j] == row[m]:
                            numerator += weights[offsets[m] + row[m]] * pairs
                    similarity = numerator / (pairs * n_clusterings)
                    listed = insert(ids[q], similarities[q], best_hash, listed, r, similarity, tie)
                    if listed == n_listed:
                        # rounding of the product must not lift the floor above a score that ties with the last entry
                        floor = max(1, int(similarities[q, n_listed - 1] * n_clusterings * scale * (1.0 - 1e-9) + 1e-9))
            high = low
            band = min(low - 1, low - low // 4)
        if listed == n_listed:
            bound[q] = similarities[q, n_listed - 1]
            bound_hash[q] = best_hash[n_listed - 1]
    return compared

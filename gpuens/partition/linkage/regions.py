"""Regions (sets of objects) as histograms over clusters on a GPU: merges, and searches of nearest regions.

A region A is a set of objects, stored as the histogram n_A[c] of their clusters. Its average similarity to region R is
Σ_c w_c n_A[c] n_R[c] / (|A| |R| M), which needs no loop over pairs of objects. With int64 unit weights the sum is an
exact integer; with float64 weights the terms are added in ascending order of the clusters, on every device.

For any symmetric S (`all_pairs`) the similarity is Σ_c n_A[c] V_R[c] / (|A| |R| M), where V_R = M S n_R are the
affinities of R. The affinities of all regions (G, N_c) then take the place of the weights (N_c,).

For `Observed` similarities (`all_pairs`), the similarity is a ratio of two sums Σ_c w_c n_A[c] n_R[c]. The weights
(2, N_c + M) are those of both sums, and neither sum is divided by M.
"""

from typing import Any, NamedTuple

import numpy as np

from gpuens.partition.linkage.nearest import Shortlists
from gpuens.runtime import device as devices
from gpuens.runtime import kernels

TILE = 32  # regions in a tile, which a search skips or visits as a whole
SMALLEST = 2.0**-60  # smallest of `BoundingWeights`, if the largest weight is between 0.5 and 1
BLOCK = 128  # GPU threads that search for one query
OFFERS = 1024  # regions that a GPU block scores between two barriers
SEARCHERS = 2048  # largest number of GPU blocks that search; a GPU seldom runs more of them at once
BUSY = 512  # GPU blocks; fewer queries are searched by several blocks each


class Regions(NamedTuple):
    """Histograms of G regions in one arena, where the id of a region is the smallest group in it.

    ``clusters``, ``counts``: the arena, int32; clusters are in ascending order within a region. ``start``, ``length``,
    ``size`` (G,) int64: the first entry of a region, its number of entries, and its number of objects. ``used`` (1,)
    int64: the number of entries of the arena used so far. All arrays are in the memory of the device.
    """

    clusters: Any
    counts: Any
    start: Any
    length: Any
    size: Any
    used: Any


def regions_of(codes: Any, offsets: np.ndarray, sizes: Any, *, device: str) -> Regions:
    """Return a region for each row of ``codes`` (G, M), with ``sizes`` (G,) objects each."""
    xp = devices.namespace(device)
    sizes = xp.asarray(sizes, dtype=np.int64)
    labelled = codes != np.iinfo(codes.dtype).max
    length = labelled.sum(axis=1).astype(np.int64)
    total = int(length.sum())
    regions = Regions(
        xp.empty(total + total // 2, dtype=np.int32),
        xp.empty(total + total // 2, dtype=np.int32),
        xp.cumsum(length) - length,
        length,
        sizes.copy(),
        xp.full(1, total, dtype=np.int64),
    )
    regions.clusters[:total] = xp.add(codes, xp.asarray(offsets[:-1], dtype=np.int32), dtype=np.int32)[labelled]
    counts = sizes.astype(regions.counts.dtype)
    regions.counts[:total] = xp.broadcast_to(counts[:, None], labelled.shape)[labelled]
    return regions


def make_room(regions: Regions, live: Any, capacity: int, *, device: str) -> Regions:
    """Return regions in a new arena of ``capacity`` entries, with only the histograms of ``live`` regions."""
    xp = devices.namespace(device)
    roomy = regions._replace(
        clusters=xp.empty(capacity, dtype=regions.clusters.dtype),
        counts=xp.empty(capacity, dtype=regions.counts.dtype),
        start=xp.empty_like(regions.start),
        length=xp.zeros_like(regions.length),  # regions that are not live become empty
    )
    roomy.used.fill(0)
    move_histograms(regions, roomy, live, device=device)
    return roomy


class BoundingWeights(NamedTuple):
    """Weights for upper bounds of similarities.

    Apart from rounding, a weight is at least ``unit`` times the true weight. ``weights`` (N_c,) are float32; weights
    much smaller than the largest are raised to `SMALLEST`. ``unit`` is a power of two. The product of a weight and two
    shares of fewer than 2³² objects is a normal number, so the bound on a similarity is 0 only if the similarity is 0,
    whether or not subnormal numbers are flushed to 0.
    """

    weights: Any
    unit: float


def bounding_weights(cluster_weights: np.ndarray, *, device: str = "cpu") -> BoundingWeights:
    """Return, on the device, the weights for bounds in `search`, from the true ``cluster_weights`` (N_c,) > 0."""
    unit = 2.0 ** -float(np.frexp(cluster_weights.max())[1])
    scaled = cluster_weights * unit
    raised = np.maximum(scaled, SMALLEST).astype(np.float32)
    return BoundingWeights(devices.namespace(device).asarray(raised), unit)


def _tiles(n_active: int, n_clusters: int, most_ceilings: int) -> tuple[int, int]:
    """Return the number of regions in a tile and the number of tiles, with at most ``most_ceilings`` in total."""
    tile = max(TILE, -(-n_active * n_clusters // most_ceilings))
    return tile, -(-n_active // tile)


ANY_WEIGHT: dict[str, Any] = {"WEIGHT": "f64"}  # macros of kernels that read no weights


def move_histograms(regions: Regions, roomy: Regions, live: Any, *, device: str) -> None:
    """Copy the histograms of ``live`` regions to the free end of the arena of ``roomy``."""
    kernels.launch(
        "move_histograms", kernels.blocks(len(live), 4), 128,
        (live, len(live), regions.clusters, regions.counts, regions.start, regions.length, roomy.clusters, roomy.counts,
         roomy.start, roomy.length, roomy.used),
        device=device, **ANY_WEIGHT,
    )  # fmt: skip


def merge_histograms(
    regions: Regions, kept: Any, absorbed: Any, n_pairs: Any, n_merges: Any, most_pairs: int, *, device: str
) -> None:
    """Write the histograms of unions of ``kept`` and ``absorbed`` regions to the end of the arena.

    There are ``n_pairs`` (1,) unions, at most ``most_pairs``: the last pairs among the first ``n_merges`` (1,).
    Afterwards absorbed regions have no entries.
    """
    kernels.launch(
        "merge_histograms", kernels.blocks(most_pairs, 4), 128, (kept, absorbed, n_pairs, n_merges, *regions),
        device=device, **ANY_WEIGHT,
    )  # fmt: skip


class Search(NamedTuple):
    """A search for the nearest regions of queries among active regions, in arrays on the device.

    ``queries`` and ``active`` are regions, of which the first ``numbers[1]`` and ``numbers[0]`` count. ``lists`` are
    those of all regions; the search rebuilds the lists of the queries. The number of comparisons is added to
    ``compared`` (1,) uint64.
    """

    queries: Any
    active: Any
    numbers: Any
    lists: Shortlists
    compared: Any


def search(
    task: Search, regions: Regions, weights: Any, bounding: BoundingWeights, n_clusterings: int, exact: bool, *,
    device: str,
) -> None:  # fmt: skip
    """Rebuild the lists of the queries by the scores of a diagonal S.

    The similarity of the query with any region of a
    tile is at most Σ_c w_c (share of c in the query) (ceiling of c in the tile) / M, where w is ``bounding`` and the
    ceiling is the largest share of c in any region of the tile. Tiles are visited in descending bands of that bound; a
    tile is skipped if its bound is below the last similarity in a full list. If ``exact``, float64 holds every
    numerator exactly, so that scores decide. If a list is full before the search, it holds active regions with current
    similarities, so regions below its last similarity can be skipped from the beginning.
    """
    xp, n_clusters = devices.namespace(device), len(weights)
    queries, active, numbers, lists, compared = task
    scratch = devices.scratch(device)
    tile, n_tiles = _tiles(len(active), n_clusters, scratch // 4)
    histograms = regions.clusters, regions.counts, regions.start, regions.length, regions.size
    ceilings = xp.empty((n_clusters, n_tiles), dtype=np.float32)
    kernels.launch(
        "clear_ceilings", kernels.blocks(ceilings.size, 128, SEARCHERS), 128, (numbers, tile, n_clusters, ceilings),
        device=device, **ANY_WEIGHT,
    )  # fmt: skip
    kernels.launch(
        "raise_ceilings", kernels.blocks(len(active), 4, SEARCHERS), 128,
        (active, numbers, tile, *histograms, ceilings.view(np.int32)), device=device, **ANY_WEIGHT,
    )  # fmt: skip
    of_block = -(-n_tiles // 32) * 32  # tiles
    n_blocks = min(max(len(queries), 2 * BUSY), SEARCHERS)
    n_blocks = min(n_blocks, scratch // (8 * n_clusters + 4 * of_block) + 1)
    n_listed = np.int32(lists.ids.shape[1])
    lasts = xp.zeros(BUSY, dtype=np.int64)
    of_parts = [xp.empty_like(part, shape=(2 * BUSY, n_listed)) for part in lists[:2]]
    room = min(TILE, max(1, OFFERS // tile))
    at_once = min(OFFERS, room * tile)
    scores = weights.dtype if weights.dtype.kind == "i" else np.float32
    kernels.launch(
        "search_regions", n_blocks, BLOCK,
        (queries, active, numbers, tile, ceilings, *histograms, weights, bounding.weights, np.float64(bounding.unit),
         n_clusters, n_clusterings, np.int32(exact), np.int32(room), at_once, n_listed, BUSY,
         xp.zeros((n_blocks, n_clusters), scores), xp.empty((n_blocks, of_block), np.float32), lasts, *of_parts,
         *lists, compared),
        device=device, shared=16 * at_once, WEIGHT=kernels.c_name(weights.dtype),
    )  # fmt: skip
    kernels.launch(
        "join_lists", kernels.blocks(min(len(queries), BUSY), 4), 128,
        (queries, numbers, tile, n_listed, BUSY, lasts, *of_parts, *lists), device=device, **ANY_WEIGHT,
    )  # fmt: skip

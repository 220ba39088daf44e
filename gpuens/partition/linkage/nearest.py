"""Exact lists of the K most similar groups of every group, by weighted label matches, without an N × N matrix.

The similarity of groups A and B is Σ_c w_c n_A[c] n_B[c] / (|A| |B| M). Every group gets a list of the K most similar
other groups, best first. Without bounds this takes G² M label comparisons; bounds
save many of these comparisons:

- Rows are divided into tiles of 64 adjacent rows, in an order in which similar rows are adjacent (`locality`). The
  score of any row of a tile is at most Σ_m w_m [label m of the query occurs in the tile]. Computing these bounds takes
  1/64 of the full work. The query is compared only with tiles whose bound reaches the K-th best similarity so far.
- Tiles are visited in descending bands of their bounds, because good neighbours found early exclude more tiles.
- Weights are rounded up to small integers, so that their sums are upper bounds of scores (unit weights are not rounded,
  so their sums are exact). Sums have 16 bits, or 24 bits for many clusterings.

Similarities are often counts of matches, with many ties. So pairs have one total order, which makes the dendrogram the
same on every device: similarity descending, then a hash of the two ids ascending. A region's id is the smallest group
in it. The hash is a bijection of the packed pair: no two pairs tie, and small ids are not favoured.

kernels/cpu/linkage/nearest.cpp searches for 64 queries together, kernels/nearest.cu for one query in each warp.
"""

from typing import Any

import numpy as np

from gpuens.partition.linkage.comparisons import aligned_zeros, chunks_of
from gpuens.partition.linkage.locality import locality_order
from gpuens.runtime import device as devices
from gpuens.runtime import kernels, progress
from gpuens.runtime.native import cpu

NO_HASH = np.uint64(cpu.NO_HASH)  # after the hash of every pair of equal similarity in the total order
PROBED_BLOCKS = 4  # blocks of 64 rows in the sample that tells whether bounds save comparisons
WARPS_PER_BLOCK = 4  # warps in a GPU block
COLUMNS_AT_ONCE = 16  # clusterings whose labels are put into tiles together; a multiple of the labels of a word
MANY_CLUSTERINGS = 2**15  # number of clusterings from which the sums of units have 24 bits instead of 16
MOST_CLUSTERINGS = 2**23  # largest number of clusterings; 24 bits hold the sum of so many units above 0


class Shortlists(cpu.Shortlists):
    """For each region, a list of its K nearest other regions, and a bound (kernels/cpu/linkage/shortlist.h)."""

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
        n_rows, n_clusterings = codes.shape
        units, scale = _integer_weights(cluster_weights, offsets)
        self.codes = codes
        self.offsets = offsets
        self.sizes = sizes
        self.order = locality_order(codes, offsets)
        self.place = np.empty_like(self.order)
        self.everything = np.arange(n_rows)
        self.place[self.order] = self.everything
        self.exact = cluster_weights.dtype.kind == "i"
        self.starts = offsets + np.arange(len(offsets))
        dtype = np.uint8 if self.exact and n_clusterings <= cpu.BYTE else _sum_dtype(n_clusterings)
        units = np.insert(units, offsets[1:], 0).astype(dtype)
        n_segments = -(-n_rows // (cpu.TILE_ROWS * cpu.SEGMENT))
        self.chunks, _ = chunks_of(self.starts, units.itemsize)
        self.tiled = cpu.Tiled(
            np.empty((n_rows, n_clusterings), dtype=codes.dtype),
            aligned_zeros(-(-n_rows // cpu.TILE_ROWS) * n_clusterings, cpu.TILE_ROWS, codes.dtype),
            aligned_zeros(n_segments * len(units), cpu.SEGMENT, units.dtype),
            aligned_zeros(-(-n_segments // cpu.SEGMENT) * len(units), cpu.SEGMENT, units.dtype),
            units, np.insert(cluster_weights, offsets[1:], 0), self.starts, self.chunks, self.order, sizes[self.order],
            scale,
        )  # fmt: skip
        self.rows = self.tiled.rows
        cpu.lay_out_tiles(np.ascontiguousarray(codes.T), self.tiled)
        self.comparisons = 0

    def search(self, queries: np.ndarray, component: np.ndarray, floors: np.ndarray, lists: Shortlists) -> None:
        """Rebuild the list of each row in ``queries`` from the rows of all components except its own.

        ``component`` (G,) int64 names the component of each row. The list of query i has only rows at least as similar
        as ``floors[i]``, so that bounds can exclude tiles from the beginning.
        """
        self.comparisons += cpu.nearest_rows(self.tiled, queries, floors, component, lists)


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
    with progress.bar(total=n_rows, description="nearest rows") as bar:
        for start in range(0, n_rows, at_once):
            queries = index.order[start : start + at_once]  # adjacent rows are similar
            index.search(queries, component, xp.zeros(len(queries)), lists)
            bar.update(len(queries))
    return lists


def share_compared(index: NearestIndex, lists: Shortlists) -> float:
    """Return the share of label comparisons that are needed despite bounds, measured on a sample of rows."""
    n_rows, n_clusterings = index.rows.shape
    blocks = np.linspace(0, n_rows - cpu.LANES, PROBED_BLOCKS).astype(np.int64)
    queries = index.order[(blocks[:, None] + np.arange(cpu.LANES)).ravel()]
    before = index.comparisons
    index.search(queries, index.everything, np.zeros(len(queries)), lists)
    return float((index.comparisons - before) / (len(queries) * n_rows * n_clusterings))


class KernelIndex:
    """`NearestIndex` by kernels (kernels/nearest.cu); all arrays of ``search`` are in the memory of ``device``."""

    def __init__(self, codes: Any, offsets: np.ndarray, cluster_weights: np.ndarray, sizes: Any, device: str) -> None:
        xp = devices.namespace(device)
        units, self.scale = _integer_weights(cluster_weights, offsets)
        self.device = device
        self.sum_bits = _sum_bits(codes.shape[1])
        self.codes = codes
        self.offsets = xp.asarray(offsets)
        self.cluster_weights = xp.asarray(cluster_weights)
        self.units = xp.asarray(units)
        self.sizes = xp.asarray(sizes)
        self.order = locality_order(codes, offsets, device=device)
        self.tiles = _lay_out_tiles(codes, self.order)
        # one bit per tile; missing labels have the last row, which remains zeros
        self.present = xp.zeros((int(offsets[-1]) + 1, -(-len(self.tiles) // 32)), dtype=np.uint32)
        self._compared = xp.zeros(1, dtype=np.uint64)
        kernels.launch(
            "mark_present", kernels.blocks(self.tiles.size // cpu.TILE_ROWS, 128), 128,
            (self.tiles, self.offsets, self.present, len(self.tiles), codes.shape[1]),
            device=device, **self._template_types,
        )  # fmt: skip

    @property
    def comparisons(self) -> int:
        return int(self._compared[0])

    @property
    def _template_types(self) -> dict[str, Any]:
        weight = kernels.c_name(self.cluster_weights.dtype)
        return {"CODE": kernels.c_name(self.codes.dtype), "WEIGHT": weight, "PLANES": str(self.sum_bits)}

    def search(self, queries: Any, component: Any, floors: Any, lists: Shortlists) -> None:
        n_rows, n_clusterings = self.codes.shape
        n_tiles, n_listed, xp = len(self.tiles), lists.ids.shape[1], devices.namespace(self.device)
        _, row_words, _, per_word = self.tiles.shape
        of_word = 16 + 8 * per_word  # shared memory that a word of a query's labels takes, in bytes
        room = min(row_words, kernels.SHARED_BYTES // (WARPS_PER_BLOCK * of_word))
        reach = WARPS_PER_BLOCK * self.sum_bits * self.present.shape[1]  # scratch of a block in 32-bit words
        n_blocks = kernels.blocks(len(queries), WARPS_PER_BLOCK, devices.scratch(self.device) // (4 * reach) + 1)
        # lowered a little, so that rounding cannot lift a floor above a score that ties with the floor
        to_score = n_clusterings * self.scale * (1.0 - 1e-9)
        kernels.launch(
            "nearest_rows", n_blocks, 32 * WARPS_PER_BLOCK,
            (queries, floors, len(queries), self.codes.T, self.tiles.view(np.uint32), self.present, self.offsets,
             self.cluster_weights, self.units, self.sizes, component,
             _component_of_parts(component[self.order], cpu.TILE_ROWS),
             self.order, np.float64(to_score), n_rows, n_tiles, n_clusterings, np.int32(n_listed), np.int32(room),
             xp.empty(n_blocks * reach, dtype=np.uint32), *lists, self._compared),
            device=self.device, shared=WARPS_PER_BLOCK * room * of_word, **self._template_types,
        )  # fmt: skip


def bytes_needed(codes: np.ndarray, n_clusters: int, n_listed: int) -> int:
    """Return the largest number of bytes that an index and its lists take."""
    n_rows, n_clusterings = map(int, codes.shape)
    segments = -(-n_rows // (cpu.TILE_ROWS * cpu.SEGMENT))
    present = segments + -(-segments // cpu.SEGMENT)
    unit = np.dtype(_sum_dtype(n_clusterings)).itemsize
    of_rows = n_rows * (3 * n_clusterings * codes.itemsize + 12 * n_listed + 48)
    return of_rows + unit * n_clusters * cpu.SEGMENT * present


def _lay_out_tiles(codes: Any, order: Any) -> Any:
    """Return the labels in tiles of 64 rows, (n_tiles, words of a row, TILE_ROWS, labels of a word), padded."""
    n_rows, n_clusterings = codes.shape
    n_tiles, missing, per_word = -(-n_rows // cpu.TILE_ROWS), np.iinfo(codes.dtype).max, 4 // codes.itemsize
    shape = n_tiles, -(-n_clusterings // per_word), cpu.TILE_ROWS, per_word
    tiles = np.full_like(codes, missing, order="C", shape=shape)
    columns = np.full_like(codes, missing, order="C", shape=(COLUMNS_AT_ONCE, n_tiles * cpu.TILE_ROWS))
    for first in range(0, n_clusterings, COLUMNS_AT_ONCE):
        labels = codes.T[first : first + COLUMNS_AT_ONCE]
        columns[: len(labels), :n_rows] = labels[:, order]
        columns[len(labels) :] = missing
        words = slice(first // per_word, -(-(first + len(labels)) // per_word))
        words_of_columns = columns[: (words.stop - words.start) * per_word].reshape(
            -1, per_word, n_tiles, cpu.TILE_ROWS
        )
        tiles[:, words] = words_of_columns.transpose(2, 0, 3, 1)
    return tiles


def _component_of_parts(component: Any, length: int) -> Any:
    """Return the component of each part of ``length`` rows or tiles, -1 for a part with several components."""
    padded = np.concatenate([component, component[-1:].repeat(-len(component) % length)])
    parts = padded.reshape(-1, length)
    return np.where((parts == parts[:, :1]).all(axis=1), parts[:, 0], -1)


def _integer_weights(cluster_weights: np.ndarray, offsets: np.ndarray) -> tuple[np.ndarray, float]:
    """Return the weights as uint16 numbers of units, rounded up, and the number of units in a weight of 1.

    Units are so large that 16 bits hold the sum of M weights, or 24 bits if there are `MANY_CLUSTERINGS` clusterings.

    Raises
    ------
    ValueError
        For more than `MOST_CLUSTERINGS` clusterings.
    """
    n_clusterings = len(offsets) - 1
    if n_clusterings > MOST_CLUSTERINGS:
        raise ValueError(
            f"the ensemble has {n_clusterings:,} clusterings, but nearest rows are searched in at most "
            f"{MOST_CLUSTERINGS:,}; pass fewer clusterings, such as every second one."
        )
    if cluster_weights.dtype.kind == "i":
        return cluster_weights.astype(np.uint16), 1.0
    largest = np.maximum.reduceat(cluster_weights, offsets[:-1])
    scale = (2 ** _sum_bits(n_clusterings) - 1 - n_clusterings) / float(largest.sum())
    scale = min(scale, (cpu.UNITS - 1) / float(largest.max()))  # lowered by 1, because of rounding
    return np.ceil(cluster_weights * scale).astype(np.uint16), scale


def _sum_bits(n_clusterings: int) -> int:
    """Return the number of bits that hold the sum of a row's units."""
    return 24 if n_clusterings >= MANY_CLUSTERINGS else 16


def _sum_dtype(n_clusterings: int) -> type:
    return np.uint32 if _sum_bits(n_clusterings) > 16 else np.uint16

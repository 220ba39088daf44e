"""S = blockdiag(S_1 … S_M): the similarity of objects is a sum of similarities of clusters within each clustering."""

import math
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from gpuens.labels.incidence import screen_units
from gpuens.labels.rows import Rows
from gpuens.runtime import device as devices
from gpuens.runtime import kernels
from gpuens.runtime.native import cpu
from gpuens.similarity.base import ClusterSimilarity


class Blocks(ClusterSimilarity):
    """S from one symmetric matrix (k_m, k_m) per clustering.

    They share one array: block m is ``values[starts[m] : starts[m + 1]]``, row after row.
    """

    kind = "blocks"

    def __init__(self, matrices: list[np.ndarray], **results: Any) -> None:
        self.starts = np.cumsum([0, *(matrix.size for matrix in matrices)])
        self.values = np.concatenate([matrix.ravel() for matrix in matrices])
        self.offsets = np.cumsum([0, *(len(matrix) for matrix in matrices)])
        self.results = results

    def matrices(self) -> list[np.ndarray]:
        """Return the blocks as views (k_m, k_m)."""
        bounds = zip(self.starts[:-1].tolist(), self.starts[1:].tolist(), np.diff(self.offsets).tolist(), strict=True)
        return [self.values[a:b].reshape(k, k) for a, b, k in bounds]

    def upper_bound(self) -> float:
        return float(np.maximum.reduceat(self.values, self.starts[:-1]).sum()) / self.n_clusterings

    def diagonal(self) -> np.ndarray:
        return np.concatenate([matrix.diagonal() for matrix in self.matrices()])

    def times(self, table: np.ndarray) -> np.ndarray:
        kind, parts = devices.kind_of(table), np.split(table, self.offsets[1:-1].tolist())
        return np.concatenate(
            [devices.move(matrix, kind) @ part for matrix, part in zip(self.matrices(), parts, strict=True)]
        )

    def transposed_times(self, table: np.ndarray) -> np.ndarray:
        products, first = np.empty_like(table), 0
        for matrix in self.matrices():
            clusters = slice(first, first + len(matrix))
            products[:, clusters] = table[:, clusters] @ matrix
            first += len(matrix)
        return products

    def across(self, rows: Rows, cols: Rows) -> devices.Array:
        return coupled_tile(rows.codes, cols.codes, self.offsets, self.on(rows.device), device=rows.device)

    def on(self, device: str) -> "OnDevice":
        """Return the blocks in the memory of a device."""
        if device == "cpu":
            return OnDevice(self.starts, self.values, scale=self._scale)
        xp = devices.namespace(device)
        units, scale = screen_units(self.values, self.n_clusterings)
        return OnDevice(xp.asarray(self.starts), xp.asarray(self.values), xp.asarray(units), scale)

    @cached_property
    def _scale(self) -> float:
        """The number of units in 1.0, a power of two; sums of one value per clustering fit uint32."""
        return 2.0 ** min(32 - math.frexp(float(self.values.max()) * self.n_clusterings)[1], 1000)


class OnDevice(NamedTuple):
    """Arrays of blocks, as arguments of primitives."""

    starts: Any  # (M + 1,) int64
    values: Any  # float64
    units: Any = None  # values times scale, rounded down to int32; read by kernels
    scale: float = 0.0  # number of units in 1.0; sums of one value per clustering fit int32 (on the CPU uint32)


@kernels.primitive
def coupled_tile(row_codes: np.ndarray, col_codes: np.ndarray, offsets: np.ndarray, blocks: OnDevice) -> np.ndarray:
    """Return Σ_m block_m[a_m, b_m] / M for all pairs of label rows, float64, summed in the order of the clusterings."""
    rows, cols = np.ascontiguousarray(row_codes), np.ascontiguousarray(col_codes.T)
    tile = np.empty((len(rows), cols.shape[1]))
    cpu.coupled_tile(rows, cols, offsets, cpu.ClusterBlocks(blocks.starts, blocks.values), tile)
    return tile


@coupled_tile.kernel
def _(row_codes: Any, col_codes: Any, offsets: Any, blocks: OnDevice, *, device: str) -> Any:
    xp, (n_rows, n_clusterings), n_cols = devices.namespace(device), row_codes.shape, len(col_codes)
    starts, values = xp.asarray(blocks.starts), xp.asarray(blocks.values)
    tile = xp.empty((n_rows, n_cols))
    kernels.launch(
        "coupled_tile", kernels.blocks(n_rows * n_cols, 256), 256,
        (xp.ascontiguousarray(row_codes), xp.ascontiguousarray(col_codes.T), xp.asarray(offsets), starts, values, tile,
         n_rows, n_cols, n_clusterings),
        device=device, CODE=kernels.c_name(row_codes.dtype),
    )  # fmt: skip
    return tile

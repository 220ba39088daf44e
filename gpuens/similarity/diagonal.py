"""S = diag(w): the similarity of two objects is the total weight of their common clusters, divided by M."""

from typing import Any

import numpy as np

from gpuens.contingency.clusters import intersections_of
from gpuens.contingency.tables import cells
from gpuens.labels.rows import Rows
from gpuens.runtime import device as devices
from gpuens.runtime import kernels
from gpuens.runtime.native import cpu
from gpuens.similarity.base import ClusterSimilarity


class Diagonal(ClusterSimilarity):
    """S = diag(w) from the weight w of each cluster (N_c,): int64 ones, or float64."""

    kind = "diagonal"

    def __init__(self, weights: np.ndarray, offsets: np.ndarray, /, **results: Any) -> None:
        self.weights, self.offsets, self.results = weights, offsets, results

    @property
    def integral(self) -> bool:  # type: ignore[override]
        return self.weights.dtype.kind == "i"

    def take(self, is_kept: np.ndarray, offsets: np.ndarray) -> "Diagonal":
        """Return S of the clusters in a mask ``is_kept`` (N_c,); ``offsets`` (M + 1,) are their new numbering."""
        return Diagonal(self.weights[is_kept], offsets)

    def matrices(self) -> list[np.ndarray]:
        """Return the diagonal blocks of S, a matrix (k_m, k_m) per clustering."""
        return [np.diag(weights) for weights in np.split(self.weights, self.offsets[1:-1])]

    def upper_bound(self) -> float:
        return float(np.maximum.reduceat(self.weights, self.offsets[:-1]).sum()) / self.n_clusterings

    def diagonal(self) -> np.ndarray:
        return self.weights

    def times(self, table: np.ndarray) -> np.ndarray:
        return devices.move(self.weights, devices.kind_of(table))[:, None] * table

    def sum_of_squares(self, rows: Rows) -> float:
        rows_of_cells, cols, counts = cells(intersections_of(rows))
        weights, squares = self.weights.astype(np.float64), counts.astype(np.float64) ** 2
        return float((weights[rows_of_cells] * weights[cols]) @ squares) / self.n_clusterings**2

    def across(self, rows: Rows, cols: Rows) -> devices.Array:
        weights = self.weights.astype(np.float64, copy=False)
        return coassociation_tile(rows.codes, cols.codes, self.offsets, weights, device=rows.device)


@kernels.primitive
def coassociation_tile(
    row_codes: np.ndarray, col_codes: np.ndarray, offsets: np.ndarray, cluster_weights: np.ndarray
) -> np.ndarray:
    """Return Σ_m w[shared cluster] / M for all pairs of label rows, float64, summed in the order of the clusterings."""
    rows, cols = np.ascontiguousarray(row_codes), np.ascontiguousarray(col_codes.T)
    tile = np.empty((len(rows), cols.shape[1]))
    cpu.coassociation_tile(rows, cols, offsets, np.ascontiguousarray(cluster_weights, dtype=np.float64), tile)
    return tile


@coassociation_tile.kernel
def _(row_codes: Any, col_codes: Any, offsets: Any, cluster_weights: Any, *, device: str) -> Any:
    xp = devices.namespace(device)
    n_rows, n_clusterings = row_codes.shape
    n_cols = len(col_codes)
    block = xp.zeros((n_rows, n_cols))
    kernels.launch(
        "coassociation_tile", (kernels.blocks(n_cols, 32), kernels.blocks(n_rows, 8)), (32, 8),
        (xp.ascontiguousarray(row_codes), xp.ascontiguousarray(col_codes.T), xp.asarray(offsets),
         xp.asarray(cluster_weights, dtype=np.float64), block, n_rows, n_cols, n_clusterings),
        device=device, CODE=kernels.c_name(row_codes.dtype),
    )  # fmt: skip
    return block

"""A full S: the similarity of objects is a sum over all pairs of their clusters, for any symmetric S.

Only blocks of the N × N and N × N_c matrices are built: with V = B S, one look-up per label, entry (i, j) is
Σ_m V[i, cluster of j in m] / M.
"""

from typing import Any

import numpy as np

from gpuens.labels.incidence import row_lookups
from gpuens.labels.rows import Rows
from gpuens.runtime import device as devices
from gpuens.runtime.products import product
from gpuens.similarity.base import ClusterSimilarity


class Full(ClusterSimilarity):
    """S from a symmetric matrix (N_c, N_c), float64, of any sign."""

    kind = "full"
    any_sign = True

    def __init__(self, matrix: np.ndarray, offsets: np.ndarray, /, **results: Any) -> None:
        self.matrix, self.offsets, self.results = matrix, offsets, results

    def upper_bound(self) -> float:
        return float(self.matrix.max()) * self.n_clusterings

    def diagonal(self) -> np.ndarray:
        return self.matrix.diagonal()

    def times(self, table: np.ndarray) -> np.ndarray:
        return product(devices.move(self.matrix, devices.kind_of(table)), table)

    def full(self) -> np.ndarray:
        return self.matrix

    def across(self, rows: Rows, cols: Rows) -> devices.Array:
        xp = rows.xp
        tile, of_cols = xp.empty((len(rows), len(cols))), cols.codes
        for piece, spread in self._spread(rows, 2 * len(cols)):
            sums = xp.zeros((len(spread), len(cols)))
            for m, first in enumerate(self.offsets[:-1].tolist()):
                labelled = xp.flatnonzero(of_cols[:, m] != cols.ensemble.missing_code)
                sums[:, labelled] += spread[:, first + of_cols[labelled, m].astype(np.int64)]
            tile[piece] = sums / self.n_clusterings
        return tile

    def self_similarities(self, rows: Rows) -> np.ndarray:
        parts, codes = [], rows.codes
        for piece, spread in self._spread(rows, 0):
            sums, piece_codes = rows.xp.zeros(len(spread)), codes[piece]
            for m, first in enumerate(self.offsets[:-1].tolist()):
                labelled = rows.xp.flatnonzero(piece_codes[:, m] != rows.ensemble.missing_code)
                sums[labelled] += spread[labelled, first + piece_codes[labelled, m].astype(np.int64)]
            parts.append(devices.to_host(sums))
        return np.concatenate(parts) / self.n_clusterings

    def _spread(self, rows: Rows, width: int) -> Any:
        """Yield slices of rows and their products B S, so small that ``width`` more numbers per row fit the memory."""
        step = max(1, devices.scratch(rows.device) // (16 * (len(self.matrix) + width)))
        for start in range(0, len(rows), step):
            piece = slice(start, start + step)
            codes = rows.xp.asfortranarray(rows.codes[piece])
            yield piece, row_lookups(codes, self.offsets, self.matrix, device=rows.device)

"""Features as float32 points around 0, a block of rows at a time: features of any precision, size or sparsity."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

BLOCK_BYTES = 2**26  # of points that are read at once
BLOCK_ROWS = 2**18
MOST = 1000  # power of 2 that features are multiplied by


@dataclass(frozen=True)
class Points:
    """N points x = scale X - mean, (N, d), of features X that stay as they are.

    ``scale``, a power of 2 by which nothing is rounded, leaves no coordinate above 1, so that no distance overflows;
    ``mean`` (d,), float64, keeps float32 from rounding what tells the objects apart. Clusters depend on neither.
    """

    X: Any
    scale: float
    mean: np.ndarray

    @classmethod
    def of(cls, X: Any) -> "Points":
        """Return the points of features (N, d), an array or a SciPy sparse matrix of finite float32 or float64."""
        largest = max(abs(float(X.max())), abs(float(X.min())))
        around = cls(X, power(largest), np.zeros(X.shape[1]))
        total = sum(block.sum(axis=0) for block in around._blocks(np.float64))
        around = cls(X, around.scale, total / X.shape[0])
        reach = max(float(np.abs(block).max()) for block in around._blocks(np.float64))
        more = min(power(reach), 2.0**MOST / around.scale)
        return cls(X, around.scale * more, around.mean * more)

    @property
    def shape(self) -> tuple[int, int]:
        return self.X.shape[0], self.X.shape[1]

    def at(self, rows: np.ndarray) -> np.ndarray:
        """Return some points (n, d), float32."""
        found, step = np.empty((len(rows), self.shape[1]), dtype=np.float32), rows_at_once(*self.shape)
        for start in range(0, len(rows), step):
            found[start : start + step] = self._moved(self.X[rows[start : start + step]], np.float32)
        return found

    def blocks(self) -> Iterator[tuple[int, np.ndarray]]:
        """Yield all points, float32, in blocks of rows, and the first row of each."""
        start = 0
        for block in self._blocks(np.float32):
            yield start, block
            start += len(block)

    def _blocks(self, dtype: Any) -> Iterator[np.ndarray]:
        step = rows_at_once(*self.shape)
        for start in range(0, self.shape[0], step):
            yield self._moved(self.X[start : start + step], dtype)

    def _moved(self, X: Any, dtype: Any) -> np.ndarray:
        dense = X.toarray() if hasattr(X, "toarray") else X
        wide = np.result_type(dense.dtype, dtype)
        found = np.multiply(dense, wide.type(self.scale), dtype=wide)
        found -= self.mean.astype(wide)
        return found.astype(dtype, copy=False)


def rows_at_once(n_objects: int, n_features: int) -> int:
    """Return the number of rows in a block."""
    return min(n_objects, max(1, min(BLOCK_ROWS, BLOCK_BYTES // (4 * n_features))))


def power(value: float) -> float:
    """Return the power of 2, up to that of `MOST`, that takes a value ≥ 0 to ½ … 1; 1 for 0."""
    return 2.0 ** min(MOST, -int(np.frexp(value)[1])) if value > 0.0 else 1.0

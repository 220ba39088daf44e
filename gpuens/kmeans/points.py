"""Features as float32 points around 0, converted a block of rows at a time, whatever their dtype, sparsity or memory.

features (all chunks) ─▶ largest value ─▶ mean ─▶ largest coordinate ─▶ coordinates, the same for all chunks
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from gpuens.labels.features import float_for, largest_size
from gpuens.runtime import device as devices

BLOCK_BYTES = 2**26  # largest size of a block of points in bytes
BLOCK_ROWS = 2**16  # largest number of rows in a block
FEW_OF = 16  # a sparse matrix stores few values if it stores at most one in FEW_OF of its entries
ENTRY_FLOATS = 4  # memory that reading a stored value needs, as a number of float32 values
MOST = 1000  # largest exponent of the power of 2 by which features are multiplied


class Coordinates(NamedTuple):
    """The scale and the mean that convert features X to coordinates x = scale X - mean.

    ``scale`` is a power of 2, so that scaling causes no rounding errors. No coordinate is above 1, so that no distance
    overflows. ``mean`` (d,), float64, is subtracted so that differences of objects are exact enough in float32. Neither
    the scale nor the mean changes the clusters. Features are read in the dtype ``real``, which is float32 if all
    features are exact in float32.
    """

    real: Any
    scale: float
    mean: np.ndarray

    @classmethod
    def of(cls, each: Callable[..., list[Any]], n_objects: int, n_features: int) -> "Coordinates":
        """Return the scale and the mean of the features of all pieces.

        ``each(function, *given)`` returns the list of function(X, *given) for each piece X.
        """
        largest, reals = zip(*each(_largest), strict=True)
        real = np.result_type(*reals)
        largest_scale = 2.0 ** min(MOST, np.finfo(real).maxexp - 1)  # at most the largest power of this dtype
        coordinates = cls(real, min(power(max(largest)), largest_scale), np.zeros(n_features))
        coordinates = coordinates._replace(mean=sum(each(_total, coordinates)) / n_objects)
        factor = min(power(max(each(_reach, coordinates))), largest_scale / coordinates.scale)
        return coordinates._replace(scale=coordinates.scale * factor, mean=coordinates.mean * factor)

    def scaled(self, values: Any, wide: Any) -> Any:
        """Return features times the scale, in the dtype ``wide``."""
        return np.multiply(values.astype(self.real, copy=False), wide.type(self.scale), dtype=wide)


class Stored(NamedTuple):
    """Sparse points (n, d), float32; if a feature of a point is not stored, its coordinate is in ``base`` (d,).

    The stored coordinates of point i are ``values[begins[i] : begins[i + 1]]``. They belong to the features in the same
    slice of ``features``, which contains each feature once.
    """

    begins: np.ndarray
    features: np.ndarray
    values: np.ndarray
    base: np.ndarray


@dataclass(frozen=True)
class Points:
    """N points (N, d) computed on demand from unchanged features: a NumPy or CuPy array or a SciPy sparse matrix.

    The methods return points on ``device``.
    """

    X: Any
    coordinates: Coordinates
    device: str = "cpu"
    computed: bool = False  # whether X are the points themselves, float32

    @classmethod
    def of(cls, X: Any, device: str = "cpu") -> "Points":
        """Return the points of finite features (N, d)."""
        return cls(X, Coordinates.of(lambda function, *args: [function(X, *args)], *X.shape), device)

    def within(self, room: int) -> "Points":
        """Return the same points, computed once for all readers if X is an array in memory and they fit ``room`` bytes.

        A memory map is not copied, because it may be one for lack of memory.
        """
        if self.device != "cpu" or type(self.X) is not np.ndarray or 4 * self.X.size > room:
            return self
        points = np.empty(self.shape, dtype=np.float32)
        for rows in self.blocks:
            points[rows] = self.between(rows)
        return replace(self, X=points, computed=True)

    @property
    def shape(self) -> tuple[int, int]:
        return self.X.shape[0], self.X.shape[1]

    def at(self, rows: np.ndarray) -> Any:
        """Return the points (n, d), float32, with the numbers ``rows``."""
        xp, step = devices.namespace(self.device), rows_at_once(*self.shape)
        rows = devices.move(rows, devices.kind_of(self.X))
        points = xp.empty((len(rows), self.shape[1]), dtype=np.float32)
        for start in range(0, len(rows), step):
            chunk = slice(start, start + step)
            points[chunk] = self._moved(self.X[rows[chunk]], np.float32)
        return points

    @property
    def few_stored(self) -> bool:
        """Whether so few features are stored that `stored` is faster than `between`."""
        n, d = self.shape
        return self.device == "cpu" and hasattr(self.X, "tocsr") and self.X.nnz * FEW_OF <= n * d

    @property
    def blocks(self) -> list[slice]:
        """The slices of rows that `between` reads at a time."""
        return _blocks(*self.shape)

    @property
    def stored_blocks(self) -> list[slice]:
        """The slices of rows that `stored` reads at a time, sized by the mean number of stored features."""
        n = self.shape[0]
        return _blocks(n, ENTRY_FLOATS * max(1, -(-self.X.nnz // n)))

    def between(self, rows: slice, dtype: Any = np.float32) -> Any:
        """Return the points of a slice of rows."""
        return self._moved(self.X[rows], dtype)

    def stored(self, rows: slice) -> Stored:
        """Return the sparse points of a slice of rows of a sparse matrix."""
        return self._as_stored(self.X[rows], np.float32)

    def _as_stored(self, X: Any, dtype: Any) -> Stored:
        X, wide = _each_once(X), np.result_type(self.coordinates.real, dtype)
        mean = self.coordinates.mean.astype(wide)
        values = self.coordinates.scaled(X.data, wide) - mean[X.indices]
        return Stored(X.indptr, X.indices, values.astype(dtype, copy=False), (0 - mean).astype(dtype, copy=False))

    def _moved(self, X: Any, dtype: Any) -> Any:
        if self.computed:
            return X.astype(dtype, copy=False)
        if hasattr(X, "tocsr"):
            stored = self._as_stored(X, dtype)
            array = np.empty(X.shape, dtype=dtype)
            array[:] = stored.base
            array[np.repeat(np.arange(len(array)), np.diff(stored.begins)), stored.features] = stored.values
        else:
            wide, xp = np.result_type(self.coordinates.real, dtype), devices.namespace(devices.kind_of(X))
            array = self.coordinates.scaled(X, wide)
            array -= xp.asarray(self.coordinates.mean.astype(wide))
        return devices.namespace(self.device).asarray(array.astype(dtype, order="C", copy=False))


def rows_at_once(n_objects: int, n_features: int) -> int:
    """Return the number of rows in a block."""
    return min(n_objects, max(1, min(BLOCK_ROWS, BLOCK_BYTES // (4 * n_features))))


def _blocks(n_objects: int, n_features: int) -> list[slice]:
    step = rows_at_once(n_objects, n_features)
    return [slice(start, min(n_objects, start + step)) for start in range(0, n_objects, step)]


def power(value: float) -> float:
    """Return the power of 2, at most 2^`MOST`, by which a value > 0 is multiplied to be in ½ … 1; 1 for the value 0."""
    return 2.0 ** min(MOST, -int(np.frexp(value)[1])) if value > 0.0 else 1.0


# --- one piece of the features ----------------------------------------------------------------------------------------


def _largest(X: Any) -> tuple[float, Any]:
    """Return the largest absolute feature, and the dtype in which the features are exact."""
    X = _each_once(X) if hasattr(X, "tocsr") else X  # else max() would reorder the caller's matrix in place
    return largest_size(X), np.dtype(float_for(X.dtype, X))


def _total(X: Any, coordinates: Coordinates) -> np.ndarray:
    """Return the sum (d,), float64, of the scaled points, from which the mean is computed and not yet subtracted."""
    points = Points(X, coordinates, _place(X))
    if hasattr(X, "tocsr"):
        total = np.zeros(X.shape[1])
        for columns, of, values in _stored(points):
            total[columns] += np.bincount(of, values, len(columns))
        return total
    return devices.to_host(sum(points.between(rows, np.float64).sum(axis=0) for rows in points.blocks))


def _reach(X: Any, coordinates: Coordinates) -> float:
    """Return the largest absolute coordinate."""
    points = Points(X, coordinates, _place(X))
    if hasattr(X, "tocsr"):
        largest, counts, mean = 0.0, np.zeros(X.shape[1], dtype=np.int64), coordinates.mean
        for columns, of, values in _stored(points):
            counts[columns] += np.bincount(of, minlength=len(columns))
            largest = max(largest, float(abs(values - mean[columns][of]).max(initial=0.0)))
        return max(largest, float(abs(mean[counts < X.shape[0]]).max(initial=0.0)))
    return max(float(abs(points.between(rows, np.float64)).max()) for rows in points.blocks)


def _stored(points: Points) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Yield, for blocks of rows of a sparse matrix, three arrays: columns, positions and values.

    The columns are those with stored values in the block, and the position of a value is the position of its column
    among them. If there are many columns, most columns of a block have no values and cost no time.
    """
    n_features = points.shape[1]
    for rows in points.blocks:
        X = _each_once(points.X[rows])
        if X.nnz < n_features:
            columns, of = np.unique(X.indices, return_inverse=True)
        else:
            columns, of = np.arange(n_features), X.indices
        yield columns, of, points.coordinates.scaled(X.data, np.dtype(np.float64))


def _each_once(X: Any) -> Any:
    """Return a CSR matrix that stores every entry only once."""
    if not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    return X


def _place(X: Any) -> str:
    return "cuda" if devices.kind_of(X) == "cuda" else "cpu"

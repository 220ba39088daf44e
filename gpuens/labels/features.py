"""Features of the objects: arrays, tables, sparse matrices."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from gpuens.labels.frames import as_pandas
from gpuens.runtime import checks
from gpuens.runtime.defaults import SCALES
from gpuens.runtime.device import check_readable, floats, kind_of, memory_budget, namespace, native, to_host

ROWS_SEARCHED = 2**16  # rows searched at a time for a value that is not finite
VALUES_SEEN = 2**20  # values read to estimate the standard deviations of features
VALUES_AT_ONCE = 2**18  # values converted to float64 at a time
# ratio of the largest to the middle standard deviation above which "auto" standardises features
FAR_APART = 10


@dataclass(frozen=True, eq=False)
class Features:
    """Features that `as_features` has checked, so that functions which share them do not search them again."""

    values: Any  # array or CSR matrix (n_objects, n_features), or a memory map of any type
    columns: Any = None  # names of the features, or None
    name: str = "X"  # name of the argument in messages

    @classmethod
    def of(cls, X: Any, device: str = "cpu", *, name: str = "X", mapped: bool = False) -> "Features":
        """Check features, and keep the names of their columns; features that are checked are returned."""
        if isinstance(X, cls):
            return X
        X = as_pandas(X)
        return cls(as_features(X, device, name=name, mapped=mapped), getattr(X, "columns", None), name)

    @property
    def shape(self) -> tuple[int, int]:
        return (int(self.values.shape[0]), int(self.values.shape[1]))

    def __dlpack_device__(self) -> tuple[int, int]:
        return (2, 0) if kind_of(self.values) == "cuda" else (1, 0)  # kDLCUDA, kDLCPU

    def take(self, rows: np.ndarray) -> "Features":
        """Return the features of some objects."""
        return type(self).of(self.values[rows], kind_of(self.values), name=self.name)

    def scaled(self, scale: str = "auto") -> tuple["Features", str]:
        """Return features scaled by `scaling_of`, and the name of the scaling; tell what "auto" does.

        "auto" leaves features that do not fit the memory a second time as they are, with a warning.
        """
        X = self.values
        scaling = scaling_of(X, scale, self.name, self.columns)
        if scaling is None:
            return self, "none"
        needed, budget = X.size * np.result_type(X.dtype, np.float32).itemsize, memory_budget(kind_of(X))
        if scaling.reason is not None and needed > budget:
            checks.warn(f"{scaling.reason}; scale the features first, unless their units are the same.")
            return self, "none"
        purpose = f"scale={scale!r} for {self.name} of shape {tuple(X.shape)}"
        checks.check_memory(needed, budget, purpose, "scale them first")
        scaling.say()
        return type(self).of(scaling(X), kind_of(X), name=self.name), scaling.name


def as_features(X: Any, device: str = "cpu", *, name: str = "X", mapped: bool = False, part: bool = False) -> Any:
    """Return features as a C-contiguous float32 or float64 array (CSR matrix if sparse) on the device.

    An array that already is of that kind is not copied. Integers and booleans become float32 where that is exact, else
    float64. If squares would overflow or vanish, all features are multiplied by a power of 2 (`power_of`), which does
    not change clusters.
    `Features` are checked already, and only moved to the device.
    ``name`` is the argument's name in error messages. With ``mapped``, a memory map of any type and order is returned
    unchanged, for callers that convert a block at a time. With ``part``, X is one part of the features and is not
    multiplied, because the power depends on all parts.
    """
    if isinstance(X, Features):
        X = X.values
        if not hasattr(X, "tocsr") and not (isinstance(X, np.memmap) and not mapped):
            return namespace(device).asarray(X)
        if device == "cpu" and not isinstance(X, np.memmap):
            return X
    if hasattr(X, "obs") and hasattr(X, "obsm"):
        raise TypeError(f"{name} must be an array of features, not AnnData: pass adata.X, or adata.obsm['X_pca'].")
    if X is None or isinstance(X, (str, bytes, dict, set, frozenset)) or np.isscalar(X):
        raise TypeError(f"{name} must be an array, a DataFrame or a sparse matrix of features, not {type(X).__name__}.")
    check_readable(X, name)
    if hasattr(X, "tocsr"):
        if kind_of(getattr(X, "data", None)) == "cuda":
            raise TypeError(
                f"{name} must be dense in GPU memory, not a sparse matrix in GPU memory: pass {name}.toarray()."
            )
        if device != "cpu":
            raise TypeError(
                f"{name} must be dense on device={device!r}, not a sparse matrix: pass {name}.toarray(), or "
                "device='cpu'."
            )
        checks.check_feature_shape(tuple(X.shape), name)
        check_numbers(X.dtype, name)
        needed = 8 * X.shape[1]
        checks.check_memory(needed, memory_budget(), f"one center of {name} of shape {X.shape}", "leave out features")
        X = as_csr(X, name)
        X = X.astype(float_for(X.dtype, X.data), copy=False)
        if X.indices.dtype != np.int32 and max(X.nnz, *X.shape) < 2**31:  # scikit-learn refuses int64 indices
            X = type(X)((X.data, X.indices.astype(np.int32), X.indptr.astype(np.int32)), shape=X.shape)
        _check_finite(X.data, name)
        return X if part else times(X, power_of(X, name))
    X = as_pandas(X)
    columns = list(X.columns) if hasattr(X, "columns") else None
    if hasattr(X, "iloc") and X.ndim == 2:
        values = _frame_values(X, name)
    else:
        try:
            values = native(X) if device == "cuda" else to_host(X)
        except ValueError:
            raise ValueError(
                f"{name} must be 2-D, (n_objects, n_features), but the elements of this {type(X).__name__} differ in "
                "length."
            ) from None
    checks.check_feature_shape(values.shape, name)
    check_numbers(values.dtype, name)
    if isinstance(values, np.ma.MaskedArray):
        values = np.ma.filled(values.astype(np.float64), np.nan)
    if mapped and isinstance(values, np.memmap):
        _check_finite(values, name)
        return values
    values = namespace(kind_of(values)).ascontiguousarray(values, dtype=float_for(values.dtype, values))
    _check_finite(values, name, columns)
    return namespace(device).asarray(values if part else times(values, power_of(values, name)))


def as_numbers(X: Any, name: str = "X") -> Any:
    """Return features as a float64 array, or a sparse matrix of float64, in which missing values are NaN."""
    if hasattr(X, "tocsr"):
        check_numbers(X.dtype, name)
        return as_csr(X, name).astype(np.float64)
    check_readable(X, name)
    X = as_pandas(X)
    values = _frame_values(X, name) if hasattr(X, "iloc") else to_host(X)
    check_numbers(values.dtype, name)
    values = values.astype(np.float64)
    if np.isinf(values).any():
        raise ValueError(f"{name} has infinite values; correct them, or leave those objects out.")
    return values


def _frame_values(frame: Any, name: str) -> np.ndarray:
    """Return the numbers of a pandas DataFrame as an array; refuse columns of other values."""
    for column, dtype in frame.dtypes.items():
        check_numbers(dtype, name, column)
    values = np.asarray(frame)
    if values.dtype == object:  # numbers of a pandas dtype, with pandas.NA
        values = frame.to_numpy(dtype=np.float64, na_value=np.nan)
    return values


def as_csr(X: Any, name: str) -> Any:
    """Return a valid SciPy sparse matrix as CSR, within the memory budget; a CSR matrix is not copied.

    ``name`` is the argument's name in error messages.
    """
    check_sparse(X, name)
    if getattr(X, "format", None) == "csr":
        return X
    needed = 8 * (X.shape[0] + 1) + X.nnz * (8 + X.dtype.itemsize)
    checks.check_memory(
        needed, memory_budget(), f"{name} of shape {tuple(X.shape)} as a CSR matrix", "leave out rows without values"
    )
    try:
        matrix = X.tocsr()
    except (ValueError, TypeError, OverflowError, IndexError) as error:
        raise _damaged(name, f"what SciPy cannot convert ({checks.gist(error)})") from error
    check_sparse(matrix, name)  # again, for formats without index arrays, which can be checked only as CSR
    return matrix


def check_sparse(X: Any, name: str) -> None:
    """Refuse sparse matrices whose indices do not fit their shape: SciPy would read and write beyond its arrays.

    Nothing is copied or cast. A dok matrix has no index arrays, so only its CSR form can be checked; matrices in GPU
    memory are not checked.
    """
    form = getattr(X, "format", None) if kind_of(getattr(X, "data", None)) != "cuda" else None
    fault = _FAULTS[form](X) if form in _FAULTS else None
    if fault is not None:
        raise _damaged(name, fault)


def _damaged(name: str, fault: str) -> ValueError:
    return ValueError(f"{name} is a damaged sparse matrix, with {fault}; make it anew.")


def _fault_of_compressed(X: Any) -> str | None:
    """Return a description of the fault in a csr, csc or bsr matrix, None for a valid one."""
    data, indptr = np.asarray(X.data), np.asarray(X.indptr)
    block = data.shape[1:] if X.format == "bsr" else (1, 1)
    if data.ndim != len(block) * (X.format == "bsr") + 1 or 0 in block:
        return f"data of shape {data.shape}"
    n_major, n_minor = (n // size for n, size in zip(X.shape[:: -1 if X.format == "csc" else 1], block, strict=True))
    if indptr.dtype.kind not in "iu" or indptr.shape != (n_major + 1,):
        return f"indptr of shape {indptr.shape} and type {indptr.dtype} where {n_major + 1} integers are needed"
    if indptr[0] != 0 or indptr[-1] > len(data) or (indptr[1:] < indptr[:-1]).any():
        return f"an indptr that does not rise from 0 to {len(data)}, the number of its values"
    return _fault_of_indices(X.indices, len(data), n_minor, int(indptr[-1]))


def _fault_of_coo(X: Any) -> str | None:
    faults = (
        _fault_of_indices(axis_indices, len(X.data), n) for axis_indices, n in zip(X.coords, X.shape, strict=True)
    )
    return next(filter(None, faults), None)


def _fault_of_indices(indices: Any, n_values: int, below: int, n_used: int | None = None) -> str | None:
    """Return a description of the fault in the indices of the first ``n_used`` values, None for valid ones."""
    indices = np.asarray(indices)
    if indices.dtype.kind not in "iu" or indices.shape != (n_values,):
        return f"indices of shape {indices.shape} and type {indices.dtype} for {n_values} values"
    read = indices[:n_used]
    if read.size and not 0 <= read.min() <= read.max() < below:
        return f"indices from {read.min()} to {read.max()} where 0 to {below - 1} can be"
    return None


def _fault_of_diagonals(X: Any) -> str | None:
    data, offsets = np.asarray(X.data), np.asarray(X.offsets)
    if data.ndim != 2 or offsets.shape != data.shape[:1] or offsets.dtype.kind not in "iu":
        return f"offsets of shape {offsets.shape} and type {offsets.dtype} for data of shape {data.shape}"
    largest_offset = max(2**31 - 1, *X.shape)  # SciPy confuses larger offsets; diagonals outside the matrix are empty
    if offsets.size and not -largest_offset <= int(offsets.min()) <= int(offsets.max()) <= largest_offset:
        return f"offsets from {offsets.min()} to {offsets.max()} of a matrix of shape {tuple(X.shape)}"
    return None


def _fault_of_lists(X: Any) -> str | None:
    if len(X.rows) != X.shape[0] or len(X.data) != X.shape[0]:
        return f"{len(X.rows)} lists of indices for {X.shape[0]} rows"
    uneven = [i for i, (columns, values) in enumerate(zip(X.rows, X.data, strict=True)) if len(columns) != len(values)]
    return f"other numbers of indices and values in row {uneven[0]}" if uneven else None


_FAULTS = {
    **dict.fromkeys(("csr", "csc", "bsr"), _fault_of_compressed),
    "coo": _fault_of_coo,
    "dia": _fault_of_diagonals,
    "lil": _fault_of_lists,
}


def check_numbers(dtype: Any, name: str, column: object = None) -> None:
    """Refuse features that are not real numbers; ``column`` is the name of their DataFrame column."""
    if getattr(dtype, "kind", "O") not in "iufb":
        if column is None:
            raise TypeError(f"{name} must be real numbers, not of type {dtype}: leave out or encode the rest.")
        raise TypeError(
            f"{name} must be real numbers, not of type {dtype} in column {column!r}: leave it out (--exclude), encode "
            "it, or make it the index (--id-column) if it names the objects."
        )


def _check_finite(values: np.ndarray, name: str, columns: list[Any] | None = None) -> None:
    """Refuse features with NaN or infinity; ``columns`` are the names of the features."""
    # minimum and maximum reveal NaN and infinity without a mask as large as X
    if not values.size or np.isfinite(smallest_and_largest(values)).all():
        return
    count, first = 0, -1
    for start in range(0, len(values), ROWS_SEARCHED):
        is_infinite = ~np.isfinite(values[start : start + ROWS_SEARCHED])
        if first < 0 and is_infinite.any():
            first = start * is_infinite[0].size + int(is_infinite.argmax())
        count += int(is_infinite.sum())
    where = ""
    if values.ndim == 2:
        row, column = divmod(first, values.shape[1])
        where = f", the first at row {row}, column {column if columns is None else repr(columns[column])}"
    raise ValueError(
        f"{name} must be finite, but {count} value(s) are NaN or infinite{where}; fill them in, such as by "
        "sklearn.impute.SimpleImputer (--impute median), or leave those objects out."
    )


def float_for(dtype: np.dtype, values: np.ndarray) -> type:
    """Return float32 if it holds the values exactly (or they are float16 or float32), else float64."""
    if dtype.kind == "f":
        return np.float32 if dtype.itemsize <= 4 else np.float64
    exact = dtype.itemsize <= 2 or not values.size or (values.max() < 2**24 and values.min() > -(2**24))
    return np.float32 if exact else np.float64


def smallest_and_largest(values: Any) -> list[Any]:
    """Return the smallest and the largest number of an array, in host memory."""
    bounds = [values.min(), values.max()]
    return floats(*bounds) if kind_of(values) == "cuda" else bounds


def largest_size(values: Any) -> float:
    """Return the largest absolute value of an array with at least one number."""
    return max(abs(float(end)) for end in smallest_and_largest(values))


def power_of(X: Any, name: str = "X") -> float:
    """Return the power of 2 that scales finite features into the middle half of their type's exponents, or 1.

    There, squares, sums of 2**63 squares (float32) and squares of differences neither overflow nor vanish. Features are
    refused if most of them vanish beside the largest one, which probably stands for a missing value.
    """
    values = X.data if hasattr(X, "tocsr") else X
    largest = largest_size(values) if values.size else 0.0
    about = np.finfo(values.dtype)
    exponent, middle = int(np.frexp(largest)[1]), about.maxexp // 4
    power = 2.0 ** (min(max(exponent, -middle), middle) - exponent) if largest else 1.0
    if power < 1.0:
        n_there, smallest = int((values != 0).sum()), 2.0 ** (about.minexp // 2) / power
        n_lost = n_there - int((abs(values) >= smallest).sum())
        if 2 * n_lost > n_there:
            raise ValueError(
                f"{name}: beside a value of size {largest:.3g} {n_lost} other value(s) vanish; scale them, or remove "
                "values that stand for missing."
            )
    return power


def times(X: Any, power: float) -> Any:
    """Return features, dense or sparse, times a power of 2; a power of 1 makes no copy."""
    return X if power == 1.0 else X * X.dtype.type(power)


# --- scales -----------------------------------------------------------------------------------------------------------


class Scaling(NamedTuple):
    """A map of features x to (x - center) / spread, in the precision of the features, at least that of float32.

    ``center`` and ``spread`` (n_features,) are float64, in host memory. The center of sparse features is None, because
    a shift would store every value. ``reason`` is a sentence without its end if no user asked for the scaling.
    """

    name: str  # one of `SCALES`
    center: np.ndarray | None
    spread: np.ndarray
    reason: str | None = None

    def __call__(self, X: Any) -> Any:
        """Return the scaled features of an array or a sparse matrix (n, n_features), in its memory."""
        real = np.result_type(X.dtype, np.float32)
        if self.center is None:
            return as_csr(X.multiply(1.0 / self.spread), "X").astype(real)
        xp = namespace(kind_of(X))
        center, spread, scaled = xp.asarray(self.center), xp.asarray(self.spread), xp.empty(X.shape, dtype=real)
        for block in _blocks(X):
            scaled[block] = (X[block].astype(np.float64) - center) / spread
        return scaled

    def say(self) -> None:
        """Warn of a scaling that no user asked for."""
        if self.reason is not None:
            checks.warn(
                f"{self.reason}; the features were standardised, and if their units are the same, scale='none' "
                "(--scale none) is right."
            )


def scaling_of(X: Any, scale: str = "auto", name: str = "X", columns: Any = None) -> Scaling | None:
    """Return the scaling of features, or None for features that stay as they are.

    Parameters
    ----------
    X : array or sparse matrix (n_objects, n_features), or a sample of the objects
        Finite features, see `as_features`.
    scale : {"auto", "standard", "robust", "none"}
        "standard" is by mean and standard deviation, "robust" by median and quartiles. "auto" is "standard" for dense
        features of which one has more than `FAR_APART` times the standard deviation of the middle one, and otherwise
        "none".
    name : str
        The argument's name in messages.
    columns : sequence (n_features,), optional
        The names of the features.

    Raises
    ------
    ValueError
        For another scale.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[0.0, 0.0, 0.0], [1.0, 2.0, 900.0]])
    >>> scaling = scaling_of(X)
    >>> scaling.name, scaling(X).tolist()
    ('standard', [[-1.0, -1.0, -1.0], [1.0, 1.0, 1.0]])
    >>> scaling_of(X[:, :2]) is None
    True
    """
    checks.check_choice(scale, "scale", SCALES)
    sparse, reason = hasattr(X, "tocsr"), None
    if scale == "auto":
        reason = None if sparse else _reason_to_scale(X, name, columns)
        scale = "none" if reason is None else "standard"
    if scale == "none":
        return None
    if sparse or scale == "robust":
        from sklearn.preprocessing import RobustScaler, StandardScaler

        scaler = (
            StandardScaler(with_mean=not sparse) if scale == "standard" else RobustScaler(with_centering=not sparse)
        ).fit(X if sparse else to_host(X))
        return Scaling(scale, None if sparse else scaler.center_, scaler.scale_)
    center, deviations = _moments(X)
    return Scaling(scale, center, np.where(deviations > 0, deviations, 1.0), reason)


def _moments(X: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return the mean and the standard deviation (n_features,) of dense features, float64, in host memory.

    The deviation of a constant feature is 0, although its mean is rounded.
    """
    power = power_of(X) if X.dtype.kind == "f" else 1.0  # its multiples have squares that neither overflow nor vanish

    def mean(function: Callable[[Any], Any]) -> Any:
        parts = (times(X[block].astype(np.float64), power) for block in _blocks(X))
        return sum(function(part).sum(axis=0) for part in parts) / len(X)

    center = mean(lambda part: part)
    deviations = np.sqrt(to_host(mean(lambda part: (part - center) ** 2)))
    center = to_host(center)
    deviations[deviations <= VALUES_AT_ONCE * np.finfo(np.float64).eps * abs(center)] = 0.0
    return center / power, deviations / power


def _blocks(X: Any) -> Iterator[slice]:
    """Return the slices of the objects whose features are converted at a time."""
    step = max(1, VALUES_AT_ONCE // X.shape[1])
    return (slice(start, start + step) for start in range(0, len(X), step))


def _reason_to_scale(X: Any, name: str, columns: Any) -> str | None:
    """Return why features are scaled, or None if no feature is so large that it decides alone which objects are near.

    A sample of the objects is read.
    """
    step = -(-len(X) // max(100, VALUES_SEEN // X.shape[1]))
    _, deviations = _moments(to_host(X[::step]))
    ascending = np.sort(deviations[deviations > 0])
    if len(ascending) < 2 or ascending[-1] <= FAR_APART * (middle := ascending[(len(ascending) - 1) // 2]):
        return None
    column: Any = int(deviations.argmax())
    if columns is not None:
        column = getattr(columns[column], "item", lambda: columns[column])()
    return (
        f"column {column!r} of {name} has a standard deviation of {ascending[-1]:.3g} where that of the middle one is "
        f"{middle:.3g}, so that it decides nearly alone which objects are near"
    )

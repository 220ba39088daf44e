"""Features of the objects: arrays, tables, sparse matrices."""

from typing import Any

import numpy as np

from gpuens import checks
from gpuens.device import kind_of, namespace, native, to_host

ROWS_SEARCHED = 2**16  # at once, for a value that is refused


def as_features(X: Any, device: str = "cpu", *, name: str = "X", mapped: bool = False, part: bool = False) -> Any:
    """Return features as a C-contiguous float32 or float64 array (CSR matrix if sparse) on the device.

    Such an array is not copied. Integers and booleans become float32 where that is exact, else float64. Numbers so
    large or small that their squares would overflow or vanish are multiplied by a power of 2 (`power_of`), on which
    no cluster depends.
    ``name`` is the argument, for refusals. With ``mapped``, a memory map is returned as it is, of any type and order,
    for callers that convert a block at a time. With ``part``, X is a part of the features, and is not multiplied: the
    power is that of all.
    """
    if hasattr(X, "obs") and hasattr(X, "obsm"):
        raise TypeError(f"{name} must be an array of features, not AnnData: pass adata.X, or adata.obsm['X_pca'].")
    if X is None or isinstance(X, (str, bytes, dict, set, frozenset)) or np.isscalar(X):
        raise TypeError(f"{name} must be an array, a DataFrame or a sparse matrix of features, not {type(X).__name__}.")
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
        X = X.tocsr().astype(float_for(X.dtype, X.data), copy=False)
        if X.indices.dtype != np.int32 and max(X.nnz, *X.shape) < 2**31:  # scikit-learn takes no wider indices
            X = type(X)((X.data, X.indices.astype(np.int32), X.indptr.astype(np.int32)), shape=X.shape)
        _check_finite(X.data, name)
        return X if part else times(X, power_of(X, name))
    if hasattr(X, "columns") and hasattr(X, "to_pandas"):  # cuDF, polars
        X = X.to_pandas()
    if hasattr(X, "iloc") and X.ndim == 2:
        for column, dtype in X.dtypes.items():
            check_numbers(dtype, name, column)
        values = np.asarray(X)
        if values.dtype == object:  # pandas' own numbers with pandas.NA
            values = X.to_numpy(dtype=np.float64, na_value=np.nan)
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
    _check_finite(values, name)
    return namespace(device).asarray(values if part else times(values, power_of(values, name)))


def check_numbers(dtype: Any, name: str, column: object = None) -> None:
    """Refuse features that are not real numbers; ``column`` is their column of a DataFrame."""
    if getattr(dtype, "kind", "O") not in "iufb":
        where = "" if column is None else f" in column {column!r}"
        raise TypeError(f"{name} must be real numbers, not of type {dtype}{where}: leave out or encode the rest.")


def _check_finite(values: np.ndarray, name: str) -> None:
    """Refuse features with NaN or infinity."""
    # minimum and maximum propagate NaN and infinity, without a mask as large as X
    if not values.size or (np.isfinite(values.min()) and np.isfinite(values.max())):
        return
    count, first = 0, -1
    for start in range(0, len(values), ROWS_SEARCHED):
        wrong = ~np.isfinite(values[start : start + ROWS_SEARCHED])
        if first < 0 and wrong.any():
            first = start * wrong[0].size + int(wrong.argmax())
        count += int(wrong.sum())
    where = (
        f", the first at row {first // values.shape[1]}, column {first % values.shape[1]}" if values.ndim == 2 else ""
    )
    raise ValueError(
        f"{name} must be finite, but {count} value(s) are NaN or infinite{where}; fill them in or leave those objects "
        "out."
    )


def float_for(dtype: np.dtype, values: np.ndarray) -> type:
    """Return float32 where it is exact or the values are no wider, else float64."""
    if dtype.kind == "f":
        return np.float32 if dtype.itemsize <= 4 else np.float64
    exact = dtype.itemsize <= 2 or not values.size or (values.max() < 2**24 and values.min() > -(2**24))
    return np.float32 if exact else np.float64


def power_of(X: Any, name: str = "X") -> float:
    """Return the power of 2 that brings finite features within the middle half of their type's exponents, else 1.

    There their squares, sums of 2**63 of these (float32), and the squares of their differences neither overflow nor
    vanish. Features most of which vanish beside the largest, which probably stands for a missing value, are refused.
    """
    values = X.data if hasattr(X, "tocsr") else X
    largest = max(-float(values.min()), float(values.max())) if values.size else 0.0
    about = np.finfo(values.dtype)
    exponent, most = int(np.frexp(largest)[1]), about.maxexp // 4
    power = 2.0 ** (min(max(exponent, -most), most) - exponent) if largest else 1.0
    if power < 1.0:
        n_there, least = int((values != 0).sum()), 2.0 ** (about.minexp // 2) / power
        n_lost = n_there - int((abs(values) >= least).sum())
        if 2 * n_lost > n_there:
            raise ValueError(
                f"{name}: beside a value of size {largest:.3g} {n_lost} other value(s) vanish; scale them, or remove "
                "values that stand for missing."
            )
    return power


def times(X: Any, power: float) -> Any:
    """Return features, dense or sparse, times a power of 2 that their type holds; as they are if it is 1."""
    return X if power == 1.0 else X * X.dtype.type(power)

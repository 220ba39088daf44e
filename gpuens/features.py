"""Features of the objects, as callers have them: arrays, tables, sparse matrices."""

from typing import Any

import numpy as np

from gpuens import checks, validation
from gpuens.device import kind_of, namespace, native, to_host


def as_features(X: Any, device: str = "cpu") -> Any:
    """Return features as a C-contiguous float32 or float64 array (CSR matrix if sparse) where the device works.

    Nothing is copied that already is one. Integers and booleans become float32 where that is exact, else float64.
    """
    validation.features_are_something(X)
    if hasattr(X, "tocsr"):
        validation.sparse_on_cpu(device, kind_of(getattr(X, "data", None)))
        checks.check_feature_shape(tuple(X.shape))
        validation.features_are_numbers(X.dtype)
        X = X.tocsr().astype(float_for(X.dtype, X.data), copy=False)
        if X.indices.dtype != np.int32 and max(X.nnz, *X.shape) < 2**31:  # scikit-learn takes no wider indices
            X = type(X)((X.data, X.indices.astype(np.int32), X.indptr.astype(np.int32)), shape=X.shape)
        validation.features_are_finite(X.data)
        return X
    if hasattr(X, "columns") and hasattr(X, "to_pandas"):  # cuDF, polars
        X = X.to_pandas()
    if hasattr(X, "iloc") and X.ndim == 2:
        for column, dtype in X.dtypes.items():
            validation.features_are_numbers(dtype, column)
        values = np.asarray(X)
        if values.dtype == object:  # pandas' own numbers with pandas.NA
            values = X.to_numpy(dtype=np.float64, na_value=np.nan)
    else:
        try:
            values = native(X) if device == "cuda" else to_host(X)
        except ValueError:
            raise validation.ragged_features(X) from None
    checks.check_feature_shape(values.shape)
    validation.features_are_numbers(values.dtype)
    if isinstance(values, np.ma.MaskedArray):
        values = np.ma.filled(values.astype(np.float64), np.nan)
    values = namespace(kind_of(values)).ascontiguousarray(values, dtype=float_for(values.dtype, values))
    validation.features_are_finite(values)
    return namespace(device).asarray(values)


def float_for(dtype: np.dtype, values: np.ndarray) -> type:
    """Return float32 where that holds the values exactly or they are no wider, else float64."""
    if dtype.kind == "f":
        return np.float32 if dtype.itemsize <= 4 else np.float64
    exact = dtype.itemsize <= 2 or not values.size or (values.max() < 2**24 and values.min() > -(2**24))
    return np.float32 if exact else np.float64

"""Frames and Series of any library: narwhals reads them, so that other code knows those of pandas alone.

    polars, also lazy; Arrow; DuckDB; Modin; Ibis; …  ─▶ narwhals ─▶ NumPy columns ─▶ a DataFrame or Series of pandas

Integers beside missing values stay integers, and categories become their values. A frame of a library without indexes
names no objects: read names by `object_names.index_of` before the conversion, which adds an index 0, 1, 2, ….
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from gpuens.runtime.device import chunked

# packages whose objects are no frames, or already those of pandas: narwhals need not be imported for them
NO_OTHER_FRAMES = {"builtins", "cupy", "cupyx", "gpuens", "numpy", "pandas", "scipy", "torch"}


def is_frame(values: Any) -> bool:
    """Return whether values are a table whose columns have names, in memory or not."""
    return hasattr(type(values), "columns") and not chunked(values)


def is_of_cudf(values: Any) -> bool:
    """Return whether values are a frame or Series of cuDF, in GPU memory."""
    return hasattr(values, "iloc") and hasattr(values, "to_pandas")


def as_pandas(values: Any) -> Any:
    """Return a frame or Series of another library as one of pandas in memory, and any other object unchanged.

    A Series of cuDF is unchanged, too: it is an array in GPU memory.

    >>> from gpuens.labels.frames import as_pandas
    >>> import pyarrow
    >>> as_pandas(pyarrow.table({"a": [1, None], "b": ["x", "y"]})).dtypes.astype(str).tolist()
    ['Int64', 'object']
    """
    if type(values).__module__.partition(".")[0] in NO_OTHER_FRAMES or chunked(values):
        return values
    if is_of_cudf(values):
        return values.to_pandas() if len(values.shape) == 2 else values
    table = _as_narwhals(values)
    if table is None:
        return values
    if hasattr(table.to_native(), "iloc"):  # Modin, or a subclass of pandas
        return table.to_pandas()
    import pandas as pd

    if hasattr(table, "collect"):
        table = table.collect()
    if not hasattr(table, "columns"):
        return pd.Series(_as_array(table), name=table.name or None, copy=False)
    matrix = _as_matrix(table)
    values = dict(enumerate(map(_as_array, table.iter_columns()))) if matrix is None else matrix
    return pd.DataFrame(values, copy=False).set_axis(pd.Index(table.columns, dtype=object), axis=1)


def without_columns(frame: Any, names: Sequence[Any]) -> Any:
    """Return a frame without the columns of some names, where they are there."""
    if hasattr(frame, "iloc"):
        return frame[[name for name in frame.columns if name not in names]]
    return _as_narwhals(frame).drop(*names, strict=False).to_native()


def _as_narwhals(values: Any) -> Any:
    """Return a frame or Series as one of narwhals, or None for any other object."""
    import narwhals

    if hasattr(values, "__arrow_c_array__"):  # a batch or an array of Arrow, which narwhals does not know
        import pyarrow

        values = pyarrow.table(values) if hasattr(values, "columns") else pyarrow.chunked_array([values])
    read = narwhals.from_native(values, allow_series=True, pass_through=True)
    return None if read is values else read


def _as_matrix(frame: Any) -> np.ndarray | None:
    """Return a frame of narwhals as an array if all its columns have one numeric type, which the array keeps."""
    dtypes = set(frame.schema.values())
    if len(dtypes) != 1 or not ((dtype := dtypes.pop()).is_integer() or dtype.is_float()):
        return None
    matrix: np.ndarray = frame.to_numpy()
    return matrix if (matrix.dtype.kind == "f") == dtype.is_float() else None


def _as_array(series: Any) -> Any:
    """Return a Series of narwhals as an array of NumPy, or of pandas if NumPy has no such type."""
    import narwhals
    import pandas as pd

    if series.dtype.is_integer() and series.null_count():
        return pd.arrays.IntegerArray(series.fill_null(0).to_numpy(), series.is_null().to_numpy())
    if series.dtype == narwhals.Categorical and series.implementation.is_pyarrow():
        return series.to_native().to_pandas().array  # to_numpy gives a missing value any of the categories
    if series.dtype.is_decimal():  # DuckDB reads the literal 1.5 as a decimal
        series = series.cast(narwhals.Float64)
    return series.to_numpy()

"""Opening of files of all kinds: opening finds the names of the columns; the columns are read later, when needed.

Before a file is read, the size in its header is compared with the memory budget.
"""

import math
import os
from collections.abc import Callable, Sequence
from functools import cache, partial, wraps
from typing import Any, ParamSpec

import numpy as np

from gpuens.io import annotated, paths
from gpuens.io.arrays import Archive, Header, checked_texts, in_native_order, open_npy, open_zarr
from gpuens.io.columns import NO_OPTIONS, UNTITLED, Opened, TextOptions
from gpuens.io.paths import FOLDERS, IDS, TEXT_INPUTS, Path_, needs, reading
from gpuens.labels.features import as_csr, check_sparse
from gpuens.labels.object_names import with_row_numbers
from gpuens.runtime import checks, device

BYTES_OF_A_NAME = 40  # estimated bytes of memory for the name of one column

OF_PANDAS = ("pandas.period", "pandas.interval")  # Arrow extension types that pandas writes only for row names


P = ParamSpec("P")


def _with_ids_read_once(opener: Callable[P, Opened]) -> Callable[P, Opened]:
    """Return a function that opens a file, and whose result keeps the names of objects that it has read."""

    @wraps(opener)
    def opened_once(*args: P.args, **kwargs: P.kwargs) -> Opened:
        opened = opener(*args, **kwargs)
        return opened._replace(ids=cache(opened.ids))

    return opened_once


@_with_ids_read_once
def open_file(
    path: Path_,
    suffix: str,
    key: str | None = None,
    text: TextOptions = NO_OPTIONS,
    *,
    features: bool = False,
    grid: tuple[int, ...] | None = None,
) -> Opened:
    """Open a file, find the names of its columns, and return functions that read the columns.

    ``grid`` is that of `gpuens.io.read_labels`.
    """
    paths.check_readable(path, folder=suffix in FOLDERS)
    check_options(suffix, key, text, features=features)
    if suffix in TEXT_INPUTS:
        from gpuens.io.text import open_text

        return open_text(path, usual_separator(path), text, features=features)
    if suffix == ".parquet":
        return _open_parquet(path)
    if suffix == ".feather":
        return _open_feather(path, features)
    if suffix == ".zarr":
        stored = open_zarr(path)
        needed = math.prod(stored.shape) * stored.dtype.itemsize
        checks.check_memory(needed, device.memory_budget(), f"reading {os.fspath(path)!r}", "work in chunks")
        with reading(path):
            array = checked_texts(np.asarray(stored[...]))
        return _open_array(_flattened(array, grid), features)
    if suffix == ".npz":
        return _open_npz(path, key, features=features, grid=grid)
    if suffix == ".npy":
        with reading(path):
            array = checked_texts(open_npy(path))
        return _open_array(_flattened(array, grid), features)
    with needs("anndata", "h5ad"), reading(path):
        table = annotated.read_features(path, key) if features else annotated.read_obs(path)
    if features:
        check_sparse(table, f"path {os.fspath(path)!r}")
        return _open_array(table, features, lambda: annotated.read_obs(path).index)
    return _opened(list(table.columns), lambda positions: table.iloc[:, positions], lambda: table.index)


def usual_separator(path: Path_) -> str:
    """Return the separator of fields that the name of a text file suggests."""
    return "\t" if ".tsv" in os.path.basename(os.fspath(path)).lower() else ","


def check_options(suffix: str, key: str | None, text: TextOptions, *, features: bool = False) -> None:
    """Refuse options of reading that do not apply to a kind of file."""
    if key is not None and suffix != ".npz" and not (features and suffix == ".h5ad"):
        raise ValueError(f"key={key!r} names an array in an npz file, but this is a {suffix} file; leave it out.")
    for name, value in text._replace(missing=None)._asdict().items():
        if value is not None and suffix not in TEXT_INPUTS:
            raise ValueError(f"{name}={value!r} applies to text, but this is a {suffix} file; leave it out.")


def _opened(
    names: list[Any],
    get: Callable[..., Any],
    row_names: Callable[..., Any] | None = None,
    get_names: Callable[..., Any] | None = None,
) -> Opened:
    """Make an `Opened` from the column names, from ``get``, which reads columns by position, and from ``row_names``.

    ``row_names`` reads the names of the rows; None means that the file has no row names. ``get_names`` reads a column
    of names, by default as ``get``.
    """

    def ids(position: int | None) -> Any:
        import pandas as pd

        if position is None:
            read = None if row_names is None else row_names()
            return None if read is None else with_row_numbers(read)
        read = (get_names or get)([position])
        column = read.iloc[:, 0] if hasattr(read, "iloc") else read[:, 0]
        if not isinstance(column.dtype, np.dtype) and column.isna().any():
            column = column.astype(object).where(column.notna(), None)  # NumPy would make floats of Int64
        values = in_native_order(np.asarray(column))
        name = names[position] if isinstance(names[position], str) else UNTITLED
        return pd.Index(values, dtype=values.dtype, name=name)  # pandas would infer floats

    return Opened(names, get, ids)


def _open_array(array: Any, features: bool, row_names: Callable[[], Any] | None = None) -> Opened:
    """Make an `Opened` from an array, a sparse matrix or a DataFrame, after a check of its shape and memory."""
    if array.ndim == 1:
        array = array.reshape(-1, 1)
    if features:
        shape = tuple(array.shape)
        checks.check_feature_shape(shape)
        needed = BYTES_OF_A_NAME * shape[1]  # a small file may claim a sparse matrix with very many columns
        checks.check_memory(needed, device.memory_budget(), f"features of shape {shape}", "leave out features")
    else:
        checks.check_label_shape(array.shape)
        n_objects, n_clusterings = array.shape
        # bytes for each object: one for each clustering, and 16 while a column is encoded
        needed = n_objects * (n_clusterings + 16)
        checks.check_memory(needed, device.memory_budget(), f"labels of shape {array.shape}", "take fewer objects")
    names = list(getattr(array, "columns", range(array.shape[1])))

    def get(positions: list[int]) -> Any:
        if positions == list(range(len(names))):
            return array  # the array itself, because indexing would copy a memory map into memory
        if hasattr(array, "iloc"):
            return array.iloc[:, positions]
        return (as_csr(array, "X") if hasattr(array, "tocsr") else array)[:, positions]

    return _opened(names, get, row_names)


def _flattened(array: Any, grid: tuple[int, ...] | None) -> Any:
    """Return a stack of maps of a grid as labels (n_cells, n_maps), and any other array unchanged."""
    if grid is None or array.ndim != len(grid) + 1 or array.ndim < 3:
        return array
    if array.shape[1:] == grid:
        return array.reshape(len(array), -1).T
    return array.reshape(-1, array.shape[-1]) if array.shape[:-1] == grid else array


def _open_npz(path: Path_, key: str | None, *, features: bool, grid: tuple[int, ...] | None = None) -> Opened:
    headers = npz_headers(path)
    stored = list(headers)
    if features and key is None and {"format", "shape", "data"} <= headers.keys():
        return _open_array(_sparse(path, sum(header.n_bytes for header in headers.values())), features)
    key = npz_key(headers, key, features=features)
    if key is not None:
        with reading(path), Archive(path) as archive:
            array = _flattened(archive.read(key), grid)
        named = key != IDS and IDS in stored and headers[IDS].shape == array.shape[:1]
        return _open_array(array, features, partial(read_npz_ids, path) if named else None)

    def get(positions: list[int]) -> Any:
        import pandas as pd

        with reading(path), Archive(path) as archive:
            return pd.DataFrame({stored[m]: in_native_order(archive.read(stored[m])) for m in positions})

    return _opened(stored, get)


def npz_headers(path: Path_) -> dict[str, Header]:
    """Return the header of each array of an npz file."""
    with reading(path), Archive(path) as archive:
        return {name: archive.header(name) for name in archive.names}


def npz_key(headers: dict[str, Header], key: str | None, *, features: bool = False) -> str | None:
    """Return the name of the array to read from an npz file; None if each of its 1-D arrays is one clustering."""
    if key is None and features:
        key = "X" if "X" in headers else None
    elif key is None and {"labels", IDS} <= headers.keys():  # `gpuens.io.write_labels` wrote this file
        key = "labels"
    if key is None and len(headers) == 1:
        key = next(iter(headers))
    if key in headers:
        return key
    if key is not None:
        raise ValueError(f"key={key!r} is not in this npz file; it has {checks.listed(headers)}.")
    if not headers:
        raise ValueError("path names an npz file without any array in it; write the file again.")
    shapes = {header.shape for header in headers.values()}
    if features or len(shapes) > 1 or len(shapes.pop()) != 1:
        raise ValueError(f"key is needed to choose an array of this npz file; it has {checks.listed(headers)}.")
    return None


def read_npz_ids(path: Path_) -> Any:
    """Return the names of the objects in an npz file as a pandas Index, or None if the file has no array of names."""
    import pandas as pd

    paths.check_readable(path)
    with reading(path), Archive(path) as archive:
        if IDS not in archive.names or len(archive.header(IDS).shape) != 1:
            return None
        return with_row_numbers(pd.Index(in_native_order(archive.read(IDS))))


def _sparse(path: Path_, n_bytes: int) -> Any:
    import scipy.sparse

    checks.check_memory(
        n_bytes, device.memory_budget(), f"the sparse matrix in {os.fspath(path)!r}", "take fewer objects"
    )
    with reading(path):
        matrix = scipy.sparse.load_npz(path)
    check_sparse(matrix, f"path {os.fspath(path)!r}")
    return matrix


def _open_parquet(path: Path_) -> Opened:
    import pandas as pd

    n_rows, schema, index = parquet_header(path)
    names = [name for name in schema.names if name not in index]

    def read_table(positions: list[int], table_of: Callable[[list[str]], Any]) -> Any:
        needed = 8 * n_rows * len(positions)
        checks.check_memory(needed, device.memory_budget(), f"reading {os.fspath(path)!r}", "read fewer of its columns")
        column_names = [names[m] for m in positions]
        check_types(path, schema, column_names, index)
        with reading(path):
            table = table_of(column_names)
            return table.set_axis(table.columns.map(str), axis=1)[column_names]

    def get(positions: list[int]) -> Any:
        return read_table(positions, lambda column_names: pd.read_parquet(path, columns=column_names))

    def get_names(positions: list[int]) -> Any:
        return read_table(positions, lambda column_names: _read_exactly(path, column_names))

    def row_names() -> Any:
        row_index = get_names([0]).index
        return row_index.rename(None if str(row_index.name).startswith("__index") else row_index.name)

    return _opened(names, get, row_names if index else None, get_names)


def _open_feather(path: Path_, features: bool) -> Opened:
    """Open a feather file (Arrow's IPC format), which is read whole, in batches that are validated."""
    with needs("pyarrow", "feather"):
        import pyarrow
        from pyarrow import ipc

    with reading(path), ipc.open_file(os.fspath(path)) as file:
        index = [name for name in (file.schema.pandas_metadata or {}).get("index_columns", []) if isinstance(name, str)]
        schema, batches, size = file.schema, [], 0
        for place in range(file.num_record_batches):
            batches.append(file.get_batch(place))
            batches[-1].validate(full=True)
            size += 3 * batches[-1].nbytes  # the batch, and its copy as a table of pandas
            checks.check_memory(size, device.memory_budget(), f"reading {os.fspath(path)!r}", "write it as parquet")
    check_types(path, schema, [name for name in schema.names if name not in index], index)
    with reading(path):
        table = pyarrow.Table.from_batches(batches, schema).to_pandas(integer_object_nulls=True)
        table = table.set_axis(table.columns.map(str), axis=1)
    return _open_array(table, features, (lambda: table.index) if index else None)


def _read_exactly(path: Path_, columns: list[str]) -> Any:
    """Return columns of a parquet file as pandas does, but integers beside missing values as objects, not as floats."""
    from pyarrow import parquet

    with open(path, "rb") as file:  # a path with a folder a=1 would add a column a
        return parquet.read_table(file, columns=columns, use_pandas_metadata=True).to_pandas(integer_object_nulls=True)


def parquet_header(path: Path_) -> tuple[int, Any, list[str]]:
    """Return the number of rows of a parquet file, its Arrow schema, and the columns that hold pandas' row names."""
    with needs("pyarrow", "parquet"):
        from pyarrow import parquet

    with reading(path), parquet.ParquetFile(path) as file:
        schema = file.schema_arrow
        index = [name for name in (schema.pandas_metadata or {}).get("index_columns", []) if isinstance(name, str)]
        return file.metadata.num_rows, schema, index


def check_types(path: Path_, schema: Any, names: list[str], index: Sequence[str] = ()) -> None:
    """Raise an error if a column of a parquet file is neither numbers nor text, but for example lists or records.

    Only the columns in ``names`` and ``index`` are checked. Columns in ``index``, which hold pandas' row names, may
    also be pandas' periods and intervals.
    """
    import pyarrow

    kinds = pyarrow.types
    numbers = (
        kinds.is_boolean,
        kinds.is_integer,
        kinds.is_floating,
        kinds.is_decimal,
        kinds.is_temporal,
        kinds.is_null,
    )
    texts = (kinds.is_string, kinds.is_large_string, kinds.is_string_view, kinds.is_binary, kinds.is_large_binary)
    checked_names = {*names, *index}
    for field in schema:
        kind = field.type.value_type if kinds.is_dictionary(field.type) else field.type
        if field.name in index and getattr(kind, "extension_name", "") in OF_PANDAS:
            continue
        if field.name in checked_names and not any(is_kind(kind) for is_kind in (*numbers, *texts)):
            raise ValueError(
                f"path {os.fspath(path)!r}: column {field.name!r} is of type {field.type}, but labels and features are "
                "numbers or texts; name the other columns."
            )

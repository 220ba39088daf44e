"""Shapes of label files from their headers or first lines, with the memory that reading them takes.

The constants were fitted to measured peaks, with which tests/methods/test_forecast.py compares them.
"""

import math
import os
from typing import Any, NamedTuple

import numpy as np

from gpuens.io import paths
from gpuens.io.arrays import open_npy, open_zarr
from gpuens.io.columns import TextOptions, choose_columns
from gpuens.io.content import PACKED_ENDINGS, input_kind
from gpuens.io.opening import check_options, npz_headers, npz_key, parquet_header, usual_separator
from gpuens.io.paths import ANNOTATED, FOLDERS, TEXT_INPUTS, Path_
from gpuens.labels.shape import LabelShape, sample_blocks
from gpuens.runtime import checks
from gpuens.runtime.defaults import FORMS

PANDAS_BYTES = 90_000_000  # memory of pandas, of its parsers and of the tables in work
TEXT_LABEL_BYTES = 7.6  # memory for each label of a text table beside its code and the text
PARQUET_LABEL_BYTES = 12  # memory for each label of a parquet file beside its code, without its values
PARQUET_COPIES = 2.7  # copies of the values of a parquet file
PARQUET_TEXT_BYTES = 35  # memory for each text of a parquet file
OTHER_FORMS = ("transpose", *FORMS)  # options for files that have no row for each object
NAME_BYTES = 90  # memory for the name of an object


class Outline(NamedTuple):
    """The columns of a label file that has not been read."""

    names: list[Any]  # names or numbers of the columns
    n_objects: int
    label_bytes: list[float]  # bytes for each label of a column while the file is read, beside the label's code
    whole_bytes: int = 0  # bytes that reading takes, whatever the columns
    mapped_bytes: int = 0
    array: np.memmap | None = None  # labels of an npy file


def label_shape(
    path: Path_,
    *,
    columns: Any = None,
    exclude: Any = None,
    key: str | None = None,
    id_column: Any = None,
    sep: str | None = None,
    header: bool | None = None,
    **other_options: Any,
) -> LabelShape | None:
    """Return the shape of the labels in a file without reading them; None for kinds of files without a header.

    Parameters and errors are those of `gpuens.io.read_labels`. The shape is unknown, too, if ``other_options`` give the
    file another form than a row for each object. The number of objects in a text table is an estimate from its first
    lines.
    """
    if any(other_options.get(form) for form in OTHER_FORMS):
        return None
    kind = input_kind(path)
    paths.check_readable(path, folder=kind in FOLDERS)
    text = TextOptions(sep, header)
    check_options(kind, key, text)
    with checks.recorded():  # the reader will repeat the warnings
        outline = _outline(path, kind, key, text)
    if outline is None:
        return None
    places, ids = choose_columns(outline.names, columns, exclude, id_column)
    of_object = sum(outline.label_bytes[m] for m in places) + NAME_BYTES * (ids is not None)
    read_bytes = outline.whole_bytes + round(of_object * outline.n_objects)
    shape = LabelShape(outline.n_objects, len(places), None, None, read_bytes, outline.mapped_bytes)
    array = outline.array
    return shape if array is None else shape._replace(sample=lambda: _sample(array)[:, places])


def _sample(array: np.memmap) -> np.ndarray:
    """Read a sample of the rows of an npy file by calls of the system, because a map may hold far more in memory."""
    n_objects, n_columns = len(array), math.prod(array.shape[1:])
    by_column = array.flags.f_contiguous and n_columns > 1
    of_row = array.dtype.itemsize * (1 if by_column else n_columns)
    with open(str(array.filename), "rb") as file:

        def block(start: int, stop: int, column: int) -> np.ndarray:
            file.seek(array.offset + of_row * (column * n_objects + start))
            return np.fromfile(file, array.dtype, (stop - start) * of_row // array.dtype.itemsize)

        if by_column:
            return np.array([
                np.concatenate([block(*ends, column) for ends in sample_blocks(n_objects)])
                for column in range(n_columns)
            ]).T  # fmt: skip
        return np.concatenate([block(*ends, 0) for ends in sample_blocks(n_objects)]).reshape(-1, n_columns)


def _outline(path: Path_, kind: str, key: str | None, text: TextOptions) -> Outline | None:
    if kind in (*ANNOTATED, ".feather"):
        return None
    if kind in TEXT_INPUTS:
        from gpuens.io.text import outline

        sizes = outline(path, usual_separator(path), text)
        if sizes is None:
            return None
        names, n_objects, n_bytes, row_names = sizes
        table_bytes, of_labels = PANDAS_BYTES + NAME_BYTES * n_objects * row_names, [TEXT_LABEL_BYTES] * len(names)
        if os.fspath(path).lower().endswith(PACKED_ENDINGS):
            return Outline(names, n_objects, of_labels, table_bytes + n_bytes)
        return Outline(names, n_objects, of_labels, table_bytes, n_bytes)
    if kind == ".parquet":
        n_objects, schema, index = parquet_header(path)
        fields = [field for field in schema if field.name not in index]
        of_labels = [_parquet_bytes(field.type) for field in fields]
        return Outline(
            [field.name for field in fields], n_objects, of_labels, PANDAS_BYTES + NAME_BYTES * n_objects * bool(index)
        )
    if kind == ".npz":
        headers = npz_headers(path)
        key_read = npz_key(headers, key)
        if key_read is None:  # each array is a clustering
            (n_objects,) = {math.prod(array_header.shape) for array_header in headers.values()}
            return Outline(list(headers), n_objects, [array_header.dtype.itemsize for array_header in headers.values()])
        return _outline_array(headers[key_read].shape, headers[key_read].dtype)
    if kind == ".zarr":
        array = open_zarr(path)
        return _outline_array(array.shape, array.dtype)
    with paths.reading(path):
        array = open_npy(path)
    columns = _outline_array(array.shape, array.dtype)
    return columns._replace(label_bytes=[0] * len(columns.names), mapped_bytes=array.nbytes, array=array)


def _outline_array(shape: tuple[int, ...], dtype: Any) -> Outline:
    shape = (*shape, 1) if len(shape) == 1 else shape
    checks.check_label_shape(shape)
    return Outline(list(range(shape[1])), shape[0], [np.dtype(dtype).itemsize] * shape[1])


def _parquet_bytes(kind: Any) -> float:
    """Return the bytes of memory for each label of an Arrow type while a parquet file is read."""
    from pyarrow import types

    if types.is_dictionary(kind):
        return PARQUET_LABEL_BYTES + PARQUET_COPIES
    try:
        return PARQUET_LABEL_BYTES + PARQUET_COPIES * int(kind.bit_width) / 8
    except ValueError:  # texts have no width
        return PARQUET_TEXT_BYTES

"""Shapes of label files from their headers or first lines, with the memory that reading them takes.

bench/forecasts.py compares the constants with measured peaks.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from gpuens.io import paths
from gpuens.io.arrays import open_npy, open_zarr
from gpuens.io.columns import choose_columns
from gpuens.io.kinds import ANNOTATED, FOLDERS, INPUTS, TEXTS, Path_
from gpuens.io.opening import npz_headers, npz_key, open_file, parquet_header
from gpuens.labels.shape import LabelShape, sample_rows
from gpuens.runtime import checks

PANDAS_BYTES = 90_000_000  # memory of pandas, of its parsers and of the tables in work
TEXT_LABEL_BYTES = 7.6  # memory for each label of a text table beside its code and the text
PARQUET_LABEL_BYTES = 12  # memory for each label of a parquet file beside its code, without its values
PARQUET_COPIES = 2.7  # copies of the values of a parquet file
PARQUET_TEXT_BYTES = 35  # memory for each text of a parquet file
NAME_BYTES = 90  # memory for the name of an object


class Outline(NamedTuple):
    """The columns of a label file that has not been read."""

    names: list[Any]  # names or numbers of the columns
    n_objects: int
    label_bytes: list[float]  # bytes for each label of a column while the file is read, beside the label's code
    whole_bytes: int = 0  # bytes that reading takes, whatever the columns
    mapped_bytes: int = 0
    array: np.ndarray | None = None  # memory map of the labels


def label_shape(
    path: Path_,
    *,
    columns: Any = None,
    exclude: Any = None,
    key: str | None = None,
    id_column: Any = None,
    sep: str | None = None,
    header: bool | None = None,
    **others: Any,
) -> LabelShape | None:
    """Return the shape of the labels in a file without reading them; None for kinds of files without a header.

    Parameters and errors are those of `gpuens.io.read_labels`; ``others`` have no influence. The number of objects in a
    text table is an estimate from its first lines.
    """
    kind = paths.file_kind(path, INPUTS)
    paths.check_readable(path, folder=kind in FOLDERS)
    with checks.recorded():  # the reader will repeat the warnings
        outline = _outline(path, kind, key, sep, header)
    if outline is None:
        return None
    chosen, ids = choose_columns(outline.names, columns, exclude, id_column)
    of_object = sum(outline.label_bytes[m] for m in chosen) + NAME_BYTES * (ids is not None)
    read_bytes = outline.whole_bytes + round(of_object * outline.n_objects)
    shape = LabelShape(outline.n_objects, len(chosen), None, None, read_bytes, outline.mapped_bytes)
    if outline.array is None:
        return shape
    return shape._replace(sample=lambda: sample_rows(outline.array)[:, chosen])


def _outline(path: Path_, kind: str, key: str | None, sep: str | None, header: bool | None) -> Outline | None:
    if kind in ANNOTATED:
        return None
    if kind in TEXTS:
        from gpuens.io.text import outline

        found = outline(path, "\t" if kind.startswith(".tsv") else ",", sep=sep, header=header)
        if found is None:
            return None
        names, n_objects, n_bytes = found
        held = (PANDAS_BYTES + n_bytes, 0) if kind.endswith(".gz") else (PANDAS_BYTES, n_bytes)
        return Outline(names, n_objects, [TEXT_LABEL_BYTES] * len(names), *held)
    if kind == ".parquet":
        n_objects, schema, index = parquet_header(path)
        fields = [field for field in schema if field.name not in index]
        of_labels = [_parquet_bytes(field.type) for field in fields]
        return Outline([field.name for field in fields], n_objects, of_labels, PANDAS_BYTES)
    if kind == ".npz":
        headers = npz_headers(path)
        chosen = npz_key(headers, key)
        if chosen is None:  # each array is a clustering
            (n_objects,) = {math.prod(each.shape) for each in headers.values()}
            return Outline(list(headers), n_objects, [each.dtype.itemsize for each in headers.values()])
        return _of_array(headers[chosen].shape, headers[chosen].dtype)
    if kind == ".zarr":
        array = open_zarr(path)
        return _of_array(array.shape, array.dtype)
    open_file(path, kind, key, sep=sep, header=header, missing=None)  # refuses options of other kinds of files
    with paths.reading(path):
        array = open_npy(path)
    return _of_array(array.shape, array.dtype)._replace(
        label_bytes=[0] * math.prod(array.shape[1:]), mapped_bytes=array.nbytes, array=array.reshape(len(array), -1)
    )


def _of_array(shape: tuple[int, ...], dtype: Any) -> Outline:
    shape = (*shape, 1) if len(shape) == 1 else shape
    checks.check_label_shape(shape, columns_are_clusterings=True)
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

"""Encoding of labels: the clusters of each clustering are numbered 0 … k_m - 1 in the order of their label values.

    labels ─▶ split_columns ─▶ Columns ─▶ encode_columns ─▶ codes (N, M) in the smallest dtype, and label values

    columns are                                  codes are read from
    an array of numbers in host memory           a table of labels for each clustering (labels.tables)
    an array of numbers in GPU memory            a table of bits for each clustering (labels.bit_tables)
    short columns of numbers in host memory      such tables, for many columns at once
    anything else                                the sorted values of one column after the other (labels.values)

NumPy's functions dispatch to CuPy for arrays in GPU memory, so labels are encoded in the memory where they are.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np

from gpuens.labels import bit_tables, tables
from gpuens.labels.codes import cast_codes, codes_dtype
from gpuens.labels.values import encode_column
from gpuens.runtime import device as devices

BYTES_AT_ONCE = 2**24  # bytes for the copy and the lookup tables of columns that are encoded together


def encode_columns(columns: Any, names: list[Any], *, in_part: bool = False) -> tuple[Any, list[np.ndarray]]:
    """Return the codes (N, M) of columns in the smallest dtype that fits all, and the label values of each column.

    ``columns``: a list of M columns, or an array (M, N). ``in_part``: see `encode_column`.
    """
    if (matrix := bit_tables.matrix_to_read(columns)) is not None:
        return bit_tables.encode_matrix(matrix, names)
    if type(columns) in (np.ndarray, np.memmap) and columns.dtype.kind in "iubf":
        return tables.encode_numbers(np.asarray(columns), names)
    return _encode_each(columns, names, in_part)


def _encode_each(columns: Any, names: list[Any], in_part: bool) -> tuple[Any, list[np.ndarray]]:
    """Return the codes and label values of columns of any kind, encoded in groups of one type."""
    parts: list[Any] = []  # each (number of columns, N)
    categories: list[np.ndarray] = []
    for start, stop in _groups(columns):
        if stop - start > 1:
            group, of_each = tables.encode_numbers(np.stack(columns[start:stop]), names[start:stop])
            parts.append(group.T)
            categories += of_each
            continue
        codes, values = encode_column(columns[start], names[start], in_part=in_part)
        parts.append(codes.astype(codes_dtype(len(values)))[None])  # -1 becomes the largest code
        categories.append(devices.to_host(values))
    dtype = codes_dtype(max(map(len, categories)))
    return np.concatenate([cast_codes(part, np.dtype(dtype)) for part in parts]).T, categories


def _groups(columns: Any) -> Iterator[tuple[int, int]]:
    """Yield (start, stop) of columns that are encoded together: neighbours of one type of numbers, copied at once."""
    start, most = 0, max(1, BYTES_AT_ONCE // tables.bytes_of_a_column(len(columns[0])))
    kinds = [column.dtype.str if _is_of_numbers(column) else "" for column in columns]
    while start < len(columns):
        stop = start + 1
        while stop < min(len(columns), start + most) and kinds[stop] == kinds[start] != "":
            stop += 1
        yield start, stop
        start = stop


def _is_of_numbers(column: Any) -> bool:
    return type(column) is np.ndarray and column.dtype.kind in "iubf" and column.dtype.isnative

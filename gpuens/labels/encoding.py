"""Encoding of labels: the clusters of each clustering are numbered 0 … k_m - 1 in the order of their label values.

    labels ─▶ split_columns ─▶ Columns ─▶ encode_columns ─▶ codes (N, M) in the smallest dtype, and label values

    columns are                                  codes are read from
    an array of numbers in host memory           a table of labels for each clustering (labels.tables)
    an array of numbers in GPU memory            a table of bits for each clustering (labels.bit_tables)
    anything else                                the sorted values of one column after the other (labels.values)

NumPy's functions dispatch to CuPy for arrays in GPU memory, so labels are encoded in the memory where they are.
"""

from typing import Any

import numpy as np

from gpuens.labels import bit_tables, tables
from gpuens.labels.codes import cast_codes, codes_dtype
from gpuens.labels.values import encode_column
from gpuens.runtime import device as devices


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
    """Return the codes and label values of columns of any kind, encoded one after the other."""
    parts: list[Any] = []
    categories: list[np.ndarray] = []
    for column, name in zip(columns, names, strict=True):
        codes, values = encode_column(column, name, in_part=in_part)
        parts.append(codes.astype(codes_dtype(len(values))))  # -1 becomes the largest code
        categories.append(devices.to_host(values))
    dtype = codes_dtype(max(map(len, categories)))
    return np.stack([cast_codes(part, np.dtype(dtype)) for part in parts]).T, categories

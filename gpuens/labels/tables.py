"""Codes of label matrices in host memory, through a lookup table for each clustering.

    labels (M, N) ─▶ slots marked, one for each label value ─▶ marks numbered ─▶ codes (M, N) read from the tables

Labels of any type are read twice, in the order of their memory. If a row-major matrix were read column by column, every
cache line would be loaded once for each label in it.
"""

from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from gpuens.labels.codes import cast_codes, codes_dtype
from gpuens.labels.values import encode_column
from gpuens.runtime import checks
from gpuens.runtime.native import cpu

SLOTS = 2**12  # largest number of label values in a table
SPARE_SLOTS = 2**8  # number of label values in a table beyond the number of objects
READ = {"i": (1, 2, 4, 8), "u": (1, 2, 4, 8), "f": (4, 8)}  # bytes of the types that the extension reads


class Tables(NamedTuple):
    """Codes of each clustering by slot: label l has slot l + 1; slot 0 means missing, the last slot any other label."""

    codes: np.ndarray  # (M, slots), uint32
    values: np.ndarray  # (N_c,), int64: the label of each cluster
    n_values: np.ndarray  # (M,)
    is_odd: np.ndarray  # (M,): whether some labels have no slot of their own, so that codes and values are incomplete


def encode_numbers(columns: np.ndarray, names: list[Any]) -> tuple[np.ndarray, list[np.ndarray]]:
    """Return the codes (N, M) of an array (M, N) of numbers, and the label values of each clustering."""
    tables = tabled(columns)
    of_values, ends = np.int64 if columns.dtype.kind == "f" else columns.dtype, np.cumsum(tables.n_values).tolist()
    values = tables.values.astype(of_values)
    categories = [values[a:b] for a, b in pairwise([0, *ends])]
    odd: dict[int, np.ndarray] = {}
    for m in np.flatnonzero(tables.is_odd).tolist():
        column_codes, categories[m] = encode_column(columns[m], names[m])
        odd[m] = column_codes.astype(codes_dtype(len(categories[m])))  # -1 becomes the largest code
    codes: np.ndarray = np.empty(columns.shape, dtype=codes_dtype(max(map(len, categories))))
    write(columns, tables, codes)
    for m, column_codes in odd.items():
        codes[m] = cast_codes(column_codes, codes.dtype)
    return codes.T, categories


def bytes_of_a_column(n_objects: int) -> int:
    """Return the bytes for a column of numbers of at most 8 bytes, its table and its codes."""
    return 12 * n_objects + 4 * (min(SLOTS, n_objects + SPARE_SLOTS) + 2)


def tabled(columns: np.ndarray) -> Tables:
    """Return the tables of labels (M, N), which are numbers of any type; NaN is missing."""
    n_clusterings, n_objects = columns.shape
    exact = 2 ** (np.finfo(columns.dtype).nmant + 1) if columns.dtype.kind == "f" else SLOTS
    table = np.zeros((n_clusterings, min(SLOTS, exact, n_objects + SPARE_SLOTS) + 2), dtype=np.uint32)
    cpu.mark_slots(_readable(columns), table)
    is_odd = table[:, -1] != 0
    values, n_values = np.empty(np.count_nonzero(table), dtype=np.int64), np.empty(n_clusterings, dtype=np.int64)
    cpu.number_slots(table, values, n_values)
    return Tables(table, values[: n_values.sum()], n_values, is_odd)


def write(columns: np.ndarray, tables: Tables, codes: np.ndarray) -> None:
    """Write the codes (M, N) of labels; odd clusterings are skipped."""
    cpu.write_codes(_readable(columns), tables.codes, tables.is_odd, codes)


def _readable(columns: np.ndarray) -> np.ndarray:
    """Return labels of a type and with steps that the extension reads: the array itself, or a copy."""
    dtype = columns.dtype
    if dtype == np.bool_:
        return columns.view(np.uint8)
    if dtype.itemsize in READ[dtype.kind] and dtype.isnative and not any(s % dtype.itemsize for s in columns.strides):
        return columns
    if dtype.itemsize > 8:  # rounded to float64, some would be whole
        with np.errstate(invalid="ignore"):
            whole = columns.astype(np.int64)
        return np.where(whole == columns, whole, np.where(columns == columns, checks.MISSING - 1, checks.MISSING))
    return columns.astype({"f": np.float64, "i": np.int64, "u": np.uint64}[dtype.kind])

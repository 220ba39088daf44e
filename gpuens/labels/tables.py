"""Codes of label matrices in host memory, through a lookup table for each clustering.

    labels (M, N) ─▶ slots marked, one for each label value ─▶ marks numbered ─▶ codes (M, N) read from the tables

Labels are read twice, in the order of their memory. If a row-major matrix were read column by column, every cache line
would be loaded once for each label in it.
"""

from collections.abc import Iterator
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from gpuens.labels.codes import cast_codes, codes_dtype
from gpuens.labels.values import encode_column
from gpuens.runtime import checks
from gpuens.runtime.native import cpu

SLOTS = 2**12  # largest number of label values in a table
CONVERTED = 2**15  # labels converted to int64 at a time


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
    categories = [tables.values[a:b].astype(of_values) for a, b in pairwise([0, *ends])]
    odd: dict[int, np.ndarray] = {}
    for m in np.flatnonzero(tables.is_odd).tolist():
        column_codes, categories[m] = encode_column(columns[m], names[m])
        odd[m] = column_codes.astype(codes_dtype(len(categories[m])))  # -1 becomes the largest code
    codes: np.ndarray = np.empty(columns.shape, dtype=codes_dtype(max(map(len, categories))))
    write(columns, tables, codes)
    for m, column_codes in odd.items():
        codes[m] = cast_codes(column_codes, codes.dtype)
    return codes.T, categories


def tabled(columns: np.ndarray) -> Tables:
    """Return the tables of labels (M, N), which are numbers of any type; NaN is missing."""
    n_clusterings, n_objects = columns.shape
    exact = 2 ** (np.finfo(columns.dtype).nmant + 1) if columns.dtype.kind == "f" else SLOTS
    table = np.zeros((n_clusterings, min(SLOTS, exact, n_objects + 1024) + 2), dtype=np.uint32)
    for labels, steps, _ in _blocks(columns):
        cpu.mark_slots(labels, steps, table)
    is_odd = table[:, -1] != 0
    values, n_values = np.empty(np.count_nonzero(table), dtype=np.int64), np.empty(n_clusterings, dtype=np.int64)
    cpu.number_slots(table, values, n_values)
    return Tables(table, values[: n_values.sum()], n_values, is_odd)


def write(columns: np.ndarray, tables: Tables, codes: np.ndarray) -> None:
    """Write the codes (M, N) of labels; odd clusterings are skipped."""
    for labels, steps, first in _blocks(columns):
        cpu.write_codes(labels, steps, tables.codes, tables.is_odd, codes, first)


def _blocks(columns: np.ndarray) -> Iterator[tuple[np.ndarray, tuple[int, int], int]]:
    """Yield labels (int64, flat in the order of memory), steps to the next clustering and object, and the first object.

    Labels that are not whole numbers become -2. Labels of other dtypes are converted a block of objects at a time.
    """
    n_clusterings, n_objects = columns.shape
    if columns.dtype == np.int64 and (columns.flags.c_contiguous or columns.flags.f_contiguous):
        by_objects = columns.flags.c_contiguous
        steps = (n_objects, 1) if by_objects else (1, n_clusterings)
        yield columns.ravel("K"), steps, 0
        return
    at_once = max(1, CONVERTED // n_clusterings)
    for start in range(0, n_objects, at_once):
        some = _as_int64(columns[:, start : start + at_once])
        yield some.ravel(), (some.shape[1], 1), start


def _as_int64(labels: np.ndarray) -> np.ndarray:
    if labels.dtype.kind != "f":
        return (np.minimum(labels, labels.dtype.type(SLOTS)) if labels.dtype == np.uint64 else labels).astype(
            np.int64, "C"
        )
    with np.errstate(invalid="ignore"):
        whole = labels.astype(np.int64, "C")
    return np.where(whole == labels, whole, np.where(labels == labels, checks.MISSING - 1, checks.MISSING))

"""Codes of label matrices in host memory, through a table for each clustering.

    labels (M, N) ─▶ slots marked, one for each label value ─▶ marks numbered ─▶ codes (M, N) read from the tables

Labels are read twice, in the order of their memory. Column by column, a matrix whose rows are side by side would be
read as often as a cache line has labels.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from gpuens.runtime import checks
from gpuens.runtime.native import cpu

SLOTS = 2**12  # label values of a table
CONVERTED = 2**15  # labels at a time that are not in int64


class Tables(NamedTuple):
    """Codes by clustering and slot, which is 1 + the label; the first is "missing", the last has all other labels."""

    codes: np.ndarray  # (M, slots), uint32
    values: np.ndarray  # (N_c,), int64: the label of each cluster
    n_values: np.ndarray  # (M,)
    is_odd: np.ndarray  # (M,): whether there are labels without a slot of their own; codes and values are not all


def tabled(columns: np.ndarray) -> Tables:
    """Return the tables of labels (M, N), numbers of any type; NaN is missing."""
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
    """Write the codes (M, N) of labels, except those of odd clusterings."""
    for labels, steps, first in _blocks(columns):
        cpu.write_codes(labels, steps, tables.codes, tables.is_odd, codes, first)


def _blocks(columns: np.ndarray) -> Iterator[tuple[np.ndarray, tuple[int, int], int]]:
    """Yield labels in int64, flat in the order of their memory, their steps to the next clustering and object, and the
    first object.

    What is no whole number becomes -2. Numbers of other types are converted some objects at a time.
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

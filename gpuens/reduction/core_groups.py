"""Core groups: objects with the same label row are interchangeable, so distinct rows with counts suffice.

Rows are packed as digits of a mixed-radix number into as few 64-bit words as possible, and the distinct words are
sorted. Groups are numbered in the lexicographic order of their rows (missing labels last), so that neither the order of
the objects nor the device changes the numbering, or a tie that it decides.
"""

from typing import Any

import numpy as np

from gpuens.labels.rows import Rows, as_rows
from gpuens.reduction.base import Reduction
from gpuens.runtime import device as devices
from gpuens.runtime import kernels
from gpuens.runtime.native import cpu


class CoreGroups:
    """The exact reduction: one representative for each distinct label row.

    >>> import gpuens as ge
    >>> reduced = ge.CoreGroups().reduce([[1, 0, 0, 1], [0, 3, 3, 0], [2, 1, 1, 2]])
    >>> reduced.counts.tolist(), reduced.row_of.tolist()
    ([2, 2], [1, 0, 0, 1])
    """

    def reduce(self, labels: Any) -> Reduction:
        """Return the distinct rows in lexicographic order, their counts, and the group of each row of ``labels``.

        ``labels``: Rows, or anything that Ensemble takes.
        """
        return core_groups(as_rows(labels))

    def __repr__(self) -> str:
        return "CoreGroups()"


def core_groups(rows: Rows) -> Reduction:
    """Return the core groups of rows: O(N M) to pack, O(N) per word to look them up, O(D) per byte to sort D."""
    words = pack_rows(rows.codes, np.diff(rows.offsets) + 1, device=rows.device)
    counts = rows.counts if rows.n_objects > len(rows) else None  # rows that stand for several objects
    places, row_of, counts = (_group_words if rows.xp is np else _group_words_on_gpu)(words, counts)
    return Reduction(rows.take(places, counts), row_of)


def _group_words(words: np.ndarray, counts: np.ndarray | None) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return a row of each group (D,), in lexicographic order, each row's group (N,) and the groups' counts (D,)."""
    distinct = distinct_rows(words)
    if distinct is None:
        order, first = lexicographic(words)
        places, row_of = order[first], np.empty_like(order)
        row_of[order] = np.cumsum(first) - 1
    else:
        of_groups, group_of = distinct
        order, _ = lexicographic(words[:, of_groups])
        number = np.empty_like(order)
        number[order] = np.arange(len(order))
        places, row_of = of_groups[order], number[group_of]
    if counts is None:
        return places, row_of, np.bincount(row_of, minlength=len(places))
    summed_counts = np.zeros(len(places), dtype=np.int64)
    np.add.at(summed_counts, row_of, counts)
    return places, row_of, summed_counts


def _group_words_on_gpu(words: Any, counts: np.ndarray | None) -> tuple[Any, Any, np.ndarray]:
    xp, n_rows = devices.namespace("cuda"), words.shape[1]
    order = lexicographic_on_gpu(words)
    first = xp.zeros(n_rows, dtype=bool)
    first[:1] = True
    for word in words:
        ordered = word[order]
        first[1:] |= ordered[1:] != ordered[:-1]
    row_of = xp.empty(n_rows, dtype=np.int64)
    row_of[order] = xp.cumsum(first) - 1
    starts = xp.flatnonzero(first)
    bounds = np.append(devices.to_host(starts), n_rows)
    if counts is None:
        return order[starts], row_of, np.diff(bounds)
    reached = xp.cumsum(xp.asarray(counts)[order])[xp.asarray(bounds[1:] - 1)]
    return order[starts], row_of, np.diff(devices.to_host(reached), prepend=0)


@kernels.primitive
def pack_rows(codes: np.ndarray, radices: np.ndarray) -> np.ndarray:
    """Return the words (n_words, N), uint64, of rows: they sort like the rows, the first word first.

    Column m is a digit 0 … radices[m] - 1, of which the last stands for "missing".
    """
    word_of, columns = words_of(radices), np.ascontiguousarray(codes.T)
    words = np.empty((int(word_of[-1]) + 1, len(codes)), dtype=np.uint64)
    cpu.pack_rows(columns, word_of, radices.astype(np.uint64), words)
    return words


@pack_rows.kernel
def _(codes: Any, radices: np.ndarray, *, device: str) -> Any:
    xp = devices.namespace(device)
    word_of = words_of(radices)
    words = xp.empty((int(word_of[-1]) + 1, len(codes)), dtype=np.uint64)
    kernels.launch(
        "pack_rows", kernels.blocks(len(codes), 256), 256,
        (codes.T, xp.asarray(radices), xp.asarray(word_of), words, *codes.shape),
        device=device, CODE=kernels.c_name(codes.dtype),
    )  # fmt: skip
    return words


def words_of(radices: np.ndarray) -> np.ndarray:
    """Return the word of each column: the next one when the product of the radices would pass 2**64."""
    word_of, word, room = [], 0, 1
    for radix in radices.tolist():
        fits = room * radix <= 2**64
        word += not fits
        room = room * radix if fits else radix
        word_of.append(word)
    return np.array(word_of, dtype=np.int64)


# --- packed rows ------------------------------------------------------------------------------------------------------


def distinct_rows(words: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
    """Return the first row of each group of equal rows (D,), ascending, and the group of each row (N,), int64.

    None if nearly all rows differ.
    """
    row_of = np.empty(words.shape[1], dtype=np.int64)
    places = cpu.distinct_rows(np.ascontiguousarray(words), row_of)
    return None if places is None else (places, row_of)


def lexicographic(words: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the order (N,), int64, of the columns of words (n_words, N), and a mask of first distinct columns in it.

    The first word counts first; equal columns are in any order.
    """
    order, first = np.empty(words.shape[1], dtype=np.int64), np.empty(words.shape[1], dtype=bool)
    cpu.lexicographic(np.ascontiguousarray(words), order, first)
    return order, first


def lexicographic_on_gpu(words: Any) -> Any:
    """Return the order (N,), int64, of the columns of words (n_words, N) in GPU memory; equal columns keep their order.

    Each word is sorted alone, the last word first, because CuPy sorts one array by its digits (radix sort), but several
    keys by comparisons of elements that lie anywhere in memory (`cupy.lexsort`).
    """
    order = devices.namespace("cuda").arange(words.shape[1])
    for word in words[::-1]:
        order = order[np.argsort(word[order], kind="stable")]
    return order

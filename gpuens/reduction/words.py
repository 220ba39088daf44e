"""Distinct rows and lexicographic order of label rows packed into columns of 64-bit words."""

from typing import Any

import numpy as np

from gpuens.runtime import device as devices
from gpuens.runtime.native import cpu


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

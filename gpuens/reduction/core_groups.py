"""Core groups: objects with the same label row are interchangeable, so distinct rows with counts suffice.

Rows are packed as digits of a mixed-radix number into as few 64-bit words as possible, and the words are sorted. Groups
are numbered in the lexicographic order of their rows (missing labels last), so that neither the order of the objects
nor the device changes the numbering, or a tie that it decides.
"""

from typing import Any

import numpy as np

from gpuens import device as devices
from gpuens import kernels
from gpuens.reduction.base import Reduction
from gpuens.rows import Rows, as_rows

AT_ONCE = 2**16  # digits
SAMPLED = 4096  # rows that show whether many of them are the same


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
    """Return the core groups of rows: O(N M) to pack, O(N log N) per word to sort."""
    xp, n_rows = rows.xp, len(rows)
    words = pack_rows(rows.codes, np.diff(rows.offsets) + 1, device=rows.device)
    order = lexicographic(words) if xp is np else xp.lexsort(words[::-1])
    first = xp.zeros(n_rows, dtype=bool)
    first[:1] = True
    for word in words:
        ordered = word[order]
        first[1:] |= ordered[1:] != ordered[:-1]
    row_of = xp.empty(n_rows, dtype=np.int64)
    row_of[order] = xp.cumsum(first) - 1
    starts = xp.flatnonzero(first)
    bounds = np.append(devices.to_host(starts), n_rows)
    counts = np.diff(bounds)
    if rows.n_objects > n_rows:  # some stand for several
        reached = xp.cumsum(xp.asarray(rows.counts)[order])[xp.asarray(bounds[1:] - 1)]
        counts = np.diff(devices.to_host(reached), prepend=0)
    return Reduction(rows.take(order[starts], counts), row_of)


def lexicographic(words: np.ndarray) -> np.ndarray:
    """Return the order (N,), int64, of the columns of words (n_words, N), the first word first; equal ones in any.

    NumPy sorts one word far quicker than it sorts stably, and where nearly all rows differ the first word tells nearly
    all of them apart.
    """
    if len(words) > 1:
        some = words[0, :: max(1, words.shape[1] // SAMPLED)]
        if len(np.unique(some)) < 0.9 * len(some):
            return np.lexsort(words[::-1])
    order = np.argsort(words[0])
    if len(words) > 1:
        ordered = words[0][order]
        tied = np.zeros(len(order) + 1, dtype=bool)  # with the one before
        np.equal(ordered[1:], ordered[:-1], out=tied[1:-1])
        places = np.flatnonzero(tied[1:] | tied[:-1])  # runs of ties, which stay where they are
        some = order[places]
        order[places] = some[np.lexsort([word[some] for word in words[::-1]])]
    return order


@kernels.primitive
def pack_rows(codes: np.ndarray, radices: np.ndarray) -> np.ndarray:
    """Return the words (n_words, N), uint64, of rows: they sort like the rows, the first word first.

    Column m is a digit 0 … radices[m] - 1, of which the last stands for "missing".
    """
    word_of, n_rows = _words_of(radices), len(codes)
    worth = np.ones(len(radices), dtype=np.uint64)  # of a digit in its word
    for m in range(len(radices) - 2, -1, -1):
        if word_of[m] == word_of[m + 1]:
            worth[m] = worth[m + 1] * np.uint64(radices[m + 1])
    first, last = np.flatnonzero(np.diff(word_of, prepend=-1)), radices.astype(np.uint64) - np.uint64(1)
    words = np.empty((len(first), n_rows), dtype=np.uint64)
    step = max(1, AT_ONCE // len(radices))
    for start in range(0, n_rows, step):  # all digits of some rows, which stay in the cache
        digits = np.minimum(codes[start : start + step].T, last[:, None])
        np.add.reduceat(digits * worth[:, None], first, axis=0, out=words[:, start : start + step])
    return words


@pack_rows.kernel
def _(codes: Any, radices: np.ndarray, *, device: str) -> Any:
    xp = devices.namespace(device)
    word_of = _words_of(radices)
    words = xp.empty((int(word_of[-1]) + 1, len(codes)), dtype=np.uint64)
    kernels.launch(
        "pack_rows", kernels.blocks(len(codes), 256), 256,
        (codes.T, xp.asarray(radices), xp.asarray(word_of), words, *codes.shape),
        device=device, CODE=kernels.c_name(codes.dtype),
    )  # fmt: skip
    return words


def _words_of(radices: np.ndarray) -> np.ndarray:
    """Return the word of each column: the next one when the product of the radices would pass 2**64."""
    word_of = np.zeros(len(radices), dtype=np.int64)
    room = 1
    for m, radix in enumerate(radices.tolist()):
        fits = room * radix <= 2**64
        word_of[m] = word_of[m - 1] + (not fits) if m else 0
        room = room * radix if fits else radix
    return word_of

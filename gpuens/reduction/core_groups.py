"""Core groups: objects with the same label row are interchangeable, so the distinct rows with their counts suffice.

Rows are packed, as digits of a mixed-radix number, into as few 64-bit words as hold them, and the words are sorted.
Groups come out in the lexicographic order of their rows (a missing label after every label), so that neither the
order of the objects nor the device can change how groups are numbered, nor any tie that is decided by their numbers.
"""

import numpy as np

from gpuens import kernels
from gpuens.ensemble import Ensemble
from gpuens.reduction.base import Reduction


class CoreGroups:
    """The exact reduction: one representative for each distinct label row.

    >>> import gpuens as ge
    >>> reduced = ge.CoreGroups().reduce(ge.Ensemble([[1, 0, 0, 1], [0, 3, 3, 0], [2, 1, 1, 2]]))
    >>> reduced.weights.tolist(), reduced.membership.tolist()
    ([2, 2], [1, 0, 0, 1])
    """

    def reduce(self, ensemble: Ensemble, *, device: str = "cpu") -> Reduction:
        """Return the distinct rows in lexicographic order, their counts, and each object's row."""
        return core_groups(ensemble, device=device)

    def __repr__(self) -> str:
        return "CoreGroups()"


def core_groups(ensemble: Ensemble, *, device: str = "cpu") -> Reduction:
    """Return the core groups of an ensemble: O(N M) to pack, O(N log N) a word to sort."""
    radices = np.diff(ensemble.offsets) + 1
    words = pack_rows(ensemble.codes, radices, device=device)
    order, first = sort_words(words, device=device)
    membership = np.empty(ensemble.n_objects, dtype=np.int64)
    membership[order] = np.cumsum(first) - 1
    starts = np.flatnonzero(first)
    weights = np.diff(np.append(starts, ensemble.n_objects))
    return Reduction(ensemble.take(order[starts]), weights, membership)


@kernels.primitive
def pack_rows(codes: np.ndarray, radices: np.ndarray) -> np.ndarray:
    """Return (n_words, N) uint64: rows compare as their words do, the first word first.

    Column m contributes a digit 0 … radices[m] - 1, the last of which stands for "missing".
    """
    missing = np.iinfo(codes.dtype).max
    words: list[np.ndarray] = []
    room = 1  # how many values the current word can still be multiplied by, exclusive bound of 2**64
    for m, radix in enumerate(radices):
        digit = codes[:, m].astype(np.uint64)
        digit[codes[:, m] == missing] = radix - 1
        if not words or room * int(radix) > 2**64:
            words.append(digit)
            room = int(radix)
        else:
            words[-1] *= np.uint64(radix)
            words[-1] += digit
            room *= int(radix)
    return np.stack(words)


@kernels.primitive
def sort_words(words: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the stable lexicographic order of the rows and a mask of those that differ from the one before."""
    order = np.lexsort(words[::-1])
    first = np.zeros(words.shape[1], dtype=bool)
    first[:1] = True
    for word in words:
        ordered = word[order]
        first[1:] |= ordered[1:] != ordered[:-1]
    return order, first

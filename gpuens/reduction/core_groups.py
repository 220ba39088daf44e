"""Core groups: objects with the same label row are interchangeable, so the distinct rows with their counts suffice.

Rows are packed, as digits of a mixed-radix number, into as few 64-bit words as hold them, and the words are sorted.
Groups come out in the lexicographic order of their rows (a missing label after every label), so that neither the
order of the objects nor the device can change how groups are numbered, nor any tie that is decided by their numbers.
"""

from typing import Any

import numpy as np

from gpuens import device as devices
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

    def reduce(self, ensemble: Ensemble, counts: np.ndarray | None = None) -> Reduction:
        """Return the distinct rows in lexicographic order, their counts, and each object's row.

        ``counts`` (N,) int64: how many objects each row of the ensemble stands for, 1 if not given.
        """
        ensemble = Ensemble(ensemble)
        return core_groups(ensemble, counts, device=devices.resolve("auto", ensemble.device_kind))

    def __repr__(self) -> str:
        return "CoreGroups()"


def core_groups(ensemble: Ensemble, counts: np.ndarray | None = None, *, device: str = "cpu") -> Reduction:
    """Return the core groups of an ensemble: O(N M) to pack, O(N log N) a word to sort.

    ``counts`` (N,) int64: how many objects each row stands for already.
    """
    xp = devices.namespace(device)
    words = pack_rows(ensemble.codes_on(device), np.diff(ensemble.offsets) + 1, device=device)
    order = xp.lexsort(words[::-1])
    first = xp.zeros(ensemble.n_objects, dtype=bool)
    first[:1] = True
    for word in words:
        ordered = word[order]
        first[1:] |= ordered[1:] != ordered[:-1]
    membership = xp.empty(ensemble.n_objects, dtype=np.int64)
    membership[order] = xp.cumsum(first) - 1
    starts = xp.flatnonzero(first)
    bounds = np.append(devices.to_host(starts), ensemble.n_objects)
    weights = np.diff(bounds)
    if counts is not None:
        reached = np.concatenate([[0], np.cumsum(counts[devices.to_host(order)])])
        weights = reached[bounds[1:]] - reached[bounds[:-1]]
    return Reduction(ensemble.take(order[starts]), weights, membership)


@kernels.primitive
def pack_rows(codes: np.ndarray, radices: np.ndarray) -> np.ndarray:
    """Return (n_words, N) uint64: rows compare as their words do, the first word first.

    Column m contributes a digit 0 … radices[m] - 1, the last of which stands for "missing".
    """
    missing = np.iinfo(codes.dtype).max
    word_of = _words_of(radices)
    words = np.zeros((word_of[-1] + 1, len(codes)), dtype=np.uint64)
    for m, radix in enumerate(radices):
        digit = codes[:, m].astype(np.uint64)
        digit[codes[:, m] == missing] = radix - 1
        words[word_of[m]] *= np.uint64(radix)
        words[word_of[m]] += digit
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

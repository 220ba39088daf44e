"""Label rows in pieces, of which no process holds all: methods learn of them by sums, and leave a rule for any row.

    piece ─▶ function ─▶ summed in the pieces' order ─▶ what the method learns ─▶ rule ─▶ the label of any row

Sums are taken in one order, so that it does not matter where the pieces are, nor how many work on them.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from gpuens import contingency
from gpuens import device as devices
from gpuens.ensemble import Ensemble


class Rule(Protocol):
    """What labels any rows that are numbered as those it was learned of."""

    def __call__(self, ensemble: Ensemble, *, device: str) -> np.ndarray:
        """Return the label of each row (G,), int64, host."""


class Pieces(Protocol):
    """Label rows and how many objects each stands for; the same row may be in several pieces."""

    numbering: Ensemble
    """An ensemble without rows: the names and the numbering of the clusters."""
    n_objects: Sequence[int]
    """Of each piece."""
    n_rows: int
    """Of all pieces."""

    def each(self, function: Callable, *given: Any, own: Sequence | None = None) -> list:
        """Return ``function(ensemble, counts, *given, device=…)`` of every piece, which should be small.

        Of ``own`` each piece gets its entry, before what is given to all.
        """

    def sum(self, function: Callable, *given: Any) -> Any:
        """Return the sum of what `each` would return: arrays of one shape."""


def intersections(rows: Pieces, *, layout: str = "auto") -> Any:
    """Return the objects that each two clusters share, see `gpuens.contingency.intersections`."""
    if layout == "auto":
        layout = "dense" if 8 * rows.numbering.n_clusters**2 <= contingency.DENSE_BYTES else "sparse"
    return rows.sum(_intersections, layout)


def draw(rows: Pieces, n: int, rng: np.random.Generator) -> tuple[Ensemble, np.ndarray]:
    """Return the rows of n objects, drawn with replacement, and how often each was drawn."""
    ends = np.cumsum(rows.n_objects)
    objects = np.sort(rng.integers(ends[-1], size=n))
    starts = np.concatenate([[0], ends[:-1]])
    of_pieces = np.split(objects, np.searchsorted(objects, ends[:-1]))
    own = [some - start for some, start in zip(of_pieces, starts, strict=True)]
    codes, counts = zip(*rows.each(_drawn, own=own), strict=True)
    numbering = rows.numbering
    whole = np.asfortranarray(np.concatenate(codes))
    return Ensemble.of_codes(whole, numbering.categories, numbering.names), np.concatenate(counts)


@dataclass(frozen=True)
class Numbered:
    """A rule whose labels are numbered in the order of their first rows."""

    rule: Rule
    number: np.ndarray  # of each label of the rule
    n_labels: int  # that some row has; others come after them

    def __call__(self, ensemble: Ensemble, *, device: str) -> np.ndarray:
        found: np.ndarray = self.number[self.rule(ensemble, device=device)]
        return found


def numbered(rule: Rule, n_labels: int, rows: Pieces) -> Numbered:
    """Return a rule of ``n_labels`` labels with those of the rows first, all rows being in lexicographic order."""
    first: dict[int, tuple] = {}
    for found in rows.each(_first_rows, rule):
        for label, row in found.items():
            first[label] = min(row, first.get(label, row))
    return in_order(rule, np.array(sorted(first, key=first.__getitem__), dtype=np.int64), n_labels)


def in_order(rule: Rule, order: np.ndarray, n_labels: int) -> Numbered:
    """Return the rule with its labels numbered as they are in ``order``, and then those that are not."""
    rest = np.setdiff1d(np.arange(n_labels), order)
    return Numbered(rule, np.argsort(np.concatenate([order, rest])), len(order))


# --- what pieces are asked --------------------------------------------------------------------------------------------


def _intersections(ensemble: Ensemble, counts: np.ndarray, layout: str, *, device: str) -> Any:
    return contingency.intersections(ensemble, counts, layout=layout, device=device)


def _drawn(ensemble: Ensemble, counts: np.ndarray, objects: np.ndarray, *, device: str) -> tuple[Any, np.ndarray]:
    rows = np.searchsorted(np.cumsum(counts), objects, side="right")
    chosen, times = np.unique(rows, return_counts=True)
    return devices.to_host(ensemble.codes[chosen]), times


def _first_rows(ensemble: Ensemble, counts: np.ndarray, rule: Rule, *, device: str) -> dict[int, tuple]:
    labels, first = np.unique(rule(ensemble, device=device), return_index=True)
    rows = ensemble.codes[first].tolist()
    return {label: tuple(row) for label, row in zip(labels.tolist(), rows, strict=True)}

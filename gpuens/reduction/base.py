"""What every reduction returns."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpuens import checks
from gpuens import device as devices
from gpuens.compiled import njit
from gpuens.ensemble import Ensemble
from gpuens.rows import Rows, Rule


@dataclass(frozen=True)
class Reduction:
    """Representatives of an ensemble's objects, and the way back.

    Attributes
    ----------
    rows : Rows
        The representatives' label rows, with the cluster numbering of the full ensemble, and how many objects each
        stands for.
    row_of : array (n_objects,), int64
        The row of each object, where the work was done: its representative, or from ``len(rows)`` on one of `others`.
    others : Rows or None
        Rows that no representative stands for: a method labels them when it has labelled the representatives.
    label_by : {"mean", "sum"}
        Which similarity to a cluster's members counts in that.
    distinct : Ensemble or None
        The distinct label rows of the objects in lexicographic order, where `rows` are not these.
    row_of_distinct : ndarray or None
        The row of each.
    """

    rows: Rows
    row_of: Any
    others: Rows | None = None
    label_by: str = "mean"
    distinct: Ensemble | None = None
    row_of_distinct: np.ndarray | None = None

    @property
    def ensemble(self) -> Ensemble:
        return self.rows.ensemble

    @property
    def counts(self) -> np.ndarray:
        return self.rows.counts

    @property
    def covers_all(self) -> bool:
        """Whether every object has a representative."""
        return self.others is None

    @property
    def n_representatives(self) -> int:
        return len(self.rows)

    @property
    def n_rows(self) -> int:
        """Representatives and others together."""
        return len(self.rows) + (0 if self.others is None else len(self.others))

    def expand(self, labels: Any, rule: Rule | None = None) -> Any:
        """Return the label of each object, where `row_of` is.

        ``labels`` are those of the representatives, and of the others too unless a ``rule`` labels these.
        """
        labels = devices.native(labels)
        if self.others is not None and rule is not None:
            labels = np.concatenate([labels, rule(self.others)])
        checks.check_one_per_row(labels, self.n_rows, "labels")
        return self.look_up(labels)

    def of_rows(self, function: Callable[[Rows], np.ndarray]) -> Any:
        """Return what a function gives for the row of each object, worked out once for each row."""
        parts = [function(self.rows)] + ([] if self.others is None else [function(self.others)])
        return self.look_up(np.concatenate(parts))

    def look_up(self, values: Any) -> Any:
        """Return ``values[row_of]``: what belongs to the row of each object, where `row_of` is."""
        return devices.move(values, devices.kind_of(self.row_of))[self.row_of]

    def find(self, rows: Rows) -> np.ndarray:
        """Return the row that objects with such label rows had (G,), int64; -1 where no object had them."""
        known, row_of = self.rows.ensemble if self.distinct is None else self.distinct, self.row_of_distinct
        places = last_not_after(rows.ensemble.codes, known.codes)
        found = places if row_of is None else row_of[places]
        same: np.ndarray = (known.codes[places] == rows.ensemble.codes).all(axis=1)
        return np.where(same, found, -1)


def check_reduced(found: Any, reduction: Any) -> Reduction:
    """Return what a reduction gave, or refuse it if it is no `Reduction`."""
    if not isinstance(found, Reduction):
        raise TypeError(
            f"reduction {checks.shown(reduction)} gave {checks.shown(found)}, but reduce(rows) must return a "
            "gpuens.Reduction."
        )
    return found


def last_not_after(rows: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Return the last of other rows, which are in lexicographic order, that does not come after each row; 0 if none."""
    places = np.empty(len(rows), dtype=np.int64)
    rows, others = np.ascontiguousarray(rows), np.ascontiguousarray(others)
    devices.over_ranges(lambda a, b: _search(rows[a:b], others, places[a:b]), len(rows), grain=4096)
    return places


@njit(cache=True, nogil=True)
def _search(rows, others, places):
    for i in range(len(rows)):
        low, high = 0, len(others)
        while high - low > 1:
            middle = (low + high) // 2
            m = 0
            while m < rows.shape[1] and rows[i, m] == others[middle, m]:
                m += 1
            if m == rows.shape[1] or rows[i, m] > others[middle, m]:
                low = middle
            else:
                high = middle
        places[i] = low

"""The class `Reduction`, which every reduction returns, and the protocol of reductions."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from gpuens.labels.codes import first_objects_of, numbers_by_size
from gpuens.labels.ensemble import Ensemble
from gpuens.labels.incidence import label_weights
from gpuens.labels.rows import Rows, Rule
from gpuens.reduction.find import find_rows
from gpuens.runtime import checks
from gpuens.runtime import device as devices
from gpuens.runtime.device import Array


@dataclass(frozen=True)
class Reduction:
    """Representatives of an ensemble's objects, and the mapping from objects to representatives.

    Attributes
    ----------
    rows : Rows
        The representatives' label rows, in the cluster numbering of the full ensemble, with counts.
    row_of : array (n_objects,), int64
        The row of each object, on the device of the rows: its representative, or ``len(rows) + i`` for row i of
        `unrepresented`.
    unrepresented : Rows or None
        Rows without a representative, labelled after the representatives.
    label_by : {"mean", "sum"}
        The similarity to a cluster's members that labels them.
    distinct : Ensemble or None
        The distinct label rows of the objects in lexicographic order; None if they are `rows`.
    row_of_distinct : ndarray or None
        The row of each distinct label row.
    counts_of_distinct : ndarray or None
        The number of objects of each distinct label row; None if each object counts once.
    rows_decide : bool
        Whether objects of equal label rows have equal labels, as they do without neighbours.
    """

    rows: Rows
    row_of: Array
    unrepresented: Rows | None = None
    label_by: str = "mean"
    distinct: Ensemble | None = None
    row_of_distinct: np.ndarray | None = None
    counts_of_distinct: np.ndarray | None = None
    rows_decide: bool = True

    @property
    def ensemble(self) -> Ensemble:
        return self.rows.ensemble

    @property
    def counts(self) -> np.ndarray:
        return self.rows.counts

    @property
    def covers_all(self) -> bool:
        """Whether every object has a representative."""
        return self.unrepresented is None

    @property
    def n_representatives(self) -> int:
        return len(self.rows)

    @property
    def n_rows(self) -> int:
        """The number of representatives plus the number of rows without a representative."""
        return len(self.rows) + (0 if self.unrepresented is None else len(self.unrepresented))

    def groups(self) -> "Reduction":
        """Return the core groups of the objects: their distinct rows with counts, and the row of each object."""
        if self.distinct is None or self.row_of_distinct is None:
            return self
        # `rows` and `unrepresented` together are the distinct rows, in another order
        row_of = np.argsort(self.row_of_distinct)[devices.to_host(self.row_of)]
        counts = np.bincount(row_of) if self.counts_of_distinct is None else self.counts_of_distinct
        return Reduction(Rows.of(self.distinct, counts, self.rows.device), row_of)

    def expand(self, labels: Any, rule: Rule | None = None) -> Array:
        """Return the label of each object, in the memory of `row_of`.

        ``labels`` are those of the representatives; a ``rule`` labels the others, or ``labels`` include theirs.
        """
        return self.look_up(self._label_all_rows(labels, rule))

    def by_size(
        self, labels: Any, n_clusters: int, rule: Rule | None = None, *, weighted: bool = False
    ) -> tuple[np.ndarray, Array]:
        """Return the number of each cluster by size (k,), host, and the label of each object in this numbering.

        Parameters are those of `expand`. If ``weighted``, the counts of rows are weights of objects, and so are sizes.
        """
        of_rows = self._label_all_rows(labels, rule)
        sizes = self._sizes(of_rows, n_clusters, weighted)
        numbers = numbers_by_size(sizes, lambda: self._first_objects(of_rows, n_clusters))
        return numbers, self.look_up(devices.move(numbers, devices.kind_of(of_rows))[of_rows])

    def _label_all_rows(self, labels: Any, rule: Rule | None) -> Array:
        """Return the label of each representative, and of each row without a representative."""
        labels = devices.native(labels)
        if self.unrepresented is not None and rule is not None:
            labels = np.concatenate([devices.to_host(labels), rule(self.unrepresented)])
        checks.check_one_per_row(labels, self.n_rows, "labels")
        return labels

    def _sizes(self, labels: Array, n_clusters: int, weighted: bool) -> np.ndarray:
        """Return the size of each cluster (k,), host, from the labels (n_rows,) of all rows."""
        counts = self.counts_of_distinct
        if counts is None:
            counts = np.concatenate([rows.counts for rows in (self.rows, self.unrepresented) if rows is not None])
            if not weighted and counts.sum() != len(self.row_of):  # a reduction whose rows do not count objects
                counts = np.bincount(devices.to_host(self.row_of), minlength=self.n_rows)
        elif self.row_of_distinct is not None:
            labels = labels[devices.move(self.row_of_distinct, devices.kind_of(labels))]
        kind = devices.kind_of(labels)
        return devices.to_host(label_weights(devices.move(counts, kind), labels, n_clusters, device=kind))

    def _first_objects(self, labels: Array, n_clusters: int) -> np.ndarray:
        """Return the first object of each cluster (k,), host, from the labels (n_rows,) of all rows."""
        return first_objects_of(self.look_up(labels), n_clusters)

    def of_rows(self, function: Callable[[Rows], np.ndarray]) -> Array:
        """Return the value of a function at the row of each object; the function is computed once per row."""
        parts = [function(self.rows)] + ([] if self.unrepresented is None else [function(self.unrepresented)])
        return self.look_up(np.concatenate(parts))

    def look_up(self, values: Any) -> Array:
        """Return ``values[row_of]``, the value of each object's row, in the memory of `row_of`."""
        return devices.move(values, devices.kind_of(self.row_of))[self.row_of]

    def find(self, rows: Rows) -> np.ndarray:
        """Return the number in this reduction of each given label row, (G,) int64; -1 if no object has the row.

        Where rows do not decide, the result is -1 for all of them.
        """
        if not self.rows_decide:
            return np.full(len(rows), -1)
        sorted_rows, row_of = self.rows.ensemble if self.distinct is None else self.distinct, self.row_of_distinct
        places = devices.to_host(find_rows(rows.codes, sorted_rows.codes_on(rows.device), device=rows.device))
        return places if row_of is None else np.where(places < 0, -1, row_of[places])


class Reducer(Protocol):
    """Protocol of reductions, such as `gpuens.Sample`: any object with this method."""

    def reduce(self, rows: Rows, /) -> Reduction: ...


def check_reduced(reduced: Any, reduction: Any) -> Reduction:
    """Return the result of a reduction; raise TypeError if it is no `Reduction`."""
    if not isinstance(reduced, Reduction):
        raise TypeError(
            f"reduction {checks.shown(reduction)} gave {checks.shown(reduced)}, but reduce(rows) must return a "
            "gpuens.Reduction."
        )
    return reduced

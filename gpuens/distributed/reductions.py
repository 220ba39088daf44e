"""Reductions of objects in chunks; the labels of a chunk are looked up when the chunk is computed."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from gpuens.distributed import graph, worker
from gpuens.labels.codes import numbers_by_size
from gpuens.labels.ensemble import Ensemble
from gpuens.labels.rows import Numbered, Rows, Rule, sizes_by_rule
from gpuens.reduction import Reduction
from gpuens.runtime import checks
from gpuens.runtime import device as devices


class ChunkedReduction(Reduction):
    """A reduction of the core groups of all chunks, in which `row_of` is an array in chunks."""

    chunks: Any

    def __init__(self, reduced: Reduction, chunks: Any, row_of_group: np.ndarray | None = None) -> None:
        state = {
            "rows": reduced.rows,
            "unrepresented": reduced.unrepresented,
            "label_by": reduced.label_by,
            "chunks": chunks,
        }
        if row_of_group is not None:
            state |= {"distinct": chunks.groups.ensemble, "row_of_distinct": row_of_group}
        self.__dict__.update(state)

    @property
    def row_of(self) -> devices.Array:  # in the base class, `row_of` is a field
        return self.look_up(np.arange(self.n_rows))

    @property
    def counts_of_distinct(self) -> np.ndarray:  # in the base class, a field
        return self.chunks.groups.counts

    def _first_objects(self, labels: devices.Array, n_clusters: int) -> np.ndarray:
        return self.chunks.tally(self.look_up(labels), n_clusters)[1]

    def look_up(self, values: Any) -> devices.Array:
        values = devices.to_host(values)
        return self.chunks.look_up(values if self.row_of_distinct is None else values[self.row_of_distinct])


@dataclass(frozen=True)
class ScatteredReduction(Reduction):
    """Core groups that stay in pieces; `rows` has no rows, but holds the numbering of the clusters."""

    chunks: Any = None
    device: str = "auto"  # device that labels the chunks

    @property
    def n_representatives(self) -> int:
        """The number of rows of all pieces; a row that is in several pieces is counted for each of them."""
        return sum(self.chunks.sizes)

    def look_up(self, values: Any) -> devices.Array:
        raise TypeError("the rows of this reduction stay in pieces and have no common numbers; use of_rows(function).")

    def expand(self, labels: Any, rule: Rule | None = None) -> devices.Array:
        return self.look_up(labels)

    def numbers_of(self, rule: Rule, rows: Rows, n_clusters: int) -> np.ndarray:
        """Return the number of each cluster by size (k,) for the labels that a rule gives ``rows``, all the pieces."""
        sizes = sizes_by_rule(rule, rows, n_clusters)
        return numbers_by_size(sizes, lambda: self.chunks.tally(self.of_rows(rule), n_clusters)[1])

    def of_rows(self, function: Callable[[Rows], np.ndarray]) -> devices.Array:
        like = function(self.rows)
        args = graph.embed(function), graph.embed(self.chunks.bare()), self.device
        return self.chunks.map_objects(worker.apply_to_objects, *args, dtype=like.dtype, width=like.shape[1:])


@dataclass(frozen=True)
class SampledChunks(Reduction):
    """A sample of objects in chunks; the objects of a chunk are labelled when the chunk is computed."""

    chunks: Any = None
    device: str = "auto"  # device that labels the chunks

    @property
    def covers_all(self) -> bool:
        return bool(self.rows.n_objects == self.chunks.starts[-1])

    def on(self, device: str) -> "SampledChunks":
        """Return the same reduction with the rows of the sample moved to a device."""
        return replace(self, rows=Rows.of(self.rows.ensemble, self.rows.counts, device))

    def expand(self, labels: Any, rule: Rule | None = None) -> devices.Array:
        labels = devices.to_host(labels)
        checks.check_one_per_row(labels, self.n_rows, "labels")
        return self._of_rows(labels, rule)

    def by_size(
        self, labels: Any, n_clusters: int, rule: Rule | None = None, *, weighted: bool = False
    ) -> tuple[np.ndarray, devices.Array]:
        labels = devices.to_host(labels)
        sizes, first = self.chunks.tally(self.expand(labels, rule), n_clusters)
        numbers = numbers_by_size(sizes, lambda: first)
        return numbers, self.expand(numbers[labels], None if rule is None else Numbered(rule, numbers, n_clusters))

    def of_rows(self, function: Callable[[Rows], np.ndarray]) -> devices.Array:
        return self._of_rows(function(self.rows), function)

    def _of_rows(self, values: np.ndarray, rule: Any) -> Any:
        numbering = self.chunks.bare()
        sampled = Ensemble.of_codes(self.rows.ensemble.codes, numbering.categories, numbering.names)
        args = graph.embed(worker.Sampled(sampled, values, rule, self.device))
        return self.chunks.map_objects(worker.values_by_sample, args, dtype=values.dtype, width=values.shape[1:])

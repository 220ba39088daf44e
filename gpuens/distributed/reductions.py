"""Reductions whose objects are in chunks: labels of the objects are looked up chunk by chunk, when computed."""

import copy
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from gpuens import checks
from gpuens import device as devices
from gpuens.distributed import graph, worker
from gpuens.ensemble import Ensemble
from gpuens.reduction import Reduction
from gpuens.scattered import Rule


class ChunkedReduction(Reduction):
    """A reduction whose objects are in chunks; ``of_groups`` (groups,) is the row that each core group belongs to."""

    chunks: Any
    of_groups: np.ndarray | None

    def __init__(self, rows: Reduction, chunks: Any, of_groups: np.ndarray | None = None) -> None:
        state = {"ensemble": rows.ensemble, "weights": rows.weights, "others": rows.others, "label_by": rows.label_by}
        self.__dict__.update(state, chunks=chunks, of_groups=of_groups)

    @property
    def membership(self) -> Any:  # a field of the reductions that hold it
        return self.look_up(np.arange(self.n_rows))

    def look_up(self, values: Any) -> Any:
        values = devices.to_host(values)
        return self.chunks.look_up(values if self.of_groups is None else values[self.of_groups])


@dataclass(frozen=True)
class ScatteredReduction(Reduction):
    """Core groups that stay in pieces: ``ensemble`` has no rows but their numbering, ``weights`` is empty."""

    chunks: Any = None

    @property
    def n_representatives(self) -> int:
        """Rows of all pieces, of which those that are in several count again."""
        return sum(self.chunks.sizes)

    def look_up(self, values: Any) -> Any:
        raise TypeError(
            "the rows of this reduction stay in pieces, without numbers of their own; use of_rows(function)."
        )

    def expand(self, labels: Any) -> Any:
        return self.look_up(labels)

    def of_rows(self, function: Callable[[Ensemble], np.ndarray]) -> Any:
        like = function(self.ensemble)
        given = graph.embed(function), graph.embed(self.chunks.bare())
        return self.chunks.of_chunks(worker.of_own_rows, *given, dtype=like.dtype, width=like.shape[1:])


@dataclass(frozen=True)
class Ruled:
    """A rule, where the estimator is told to work."""

    rule: Rule
    device: str

    def __call__(self, rows: Ensemble) -> np.ndarray:
        return self.rule(rows, device=devices.resolve(self.device, rows.device_kind))


@dataclass(frozen=True)
class SampledChunks(Reduction):
    """A sample of objects in chunks: rows that are not in it are labelled chunk by chunk, when labels are computed."""

    chunks: Any = None
    estimator: Any = None

    @property
    def covers_all(self) -> bool:
        return int(self.weights.sum()) == self.chunks.starts[-1]

    def expand(self, labels: Any) -> Any:
        labels = devices.to_host(labels)
        checks.check_one_per_row(labels, self.n_rows, "labels")
        estimator = copy.copy(self.estimator)  # as it is now, without what holds on to chunks, of earlier fits too
        for name in ("reduction_", "labels_"):
            estimator.__dict__.pop(name, None)
        device = devices.resolve(estimator.device, self.ensemble.device_kind)
        others = partial(worker.label_others, estimator, self.bare(), labels, device)
        return self._of_rows(labels, others)

    def of_rows(self, function: Callable[[Ensemble], np.ndarray]) -> Any:
        return self._of_rows(function(self.ensemble), function)

    def bare(self) -> Reduction:
        """Return the sample as tasks can take it."""
        rows, numbering = self.ensemble, self.chunks.bare()
        ensemble = Ensemble.of_codes(rows.codes, numbering.categories, numbering.names)
        return Reduction(ensemble, self.weights, None, label_by=self.label_by)

    def _of_rows(self, values: np.ndarray, others: Callable[[Ensemble], np.ndarray]) -> Any:
        given = graph.embed(worker.Sampled(self.bare(), values, others))
        return self.chunks.of_chunks(worker.of_sampled, given, dtype=values.dtype, width=values.shape[1:])

"""What every reduction returns."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpuens import checks
from gpuens import device as devices
from gpuens.ensemble import Ensemble


@dataclass(frozen=True)
class Reduction:
    """Representatives of an ensemble's objects, and the way back.

    Attributes
    ----------
    ensemble : Ensemble
        The representatives' label rows, with the cluster numbering of the full ensemble.
    weights : ndarray (n_representatives,), int64
        How many objects each stands for; in host memory.
    membership : array (n_objects,), int64
        The row of each object, where the work was done: its representative, or from ``len(weights)`` on one of
        `others`.
    others : Ensemble or None
        Rows that no representative stands for: a method labels them when it has labelled the representatives.
    label_by : {"mean", "sum"}
        Which similarity to a cluster's members counts in that.
    """

    ensemble: Ensemble
    weights: np.ndarray
    membership: Any
    others: Ensemble | None = None
    label_by: str = "mean"

    @property
    def covers_all(self) -> bool:
        """Whether every object has a representative."""
        return self.others is None

    @property
    def n_representatives(self) -> int:
        return len(self.weights)

    @property
    def n_rows(self) -> int:
        """Representatives and others together."""
        return len(self.weights) + (0 if self.others is None else len(self.others))

    def expand(self, labels: Any) -> Any:
        """Return the label of each object, where `membership` is, from those of the representatives and the others."""
        labels = devices.native(labels)
        checks.check_one_per_row(labels, self.n_rows, "labels")
        return self.look_up(labels)

    def of_rows(self, function: Callable[[Ensemble], np.ndarray]) -> Any:
        """Return what a function gives for the row of each object, worked out once for each row."""
        parts = [function(self.ensemble)] + ([] if self.others is None else [function(self.others)])
        return self.look_up(np.concatenate(parts))

    def look_up(self, values: Any) -> Any:
        """Return ``values[membership]``: what belongs to the row of each object, where `membership` is."""
        return devices.move(values, devices.kind_of(self.membership))[self.membership]


def check_reduced(found: Any, reduction: Any) -> Reduction:
    """Return what a reduction gave, or refuse it if it is no `Reduction`."""
    if not isinstance(found, Reduction):
        raise TypeError(
            f"reduction {checks.shown(reduction)} gave {checks.shown(found)}, but reduce(ensemble) must return a "
            "gpuens.Reduction."
        )
    return found

"""What every reduction returns."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from gpuens import device as devices
from gpuens import validation
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
    def n_rows(self) -> int:
        """Representatives and others together."""
        return len(self.weights) + (0 if self.others is None else len(self.others))

    def expand(self, labels: Any) -> Any:
        """Return the label of each object, where `membership` is, from those of the representatives and the others."""
        labels = devices.move(labels, devices.kind_of(self.membership))
        validation.one_per_row(labels, self.n_rows, "labels")
        return labels[self.membership]

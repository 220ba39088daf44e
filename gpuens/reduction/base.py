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
        The representative of each object; where the work was done.
    """

    ensemble: Ensemble
    weights: np.ndarray
    membership: Any

    def expand(self, labels: Any) -> Any:
        """Return the label of each object, where `membership` is, from the labels of the representatives."""
        labels = devices.move(labels, devices.kind_of(self.membership))
        validation.one_per_row(labels, len(self.weights), "labels")
        return labels[self.membership]

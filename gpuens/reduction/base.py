"""What every reduction returns."""

from dataclasses import dataclass

import numpy as np

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
        How many objects each stands for.
    membership : ndarray (n_objects,), int64
        The representative of each object.
    """

    ensemble: Ensemble
    weights: np.ndarray
    membership: np.ndarray

    def expand(self, labels: np.ndarray) -> np.ndarray:
        """Return the label of each object from the labels of the representatives."""
        labels = np.asarray(labels)
        validation.one_per_row(labels, len(self.weights), "labels")
        return labels[self.membership]

"""WEAC (Huang, Lai & Wang, Neurocomputing 170, 2015): linkage on co-association weighted by agreement."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from gpuens import checks, contingency
from gpuens.methods.base import Consensus
from gpuens.partition import Partitioner
from gpuens.partition.linkage.partitioners import linkage
from gpuens.similarity import Coassociation, Diagonal, Measure


class WEAC(Consensus):
    """Weighted evidence accumulation: S = diag(w) / Σ w, with w_m = (CAI_m / max CAI)^β and CAI_m the mean NMI.

    Parameters
    ----------
    beta : float from 0 to 9
        Exponent of the agreement; the attribute ``weights_`` (n_clusterings,) is w.
    linkage : {"average", "single", "complete"}
    distance_threshold : float > 0, optional; as in `gpuens.EAC`

    >>> import gpuens as ge
    >>> ge.WEAC(2).fit_predict([[0, 0, 0, 1, 1, 1], [0, 0, 1, 2, 2, 2], [0, 0, 0, 0, 1, 1]]).tolist()
    [0, 0, 0, 1, 1, 1]
    """

    def __init__(
        self, n_clusters: int | None = None, *, beta: float = 2.0, linkage: str = "average",
        distance_threshold: float | None = None, reduction: Any = None, device: str = "auto",
    ) -> None:  # fmt: skip
        self.n_clusters, self.beta, self.linkage = n_clusters, beta, linkage
        self.distance_threshold, self.reduction, self.device = distance_threshold, reduction, device

    def _parts(self) -> tuple[Measure, Partitioner]:
        return ByAgreement(self.beta), linkage(self.linkage, self.distance_threshold)


@dataclass(frozen=True)
class ByAgreement(Measure):
    beta: float = 2.0
    kind = "diagonal"

    def __call__(self, rows: Any, features: Any = None) -> Diagonal:
        agreement = contingency.agreement(rows, average="max")
        others = np.where(np.isnan(agreement), 0.0, agreement).sum(axis=1) - 1
        weights = np.maximum(others / max(others.max(), 1e-300), 1e-9) ** checks.check_between(self.beta, "beta", 0, 9)
        return Diagonal(Coassociation(weights)(rows).weights, rows.offsets, weights=weights)

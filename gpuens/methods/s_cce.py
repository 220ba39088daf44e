"""S-CCE: coupled similarity and common neighbours together, weighed by how consistent the base clusterings are."""

from typing import Any

import numpy as np

from gpuens import checks, contingency
from gpuens.methods.base import SimilaritySums
from gpuens.methods.coupled import CoupledConsensus, MetaClusterConsensus, NeighborhoodConsensus
from gpuens.reduction import Reduction
from gpuens.similarity import coupled, neighborhood


class SCCE(MetaClusterConsensus, NeighborhoodConsensus):
    """Soft coupled clustering ensemble: objects are as similar as μ IaOSO + (1 - μ) CCOSO (§7).

    Where the base clusterings agree (μ near 1) common neighbours matter little. Clusters are as similar as their
    objects on average, METIS makes meta-clusters of them, and each object goes to the one that it is most associated
    with: CrC-Ia for μ = 1, CrC-C for μ = 0.

    Parameters
    ----------
    n_clusters : int
        Clusters wanted, at most the number of distinct label rows.
    mu : float in [0, 1], optional
        None is the consistency of the base clusterings: the mean adjusted Rand index of two of them, 0 if negative.
    theta : float in [0, 1], optional
        From which IaOSO on two objects are neighbours; None is the mean over all pairs of objects.
    weights : array (n_clusterings,), optional
        λ: what each clustering counts for in the coupling, such as its quality where that is known; equal if not given.
    imbalance : float > 0
        By how much of the average METIS may make a part heavier. Equal parts cost accuracy where classes are unequal.
    random_state : int, None or numpy.random.Generator
        For METIS; the same seed gives the same labels.
    reduction : optional
        An object with ``reduce(ensemble)``, such as ``Sample(10_000)``; None is core groups, which is exact.
    device : {"auto", "cpu", "cuda", "emulated"}

    Attributes
    ----------
    labels_, n_clusters_, reduction_, coupling_, theta_, meta_clusters_, membership_
        See `gpuens.methods.base` and `gpuens.methods.coupled`.
    mu_ : float

    References
    ----------
    Wang et al., "Coupled clustering ensemble by exploring data interdependence", ACM TKDD 12 (2018).

    Examples
    --------
    >>> import gpuens as ge
    >>> labels = [[0, 0, 0, 1, 1, 1], [0, 0, 1, 2, 2, 2], [0, 0, 0, 0, 1, 1]]
    >>> est = ge.SCCE(n_clusters=2).fit(labels)
    >>> est.labels_.tolist(), round(est.mu_, 2)
    ([0, 0, 0, 1, 1, 1], 0.36)
    """

    def __init__(
        self,
        n_clusters: int | None = None,
        *,
        mu: float | None = None,
        theta: float | None = None,
        weights: Any = None,
        imbalance: float = 0.03,
        random_state: Any = 0,
        reduction: Any = None,
        device: str = "auto",
    ) -> None:
        super().__init__(
            n_clusters,
            weights=weights,
            imbalance=imbalance,
            random_state=random_state,
            reduction=reduction,
            device=device,
        )
        self.mu = mu
        self.theta = theta

    def _check_parameters(self) -> None:
        super()._check_parameters()
        checks.check_fraction(self.mu, "mu", "the consistency of the base clusterings")

    def _similarity_of_clusters(self, reduced: Reduction, device: str) -> np.ndarray:
        rows, counts = reduced.ensemble, reduced.weights
        blocks = self._couple(reduced, device)
        near = self._neighborhoods(reduced, blocks, device)
        self.mu_ = consistency(reduced, device) if self.mu is None else float(self.mu)
        by_similarity = coupled.between_clusters(rows, counts, blocks, device=device)
        return self.mu_ * by_similarity + (1.0 - self.mu_) * neighborhood.between_clusters(near)

    def _similarity_sums(self, reduced: Reduction, labels: np.ndarray, device: str) -> SimilaritySums:
        similar = CoupledConsensus._similarity_sums(self, reduced, labels, device)
        common, n_clusterings = self._common_neighbor_sums(reduced, labels, device), len(self.coupling_)
        return lambda rows: self.mu_ * (similar(rows) / n_clusterings) + (1.0 - self.mu_) * common(rows)


def consistency(reduced: Reduction, device: str) -> float:
    """Return the mean adjusted Rand index of two different clusterings, at least 0; pairs without objects left out."""
    scores = contingency.agreement(reduced.ensemble, score="ari", weights=reduced.weights, device=device)
    pairs = scores[np.triu_indices(len(scores), 1)]
    known = pairs[~np.isnan(pairs)]
    return max(0.0, float(known.mean())) if known.size else 0.0

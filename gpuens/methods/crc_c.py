"""CrC-C: meta-clusters of the clusters, by the mean number of neighbours that their objects have in common."""

from typing import Any

import numpy as np

from gpuens.methods.base import SimilaritySums
from gpuens.methods.coupled import MetaClusterConsensus, NeighborhoodConsensus
from gpuens.reduction import Reduction
from gpuens.similarity import neighborhood


class CrCC(MetaClusterConsensus, NeighborhoodConsensus):
    """Coupled cluster-based coupling: clusters are as similar as their objects' mean CCOSO (eq 24).

    METIS makes meta-clusters of them, and each object goes to the one that it is most associated with, as in MCLA. The
    neighbourhoods of all distinct rows are gone through a piece at a time, O(G² M) similarities in O(G) memory.

    Parameters
    ----------
    n_clusters : int
        Clusters wanted, at most the number of distinct label rows.
    theta : float in [0, 1], optional
        From which IaOSO on two objects are neighbours; None is the mean over all pairs of objects.
    weights : array (n_clusterings,), optional
        λ: what each clustering counts for in the coupling; equal if not given.
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

    References
    ----------
    Wang et al., "Coupled clustering ensemble by exploring data interdependence", ACM TKDD 12 (2018).

    Examples
    --------
    >>> import gpuens as ge
    >>> labels = [[0, 0, 0, 1, 1, 1], [0, 0, 1, 1, 1, 1], [0, 0, 1, 1, 2, 2]]
    >>> est = ge.CrCC(n_clusters=2).fit(labels)
    >>> est.labels_.tolist(), est.membership_.round(2)[2].tolist()
    ([0, 0, 0, 1, 1, 1], [0.6, 0.4])
    """

    def __init__(
        self,
        n_clusters: int | None = None,
        *,
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
        self.theta = theta

    def _similarity_of_clusters(self, reduced: Reduction, device: str) -> np.ndarray:
        near = self._neighborhoods(reduced, self._couple(reduced, device), device)
        return neighborhood.between_clusters(near)

    def _similarity_sums(self, reduced: Reduction, labels: np.ndarray, device: str) -> SimilaritySums:
        return self._common_neighbor_sums(reduced, labels, device)

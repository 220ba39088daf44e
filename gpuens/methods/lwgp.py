"""LWGP: transfer cut of the bipartite graph whose edges weigh ECI."""

from typing import Any

import numpy as np

from gpuens import checks
from gpuens.contingency import entropy_of
from gpuens.methods.hbgf import HBGF
from gpuens.reduction import Reduction
from gpuens.scattered import Pieces, intersections
from gpuens.similarity.coassociation import eci, eci_from_entropy


class LWGP(HBGF):
    """Locally weighted graph partitioning: objects and clusters in one graph, cut by transfer cut.

    The edge between an object and its cluster weighs the cluster's ECI (eq 10).

    Parameters
    ----------
    n_clusters : int
        Clusters wanted, at most the number of distinct label rows.
    theta : float > 0
        How mildly a cluster's uncertainty is punished; the paper recommends [0.2, 1] and uses 0.4.
    n_init : int
        Restarts of the final k-means.
    random_state : int or numpy.random.Generator
        For the final k-means; the same seed gives the same labels.
    reduction : optional
        An object with ``reduce(ensemble)``; None is core groups, which is exact.
    device : {"auto", "cpu", "cuda", "emulated"}

    Attributes
    ----------
    eci_ : ndarray (N_c,), float64
        The index of every cluster, numbered as in `gpuens.Ensemble`.
    labels_, n_clusters_, reduction_
        See `gpuens.methods.base`.

    References
    ----------
    Huang, Wang & Lai, "Locally weighted ensemble clustering", IEEE Transactions on Cybernetics 48 (2018) 1460-1473.

    Examples
    --------
    >>> import gpuens as ge
    >>> labels = [[0, 0, 0, 1, 1, 1], [0, 0, 1, 1, 2, 2], [0, 0, 0, 0, 1, 1]]
    >>> ge.LWGP(n_clusters=2).fit_predict(labels).tolist()
    [0, 0, 0, 0, 1, 1]
    """

    def __init__(
        self,
        n_clusters: int | None = None,
        *,
        theta: float = 0.4,
        n_init: int = 10,
        random_state: Any = 0,
        reduction: Any = None,
        device: str = "auto",
    ) -> None:
        super().__init__(n_clusters, n_init=n_init, random_state=random_state, reduction=reduction, device=device)
        self.theta = theta

    def _check_parameters(self) -> None:
        super()._check_parameters()
        checks.check_real(self.theta, "theta", above=0.0)

    def _edge_weights(self, reduced: Reduction, device: str) -> np.ndarray:
        self.eci_ = eci(reduced.ensemble, self.theta, reduced.weights, device=device)
        return self.eci_

    def _edge_weights_in_pieces(self, rows: Pieces) -> np.ndarray:
        h = entropy_of(intersections(rows), rows.numbering.offsets)
        self.eci_ = eci_from_entropy(h, self.theta, rows.numbering.n_clusterings)
        return self.eci_

    def _times_similarity(self, held: np.ndarray, reduced: Reduction, device: str) -> np.ndarray:
        return self.eci_[:, None] * held

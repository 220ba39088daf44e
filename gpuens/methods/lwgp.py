"""LWGP: transfer cut of the bipartite graph with ECI as edge weights."""

from typing import Any

from gpuens.methods.base import Seeded
from gpuens.partition import Partitioner, TransferCut
from gpuens.similarity import LWCA, Measure


class LWGP(Seeded):
    """Locally weighted graph partitioning: transfer cut of the graph of objects and clusters.

    The weight of an edge between an object and its cluster is the cluster's ECI (eq 10).

    Parameters
    ----------
    theta : float > 0
        Temperature of ECI: a larger value reduces the weights of uncertain clusters less. The paper recommends 0.2 to 1
        and uses 0.4.
    weights : array (n_clusterings,), optional
        λ: the weight of each clustering, scaled to a mean of 1; equal by default.
    n_init : int
        Number of starts of the final k-means.

    Attributes
    ----------
    eci_ : ndarray (N_c,), float64
        The index of every cluster, numbered as in `gpuens.Ensemble`.
    labels_, n_clusters_, reduction_
        See `gpuens.Consensus`.

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

    cost = "G M k"
    theta: float = 0.4
    weights: Any = None
    n_init: int = 10

    def _parts(self) -> tuple[Measure, Partitioner]:
        return LWCA(self.theta, self.weights), TransferCut(self.n_init, self.random_state)

"""LWGP: transfer cut of the bipartite graph with ECI as edge weights."""

from typing import Any

from gpuens.methods.base import Consensus
from gpuens.partition import Partitioner, TransferCut
from gpuens.similarity import LWCA, Measure


class LWGP(Consensus):
    """Locally weighted graph partitioning: transfer cut of the graph of objects and clusters.

    The weight of an edge between an object and its cluster is the cluster's ECI (eq 10).

    Parameters
    ----------
    n_clusters : int, optional
        Number of clusters, at most the number of distinct label rows. None: the number that
        `gpuens.evidence.suggestion` gives.
    theta : float > 0
        Temperature of ECI: a larger value reduces the weights of uncertain clusters less. The paper recommends 0.2 to 1
        and uses 0.4.
    weights : array (n_clusterings,), optional
        λ: the weight of each clustering, scaled to a mean of 1; equal by default.
    n_init : int
        Number of starts of the final k-means.
    random_state : int or numpy.random.Generator
        For the final k-means; the same seed gives the same labels.
    reduction : optional
        An object with ``reduce(rows)``; None means core groups, an exact reduction.
    device : {"auto", "cpu", "cuda"}

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

    def __init__(
        self,
        n_clusters: int | None = None,
        *,
        theta: float = 0.4,
        weights: Any = None,
        n_init: int = 10,
        random_state: Any = 0,
        reduction: Any = None,
        device: str = "auto",
    ) -> None:
        self.n_clusters, self.theta, self.weights, self.n_init = n_clusters, theta, weights, n_init
        self.random_state, self.reduction, self.device = random_state, reduction, device

    def _parts(self) -> tuple[Measure, Partitioner]:
        return LWCA(self.theta, self.weights), TransferCut(self.n_init, self.random_state)

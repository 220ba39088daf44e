"""HBGF: transfer cut of the unweighted bipartite graph."""

from typing import Any

from gpuens.methods.base import Consensus
from gpuens.partition import Partitioner, TransferCut
from gpuens.similarity import Coassociation, Measure


class HBGF(Consensus):
    """Hybrid bipartite graph formulation: transfer cut of the graph of objects and clusters, all edges of weight 1.

    Parameters
    ----------
    n_clusters : int
        Number of clusters, at most the number of distinct label rows.
    weights : array (n_clusterings,), optional
        λ: the weight of each clustering, scaled to a mean of 1; equal by default.
    n_init : int
        Starts of the final k-means.
    random_state : int or numpy.random.Generator
        For the final k-means; the same seed gives the same labels.
    reduction : optional
        An object with ``reduce(rows)``; None is core groups, which is exact.
    device : {"auto", "cpu", "cuda", "emulated"}

    Attributes
    ----------
    labels_, n_clusters_, reduction_
        See `gpuens.Consensus`.

    References
    ----------
    Fern & Brodley, "Solving cluster ensemble problems by bipartite graph partitioning", ICML 2004.
    Li, Wu & Chang, "Segmentation using superpixels: a bipartite graph partitioning approach", CVPR 2012.

    Examples
    --------
    >>> import gpuens as ge
    >>> labels = [[0, 0, 0, 1, 1, 1], [0, 0, 1, 2, 2, 2], [0, 0, 0, 0, 1, 1]]
    >>> ge.HBGF(n_clusters=2).fit_predict(labels).tolist()
    [0, 0, 0, 1, 1, 1]
    """

    def __init__(
        self, n_clusters: int | None = None, *, weights: Any = None, n_init: int = 10, random_state: Any = 0,
        reduction: Any = None, device: str = "auto",
    ) -> None:  # fmt: skip
        self.n_clusters, self.weights, self.n_init, self.random_state = n_clusters, weights, n_init, random_state
        self.reduction, self.device = reduction, device

    def _parts(self) -> tuple[Measure, Partitioner]:
        return Coassociation(self.weights), TransferCut(self.n_init, self.random_state)

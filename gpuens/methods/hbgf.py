"""HBGF: a cut of the unweighted bipartite graph."""

from typing import Any

from gpuens.methods.base import Seeded
from gpuens.partition import BipartiteMETIS, Partitioner, TransferCut
from gpuens.runtime import checks
from gpuens.similarity import Coassociation, Measure


class HBGF(Seeded):
    """Hybrid bipartite graph formulation: a cut of the graph of objects and clusters, with edges of weight 1.

    Parameters
    ----------
    weights : array (n_clusterings,), optional
        λ: the weight of each clustering, scaled to a mean of 1; equal by default.
    partition : {"transfer-cut", "metis"}
        A spectral cut by eigenvectors of clusters and k-means, or METIS, which makes parts of similar weight.
    n_init : int
        For "transfer-cut": number of starts of k-means.
    imbalance : float > 0
        For "metis": largest excess of a part's weight over the average; 0.03 means 3 %.

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

    cost = "G M k"
    weights: Any = None
    partition: str = "transfer-cut"
    n_init: int = 10
    imbalance: float = 0.03

    def _parts(self) -> tuple[Measure, Partitioner]:
        cuts: dict[str, Partitioner] = {
            "transfer-cut": TransferCut(self.n_init, self.random_state),
            "metis": BipartiteMETIS(self.imbalance, self.random_state),
        }
        return Coassociation(self.weights), cuts[checks.check_choice(self.partition, "partition", cuts)]

"""GP-MGLA: transfer cut of a graph that links objects to clusters and clusters to clusters."""

from gpuens.methods.base import Seeded
from gpuens.partition import Partitioner, TransferCut
from gpuens.similarity import AgreementLinks, Measure


class GPMGLA(Seeded):
    """Graph partitioning with multi-granularity link analysis.

    A bipartite graph has objects and clusters on one side, and clusters on the other. The weight of an object's edge to
    its cluster is α times the weight of the clustering. This weight is the agreement of the clustering with the other
    clusterings (WEAC). The weight of an edge between two clusters is computed from third clusters that overlap with
    both. The transfer cut gives the clusters of the objects.

    Parameters
    ----------
    beta : float from 0 to 9
        Exponent of the agreement.
    alpha : float from 1e-6 to 1e6
        The weight of objects' edges relative to the edges of clusters.
    n_init : int
        Number of starts of the final k-means.
    random_state : int or numpy.random.Generator
        For the final k-means; the same seed gives the same labels. The authors' program makes a single start, from the
        first object and the objects farthest from it.

    Attributes
    ----------
    weights_ : ndarray (n_clusterings,), float64
        The weight of each clustering, the largest 1.
    labels_, n_clusters_, reduction_
        See `gpuens.Consensus`.

    References
    ----------
    Huang, Lai & Wang, "Combining multiple clusterings via crowd agreement estimation and multi-granularity link
    analysis", Neurocomputing 170 (2015) 240-250.

    Examples
    --------
    >>> import gpuens as ge
    >>> labels = [[0, 0, 0, 1, 1, 1], [0, 0, 1, 2, 2, 2], [0, 0, 0, 0, 1, 1]]
    >>> ge.GPMGLA(n_clusters=2).fit_predict(labels).tolist()
    [0, 0, 0, 1, 1, 1]
    """

    cost = "G M k, C³"
    beta: float = 2.0
    alpha: float = 0.5
    n_init: int = 10

    def _parts(self) -> tuple[Measure, Partitioner]:
        return AgreementLinks(self.beta, self.alpha), TransferCut(self.n_init, self.random_state)

"""ECPCS-MC: meta-clusters of clusters, whose similarity is propagated by random walks."""

from gpuens.methods.base import Seeded
from gpuens.partition import MetaClusters, Partitioner
from gpuens.similarity import Measure, Trajectories


class ECPCSMC(Seeded):
    """Meta-clusters by a normalised cut of clusters, which are similar if random walks from them are similar.

    Clusters are linked by their Jaccard similarities. Every object, including new objects and those outside a sample,
    goes to the meta-cluster with most of its labels. If several meta-clusters have equally many of its labels, it goes
    to the one that contains the cluster with the smallest number. Only clusters are compared, so that the cost is
    linear in the number of objects.

    Parameters
    ----------
    n_steps : int from 1 to 1000
        Number of steps of a walk.
    n_init : int
        Number of starts of the k-means in the cut.

    Attributes
    ----------
    labels_, n_clusters_, reduction_, meta_clusters_, membership_
        See `gpuens.Consensus`.

    References
    ----------
    Huang et al., "Enhanced ensemble clustering via fast propagation of cluster-wise similarities", IEEE Transactions on
    Systems, Man, and Cybernetics: Systems 51 (2021) 508-520.

    Examples
    --------
    >>> import gpuens as ge
    >>> labels = [[0, 0, 0, 1, 1, 1], [0, 0, 1, 2, 2, 2], [0, 0, 0, 0, 1, 1]]
    >>> ge.ECPCSMC(n_clusters=2).fit_predict(labels).tolist()
    [0, 0, 0, 1, 1, 1]
    """

    cost = "G M k, C³"
    n_steps: int = 20
    n_init: int = 10

    def _parts(self) -> tuple[Measure, Partitioner]:
        cut = MetaClusters(random_state=self.random_state, cut="normalized", n_init=self.n_init)
        return Trajectories(self.n_steps), cut

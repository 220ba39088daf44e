"""ECPCS-HC: average linkage of objects, whose similarity is propagated between clusters by random walks."""

from gpuens.methods.base import Linkage
from gpuens.partition import AverageLinkage, Partitioner
from gpuens.similarity import Measure, Trajectories


class ECPCSHC(Linkage):
    """Enhanced co-association: two objects are similar if random walks from their clusters are similar.

    Walks follow the Jaccard similarities of all clusters. The similarity of two clusters of one clustering is the
    cosine similarity of their walks. Average linkage of the objects is exact, and stores a number for each distinct row
    and cluster. A missing label has the mean similarity of its clustering to all labels; similarities of such a
    clustering, and so `distances_`, are measured from that mean.

    Parameters
    ----------
    n_steps : int from 1 to 1000
        Number of steps of a walk.

    Attributes
    ----------
    labels_, n_clusters_, children_, distances_, lifetimes_, rest_, dendrogram_, reduction_, work_
        See `gpuens.Consensus`.

    References
    ----------
    Huang et al., "Enhanced ensemble clustering via fast propagation of cluster-wise similarities", IEEE Transactions on
    Systems, Man, and Cybernetics: Systems 51 (2021) 508-520.

    Examples
    --------
    >>> import gpuens as ge
    >>> labels = [[0, 0, 0, 1, 1, 1], [0, 0, 1, 2, 2, 2], [0, 0, 0, 0, 1, 1]]
    >>> ge.ECPCSHC(n_clusters=2).fit_predict(labels).tolist()
    [0, 0, 0, 1, 1, 1]
    """

    cost = "G C, C³"
    n_steps: int = 20

    def _parts(self) -> tuple[Measure, Partitioner]:
        return Trajectories(self.n_steps, "mean"), AverageLinkage(self.distance_threshold, self.min_size)

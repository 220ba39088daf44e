"""WEAC: linkage on co-association weighted by the agreement of the clusterings."""

from gpuens.methods.base import Linkage
from gpuens.partition import Partitioner
from gpuens.partition.linkage.partitioners import linkage
from gpuens.similarity import Agreement, Measure


class WEAC(Linkage):
    """Weighted evidence accumulation: clusterings that agree with other clusterings have more weight.

    The agreement of a clustering is its mean normalised mutual information with the other clusterings. The weight of
    the clustering in the co-association is (its agreement divided by the largest agreement) to the power β. The result
    is exact for any number of objects. The N × N matrix is not stored, except for complete linkage.

    Parameters
    ----------
    beta : float from 0 to 9
        Exponent of the agreement; at 0 this is EAC.
    linkage : {"average", "single", "complete"}
        Complete linkage stores all pairs of distinct rows.

    Attributes
    ----------
    weights_ : ndarray (n_clusterings,), float64
        The weight of each clustering, the largest 1.
    labels_, n_clusters_, children_, distances_, lifetimes_, rest_, dendrogram_, reduction_, work_
        See `gpuens.Consensus`.

    References
    ----------
    Huang, Lai & Wang, "Combining multiple clusterings via crowd agreement estimation and multi-granularity link
    analysis", Neurocomputing 170 (2015) 240-250.

    Examples
    --------
    >>> import gpuens as ge
    >>> est = ge.WEAC(n_clusters=2).fit([[0, 0, 0, 1, 1, 1], [0, 0, 1, 2, 2, 2], [0, 0, 0, 0, 1, 1]])
    >>> est.labels_.tolist(), est.weights_.round(2).tolist()
    ([0, 0, 0, 1, 1, 1], [1.0, 0.76, 0.46])
    """

    cost = "G² M, usually 2-9 % of it"
    beta: float = 2.0
    linkage: str = "average"

    def _parts(self) -> tuple[Measure, Partitioner]:
        return Agreement(self.beta), linkage(self.linkage, self.distance_threshold, self.min_size)

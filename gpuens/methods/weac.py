"""WEAC: linkage on co-association weighted by the agreement of the clusterings."""

from typing import Any

from gpuens.methods.base import Consensus
from gpuens.partition import Partitioner
from gpuens.partition.linkage.partitioners import linkage
from gpuens.similarity import Agreement, Measure


class WEAC(Consensus):
    """Weighted evidence accumulation: clusterings that agree with other clusterings have more weight.

    The agreement of a clustering is its mean normalised mutual information with the other clusterings. The weight of
    the clustering in the co-association is (its agreement divided by the largest agreement) to the power β. The result
    is exact for any number of objects. The N × N matrix is not stored, except for complete linkage.

    Parameters
    ----------
    n_clusters : int, optional
        Number of clusters, at most the number of distinct label rows. None: cut at `distance_threshold` if given,
        otherwise use the number that `gpuens.evidence.suggestion` gives.
    beta : float from 0 to 9
        Exponent of the agreement; at 0 this is EAC.
    linkage : {"average", "single", "complete"}
        Complete linkage stores all pairs of distinct rows.
    distance_threshold : float > 0, optional
        Merge only below this distance (1 - similarity); use in place of `n_clusters`.
    min_size : int, float or "auto", optional
        Least number of objects in a cluster, or least share (0, 1) of all objects. The tree is cut at the first level
        from its top with `n_clusters` branches of this size. Objects in smaller branches (`rest_`) get the label of the
        most similar cluster. "auto": a fifth of the mean size of `n_clusters` clusters, or less if the tree has no such
        cut; 1 with `distance_threshold`.
    reduction : optional
        An object with ``reduce(rows)``; None means core groups, an exact reduction.
    device : {"auto", "cpu", "cuda"}

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

    cost = "2-9 % of G² M"

    def __init__(
        self,
        n_clusters: int | None = None,
        *,
        beta: float = 2.0,
        linkage: str = "average",
        distance_threshold: float | None = None,
        min_size: int | float | str | None = None,
        reduction: Any = None,
        device: str = "auto",
    ) -> None:
        self.n_clusters, self.beta, self.linkage = n_clusters, beta, linkage
        self.distance_threshold, self.min_size = distance_threshold, min_size
        self.reduction, self.device = reduction, device

    def _parts(self) -> tuple[Measure, Partitioner]:
        return Agreement(self.beta), linkage(self.linkage, self.distance_threshold, self.min_size)

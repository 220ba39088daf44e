"""ECPCS-HC: average linkage of objects, whose similarity is propagated between clusters by random walks."""

from typing import Any

from gpuens.methods.base import Consensus
from gpuens.partition import AverageLinkage, Partitioner
from gpuens.similarity import Measure, Trajectories


class ECPCSHC(Consensus):
    """Enhanced co-association: two objects are similar if random walks from their clusters are similar.

    Walks follow the Jaccard similarities of all clusters. The similarity of two clusters of one clustering is the
    cosine similarity of their walks. Average linkage of the objects is exact, and stores a number for each distinct row
    and cluster. A missing label has the mean similarity of its clustering to all labels; similarities of such a
    clustering, and so `distances_`, are measured from that mean.

    Parameters
    ----------
    n_clusters : int, optional
        Number of clusters, at most the number of distinct label rows. None: cut at `distance_threshold` if given,
        otherwise use the number that `gpuens.evidence.suggestion` gives.
    n_steps : int from 1 to 1000
        Number of steps of a walk.
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

    def __init__(
        self,
        n_clusters: int | None = None,
        *,
        n_steps: int = 20,
        distance_threshold: float | None = None,
        min_size: int | float | str | None = None,
        reduction: Any = None,
        device: str = "auto",
    ) -> None:
        self.n_clusters, self.n_steps, self.distance_threshold = n_clusters, n_steps, distance_threshold
        self.min_size, self.reduction, self.device = min_size, reduction, device

    def _parts(self) -> tuple[Measure, Partitioner]:
        return Trajectories(self.n_steps, "mean"), AverageLinkage(self.distance_threshold, self.min_size)

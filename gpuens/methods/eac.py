"""EAC: linkage on the co-association matrix."""

from typing import Any

from gpuens.methods.base import Consensus
from gpuens.partition import Partitioner
from gpuens.partition.linkage.partitioners import linkage
from gpuens.similarity import Coassociation, Measure


class EAC(Consensus):
    """Evidence accumulation: S = I / M, cut by average, single or complete linkage.

    The similarity of two objects is the share of the clusterings that put them together. Exact for any number of
    objects, without the N × N matrix (except complete linkage).

    Parameters
    ----------
    n_clusters : int, optional
        Number of clusters, at most the number of distinct label rows. None: cut at `distance_threshold`, or without
        one where the number of clusters has the longest lifetime (`lifetimes_`; every distinct row on its own only if
        that outlasts all fewer clusters together).
    linkage : {"average", "single", "complete"}
        Complete linkage holds all pairs of distinct rows. It usually ends with dozens of clusters of similarity zero;
        cuts below that number are arbitrary and cause a warning.
    weights : array (n_clusterings,), optional
        λ: the weight of each clustering, scaled to a mean of 1; equal by default.
    distance_threshold : float > 0, optional
        Merge below this distance (1 - similarity) only; in place of `n_clusters`.
    reduction : optional
        An object with ``reduce(rows)``; None is core groups, which is exact.
    device : {"auto", "cpu", "cuda", "emulated"}

    Attributes
    ----------
    labels_, n_clusters_, children_, distances_, lifetimes_, dendrogram_, reduction_, work_
        See `gpuens.Consensus`.

    Notes
    -----
    Similarities are multiples of 1 / M, so ties are frequent. A fixed hash of the tied rows' positions in the sorted
    list of distinct rows decides them, so that neither the order of the objects nor the device changes the answer.

    References
    ----------
    Fred & Jain, "Combining multiple clusterings using evidence accumulation", IEEE TPAMI 27 (2005) 835-850.

    Examples
    --------
    >>> import gpuens as ge
    >>> labels = [[0, 0, 0, 1, 1, 1], [0, 0, 1, 2, 2, 2], [0, 0, 0, 0, 1, 1]]
    >>> est = ge.EAC(n_clusters=2).fit(labels)
    >>> est.labels_.tolist()
    [0, 0, 0, 1, 1, 1]
    >>> est.distances_.round(2).tolist()
    [0.0, 0.0, 0.33, 0.33, 0.89]
    """

    def __init__(
        self, n_clusters: int | None = None, *, linkage: str = "average", weights: Any = None,
        distance_threshold: float | None = None, reduction: Any = None, device: str = "auto",
    ) -> None:  # fmt: skip
        self.n_clusters, self.linkage, self.weights = n_clusters, linkage, weights
        self.distance_threshold, self.reduction, self.device = distance_threshold, reduction, device

    def _parts(self) -> tuple[Measure, Partitioner]:
        return Coassociation(self.weights), linkage(self.linkage, self.distance_threshold)

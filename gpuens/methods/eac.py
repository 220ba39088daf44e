"""EAC: linkage on the co-association matrix."""

from typing import Any

from gpuens.methods.base import Consensus
from gpuens.partition import Partitioner
from gpuens.partition.linkage.partitioners import linkage
from gpuens.similarity import Coassociation, Measure


class EAC(Consensus):
    """Evidence accumulation: S = I / M, cut by average, single or complete linkage.

    The similarity of two objects is the share of the clusterings that put them together; exact, for any number of
    objects, without the N × N matrix (complete linkage excepted).

    Parameters
    ----------
    n_clusters : int, optional
        Clusters wanted, at most the number of distinct label rows. None: cut where it is `distance_threshold`, else
        where the number of clusters has the longest lifetime (`lifetimes_`; as many clusters as distinct rows only if
        they outlast all fewer clusters together).
    linkage : {"average", "single", "complete"}
        Complete linkage holds all pairs of distinct rows, and usually leaves dozens of clusters with nothing but zero
        similarity between them: cuts below that number are arbitrary, and warned of.
    weights : array (n_clusterings,), optional
        λ: what each clustering counts for, scaled to a mean of 1; equal if not given.
    distance_threshold : float > 0, optional
        Merges at a distance (1 - similarity) below this are made; instead of `n_clusters`.
    reduction : optional
        An object with ``reduce(rows)``; None is core groups, which is exact.
    device : {"auto", "cpu", "cuda", "emulated"}

    Attributes
    ----------
    labels_, n_clusters_, children_, distances_, lifetimes_, dendrogram_, reduction_, work_
        See `gpuens.Consensus`.

    Notes
    -----
    Ties are everywhere when similarities are shares of M. They are decided by a fixed hash of the tied rows' places in
    the sorted list of distinct rows, so that neither the order of the objects nor the device changes the answer.

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

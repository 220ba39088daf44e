"""LWEA: average linkage on the locally weighted co-association."""

from typing import Any

from gpuens.methods.base import Consensus
from gpuens.partition import Partitioner
from gpuens.partition.linkage.partitioners import linkage
from gpuens.similarity import LWCA, Measure


class LWEA(Consensus):
    """Locally weighted evidence accumulation: S = diag(ECI) / M, cut by average linkage.

    Each cluster that two objects share counts by how little the other clusterings disagree on it (ECI, eq 10). Exact,
    for any number of objects, without the N × N matrix.

    Parameters
    ----------
    n_clusters : int, optional
        Clusters wanted, at most the number of distinct label rows. None: cut where it is `distance_threshold`, else
        where the number of clusters has the longest lifetime (`lifetimes_`; as many clusters as distinct rows only if
        they outlast all fewer clusters together).
    theta : float > 0
        How mildly a cluster's uncertainty is punished; the paper recommends [0.2, 1] and uses 0.4.
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
    eci_ : ndarray (N_c,), float64
        The index of every cluster, numbered as in `gpuens.Ensemble`.
    labels_, n_clusters_, children_, distances_, lifetimes_, dendrogram_, reduction_, work_
        See `gpuens.Consensus`.

    Notes
    -----
    Objects with equal label rows stay together. Their own similarity is Σ ECI / M < 1, which can lie below the
    similarity at which a cut is made; a literal run on the N × N matrix would then split them. No other object is
    closer to either of them, so nothing is lost but that split.

    References
    ----------
    Huang, Wang & Lai, "Locally weighted ensemble clustering", IEEE Transactions on Cybernetics 48 (2018) 1460-1473.

    Examples
    --------
    >>> import gpuens as ge
    >>> labels = [[0, 0, 0, 1, 1, 1], [0, 0, 1, 1, 2, 2], [0, 0, 0, 0, 1, 1]]
    >>> ge.LWEA(n_clusters=2).fit_predict(labels).tolist()
    [0, 0, 0, 0, 1, 1]
    """

    def __init__(
        self, n_clusters: int | None = None, *, theta: float = 0.4, linkage: str = "average", weights: Any = None,
        distance_threshold: float | None = None, reduction: Any = None, device: str = "auto",
    ) -> None:  # fmt: skip
        self.n_clusters, self.theta, self.linkage, self.weights = n_clusters, theta, linkage, weights
        self.distance_threshold, self.reduction, self.device = distance_threshold, reduction, device

    def _parts(self) -> tuple[Measure, Partitioner]:
        return LWCA(self.theta, self.weights), linkage(self.linkage, self.distance_threshold)

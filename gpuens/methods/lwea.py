"""LWEA: average linkage on the locally weighted co-association."""

from typing import Any

from gpuens.methods.base import Linkage
from gpuens.partition import Partitioner
from gpuens.partition.linkage.partitioners import linkage
from gpuens.similarity import LWCA, Measure


class LWEA(Linkage):
    """Locally weighted evidence accumulation: linkage by common clusters, weighted by their certainty.

    The similarity S of two objects is the sum of the weights of their common clusters, divided by M. The weight of a
    cluster is its ECI (eq 10). ECI is 1 if no other clustering splits the cluster, and smaller if other clusterings
    split it. The result is exact for any number of objects. The N × N matrix is not stored.

    Parameters
    ----------
    theta : float > 0
        Temperature of ECI: a larger value reduces the weights of uncertain clusters less. The paper recommends 0.2 to 1
        and uses 0.4.
    linkage : {"average", "single", "complete"}
        Complete linkage stores all pairs of distinct rows. It usually ends with dozens of clusters of similarity zero;
        a cut into fewer clusters is arbitrary and causes a warning.
    weights : array (n_clusterings,), optional
        λ: the weight of each clustering, scaled to a mean of 1; equal by default.

    Attributes
    ----------
    eci_ : ndarray (N_c,), float64
        The index of every cluster, numbered as in `gpuens.Ensemble`.
    labels_, n_clusters_, children_, distances_, lifetimes_, rest_, dendrogram_, reduction_, work_
        See `gpuens.Consensus`.

    Notes
    -----
    Objects with equal label rows stay together. Their similarity is Σ ECI / M < 1, which can be below the cut; linkage
    of the full N × N matrix would then split them. No other object is closer to these objects, so nothing else changes.

    With ``fit(labels, graph=…)``, only adjacent clusters merge, see `gpuens.EAC`.

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

    cost = "G² M, usually 2-9 % of it"
    theta: float = 0.4
    linkage: str = "average"
    weights: Any = None

    def _parts(self) -> tuple[Measure, Partitioner]:
        return LWCA(self.theta, self.weights), linkage(self.linkage, self.distance_threshold, self.min_size)

"""LWEA: average linkage on the locally weighted co-association."""

from typing import Any

import numpy as np

from gpuens import checks
from gpuens.methods.base import LinkageConsensus
from gpuens.partition import Dendrogram, average_linkage
from gpuens.reduction import Reduction
from gpuens.similarity.coassociation import eci


class LWEA(LinkageConsensus):
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
    distance_threshold : float > 0, optional
        Merges at a distance (1 - similarity) below this are made; instead of `n_clusters`.
    reduction : optional
        An object with ``reduce(ensemble)``; None is core groups, which is exact.
    device : {"auto", "cpu", "cuda", "emulated"}

    Attributes
    ----------
    eci_ : ndarray (N_c,), float64
        The index of every cluster, numbered as in `gpuens.Ensemble`.
    labels_, n_clusters_, children_, distances_, lifetimes_, dendrogram_, reduction_, work_
        See `gpuens.methods.base`.

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
        self,
        n_clusters: int | None = None,
        *,
        theta: float = 0.4,
        distance_threshold: float | None = None,
        reduction: Any = None,
        device: str = "auto",
    ) -> None:
        self.n_clusters = n_clusters
        self.theta = theta
        self.distance_threshold = distance_threshold
        self.reduction = reduction
        self.device = device

    def _check_parameters(self) -> None:
        super()._check_parameters()
        checks.check_real(self.theta, "theta", above=0.0)

    def _link(self, reduced: Reduction, device: str) -> tuple[Dendrogram, np.ndarray]:
        rows = reduced.ensemble
        self.eci_ = eci(rows, self.theta, reduced.weights, device=device)
        dendrogram = average_linkage(
            rows.codes_on(device), rows.offsets, self.eci_, reduced.weights, device=device, work=self.work_
        )
        return dendrogram, self.eci_

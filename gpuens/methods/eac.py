"""EAC: linkage on the co-association matrix."""

from typing import Any

import numpy as np

from gpuens import checks
from gpuens import device as devices
from gpuens.methods.base import LinkageConsensus
from gpuens.partition import Dendrogram, average_linkage, complete_linkage, single_linkage
from gpuens.reduction import Reduction
from gpuens.similarity.coassociation import coassociation_tile

LINKAGES = ("average", "complete", "single")


class EAC(LinkageConsensus):
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
    distance_threshold : float > 0, optional
        Merges at a distance (1 - similarity) below this are made; instead of `n_clusters`.
    reduction : optional
        An object with ``reduce(ensemble)``; None is core groups, which is exact.
    device : {"auto", "cpu", "cuda", "emulated"}

    Attributes
    ----------
    labels_, n_clusters_, children_, distances_, lifetimes_, dendrogram_, reduction_, work_
        See `gpuens.methods.base`.

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
        self,
        n_clusters: int | None = None,
        *,
        linkage: str = "average",
        distance_threshold: float | None = None,
        reduction: Any = None,
        device: str = "auto",
    ) -> None:
        self.n_clusters = n_clusters
        self.linkage = linkage
        self.distance_threshold = distance_threshold
        self.reduction = reduction
        self.device = device

    def _check_parameters(self) -> None:
        super()._check_parameters()
        checks.check_choice(self.linkage, "linkage", LINKAGES)

    def _link(self, reduced: Reduction, device: str) -> tuple[Dendrogram, np.ndarray]:
        rows, codes = reduced.ensemble, reduced.ensemble.codes_on(device)
        ones = np.ones(rows.n_clusters, dtype=np.int64)
        if self.linkage == "complete":

            def similarities_of(start: int, stop: int) -> np.ndarray:
                tile = coassociation_tile(
                    codes[start:stop], codes[start:], rows.offsets, ones.astype(np.float64), device=device
                )
                return devices.to_host(tile)

            dendrogram = complete_linkage(len(rows), similarities_of)
            n_separate = int(np.count_nonzero(dendrogram.similarities <= 0)) + 1
            if self.n_clusters is not None and self.n_clusters < n_separate:
                checks.warn(
                    f"n_clusters={self.n_clusters} cuts among {n_separate} clusters that complete linkage leaves with "
                    "zero similarity between them: which of those merged is arbitrary; average linkage does not have "
                    "this trouble."
                )
            return dendrogram, ones
        link = average_linkage if self.linkage == "average" else single_linkage
        return link(codes, rows.offsets, ones, reduced.weights, device=device, work=self.work_), ones

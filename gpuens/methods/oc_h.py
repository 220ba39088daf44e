"""OC-H: ROCK merging on common neighbours."""

from typing import Any

from gpuens.methods.base import Consensus
from gpuens.partition import ROCK, Partitioner
from gpuens.similarity import CommonNeighbors, Measure


class OCH(Consensus):
    """Hierarchical object-based coupling: clusters merge by the common neighbours of their objects (eqs 22-23).

    From the distinct label rows on, the two clusters with the largest

        link(A, B) / ((n_A + n_B)^(1 + 2f) - n_A^(1 + 2f) - n_B^(1 + 2f)),   f = (1 - θ) / (1 + θ)

    merge, where link sums CCOSO over the pairs of objects between them (Guha et al. 2000). The links of all pairs of
    distinct rows are held: beyond some twenty thousand rows pass ``reduction=Sample(…)``. Where clusters are not well
    apart it tends to one large cluster and a few small ones, as the goodness has it.

    Parameters
    ----------
    n_clusters : int
        Clusters wanted, at most the number of distinct label rows.
    threshold : float from 0 to .999999, optional
        From which IaOSO on two objects are neighbours; None is the mean over all pairs of objects.
    weights : array (n_clusterings,), optional
        λ: what each clustering counts for in the coupling; equal if not given.
    reduction : optional
        An object with ``reduce(rows)``, such as ``Sample(10_000)``; None is core groups, which is exact.
    device : {"auto", "cpu", "cuda", "emulated"}
        Where common neighbours are counted; merging is on the host.

    Attributes
    ----------
    labels_, n_clusters_, reduction_, coupling_, threshold_
        See `gpuens.Consensus`.
    merges_ : gpuens.partition.Rock
        Which rows' clusters merged, in order, and how good that was.

    Raises
    ------
    MemoryError
        Before it starts, where the links do not fit the memory budget.

    References
    ----------
    Wang et al., "Coupled clustering ensemble by exploring data interdependence", ACM TKDD 12 (2018).
    Guha, Rastogi & Shim, "ROCK: a robust clustering algorithm for categorical attributes", Information Systems 25
    (2000) 345-366.

    Examples
    --------
    >>> import gpuens as ge
    >>> labels = [[0, 0, 0, 1, 1, 1], [0, 0, 1, 2, 2, 2], [0, 0, 0, 0, 1, 1]]
    >>> ge.OCH(n_clusters=2).fit_predict(labels).tolist()
    [0, 0, 0, 1, 1, 1]
    """

    def __init__(
        self, n_clusters: int | None = None, *, threshold: float | None = None, weights: Any = None,
        reduction: Any = None, device: str = "auto",
    ) -> None:  # fmt: skip
        self.n_clusters, self.threshold, self.weights, self.reduction = n_clusters, threshold, weights, reduction
        self.device = device

    def _parts(self) -> tuple[Measure, Partitioner]:
        return CommonNeighbors(self.threshold, self.weights), ROCK(self.threshold)

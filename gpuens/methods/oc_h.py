"""OC-H: agglomerative clustering by the goodness of ROCK; links are similarities by common neighbours (CCOSO)."""

from typing import Any

from gpuens.methods.base import Method
from gpuens.partition import ROCK, Partitioner
from gpuens.similarity import CommonNeighbors, Measure


class OCH(Method):
    """Hierarchical object-based coupling: ROCK merges clusters by their objects' common neighbours (eqs 22-23).

    It starts with the distinct label rows and merges the two clusters with the largest goodness

        link(A, B) / ((n_A + n_B)^(1 + 2f) - n_A^(1 + 2f) - n_B^(1 + 2f)),   f = (1 - θ) / (1 + θ)

    where link sums CCOSO over the pairs of objects between A and B (Guha et al. 2000). The links of all pairs of
    distinct rows are stored; above twenty thousand rows, pass ``reduction=Sample(…)``. If clusters overlap, this
    goodness tends to give one large and a few small clusters, with a warning.

    Parameters
    ----------
    threshold : float from 0 to .999999, optional
        Least IaOSO of two neighbours; None means the mean over all pairs of objects.
    weights : array (n_clusterings,), optional
        λ: the weight of each clustering in the coupling; equal by default.
    device : {"auto", "cpu", "cuda"}
        Device of the counts of common neighbours; merging runs on the host.

    Attributes
    ----------
    labels_, n_clusters_, reduction_, coupling_, threshold_
        See `gpuens.Consensus`.
    merges_ : gpuens.partition.Rock
        The merges in order, with the goodness of each.

    Raises
    ------
    MemoryError
        Before work starts, if the links do not fit the memory budget.

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

    cost = "G²"
    on_gpu = "all but the last step"
    threshold: float | None = None
    weights: Any = None

    def _parts(self) -> tuple[Measure, Partitioner]:
        return CommonNeighbors(self.threshold, self.weights), ROCK(self.threshold)

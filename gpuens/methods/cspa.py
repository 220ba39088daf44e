"""CSPA: METIS cuts the graph of the co-association of objects."""

from typing import Any

from gpuens.methods.base import Consensus
from gpuens.partition import METIS, NearestMETIS, Partitioner
from gpuens.similarity import Coassociation, Measure


class CSPA(Consensus):
    """Cluster-based similarity partitioning: METIS cuts the graph of co-association into parts of similar weight.

    The graph stores all pairs of distinct rows, and needs 28 bytes for each pair. For more than twenty thousand rows,
    pass ``neighbors=16``, an approximation in which each row has edges only to the 16 most similar rows, or pass
    ``reduction=Sample(…)``. Other parameters and
    the attributes are those of `gpuens.Consensus`.

    Parameters
    ----------
    n_clusters : int, optional
        Number of clusters, at most the number of distinct label rows. None: the number that
        `gpuens.evidence.suggestion` gives.
    weights : array (n_clusterings,), optional
        λ: the weight of each clustering, scaled to a mean of 1; equal by default.
    neighbors : int from 1 to 16, optional
        The number of most similar rows to which each row is joined; None means all rows.
    imbalance : float > 0
        Largest excess of a part's weight over the average: 0.03 means 3 %.
    random_state : int, None or numpy.random.Generator
        For METIS; the same seed gives the same labels.

    References
    ----------
    Strehl & Ghosh, "Cluster ensembles", JMLR 3 (2002) 583-617.

    Examples
    --------
    >>> import gpuens as ge
    >>> ge.CSPA(2).fit_predict([[0, 0, 0, 1, 1, 1], [0, 0, 1, 2, 2, 2], [0, 0, 0, 0, 1, 1]]).tolist()
    [0, 0, 0, 1, 1, 1]
    """

    cost = "G²"

    def __init__(
        self,
        n_clusters: int | None = None,
        *,
        weights: Any = None,
        neighbors: int | None = None,
        imbalance: float = 0.03,
        random_state: Any = 0,
        reduction: Any = None,
        device: str = "auto",
    ) -> None:
        self.n_clusters, self.weights, self.neighbors, self.imbalance = n_clusters, weights, neighbors, imbalance
        self.random_state, self.reduction, self.device = random_state, reduction, device

    def _parts(self) -> tuple[Measure, Partitioner]:
        settings = self.imbalance, self.random_state
        cut = METIS(*settings) if self.neighbors is None else NearestMETIS(*settings, self.neighbors)
        return Coassociation(self.weights), cut

"""CSPA: METIS cuts the graph of the co-association of objects."""

from typing import Any

from gpuens.methods.base import Seeded
from gpuens.partition import METIS, NearestMETIS, Partitioner
from gpuens.similarity import Coassociation, Measure


class CSPA(Seeded):
    """Cluster-based similarity partitioning: METIS cuts the graph of co-association into parts of similar weight.

    The graph stores all pairs of distinct rows, and needs 28 bytes for each pair. For more than twenty thousand rows,
    pass ``neighbors=16``, an approximation in which each row has edges only to the 16 most similar rows, or pass
    ``reduction=Sample(…)``. Other parameters and
    the attributes are those of `gpuens.Consensus`.

    Parameters
    ----------
    weights : array (n_clusterings,), optional
        λ: the weight of each clustering, scaled to a mean of 1; equal by default.
    neighbors : int from 1 to 16, optional
        The number of most similar rows to which each row is joined; None means all rows.
    imbalance : float > 0
        Largest excess of a part's weight over the average: 0.03 means 3 %.

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
    on_gpu = "all but the last step"
    weights: Any = None
    neighbors: int | None = None
    imbalance: float = 0.03

    def _parts(self) -> tuple[Measure, Partitioner]:
        settings = self.imbalance, self.random_state
        cut = METIS(*settings) if self.neighbors is None else NearestMETIS(*settings, self.neighbors)
        return Coassociation(self.weights), cut

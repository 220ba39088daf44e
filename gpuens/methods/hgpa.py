"""HGPA: partitioning of the hypergraph whose hyperedges are the clusters."""

from gpuens.methods.base import Seeded
from gpuens.partition import HypergraphCut, Partitioner
from gpuens.similarity import Coassociation, Measure


class HGPA(Seeded):
    """Hypergraph partitioning algorithm: divides objects into parts of similar size that split the fewest clusters.

    Mt-KaHyPar cuts the hypergraph in its own process (extra ``hgpa``). In large noisy ensembles, nearly every cluster
    reaches all parts of any partition; this method then has little information.

    Parameters
    ----------
    objective : {"km1", "cut"}
        The cost of a cluster: its weight for each further part that it reaches ("km1"), or its weight once if it
        reaches several parts ("cut").
    hyperedge_weight : {"one", "size"}
        The weight of a cluster: 1, as in the paper, or its number of objects, as in the authors' program.
    imbalance : float > 0
        Largest excess of a part's weight over the average: 0.05 means 5 %.
    max_seconds : float from 1 to 10 million
        The time limit of the process in seconds; 100,000 distinct rows of 20 clusterings take over a minute.
    device : {"auto", "cpu", "cuda"}
        For the reduction only; the hypergraph is cut on the CPU.

    Attributes
    ----------
    labels_, n_clusters_, reduction_
        See `gpuens.Consensus`. New objects get the cluster of highest co-association.

    Raises
    ------
    ImportError
        Without the package mtkahypar.
    gpuens.runtime.failures.LostProcess
        If the process crashes, gives no partition or takes too long.

    References
    ----------
    Strehl & Ghosh, "Cluster ensembles", JMLR 3 (2002) 583-617.

    Examples
    --------
    >>> import gpuens as ge
    >>> labels = [[0, 0, 0, 1, 1, 1], [0, 0, 1, 2, 2, 2], [0, 0, 0, 0, 1, 1]]
    >>> ge.HGPA(n_clusters=2).fit_predict(labels).tolist()
    [0, 0, 0, 1, 1, 1]
    """

    cost = "G M k, slow"
    on_gpu = "the reduction"
    objective: str = "km1"
    hyperedge_weight: str = "one"
    imbalance: float = 0.05
    max_seconds: float = 600.0

    def _parts(self) -> tuple[Measure, Partitioner]:
        cut = HypergraphCut(self.objective, self.hyperedge_weight, self.imbalance, self.max_seconds, self.random_state)
        return Coassociation(), cut

"""PTGP: transfer cut of a graph of distinct rows and clusters, with edges by probability trajectories."""

from gpuens.methods.base import Seeded
from gpuens.partition import MeanTransferCut, Partitioner
from gpuens.similarity import Measure, Propagated


class PTGP(Seeded):
    """Probability trajectory based graph partitioning: a transfer cut of edges from rows to clusters of similar rows.

    Rows are similar if random walks from them, along the strongest co-associations, are similar. Each row counts once,
    for any number of objects, like the authors' microclusters. All pairs of distinct rows are stored, and 4,000 rows
    take half a minute. For more than 10,000 rows use ``reduction=CATree()`` or ``Sample(…)``.

    Parameters
    ----------
    n_steps : int from 1 to 1000, optional
        Number of steps of a walk; None means √G / 2 for G distinct rows, limited to 1 … 20.
    n_neighbors : int ≥ 1, optional
        Number of strongest links that a row keeps, plus those tied with the last; None means √G / 2 in the same limits.
    n_init : int
        Number of starts of the final k-means.
    device : {"auto", "cpu", "cuda"}
        For the co-associations only; walks and eigenvectors run on the CPU.

    Attributes
    ----------
    labels_, n_clusters_, reduction_
        See `gpuens.Consensus`. New objects get the cluster of highest co-association.

    References
    ----------
    Huang, Lai & Wang, "Robust ensemble clustering using probability trajectories", IEEE TKDE 28 (2016) 1312-1326.

    Examples
    --------
    >>> import gpuens as ge
    >>> labels = [[0, 0, 0, 1, 1, 1], [0, 0, 1, 2, 2, 2], [0, 0, 0, 0, 1, 1]]
    >>> ge.PTGP(n_clusters=2).fit_predict(labels).tolist()
    [0, 0, 0, 1, 1, 1]
    """

    cost = "G²"
    on_gpu = "all but the last step"
    n_steps: int | None = None
    n_neighbors: int | None = None
    n_init: int = 10

    def _parts(self) -> tuple[Measure, Partitioner]:
        return Propagated(self.n_steps, self.n_neighbors), MeanTransferCut(self.n_init, self.random_state)

"""PTGP: transfer cut of a graph of distinct rows and clusters, with edges by probability trajectories."""

from typing import Any

from gpuens.methods.base import Consensus
from gpuens.partition import MeanTransferCut, Partitioner
from gpuens.similarity import Measure, Propagated


class PTGP(Consensus):
    """Probability trajectory based graph partitioning: a transfer cut of edges from rows to clusters of similar rows.

    Rows are similar if random walks from them, along the strongest co-associations, are similar. Each row counts once,
    for any number of objects, like the authors' microclusters. All pairs of distinct rows are stored, and 4,000 rows
    take half a minute. For more than 10,000 rows use ``reduction=CATree()`` or ``Sample(…)``.

    Parameters
    ----------
    n_clusters : int, optional
        Number of clusters, at most the number of distinct label rows. None: the number that
        `gpuens.evidence.suggestion` gives.
    n_steps : int from 1 to 1000, optional
        Number of steps of a walk; None means √G / 2 for G distinct rows, limited to 1 … 20.
    n_neighbors : int ≥ 1, optional
        Number of strongest links that a row keeps, plus those tied with the last; None means √G / 2 in the same limits.
    n_init : int
        Number of starts of the final k-means.
    random_state : int or numpy.random.Generator
        For the final k-means; the same seed gives the same labels.
    reduction : optional
        An object with ``reduce(rows)``; None means core groups.
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

    def __init__(
        self,
        n_clusters: int | None = None,
        *,
        n_steps: int | None = None,
        n_neighbors: int | None = None,
        n_init: int = 10,
        random_state: Any = 0,
        reduction: Any = None,
        device: str = "auto",
    ) -> None:
        self.n_clusters, self.n_steps, self.n_neighbors, self.n_init = n_clusters, n_steps, n_neighbors, n_init
        self.random_state, self.reduction, self.device = random_state, reduction, device

    def _parts(self) -> tuple[Measure, Partitioner]:
        return Propagated(self.n_steps, self.n_neighbors), MeanTransferCut(self.n_init, self.random_state)

"""PTA: linkage of distinct rows, which are similar if their probability trajectories are similar."""

from gpuens.methods.base import Linkage
from gpuens.partition import CompleteLinkage, EvenLinkage, Partitioner, SingleLinkage
from gpuens.runtime import checks
from gpuens.similarity import Measure, Propagated

LINKAGES = {"average": EvenLinkage, "complete": CompleteLinkage, "single": SingleLinkage}


class PTA(Linkage):
    """Probability trajectory accumulation: linkage of rows, which are similar if random walks from them are similar.

    A walk follows the strongest co-associations of each distinct row. Each row counts once in the linkage, for any
    number of objects, like the authors' microclusters. All pairs of distinct rows are stored, and a step costs one
    product per row and link: 4,000 rows take half a minute. For more than 10,000 rows use ``reduction=CATree()`` or
    ``Sample(…)``.

    Parameters
    ----------
    n_steps : int from 1 to 1000, optional
        Number of steps of a walk; None means √G / 2 for G distinct rows, limited to 1 … 20.
    n_neighbors : int ≥ 1, optional
        Number of strongest links that a row keeps, plus those tied with the last; None means √G / 2 in the same limits.
    linkage : {"average", "single", "complete"}
    device : {"auto", "cpu", "cuda"}
        For the co-associations only; walks run on the CPU.

    Attributes
    ----------
    labels_, n_clusters_, children_, distances_, lifetimes_, rest_, dendrogram_, reduction_, work_
        See `gpuens.Consensus`. New objects get the cluster of highest co-association.

    References
    ----------
    Huang, Lai & Wang, "Robust ensemble clustering using probability trajectories", IEEE TKDE 28 (2016) 1312-1326.

    Examples
    --------
    >>> import gpuens as ge
    >>> labels = [[0, 0, 0, 1, 1, 1], [0, 0, 1, 2, 2, 2], [0, 0, 0, 0, 1, 1]]
    >>> ge.PTA(n_clusters=2).fit_predict(labels).tolist()
    [0, 0, 0, 0, 1, 1]
    """

    cost = "G²"
    on_gpu = "all but the last step"
    n_steps: int | None = None
    n_neighbors: int | None = None
    linkage: str = "average"

    def _parts(self) -> tuple[Measure, Partitioner]:
        link = LINKAGES[checks.check_choice(self.linkage, "linkage", LINKAGES)]
        return Propagated(self.n_steps, self.n_neighbors), link(self.distance_threshold, self.min_size)

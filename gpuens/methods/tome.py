"""TOME: normalised cut of objects that are similar if a path through stable clusters of near objects joins them."""

from gpuens.methods.base import Seeded
from gpuens.partition import NormalizedCut, Partitioner
from gpuens.similarity import Measure, RefinedPaths


class TOME(Seeded):
    """Two-level-refined co-association with path-based transformation, for clusters of any shape.

    Two objects of a cluster are more similar if they are near in the features, and unstable clusters have less weight.
    Two objects are also similar if a path of similar objects joins them. All pairs of distinct rows are stored, and all
    distances of objects are computed, which is feasible for thousands of objects; for more, use
    ``reduction=Sample(…)``. A missing label is in no cluster.

    Parameters
    ----------
    n_init : int
        Number of starts of the final k-means.
    reduction : optional
        An object with ``reduce(rows)``; None means core groups. Objects with equal rows stay together: distances
        between rows are means over their objects.
    device : {"auto", "cpu", "cuda"}
        For the reduction only; all other steps run on the CPU.

    Attributes
    ----------
    labels_, n_clusters_, reduction_
        See `gpuens.Consensus`. New objects get the cluster of highest co-association.

    References
    ----------
    Zhong, Yue, Zhang & Lei, "A clustering ensemble: two-level-refined co-association matrix with path-based
    transformation", Pattern Recognition 48 (2015) 2699-2709.

    Examples
    --------
    >>> import gpuens as ge
    >>> labels = [[0, 0, 0, 1, 1, 1], [0, 0, 1, 2, 2, 2], [0, 0, 0, 0, 1, 1]]
    >>> X = [[0.0], [0.1], [0.3], [0.9], [1.0], [1.2]]
    >>> ge.TOME(n_clusters=2).fit(labels, features=X).labels_.tolist()
    [0, 0, 0, 1, 1, 1]
    """

    cost = "N², G³"
    on_gpu = "the reduction"
    n_init: int = 10

    def _parts(self) -> tuple[Measure, Partitioner]:
        return RefinedPaths(), NormalizedCut(self.n_init, self.random_state)

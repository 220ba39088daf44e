"""ROCK: agglomerative clustering by the numbers of common neighbours of objects."""

from gpuens.methods.base import Method
from gpuens.partition import ROCK as Merging
from gpuens.partition import Partitioner
from gpuens.similarity import LabelNeighbors, Measure


class ROCK(Method):
    """Robust clustering of categorical attributes, with the clusterings as attributes.

    Two objects are neighbours if the Jaccard similarity of their label sets, K / (2M - K) for K common labels, is at
    least θ. Links are common neighbours, and the two clusters with the largest goodness merge (see `gpuens.OCH`). The
    links of all pairs of distinct rows are stored; above twenty thousand rows, pass ``reduction=Sample(…)``. Clusters
    without links between them merge last, the smallest first, with a warning that advises a smaller threshold.

    Parameters
    ----------
    threshold : float from 0 to .999999, optional
        θ; with .5, neighbours share two thirds of their labels. None means the Jaccard similarity for the mean number
        of common labels over all pairs of objects.
    device : {"auto", "cpu", "cuda"}
        Device of the counts of common neighbours; merging runs on the host.

    Attributes
    ----------
    labels_, n_clusters_, reduction_, threshold_
        See `gpuens.Consensus`.
    merges_ : gpuens.partition.Rock
        The merges in order, with the goodness of each.

    References
    ----------
    Guha, Rastogi & Shim, "ROCK: a robust clustering algorithm for categorical attributes", Information Systems 25
    (2000) 345-366.

    Examples
    --------
    >>> import gpuens as ge
    >>> labels = [[0, 0, 0, 1, 1, 1], [0, 0, 1, 2, 2, 2], [0, 0, 0, 0, 1, 1]]
    >>> ge.ROCK(n_clusters=2).fit_predict(labels).tolist()
    [0, 0, 0, 1, 1, 1]
    """

    cost = "G²"
    on_gpu = "all but the last step"
    threshold: float | None = None

    def _parts(self) -> tuple[Measure, Partitioner]:
        return LabelNeighbors(self.threshold), Merging(self.threshold)

"""CgC: k-means on the object-label space of coupled similarities."""

from typing import Any

from gpuens.methods.base import Seeded
from gpuens.partition import LabelKMeans, Partitioner
from gpuens.similarity import Coupled, Measure


class CgC(Seeded):
    """Clustering-based coupling: k-means of objects, by the coupled similarity of their clusters to all clusters.

    The coupled similarity CCSC of clusters is defined in eqs 17-20. For each clustering, the features of an object are
    the row of CCSC of its cluster minus the mean row of the clusters of that clustering, or zeros if the label is
    missing. Features are looked up and not stored for each object. An iteration costs O(G M k).

    Parameters
    ----------
    weights : array (n_clusterings,), optional
        λ: the weight of each clustering in the coupling; equal by default.
    n_init, max_iter : int
        Number of starts of k-means, and most iterations of each.

    Attributes
    ----------
    labels_, n_clusters_, reduction_, coupling_
        See `gpuens.Consensus`.
    objective_ : float
        Sum of the squared distances of the objects to their centroids.
    n_iter_ : int
    converged_ : bool

    References
    ----------
    Wang et al., "Coupled clustering ensemble by exploring data interdependence", ACM TKDD 12 (2018).

    Examples
    --------
    >>> import gpuens as ge
    >>> labels = [[0, 0, 0, 1, 1, 1], [0, 0, 1, 2, 2, 2], [0, 0, 0, 0, 1, 1]]
    >>> ge.CgC(n_clusters=2).fit_predict(labels).tolist()
    [0, 0, 0, 1, 1, 1]
    """

    cost = "G M k"
    weights: Any = None
    n_init: int = 10
    max_iter: int = 100

    def _parts(self) -> tuple[Measure, Partitioner]:
        return Coupled(self.weights), LabelKMeans(self.n_init, self.max_iter, self.random_state)

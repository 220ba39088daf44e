"""BestOfK: the base clustering that agrees best with all base clusterings."""

from gpuens.methods.base import Method
from gpuens.partition import BestBase, Partitioner


class BestOfK(Method):
    """The base clustering with the largest mean NMI to all clusterings, weighted by their numbers of labelled objects.

    NMI is normalised by the geometric mean of the entropies, over the objects labelled in both clusterings. An object
    without a label in the best clustering goes to the cluster with the largest mean co-association in the other
    clusterings.

    Parameters
    ----------
    n_clusters : int, optional
        Take a base clustering with this number of clusters; None: any number.

    Attributes
    ----------
    labels_, n_clusters_, reduction_
        See `gpuens.Consensus`.
    anmi_ : ndarray (n_clusterings,), float64
        The average NMI of each clustering.
    best_clustering_ : object
        The name of the chosen clustering.

    Raises
    ------
    ValueError
        If no base clustering has `n_clusters` clusters.

    References
    ----------
    Strehl & Ghosh, "Cluster ensembles", JMLR 3 (2002) 583-617.

    Examples
    --------
    >>> import gpuens as ge
    >>> est = ge.BestOfK().fit([[0, 0, 0, 1, 1, 1], [0, 0, 1, 2, 2, 2], [0, 0, 0, 0, 1, 1]])
    >>> est.labels_.tolist(), est.best_clustering_, est.anmi_.round(2).tolist()
    ([0, 0, 0, 1, 1, 1], 0, [0.77, 0.74, 0.63])
    """

    cost = "G M²"

    def _parts(self) -> tuple[None, Partitioner]:
        return None, BestBase()

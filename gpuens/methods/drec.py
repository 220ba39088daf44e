"""DREC: normalised cut of distinct rows; each row is represented by its similarities to all rows."""

from gpuens.methods.base import Seeded
from gpuens.partition import NormalizedCut, Partitioner
from gpuens.similarity import DenseRepresentation, Measure


class DREC(Seeded):
    """Dense representation ensemble clustering: spectral clustering of rows by their representations by other rows.

    Each distinct row counts once, for any number of objects, like the authors' microclusters. All pairs of rows are
    stored, and the eigenvectors cost O(G³). For more than 3,000 rows use ``reduction=CATree()`` or ``Sample(…)``. A
    missing label is in no cluster.

    Parameters
    ----------
    strength : float > 0
        λ; a larger value lets more rows contribute to the representation of a row.
    n_init : int
        Number of starts of the final k-means.
    device : {"auto", "cpu", "cuda"}
        For the reduction only; all other steps run on the CPU.

    Attributes
    ----------
    labels_, n_clusters_, reduction_
        See `gpuens.Consensus`. New objects get the cluster of highest co-association.

    References
    ----------
    Zhou, Zheng & Pan, "Ensemble clustering based on dense representation", Neurocomputing 357 (2019) 66-76.

    Examples
    --------
    >>> import gpuens as ge
    >>> labels = [[0, 0, 0, 1, 1, 1], [0, 0, 1, 2, 2, 2], [0, 0, 0, 0, 1, 1]]
    >>> ge.DREC(n_clusters=2).fit_predict(labels).tolist()
    [0, 0, 0, 1, 1, 1]
    """

    cost = "G³"
    on_gpu = "the reduction"
    strength: float = 100.0
    n_init: int = 10

    def _parts(self) -> tuple[Measure, Partitioner]:
        return DenseRepresentation(self.strength), NormalizedCut(self.n_init, self.random_state, even=True)

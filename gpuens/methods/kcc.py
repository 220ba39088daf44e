"""KCC: k-means of label rows that maximises a utility, the agreement with the base clusterings."""

from typing import Any

from gpuens.methods.base import Seeded
from gpuens.partition import Partitioner, UtilityKMeans


class KCC(Seeded):
    """K-means-based consensus clustering: k-means of objects for the partition with the largest utility.

    The centre of a cluster holds, for each clustering, the distribution of its members' labels; distances are looked
    up. Missing labels are left out of distributions and distances. An iteration costs O(G M k).

    Parameters
    ----------
    utility : {"uh", "uc", "ucos", "ulp"}
        Entropy (ECC), category utility (QMI), cosine, or L_p norm.
    p : float > 1
        The p of "ulp"; other utilities ignore it.
    normalised : bool
        Divide the weight of each clustering by that of its own distribution (its entropy, |p|², |p| or |p|_p).
    weights : array (n_clusterings,), optional
        The weight of each clustering, scaled to a mean of 1; equal by default.
    n_init, max_iter : int
        Number of starts of k-means, and most iterations of each.
    tol : float
        A start ends when the objective falls by at most this share of its value.
    reduction : optional
        An object with ``reduce(rows)``, such as ``Sample(10_000)``; None means core groups, an exact reduction. Objects
        outside a sample go to the nearest centre.

    Attributes
    ----------
    labels_, n_clusters_, reduction_
        See `gpuens.Consensus`.
    utility_ : float
        The utility of the result; a clustering counts by the share of the objects that have a label in it.
    objective_ : float
        Sum of the distances of the objects to their centres.
    n_iter_ : int
    converged_ : bool

    Notes
    -----
    An empty cluster restarts at the row farthest from all centres; the paper draws an object at random.

    References
    ----------
    Wu, Liu, Xiong, Cao & Chen, "K-means-based consensus clustering: a unified view", IEEE TKDE 27 (2015) 155-169.

    Examples
    --------
    >>> import gpuens as ge
    >>> labels = [[0, 0, 0, 1, 1, 1], [0, 0, 1, 2, 2, 2], [0, 0, 0, 0, 1, 1]]
    >>> est = ge.KCC(n_clusters=2, utility="uc").fit(labels)
    >>> est.labels_.tolist(), round(est.utility_, 3)
    ([0, 0, 0, 1, 1, 1], 1.111)
    """

    cost = "G M k"
    utility: str = "uh"
    p: float = 5.0
    normalised: bool = False
    weights: Any = None
    n_init: int = 5
    max_iter: int = 20
    tol: float = 1e-5

    def _parts(self) -> tuple[None, Partitioner]:
        return None, UtilityKMeans(
            self.utility, self.p, self.normalised, self.weights, self.n_init, self.max_iter, self.tol, self.random_state
        )

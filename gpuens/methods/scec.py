"""SCEC: soft correspondence between the clusters of all clusterings and those of the consensus."""

from typing import Any

from gpuens.labels.soft_ensemble import SoftEnsemble, with_shares
from gpuens.methods.base import Seeded
from gpuens.partition import Partitioner, SoftCorrespondence


class SCEC(Seeded):
    """Soft correspondence ensemble clustering: memberships of objects, and correspondences of base clusters.

    M (N, k) are the memberships of the objects in the k clusters of the consensus. S_h (k_h, k) are the correspondences
    of the clusters of base clustering h to these k clusters. M and S_h are updated in turn (eqs 6 and 10), and the
    objective

        Σ_h |M - A_h S_h|² - α N/k_h |S_h - 1 1ᵀ S_h / k_h|² + β N/k_h |S_h 1 1ᵀ - 1 1ᵀ|²        (eq 3)

    never rises. A_h (N, k_h) are the memberships of clustering h: one-hot for labels, 1 / k_h in all entries for a
    missing object. α and β are multiplied by N / k_h, the mean size of a cluster, so that they have the same effect for
    any number of objects. An iteration costs O(N_c² k), or O(G M k) on G distinct label rows if that is less, and
    O(N k Σ k_h) on soft clusterings.

    Parameters
    ----------
    n_clusters : int
        The largest number of clusters. The result has fewer if the ensemble does not support as many, especially for
        small α.
    alpha : float ≥ 0
        Weight of sharp correspondence: few clusters of a clustering correspond to each cluster of the consensus. With
        0, the clusters of the consensus become similar.
    beta : float
        Weight of the condition that rows of S_h sum to 1 during the iterations; at the end, rows are scaled to sum to
        1. Larger values need more iterations. α < β · n_clusters is required.
    init : {"kmeans", "clustering", "random"} or list of M arrays (k_h, k)
        The start: k-means in label space, a base clustering drawn at random (as in the paper), or random
        correspondences. Given arrays must be positive and are the only start.
    n_init : int
        Number of starts; the start with the smallest objective is kept. Above 20,000 rows, the k-means of a start uses
        20,000 objects, drawn with replacement.
    max_iter : int
        Most iterations of each start.
    tol : float
        Iterations end when no membership changes by more than this.
    reduction : optional
        An object with ``reduce(rows)``, such as ``Sample(10_000)``; None means core groups, an exact reduction. Objects
        outside a sample are labelled by eq 6, not by similarity.

    Attributes
    ----------
    labels_, n_clusters_, reduction_
        See `gpuens.Consensus`. An object's label is its largest membership.
    membership_ : array (n_objects, n_clusters), float64
        M: rows sum to 1, and the largest entry is the confidence of the label. In the memory of `labels_`; computed on
        access. Clusters without objects come last.
    correspondence_ : list of M ndarrays (k_h, n_clusters), float64
        S_h: one row for each cluster of clustering h, in the order of label values
        (``reduction_.ensemble.categories[h]``); rows sum to 1. Memberships are computed from S_h; its entries are not
        shares of objects.
    shares_ : list of M ndarrays (k_h, n_clusters), float64
        For each cluster of clustering h, the shares of its objects (or of its sampled objects) with each label.
        Computed on access. `gpuens.plotting.correspondence` draws both matrices.
    objective_ : ndarray (iterations,), float64
        Eq 3 after each iteration of the kept start, before the rows of S_h are scaled; it never rises.
    n_iter_ : int
    converged_ : bool

    Notes
    -----
    ``fit`` also takes soft base clusterings: a list whose elements are memberships (n_objects, k_h), with rows that sum
    to 1 (all NaN for a missing object), labels (n_objects,), or sets of members that may overlap; or a
    `gpuens.SoftEnsemble`, such as that of a long table. Each object is kept separately, without core groups.

    The defaults were chosen by experiment (`bench/results/scec.md`): on iris, pen digits and spoken letters with three
    kinds of ensembles the mean NMI is .59 for α = 0, .73 for .25, and .745 to .748 from .5 to 1.5; a larger α also
    gives more of the requested clusters (.57, .68, .82 to .95 of them). β from 1.1 to 10 makes no difference. The NMI
    is .745 with one start, .748 with five and .750 with twenty.

    References
    ----------
    Long, Zhang & Yu, "Combining multiple clusterings by soft correspondence", ICDM 2005.

    Examples
    --------
    Three owners share only labels, each for some of the objects (-1 or None: an object that the owner lacks). Each gets
    the consensus, and the cluster of the consensus that corresponds to each of its own clusters:

    >>> import numpy as np
    >>> import gpuens as ge
    >>> bank = ["good", "good", "good", "bad", "bad", "bad", None, None, None]
    >>> shop = [None, None, 7, 3, 3, None, 3, 7, 7]
    >>> clinic = [-1, 0, 0, 1, -1, 1, 1, 0, -1]
    >>> est = ge.SCEC(n_clusters=2).fit([bank, shop, clinic])
    >>> est.labels_.tolist()
    [0, 0, 0, 1, 1, 1, 1, 0, 0]
    >>> names = est.reduction_.ensemble.categories
    >>> [dict(zip(own.tolist(), s.argmax(axis=1).tolist())) for own, s in zip(names, est.correspondence_)]
    [{'bad': 1, 'good': 0}, {3: 1, 7: 0}, {0: 0, 1: 1}]

    A clustering may also be soft:

    >>> unsure = np.array([[0.9, 0.1], [0.8, 0.2], [0.6, 0.4], [0.2, 0.8], [0.1, 0.9], [0.4, 0.6]])
    >>> ge.SCEC(n_clusters=2).fit([unsure, [0, 0, 0, 1, 1, 1], ["x", "x", "y", "y", "y", None]]).labels_.tolist()
    [0, 0, 0, 1, 1, 1]
    """

    cost = "G M k"
    further_forms = (SoftEnsemble,)
    alpha: float = 1.0
    beta: float = 2.0
    init: Any = "kmeans"
    n_init: int = 5
    max_iter: int = 100
    tol: float = 1e-3

    def _ensemble_of(self, X: Any, wide: bool) -> Any:
        X = with_shares(X)
        return X if isinstance(X, SoftEnsemble) else super()._ensemble_of(X, wide)

    def _parts(self) -> tuple[None, Partitioner]:
        return None, SoftCorrespondence(
            self.alpha, self.beta, self.init, self.n_init, self.max_iter, self.tol, self.random_state
        )

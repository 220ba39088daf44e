"""SCEC: soft correspondence between the clusters of all clusterings and those of the consensus."""

from functools import partial
from typing import Any

import numpy as np

from gpuens import checks
from gpuens import device as devices
from gpuens.ensemble import Ensemble
from gpuens.methods.base import Consensus
from gpuens.partition.soft_correspondence import memberships, object_shares, soft_correspondence
from gpuens.reduction import Reduction
from gpuens.soft_ensemble import SoftEnsemble, is_soft


class SCEC(Consensus):
    """Soft correspondence ensemble clustering: how sure each object is of each cluster, and what became of yours.

    Each base clustering h corresponds to the consensus M (N, k) by a matrix S_h (k_h, k) that says how much each of
    its clusters corresponds to each of the k. Both are found by taking turns (eqs 6 and 10), so that the objective

        Σ_h |M - A_h S_h|² - α N/k_h |S_h - 1 1ᵀ S_h / k_h|² + β N/k_h |S_h 1 1ᵀ - 1 1ᵀ|²        (eq 3)

    never rises; A_h (N, k_h) are the memberships of clustering h, one-hot for labels, and 1 / k_h throughout where an
    object is missing. α and β are taken times N / k_h, the mean size of a cluster, so that they weigh the same for any
    number of objects. An iteration costs O(G M k) on G distinct label rows, and O(N k Σ k_h) on soft clusterings.

    Parameters
    ----------
    n_clusters : int
        Clusters wanted at most: fewer come out where the ensemble does not support as many, the more so for small α.
    alpha : float
        From 0 on: how much it is worth that few clusters of a clustering correspond to each one of the consensus. With
        0 clusters of the consensus run together.
    beta : float
        How much it is worth that rows of S_h sum to 1 on the way; in the end they are scaled to do so. More of it takes
        more iterations. α < β · n_clusters.
    init : {"kmeans", "clustering", "random"} or list of M arrays (k_h, k)
        Where starts begin: with k-means in label space, a base clustering drawn at random (as in the paper), or
        correspondences drawn at random. Arrays, which must be positive, are the only start.
    n_init : int
        Starts, of which the one with the smallest objective is kept.
    max_iter : int
        Iterations of each start at most.
    tol : float
        They end when no membership changes by more than this.
    random_state : int, None or numpy.random.Generator
        The same seed gives the same result, on every device.
    reduction : optional
        An object with ``reduce(ensemble)``, such as ``Sample(10_000)``; None is core groups, which is exact. Labels
        outside a sample are those of one more look-up (eq 6), not of similarity.
    device : {"auto", "cpu", "cuda", "emulated"}

    Attributes
    ----------
    labels_, n_clusters_, reduction_
        See `gpuens.methods.base`. An object's label is its largest membership.
    membership_ : array (n_objects, n_clusters), float64
        M: rows sum to 1, and the largest entry says how sure a label is. It is where `labels_` are, and looked up when
        asked for. Clusters that no object is surest of come last.
    correspondence_ : list of M ndarrays (k_h, n_clusters), float64
        S_h: rows, which sum to 1, are the clusters of clustering h in the order of their label values
        (``reduction_.ensemble.categories[h]``). By them memberships are looked up; they are no shares of objects.
    shares_ : list of M ndarrays (k_h, n_clusters), float64
        The share of the objects of each own cluster that has each label; of those in the sample, if there is one.
        Worked out when asked for. `gpuens.plotting.correspondence` draws both.
    objective_ : ndarray (n_iter_,), float64
        Eq 3 after each iteration of the start that was kept, before the rows of S_h are scaled; it never rises.
    n_iter_ : int
    converged_ : bool

    Notes
    -----
    ``fit`` also takes soft base clusterings: a list whose elements are memberships (n_objects, k_h), with rows that sum
    to 1 (NaN throughout where an object is missing), or labels (n_objects,). They are held as they are, object by
    object, without core groups.

    The defaults were chosen by experiment (`bench/results/scec.md`): on iris, pen digits and spoken letters with three
    kinds of ensembles the mean NMI is .59 for α = 0, .73 for .25, .745 to .748 from .5 to 1.5, and more of the clusters
    asked for come out for larger α (.57, .68, .82 to .95 of them); β from 1.1 to 10 makes no difference. One start has
    .745, five have .748, twenty .750.

    References
    ----------
    Long, Zhang & Yu, "Combining multiple clusterings by soft correspondence", ICDM 2005.

    Examples
    --------
    Three owners of data have labels for some objects each (-1: not theirs), and give nothing else. Each gets the
    consensus, and what it calls that owner's clusters:

    >>> import numpy as np
    >>> import gpuens as ge
    >>> bank = ["good", "good", "good", "bad", "bad", "bad", None, None, None]
    >>> shop = [None, None, 7, 3, 3, None, 3, 7, 7]
    >>> clinic = [-1, 0, 0, 1, -1, 1, 1, 0, -1]
    >>> est = ge.SCEC(n_clusters=2).fit([bank, shop, clinic])
    >>> est.labels_.tolist()
    [1, 1, 1, 0, 0, 0, 0, 1, 1]
    >>> names = est.reduction_.ensemble.categories
    >>> [dict(zip(own.tolist(), s.argmax(axis=1).tolist())) for own, s in zip(names, est.correspondence_)]
    [{'bad': 0, 'good': 1}, {3: 0, 7: 1}, {0: 1, 1: 0}]

    One of them may be unsure:

    >>> unsure = np.array([[0.9, 0.1], [0.8, 0.2], [0.6, 0.4], [0.2, 0.8], [0.1, 0.9], [0.4, 0.6]])
    >>> ge.SCEC(n_clusters=2).fit([unsure, [0, 0, 0, 1, 1, 1], ["x", "x", "y", "y", "y", None]]).labels_.tolist()
    [0, 0, 0, 1, 1, 1]
    """

    def __init__(
        self,
        n_clusters: int | None = None,
        *,
        alpha: float = 1.0,
        beta: float = 2.0,
        init: Any = "kmeans",
        n_init: int = 5,
        max_iter: int = 100,
        tol: float = 1e-3,
        random_state: Any = 0,
        reduction: Any = None,
        device: str = "auto",
    ) -> None:
        self.n_clusters = n_clusters
        self.alpha = alpha
        self.beta = beta
        self.init = init
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state
        self.reduction = reduction
        self.device = device

    def fit(self, X: Any, y: Any = None) -> "SCEC":
        """Find the consensus of ``X``: labels as `gpuens.Ensemble` takes them, or a list with soft clusterings."""
        if not (isinstance(X, (list, tuple)) and any(is_soft(clustering) for clustering in X)):
            super().fit(X)
            return self
        reduction = self._checked()
        if reduction is not None:
            raise ValueError(
                f"reduction={checks.shown(reduction)} works on rows of labels, and soft clusterings have none; leave "
                "it None, or pass the argmax of the memberships as labels."
            )
        ensemble: Any = SoftEnsemble(X)

        def reduce(device: str) -> Reduction:
            n_objects = ensemble.n_objects
            everyone = devices.namespace(device).arange(n_objects)
            return Reduction(ensemble, np.ones(n_objects, dtype=np.int64), everyone)

        self._fit(ensemble, reduce)
        return self

    def _check_parameters(self) -> None:
        alpha = checks.check_between(self.alpha, "alpha", 0.0, 1e9)
        most = self._k * checks.check_real(self.beta, "beta", above=0.0, at_most=1e9)
        if alpha >= most:  # a denominator of its steps could be 0 or negative
            raise ValueError(
                f"alpha={alpha:g} must be below beta * n_clusters = {most:g}, so that the objective cannot rise; take "
                "a smaller alpha or a larger beta."
            )
        if isinstance(self.init, str):
            checks.check_choice(self.init, "init", ["clustering", "kmeans", "random"])
        checks.check_runs(self.n_init, self.max_iter)
        checks.check_between(self.tol, "tol", 0.0, 1.0)
        checks.make_generator(self.random_state)

    def _partition(self, reduced: Reduction, device: str) -> np.ndarray:
        init = self.init
        if not isinstance(init, str):
            sizes = [len(own) for own in reduced.ensemble.categories]
            init = _first_correspondences(init, sizes, self._k)
        found = soft_correspondence(
            reduced.ensemble,
            reduced.weights,
            self._k,
            alpha=float(self.alpha),
            beta=float(self.beta),
            init=init,
            n_init=self.n_init,
            max_iter=self.max_iter,
            tol=float(self.tol),
            rng=checks.make_generator(self.random_state),
            device=device,
        )
        self._table, self._device, self._row_labels = found.table, device, found.labels
        self.correspondence_, self.objective_ = found.correspondences, found.objective
        self.n_iter_, self.converged_ = found.n_iter, found.converged
        checks.warn_of_fewer(int(found.labels.max()) + 1, self._k)
        return found.labels

    def _label_others(self, reduced: Reduction, labels: np.ndarray, device: str) -> np.ndarray:
        """Return the labels of the other rows by one more look-up, with the correspondences found."""
        assert reduced.others is not None
        n_found = int(labels.max()) + 1
        found = []
        step = max(4096, devices.scratch(device) // (16 * self._table.shape[1]))
        for start in range(0, len(reduced.others), step):
            some = reduced.others.take(slice(start, start + step))
            found.append(devices.to_host(memberships(some, self._table, device=device)[:, :n_found].argmax(axis=1)))
        return np.concatenate(found)

    @property
    def membership_(self) -> Any:
        reduction = self.reduction_  # AttributeError before fit, as scikit-learn expects
        of_objects = reduction.of_rows(partial(_memberships, self._table, self._device))
        return of_objects if devices.chunked(of_objects) else devices.move(of_objects, devices.kind_of(self.labels_))

    @property
    def shares_(self) -> list[np.ndarray]:
        rows = self.reduction_  # AttributeError before fit, as scikit-learn expects
        k = self._table.shape[1]
        return object_shares(rows.ensemble, rows.weights, self._row_labels, k, device=self._device)


def _memberships(table: np.ndarray, device: str, rows: Ensemble) -> np.ndarray:
    return devices.to_host(memberships(rows, table, device=device))


def _first_correspondences(init: Any, n_clusters: list[int], k: int) -> list[np.ndarray]:
    """Return where SCEC is to begin, one positive (k_h, k) a clustering, as float64; or refuse it."""
    if not isinstance(init, (list, tuple)):
        raise TypeError(
            "init must be 'kmeans', 'clustering', 'random' or a list of one array a clustering, not "
            f"{type(init).__name__}."
        )
    if len(init) != len(n_clusters):
        raise ValueError(
            f"init must be 'kmeans', 'clustering', 'random' or one array a clustering, but {len(init)} were given for "
            f"{len(n_clusters)}."
        )
    found = []
    for position, (matrix, k_h) in enumerate(zip(init, n_clusters, strict=True)):
        matrix = checks.host_array(matrix, f"init: array {position} must be a matrix of numbers")
        if matrix.shape != (k_h, k) or matrix.dtype.kind not in "iuf":
            raise ValueError(
                f"init: array {position} must be numbers of shape {(k_h, k)}, own clusters × those of the consensus, "
                f"but has shape {matrix.shape} and dtype {matrix.dtype}."
            )
        if not ((matrix >= 1e-100) & (matrix <= 1e100)).all():
            raise ValueError(
                f"init: array {position} must be positive, for what is 0 would stay 0, and from 1e-100 to 1e100."
            )
        found.append(matrix.astype(np.float64))
    return found

"""ECRMC: average linkage on the co-association revised by how clusters correlate in the features' neighbourhoods."""

from typing import Any

import numpy as np

from gpuens import checks
from gpuens import device as devices
from gpuens.ensemble import Ensemble
from gpuens.methods.base import LinkageConsensus
from gpuens.partition import Dendrogram, average_linkage
from gpuens.partition.average import linkage_fits
from gpuens.reduction import Reduction
from gpuens.similarity.mapping import check_n_neighbors, map_objects, points_of
from gpuens.similarity.ranks import rank_correlation
from gpuens.similarity.reference_sets import reference_sets
from gpuens.similarity.revised import self_similarities

MOST_NEIGHBORS = 50  # that are taken without being asked for


class ECRMC(LinkageConsensus):
    """Ensemble clustering by reconstructed mapping coefficients, which needs the features of the objects.

    An object belongs to a cluster by the share of its neighbours in the features that are in it (eqs 6-11), clusters
    are as similar as those shares correlate (S, Spearman, eq 15), and objects as similar as all pairs of their
    clusters, B S Bᵀ / M (eq 17). Average linkage cuts that (eq 21), exactly, without the N × N matrix.

    Parameters
    ----------
    n_clusters : int, optional
        Clusters wanted, at most the number of distinct label rows. None: cut where it is `distance_threshold`, else
        where the number of clusters has the longest lifetime (`lifetimes_`).
    n_neighbors : int, optional
        T, the neighbours of an object that have a say, from 1 to n_objects - 1. None: a tenth of the objects in a class
        of average size, N / (10 k), but at least 2 and **at most 50**; the paper takes a twentieth to a fifth, and
        finds that it matters little. k is `n_clusters`, else the fewest clusters of any base clustering.
    distance_threshold : float, optional
        Merges at a distance (1 - similarity) below this are made; instead of `n_clusters`.
    reduction : optional
        An object with ``reduce(ensemble)``; None is core groups, which is exact. Of G distinct rows linkage takes
        8 G N_c bytes and about G² M look-ups, half a minute for fifty thousand: beyond, pass ``CATree(…)`` or
        ``Sample(…)``. Coefficients and S are those of all objects, whatever the reduction.
    device : {"auto", "cpu", "cuda", "emulated"}

    Attributes
    ----------
    mapping_ : scipy.sparse.csr_array (n_objects, N_c), float64, in host memory
        P^r, the share of each cluster in the neighbours of each object, see `gpuens.similarity.mapping_coefficients`.
    cluster_similarity_ : ndarray (N_c, N_c), float64
        S, the rank correlation of the columns of P^r.
    n_neighbors_ : int
        T as it was.
    labels_, n_clusters_, children_, distances_, lifetimes_, dendrogram_, reduction_, work_
        See `gpuens.methods.base`.

    Raises
    ------
    TypeError
        Without X, and for labels in chunks.
    MemoryError
        Before linkage starts, for more rows than the memory budget holds.

    Notes
    -----
    Similarities are those of the paper: up to M for objects that agree everywhere where all clusters correlate, and
    negative for many. So distances, 1 - similarity, can be negative too. Objects with equal label rows stay together.

    Measured on the paper's eleven sets: T from 5 to 20 % of N / k moves the mean NMI of a set by .015 on average.
    Whether an object is in its own reference set (the paper leaves it open; here it is not) changes nothing, nor does
    it, on average, to leave the reconstructed coefficients out and correlate clusters by their own objects. For 581,012
    objects all but linkage (T = 50) takes 72 s on two cores, and linkage of their 49,153 distinct rows 42 s.

    References
    ----------
    Cao, Chang & Zhao, "A new ensemble clustering algorithm using a reconstructed mapping coefficient", KSII
    Transactions on Internet and Information Systems 14 (2020) 2957-2980.

    Examples
    --------
    >>> import gpuens as ge
    >>> iris = ge.datasets.load("iris")
    >>> labels = ge.generate.kmeans_ensemble(iris.X, 20, (3, "sqrt"))
    >>> est = ge.ECRMC(n_clusters=3).fit(labels, X=iris.X)
    >>> est.n_neighbors_, est.mapping_.shape == (150, labels.n_clusters)
    (5, True)
    >>> round(ge.metrics.ari(est.labels_, iris.y), 2)
    0.75
    """

    _takes_features = True
    _given: tuple[Ensemble, Any] | None = None  # the labels and the features, while `fit` is at work

    def __init__(
        self,
        n_clusters: int | None = None,
        *,
        n_neighbors: int | None = None,
        distance_threshold: float | None = None,
        reduction: Any = None,
        device: str = "auto",
    ) -> None:
        self.n_clusters = n_clusters
        self.n_neighbors = n_neighbors
        self.distance_threshold = distance_threshold
        self.reduction = reduction
        self.device = device

    def fit(self, labels: Any, y: Any = None, *, X: Any = None) -> "ECRMC":  # type: ignore[override]
        """Find the consensus of the label matrix ``labels`` (n_objects, n_clusterings); ``y`` is ignored.

        ``X`` (n_objects, n_features) are the features of the same objects, an array or a DataFrame. Nothing is scaled.
        """
        if X is None:
            raise _no_features()
        if devices.chunked(labels):
            raise TypeError(
                "labels are in chunks, but ECRMC finds the neighbours of objects among all others: pass "
                "labels.compute(), or take a method that goes by the labels alone."
            )
        ensemble = Ensemble(labels)
        self._given = ensemble, X
        try:
            super().fit(ensemble)
        finally:
            del self._given
        return self

    def fit_predict(self, labels: Any, y: Any = None, *, X: Any = None) -> Any:
        """Return the label of each object; parameters are those of `fit`."""
        return self.fit(labels, X=X).labels_

    def _check_parameters(self) -> None:
        self._check_cut(above=-np.inf)  # distances are of any sign
        if self.n_neighbors is not None:
            checks.check_integer(self.n_neighbors, "n_neighbors", minimum=1)

    def _how_many(self, ensemble: Ensemble) -> int:
        n_objects = ensemble.n_objects
        if self.n_neighbors is not None:
            return check_n_neighbors(self.n_neighbors, n_objects)
        k = self._k if self.n_clusters is not None else int(np.diff(ensemble.offsets).min())
        return min(max(2, round(n_objects / (10 * k))), MOST_NEIGHBORS, n_objects - 1)

    def _link(self, reduced: Reduction, device: str) -> tuple[Dendrogram, np.ndarray]:
        if self._given is None:
            raise _no_features()
        ensemble, X = self._given
        rows = reduced.ensemble
        codes = rows.codes_on(device)
        linkage_fits(codes, rows.n_clusters, general=True, device=device)  # what comes first takes long
        points = points_of(X, ensemble.n_objects, device)
        self.n_neighbors_ = self._how_many(ensemble)
        references = reference_sets(points, self.n_neighbors_, device=device)
        self.mapping_ = map_objects(ensemble, references, device=device)
        self.cluster_similarity_ = rank_correlation(self.mapping_, device=device)
        found = average_linkage(
            codes, rows.offsets, self.cluster_similarity_, reduced.weights, device=device, work=self.work_
        )
        return found, self.cluster_similarity_

    def _own_similarities(self, reduced: Reduction, device: str) -> np.ndarray:
        return self_similarities(reduced.ensemble, self.cluster_similarity_, device=device)

    def _times_similarity(self, held: np.ndarray, reduced: Reduction, device: str) -> np.ndarray:
        return self.cluster_similarity_ @ held


def _no_features() -> TypeError:
    return TypeError(
        "X is not given, and ECRMC finds the neighbours of objects in their features: pass fit(labels, X=features)."
    )

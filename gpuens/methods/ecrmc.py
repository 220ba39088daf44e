"""ECRMC: average linkage on the co-association revised by how clusters correlate in the features' neighbourhoods."""

from typing import Any

from gpuens.methods.base import Consensus
from gpuens.partition import AverageLinkage, Partitioner
from gpuens.similarity import Mapping, Measure


class ECRMC(Consensus):
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
    weights : array (n_clusterings,), optional
        λ: S counts λ_m λ_m' times for clusters of the clusterings m and m', scaled to a mean of 1; equal if not given.
    distance_threshold : float, optional
        Merges at a distance (1 - similarity) below this are made; instead of `n_clusters`.
    reduction : optional
        An object with ``reduce(rows)``; None is core groups, which is exact. Of G distinct rows linkage takes
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
        See `gpuens.Consensus`.

    Raises
    ------
    TypeError
        Without features, and for labels in chunks.
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
    >>> est = ge.ECRMC(n_clusters=3).fit(labels, features=iris.X)
    >>> est.n_neighbors_, est.mapping_.shape == (150, labels.n_clusters)
    (5, True)
    >>> round(ge.metrics.ari(est.labels_, iris.y), 2)
    0.75
    """

    def __init__(
        self, n_clusters: int | None = None, *, n_neighbors: int | None = None, weights: Any = None,
        distance_threshold: float | None = None, reduction: Any = None, device: str = "auto",
    ) -> None:  # fmt: skip
        self.n_clusters, self.n_neighbors, self.weights = n_clusters, n_neighbors, weights
        self.distance_threshold, self.reduction, self.device = distance_threshold, reduction, device

    def _parts(self) -> tuple[Measure, Partitioner]:
        return Mapping(self.n_neighbors, self.weights), AverageLinkage(self.distance_threshold)

"""ECRMC: average linkage on a co-association that is corrected by similarities of clusters in feature space."""

from typing import Any

from gpuens.methods.base import Linkage
from gpuens.partition import AverageLinkage, Partitioner
from gpuens.similarity import Mapping, Measure


class ECRMC(Linkage):
    """Ensemble clustering by reconstructed mapping coefficients, computed from features of the objects.

    The coefficient of an object and a cluster is the weighted share of the object's nearest neighbours in that cluster
    (eqs 6-11). S is the Spearman correlation of the clusters' coefficients (eq 15). The similarity of objects is the
    sum over all pairs of their clusters, B S Bᵀ / M (eq 17). Average linkage is exact (eq 21), without the N × N
    matrix.

    Parameters
    ----------
    n_neighbors : int, optional
        T, the size of an object's reference set, from 1 to n_objects - 1. None: a tenth of the average class size,
        N / (10 k), but at least 2 and **at most 50**; the paper uses a twentieth to a fifth, with little effect. k is
        the number of clusters; with `distance_threshold`, the smallest number of clusters of any base clustering.
    weights : array (n_clusterings,), optional
        λ: the weight of each clustering, scaled to a mean of 1; S of clusterings m and m' is multiplied by λ_m λ_m'.
        Equal by default.
    distance_threshold : float, optional
        Merge only below this distance (1 - similarity); use in place of `n_clusters`.
    reduction : optional
        An object with ``reduce(rows)``; None means core groups, which affect merges, see the notes. Linkage of G
        distinct rows needs 8 G N_c bytes and about G² M look-ups: half a minute for fifty thousand rows. For more rows,
        pass ``CATree(…)`` or ``Sample(…)``. Coefficients and S are always computed from all objects.

    Attributes
    ----------
    mapping_ : scipy.sparse.csr_array (n_objects, N_c), float64, in host memory
        P^r, see `gpuens.similarity.mapping_coefficients`.
    cluster_similarity_ : ndarray (N_c, N_c), float64
        S, the rank correlation of the columns of P^r.
    n_neighbors_ : int
        The used value of T.
    labels_, n_clusters_, children_, distances_, lifetimes_, rest_, dendrogram_, reduction_, work_
        See `gpuens.Consensus`.

    Raises
    ------
    TypeError
        Without features, and for labels in chunks.
    MemoryError
        Before linkage starts, if the rows do not fit the memory budget.

    Notes
    -----
    As in the paper, similarities range up to M, and many are negative. Distances, 1 - similarity, can be negative too.

    Objects with equal label rows stay together, although S can make them less similar to each other than to other
    objects. The tree of all objects (without core groups) would split them, only by their order, so its lower merges
    differ. The cuts of both trees agree in 29 of 30 random ensembles (60 objects, 25 distinct rows) for k = 2 and 3, in
    28 for k = 5, in 23 for k = 8, and in all of 30 ensembles with planted classes.

    On the paper's eleven data sets, T from 5 to 20 % of N / k changes the mean NMI of a set by .015 on average. The
    paper does not say whether an object belongs to its own reference set; here it does not, and both choices give equal
    NMI. The reconstruction has no effect on average: correlating clusters by their own objects gives the same NMI.

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

    cost = "N², G² M"
    n_neighbors: int | None = None
    weights: Any = None

    def _parts(self) -> tuple[Measure, Partitioner]:
        return Mapping(self.n_neighbors, self.weights), AverageLinkage(self.distance_threshold, self.min_size)

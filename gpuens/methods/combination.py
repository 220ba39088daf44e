"""Consensus: any similarity with any partitioner."""

from typing import Any

from gpuens.methods.base import Method
from gpuens.methods.parts import resolved_part
from gpuens.similarity import SIMILARITIES
from gpuens.similarity.base import Measure


class Consensus(Method):
    """Consensus by any similarity and any partitioner.

    Parameters
    ----------
    similarity : str or measure
        A name (`gpuens.similarities`), with parameters such as "lwca:theta=0.2", or an object such as
        ``gpuens.similarity.LWCA(theta=0.2)``.
    partitioner : str or partitioner
        A name (`gpuens.partitioners`), or an object such as ``gpuens.partition.METIS()``.
    reduction : optional
        An object with ``reduce(rows)``, or a text such as "sample:5000"; None means core groups: objects with equal
        labels stay together, which is exact but for linkages by similarities that would part them, see `gpuens.ECRMC`.

    Attributes
    ----------
    fit_ : gpuens.methods.fit.Fit
        The reduction, the partition of its rows, and the similarity on which it rests.
    labels_ : array (n_objects,), int64
        The label of each object, in the memory and the library of the given labels. Cluster 0 has most objects (or the
        largest weight), 1 the next, and so on; of equal clusters, the one with the first object comes first.
    n_clusters_ : int
    reduction_ : Reduction
        The rows that were clustered, core groups by default.
    similarity_ : Similarity
        The fitted similarity, which gives tiles, products and sums.
    membership_ : array (n_objects, n_clusters), float64
        Only for partitioners with soft results: the shares of each object in the clusters; rows sum to 1. All shares of
        an object are equal if the fit has no information on the object, for example if a sample lacks its labels. In
        the memory of `labels_`.
    confidence_ : array (n_objects,), float64
        The support of the clusterings for each object's label, compared with all labels, from 0 to 1: the same as
        ``evidence().objects.confidence``, in the memory of `labels_`, see `gpuens.evidence.objects`. Confidence orders
        the objects; it is not a probability that a label is right. Computed on first access.
    children_ : ndarray (n_objects - 1, 2), int64
    distances_ : ndarray (n_objects - 1,), float64
        Only for linkages: scikit-learn's merge list of all objects, with distances 1 - similarity in ascending order.
        Computed on first access.
    dendrogram_, lifetimes_, work_
        Only for linkages: the merges of the reduction's rows; the range of distances that gives 2, 3, … clusters; and
        the numbers of label comparisons, searches and rounds of the run.
    weight_unit_ : float
        Only with ``sample_weight``: the weight of a count of 1 in ``reduction_.counts``; of whole numbers, their
        greatest common divisor.
    suggestion_ : gpuens.evidence.Suggestion
        Only without `n_clusters`: the suggested number of clusters, with its reason and its doubt.
    rest_ : array (n_objects,), bool
    n_branches_ : int
        Only for linkages: the mask of the objects in branches of the cut tree with less than `min_size` objects, which
        have the label of the most similar cluster; and the number of all branches. `predict` compares new objects only
        with the other objects. In the memory of `labels_`; False for objects outside a sample.

    Raises
    ------
    ValueError, TypeError, MemoryError
        For impossible pairs of similarity and partitioner, before any work, and for invalid labels and parameters.

    Examples
    --------
    >>> import gpuens as ge
    >>> labels = [[0, 0, 0, 1, 1, 1], [0, 0, 1, 2, 2, 2], [0, 0, 0, 0, 1, 1]]
    >>> est = ge.Consensus(2, similarity=ge.similarity.LWCA(theta=0.4), partitioner=ge.partition.METIS())
    >>> est.fit_predict(labels).tolist()
    [0, 0, 0, 1, 1, 1]
    >>> ge.Consensus(2, similarity="coupled", partitioner="average").fit_predict(labels).tolist()
    [0, 0, 0, 1, 1, 1]

    New objects get the most similar cluster:

    >>> est.predict([[0, 1], [0, 2], [0, 1]]).tolist()
    [0, 1]
    """

    similarity: Any = "coassociation"
    partitioner: Any = "average"

    def _parts(self) -> tuple[Any, Any]:
        return resolved_part(self.similarity, SIMILARITIES, "similarity", Measure), self.partitioner

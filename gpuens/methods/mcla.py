"""MCLA: meta-clusters by the Jaccard similarity of clusters."""

from gpuens.methods.base import Seeded
from gpuens.partition import MetaClusters, Partitioner
from gpuens.similarity import Jaccard, Measure


class MCLA(Seeded):
    """Meta-clustering algorithm: clusters of all clusterings that share many objects make one cluster.

    METIS cuts the graph of the clusters, with Jaccard similarities as weights of edges, and numbers of objects as
    weights of vertices. Every object, including new objects and those outside a sample, goes to the meta-cluster with
    most of its labels. If several meta-clusters have equally many of its labels, it goes to the one that contains the
    cluster with the smallest number. The choice is not random, so that objects with equal labels stay together. Only
    clusters are compared, so that the cost is linear in the number of objects. A warning is given if a meta-cluster
    gets no object.

    Parameters
    ----------
    imbalance : float > 0
        Largest excess of a part's weight over the average: 0.03 means 3 %. Equal parts are less accurate if classes
        have unequal sizes.

    Attributes
    ----------
    labels_, n_clusters_, reduction_, meta_clusters_, membership_
        See `gpuens.Consensus`.

    References
    ----------
    Strehl & Ghosh, "Cluster ensembles - a knowledge reuse framework for combining multiple partitions", JMLR 3 (2002)
    583-617.

    Examples
    --------
    >>> import gpuens as ge
    >>> labels = [[0, 0, 0, 1, 1, 1], [0, 0, 1, 2, 2, 2], [0, 0, 0, 0, 1, 1]]
    >>> est = ge.MCLA(n_clusters=2).fit(labels)
    >>> est.labels_.tolist(), est.meta_clusters_.tolist()
    ([0, 0, 0, 1, 1, 1], [0, 1, 0, 0, 1, 0, 1])
    """

    cost = "G M k, C²"
    imbalance: float = 0.03

    def _parts(self) -> tuple[Measure, Partitioner]:
        return Jaccard(), MetaClusters(self.imbalance, self.random_state)

"""CrC-C: meta-clusters of clusters that are similar if their objects have many common neighbours."""

from typing import Any

from gpuens.methods.base import Seeded
from gpuens.partition import MetaClusters, Partitioner
from gpuens.similarity import CommonNeighbors, Measure


class CrCC(Seeded):
    """Coupled cluster-based coupling: the similarity of two clusters is the mean CCOSO of their objects (eq 24).

    CCOSO of two objects is the similarity by common neighbours.

    METIS groups the clusters into meta-clusters, and each object goes to the meta-cluster with most of its labels, as
    in MCLA. Neighbourhoods of distinct rows are computed in pieces: O(G² M) similarities in O(G) memory. Objects
    outside a sample, and new objects, go to the cluster with the most similar objects (§5.3); their largest
    `membership_` may belong to another cluster.

    Parameters
    ----------
    threshold : float in [0, 1], optional
        Least IaOSO of two neighbours; None means the mean over all pairs of objects.
    weights : array (n_clusterings,), optional
        λ: the weight of each clustering in the coupling; equal by default.
    imbalance : float > 0
        Largest excess of a part's weight over the average: 0.03 means 3 %. Equal parts are less accurate if classes
        have unequal sizes.

    Attributes
    ----------
    labels_, n_clusters_, reduction_, coupling_, threshold_, meta_clusters_, membership_
        See `gpuens.Consensus`.

    References
    ----------
    Wang et al., "Coupled clustering ensemble by exploring data interdependence", ACM TKDD 12 (2018).

    Examples
    --------
    >>> import gpuens as ge
    >>> labels = [[0, 0, 0, 1, 1, 1], [0, 0, 1, 1, 1, 1], [0, 0, 1, 1, 2, 2]]
    >>> est = ge.CrCC(n_clusters=2).fit(labels)
    >>> est.labels_.tolist(), est.membership_.round(2)[2].tolist()
    ([0, 0, 0, 1, 1, 1], [0.6, 0.4])
    """

    cost = "G²"
    threshold: float | None = None
    weights: Any = None
    imbalance: float = 0.03

    def _parts(self) -> tuple[Measure, Partitioner]:
        cut = MetaClusters(self.imbalance, self.random_state, others="similarity")
        return CommonNeighbors(self.threshold, self.weights), cut

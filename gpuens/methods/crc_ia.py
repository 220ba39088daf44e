"""CrC-Ia: meta-clusters of clusters that are similar if the mean coupled similarity of their objects is large."""

from typing import Any

from gpuens.methods.base import Seeded
from gpuens.partition import MetaClusters, Partitioner
from gpuens.similarity import Coupled, Measure


class CrCIa(Seeded):
    """Intra-coupled cluster-based coupling: the similarity of two clusters is the mean IaOSO of their objects (eq 24).

    IaOSO of two objects is their intra-coupled similarity.

    METIS groups the clusters into meta-clusters, and each object goes to the meta-cluster with most of its labels, as
    in MCLA. Pairs of objects are not visited, because the mean is p_cᵀ S p_d, where p_c are the shares of cluster c in
    all clusters. Objects outside a sample, and new objects, go to the cluster with the most similar objects (§5.3);
    their largest `membership_` may belong to another cluster.

    Parameters
    ----------
    weights : array (n_clusterings,), optional
        λ: the weight of each clustering in the coupling; equal by default.
    imbalance : float > 0
        Largest excess of a part's weight over the average: 0.03 means 3 %. Equal parts are less accurate if classes
        have unequal sizes.

    Attributes
    ----------
    labels_, n_clusters_, reduction_, coupling_, meta_clusters_, membership_
        See `gpuens.Consensus`.

    References
    ----------
    Wang et al., "Coupled clustering ensemble by exploring data interdependence", ACM TKDD 12 (2018).

    Examples
    --------
    >>> import gpuens as ge
    >>> labels = [[0, 0, 0, 1, 1, 1], [0, 0, 1, 2, 2, 2], [0, 0, 0, 0, 1, 1]]
    >>> est = ge.CrCIa(n_clusters=2).fit(labels)
    >>> est.labels_.tolist(), est.meta_clusters_.tolist()
    ([0, 0, 0, 1, 1, 1], [0, 1, 0, 1, 1, 0, 1])
    """

    cost = "G M k, C³"
    weights: Any = None
    imbalance: float = 0.03

    def _parts(self) -> tuple[Measure, Partitioner]:
        cut = MetaClusters(self.imbalance, self.random_state, others="similarity")
        return Coupled(self.weights), cut

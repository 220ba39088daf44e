"""CrC-Ia: meta-clusters of the clusters, by the mean coupled similarity of their objects."""

import numpy as np

from gpuens.methods.coupled import CoupledConsensus, MetaClusterConsensus
from gpuens.partition.meta_clustering import learn_meta_clustering
from gpuens.reduction import Reduction
from gpuens.scattered import Numbered, Pieces
from gpuens.similarity import coupled


class CrCIa(MetaClusterConsensus, CoupledConsensus):
    """Intra-coupled cluster-based coupling: clusters are as similar as their objects' mean IaOSO (eq 24).

    METIS makes meta-clusters of them, and each object goes to the one that it is most associated with, as in MCLA. No
    pair of objects is visited: the mean is p_cᵀ S p_d, with p_c the shares of cluster c in all clusters.

    Parameters
    ----------
    n_clusters : int
        Clusters wanted, at most the number of distinct label rows.
    weights : array (n_clusterings,), optional
        λ: what each clustering counts for in the coupling; equal if not given.
    imbalance : float > 0
        By how much of the average METIS may make a part heavier. Equal parts cost accuracy where classes are unequal.
    random_state : int, None or numpy.random.Generator
        For METIS; the same seed gives the same labels.
    reduction : optional
        An object with ``reduce(ensemble)``, such as ``Sample(10_000)``; None is core groups, which is exact.
    device : {"auto", "cpu", "cuda", "emulated"}

    Attributes
    ----------
    labels_, n_clusters_, reduction_, coupling_, meta_clusters_, membership_
        See `gpuens.methods.base` and `gpuens.methods.coupled`.

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

    def _similarity_of_clusters(self, reduced: Reduction, device: str) -> np.ndarray:
        blocks = self._couple(reduced, device)
        return coupled.between_clusters(reduced.ensemble, reduced.weights, blocks, device=device)

    def _learn(self, rows: Pieces) -> Numbered:
        blocks, shared = self._couple_in_pieces(rows, layout="dense")
        rule, self.meta_clusters_ = learn_meta_clustering(
            rows,
            coupled.between_clusters_of(shared, blocks),
            shared.diagonal(),
            self._k,
            imbalance=self.imbalance,
            random_state=self.random_state,
        )
        self._device = "cpu"
        return rule

"""S-CCE: coupled similarity and common neighbours, mixed by the consistency of the base clusterings."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from gpuens import contingency
from gpuens.labels.rows import Rows
from gpuens.methods.base import Seeded
from gpuens.partition import MetaClusters, Partitioner
from gpuens.runtime import checks
from gpuens.similarity import CommonNeighbors, Coupled, Measure, Similarity
from gpuens.similarity.base import Features
from gpuens.similarity.neighborhood import Neighborhoods


class SCCE(Seeded):
    """Soft coupled clustering ensemble: the similarity of objects is μ IaOSO + (1 - μ) CCOSO (§7).

    If the base clusterings agree (μ near 1), common neighbours have little weight. The similarity of clusters is the
    mean similarity of their objects. METIS groups the clusters into meta-clusters, and each object goes to the
    meta-cluster with most of its labels. μ = 1 is CrC-Ia, μ = 0 is CrC-C. Objects outside a sample, and new objects, go
    to the cluster with the most similar objects (§5.3); their largest `membership_` may belong to another cluster.

    Parameters
    ----------
    mu : float in [0, 1], optional
        None means the consistency of the base clusterings: their mean pairwise adjusted Rand index, or 0 if negative.
    threshold : float in [0, 1], optional
        Least IaOSO of two neighbours; None means the mean over all pairs of objects.
    weights : array (n_clusterings,), optional
        λ: the weight of each clustering in the coupling, such as its defined quality; equal by default.
    imbalance : float > 0
        Largest excess of a part's weight over the average: 0.03 means 3 %. Equal parts are less accurate if classes
        have unequal sizes.

    Attributes
    ----------
    labels_, n_clusters_, reduction_, coupling_, threshold_, meta_clusters_, membership_
        See `gpuens.Consensus`.
    mu_ : float

    References
    ----------
    Wang et al., "Coupled clustering ensemble by exploring data interdependence", ACM TKDD 12 (2018).

    Examples
    --------
    >>> import gpuens as ge
    >>> labels = [[0, 0, 0, 1, 1, 1], [0, 0, 1, 2, 2, 2], [0, 0, 0, 0, 1, 1]]
    >>> est = ge.SCCE(n_clusters=2).fit(labels)
    >>> est.labels_.tolist(), round(est.mu_, 2)
    ([0, 0, 0, 1, 1, 1], 0.36)
    """

    cost = "G²"
    mu: float | None = None
    threshold: float | None = None
    weights: Any = None
    imbalance: float = 0.03

    def _parts(self) -> tuple[Measure, Partitioner]:
        cut = MetaClusters(self.imbalance, self.random_state, others="similarity")
        return CoupledAndNear(self.mu, self.threshold, self.weights), cut


@dataclass(frozen=True, eq=False)
class CoupledAndNear(Measure):
    """The similarity μ IaOSO + (1 - μ) CCOSO of objects; the parameters are those of `gpuens.SCCE`."""

    mu: float | None = None
    threshold: float | None = None
    weights: Any = None
    kind = "pairs"

    def __post_init__(self) -> None:
        checks.check_fraction(self.mu, "mu", "the consistency of the base clusterings")
        CommonNeighbors(self.threshold, self.weights)

    def refuse_too_many(self, rows: Rows) -> None:
        Coupled(self.weights).refuse_too_many(rows)

    def __call__(self, rows: Rows, features: Features | None = None) -> Similarity:
        coupled = Coupled(self.weights)(rows)
        neighborhoods = Neighborhoods(rows, coupled, self.threshold)
        mu = consistency(rows) if self.mu is None else float(self.mu)
        similarity = mu * coupled + (1.0 - mu) * neighborhoods
        similarity.results["mu"] = mu
        return similarity


def consistency(rows: Rows) -> float:
    """Return the mean adjusted Rand index of all pairs of clusterings, or 0 if the mean is negative.

    Pairs of clusterings that label no object in common are left out.
    """
    scores = contingency.agreement(rows, score="ari")
    pairs = scores[np.triu_indices(len(scores), 1)]
    defined = pairs[~np.isnan(pairs)]
    return max(0.0, float(defined.mean())) if defined.size else 0.0

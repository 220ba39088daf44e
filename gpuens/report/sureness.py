"""The least certainty of objects that a report page calls sure, and the conditions on clusters and their number."""

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from gpuens.evidence import Evidence

SURE = 0.7  # minimum certainty of a sure object
IN_DOUBT = 0.5  # an object of less certainty is in doubt
LEAST_CONSENSUS = 0.7  # minimum consensus of a cluster whose objects can be sure, and of the clusters on average


class Sureness(NamedTuple):
    """Three masks (n_objects,) that divide all objects into sure, fairly sure and doubtful objects."""

    sure: np.ndarray
    fairly_sure: np.ndarray
    in_doubt: np.ndarray

    @classmethod
    def of(cls, evidence: "Evidence") -> "Sureness":
        certainty, consensus = evidence.objects.certainty, evidence.clusters.consensus
        in_doubt = (evidence.objects.margin <= 0) | (certainty < IN_DOUBT)
        sure = ~in_doubt & (certainty >= SURE) & (consensus >= LEAST_CONSENSUS)[evidence.labels]
        return cls(sure, ~(sure | in_doubt), in_doubt)


def doubt_of_number(estimator: Any) -> str | None:
    """Return the reason why the number of clusters is in doubt, or None; a given number is not in doubt."""
    suggestion = getattr(estimator, "suggestion_", None)
    return None if suggestion is None else suggestion.doubt()


def mean_consensus(evidence: "Evidence") -> float:
    """Return the mean of C over the pairs of objects within a cluster, where each cluster counts by its objects."""
    clusters = evidence.clusters
    has_pairs = ~np.isnan(clusters.consensus)  # clusters of several members
    if not has_pairs.any():
        return 0.0
    return float(np.average(clusters.consensus[has_pairs], weights=clusters.sizes[has_pairs]))

"""Weights of clusterings by their agreement with the others, used alone and together with links between clusters.

Huang, Lai & Wang, "Combining multiple clusterings via crowd agreement estimation and multi-granularity link analysis",
Neurocomputing 170 (2015) 240-250.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from gpuens.contingency.scores import row_agreement
from gpuens.labels.rows import Rows, as_rows
from gpuens.runtime import checks
from gpuens.similarity.base import Features, Measure, check_cluster_memory, weights_of_clusters
from gpuens.similarity.diagonal import Diagonal
from gpuens.similarity.links import jaccard, triples

LEAST = 1e-9  # smallest agreement, divided by the largest; it makes all weights positive


@dataclass(frozen=True)
class Agreement(Measure):
    """Co-association weighted by agreement: S = diag(w) / Σ w, with w of `weac_weights`.

    Parameters
    ----------
    beta : float from 0 to 9
        Exponent of the agreement; at 0 all clusterings weigh the same.

    Examples
    --------
    >>> import gpuens as ge
    >>> rows = ge.Rows([[0, 0, 0, 1], [0, 0, 1, 1], [0, 1, 0, 1]])
    >>> ge.similarity.Agreement()(rows).tile(rows, 0, 1).round(2).tolist()
    [[1.0, 0.83, 0.83, 0.0]]
    """

    beta: float = 2.0
    kind = "diagonal"
    learns_by_sums = True
    real_weights = True

    def __post_init__(self) -> None:
        checks.check_between(self.beta, "beta", 0, 9)

    def __call__(self, rows: Rows, features: Features | None = None) -> Diagonal:
        weights = weac_weights(rows, self.beta)
        return Diagonal(weights_of_clusters(weights, rows), rows.offsets, weights=weights)


def weac_weights(ens: Any, beta: float = 2.0, *, device: str = "auto") -> np.ndarray:
    """Return the weight of each clustering by its agreement with the others, (CAI / max CAI)^β.

    CAI is the mean of the normalised mutual information, by the larger entropy, with each other clustering, over the
    objects labelled in both; 0 for two without such objects.

    Parameters
    ----------
    ens : Ensemble, Rows, or anything that Ensemble takes
    beta : float from 0 to 9
    device : {"auto", "cpu", "cuda"}

    Returns
    -------
    ndarray (n_clusterings,), float64, positive, the largest 1
        An agreement of less than 1e-9 of the largest counts as 1e-9.

    Examples
    --------
    >>> import gpuens as ge
    >>> ge.similarity.weac_weights([[0, 0, 0, 1], [0, 0, 1, 1], [0, 1, 0, 1]]).round(2).tolist()
    [1.0, 0.25, 0.25]
    """
    rows, beta = as_rows(ens, device), checks.check_between(beta, "beta", 0, 9)
    agreement = row_agreement(rows, "max").matrix()
    with_others = np.where(np.isnan(agreement), 0.0, agreement).sum(axis=1) - 1.0
    largest = with_others.max()
    if not largest > 0:  # there is a single clustering, or no two clusterings agree
        return np.ones(rows.n_clusterings)
    return np.maximum(with_others / largest, LEAST) ** beta


class Linked(Diagonal):
    """Weights of clusters together with a graph of the clusters, for the transfer cut."""

    def __init__(self, weights: np.ndarray, graph: np.ndarray, offsets: np.ndarray, /, **results: Any) -> None:
        super().__init__(weights, offsets, **results)
        self.graph = graph  # (N_c, N_c)


@dataclass(frozen=True)
class AgreementLinks(Measure):
    """GP-MGLA's graph: an object is linked to its clusters with weight α w_m, two clusters with weight SACT.

    SACT_cd = Σ_t w_m(t) min(W_ct, W_dt), divided by the largest such sum of all c, d (c = d included); then SACT_cc is
    set to 1. W is the Jaccard similarity of clusters, with a diagonal of ones, and m(t) the clustering of cluster t.

    Parameters
    ----------
    beta : float from 0 to 9
        Exponent of the agreement, see `weac_weights`.
    alpha : float from 1e-6 to 1e6
        The weight of links of objects relative to links between clusters.

    Examples
    --------
    >>> import gpuens as ge
    >>> found = ge.similarity.AgreementLinks()(ge.Rows([[0, 0, 0, 1], ["b", "a", "a", "b"]]))
    >>> found.graph.round(2).tolist()
    [[1.0, 0.13, 0.7, 0.26], [0.13, 1.0, 0.0, 0.52], [0.7, 0.0, 1.0, 0.13], [0.26, 0.52, 0.13, 1.0]]
    """

    beta: float = 2.0
    alpha: float = 0.5
    kind = "diagonal"
    learns_by_sums = True

    def __post_init__(self) -> None:
        checks.check_between(self.beta, "beta", 0, 9)
        checks.check_between(self.alpha, "alpha", 1e-6, 1e6)

    def refuse_too_many(self, rows: Rows) -> None:
        check_cluster_memory(rows.n_clusters)

    def __call__(self, rows: Rows, features: Features | None = None) -> Linked:
        weights, linked = weac_weights(rows, self.beta), jaccard(rows)
        graph = triples(linked, rows, weights)
        graph /= graph.max() or 1.0
        np.fill_diagonal(graph, linked.diagonal())  # the diagonal is 1, and 0 for clusters without objects
        of_clusters = np.repeat(float(self.alpha) * weights, np.diff(rows.offsets))
        return Linked(of_clusters, graph, rows.offsets, weights=weights)

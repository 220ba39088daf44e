"""OC-H: ROCK merging on common neighbours."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from gpuens.methods.base import SimilaritySums
from gpuens.methods.coupled import NeighborhoodConsensus
from gpuens.partition.rock import check_theta, links_fit, rock
from gpuens.reduction import Reduction
from gpuens.similarity.neighborhood import Neighborhoods

LARGEST_THETA = 0.999999  # that `rock` takes


class OCH(NeighborhoodConsensus):
    """Hierarchical object-based coupling: clusters merge by the common neighbours of their objects (eqs 22-23).

    From the distinct label rows on, the two clusters with the largest

        link(A, B) / ((n_A + n_B)^(1 + 2f) - n_A^(1 + 2f) - n_B^(1 + 2f)),   f = (1 - θ) / (1 + θ)

    merge, where link sums CCOSO over the pairs of objects between them (Guha et al. 2000). The links of all pairs of
    distinct rows are held: beyond some twenty thousand rows pass ``reduction=Sample(…)``. Where clusters are not well
    apart it tends to one large cluster and a few small ones, as the goodness has it.

    Parameters
    ----------
    n_clusters : int
        Clusters wanted, at most the number of distinct label rows.
    theta : float from 0 to .999999, optional
        From which IaOSO on two objects are neighbours; None is the mean over all pairs of objects.
    weights : array (n_clusterings,), optional
        λ: what each clustering counts for in the coupling; equal if not given.
    reduction : optional
        An object with ``reduce(ensemble)``, such as ``Sample(10_000)``; None is core groups, which is exact.
    device : {"auto", "cpu", "cuda", "emulated"}
        Where common neighbours are counted; merging is on the host.

    Attributes
    ----------
    labels_, n_clusters_, reduction_, coupling_, theta_
        See `gpuens.methods.base` and `gpuens.methods.coupled`.
    merges_ : gpuens.partition.Rock
        Which rows' clusters merged, in order, and how good that was.

    Raises
    ------
    MemoryError
        Before it starts, where the links do not fit the memory budget.

    References
    ----------
    Wang et al., "Coupled clustering ensemble by exploring data interdependence", ACM TKDD 12 (2018).
    Guha, Rastogi & Shim, "ROCK: a robust clustering algorithm for categorical attributes", Information Systems 25
    (2000) 345-366.

    Examples
    --------
    >>> import gpuens as ge
    >>> labels = [[0, 0, 0, 1, 1, 1], [0, 0, 1, 2, 2, 2], [0, 0, 0, 0, 1, 1]]
    >>> ge.OCH(n_clusters=2).fit_predict(labels).tolist()
    [0, 0, 0, 1, 1, 1]
    """

    def __init__(
        self,
        n_clusters: int | None = None,
        *,
        theta: float | None = None,
        weights: Any = None,
        reduction: Any = None,
        device: str = "auto",
    ) -> None:
        self.n_clusters = n_clusters
        self.theta = theta
        self.weights = weights
        self.reduction = reduction
        self.device = device

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.theta is not None:
            check_theta(self.theta)

    def _partition(self, reduced: Reduction, device: str) -> np.ndarray:
        links_fit(len(reduced.weights), int(reduced.weights.sum()))
        near = self._neighborhoods(reduced, self._couple(reduced, device), device)
        if self.theta is None:
            self.theta_ = min(self.theta_, LARGEST_THETA)
        links_of, unit = common_links(near)
        found = rock(links_of, reduced.weights, self._k, self.theta_)
        self.merges_ = found._replace(goodness=found.goodness * unit)
        return self.merges_.labels

    def _similarity_sums(self, reduced: Reduction, labels: np.ndarray, device: str) -> SimilaritySums:
        return self._common_neighbor_sums(reduced, labels, device)


def common_links(near: Neighborhoods) -> tuple[Callable[[int, int], np.ndarray], float]:
    """Return what gives the sums of common neighbours over all pairs of objects of two rows, as `rock` takes them.

    They are multiples of a unit, which comes second: 1 up to two million objects, whose links int64 can add up.
    """
    bits, planes = near.all_bits()
    counts = near.counts
    unit = 2.0 ** max(0, math.ceil(3 * math.log2(near.n_objects) - 1) - 62)

    def links_of(start: int, stop: int) -> np.ndarray:
        rows, cols = np.arange(start, stop), np.arange(start, len(counts))
        common = near.common(rows, bits[start:stop], cols, planes[start:])
        np.fill_diagonal(common, 0)  # which is nothing where a row has one object, and of no use
        if unit > 1:
            return np.rint(common * (counts[rows][:, None] / unit) * counts[cols]).astype(np.int64)
        common *= counts[rows][:, None]
        common *= counts[cols]
        return common

    return links_of, unit

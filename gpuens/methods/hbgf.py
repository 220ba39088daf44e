"""HBGF: transfer cut of the unweighted bipartite graph."""

from typing import Any

import numpy as np

from gpuens import checks
from gpuens.methods.base import Consensus
from gpuens.partition.transfer_cut import learn_transfer_cut, transfer_cut
from gpuens.reduction import Reduction
from gpuens.scattered import Numbered, Pieces


class HBGF(Consensus):
    """Hybrid bipartite graph formulation: objects and clusters in one graph, all edges alike, cut by transfer cut.

    Parameters
    ----------
    n_clusters : int
        Clusters wanted, at most the number of distinct label rows.
    n_init : int
        Restarts of the final k-means.
    random_state : int or numpy.random.Generator
        For the final k-means; the same seed gives the same labels.
    reduction : optional
        An object with ``reduce(ensemble)``; None is core groups, which is exact.
    device : {"auto", "cpu", "cuda", "emulated"}

    Attributes
    ----------
    labels_, n_clusters_, reduction_
        See `gpuens.methods.base`.

    References
    ----------
    Fern & Brodley, "Solving cluster ensemble problems by bipartite graph partitioning", ICML 2004.
    Li, Wu & Chang, "Segmentation using superpixels: a bipartite graph partitioning approach", CVPR 2012.

    Examples
    --------
    >>> import gpuens as ge
    >>> labels = [[0, 0, 0, 1, 1, 1], [0, 0, 1, 2, 2, 2], [0, 0, 0, 0, 1, 1]]
    >>> ge.HBGF(n_clusters=2).fit_predict(labels).tolist()
    [0, 0, 0, 1, 1, 1]
    """

    def __init__(
        self,
        n_clusters: int | None = None,
        *,
        n_init: int = 10,
        random_state: Any = 0,
        reduction: Any = None,
        device: str = "auto",
    ) -> None:
        self.n_clusters = n_clusters
        self.n_init = n_init
        self.random_state = random_state
        self.reduction = reduction
        self.device = device

    def _check_parameters(self) -> None:
        checks.check_runs(self.n_init)
        checks.make_generator(self.random_state)

    def _partition(self, reduced: Reduction, device: str) -> np.ndarray:
        return transfer_cut(
            reduced.ensemble,
            self._edge_weights(reduced, device),
            reduced.weights,
            self._k,
            n_init=self.n_init,
            random_state=self.random_state,
            device=device,
        )

    def _learn(self, rows: Pieces) -> Numbered:
        weights = self._edge_weights_in_pieces(rows)
        return learn_transfer_cut(rows, weights, self._k, n_init=self.n_init, random_state=self.random_state)

    def _edge_weights(self, reduced: Reduction, device: str) -> np.ndarray:
        return np.ones(reduced.ensemble.n_clusters)

    def _edge_weights_in_pieces(self, rows: Pieces) -> np.ndarray:
        return np.ones(rows.numbering.n_clusters)

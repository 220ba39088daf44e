"""CgC: k-means on the object-label space of coupled similarities."""

from typing import Any

import numpy as np

from gpuens import checks
from gpuens.methods.coupled import CoupledConsensus
from gpuens.partition.label_kmeans import (
    Divergence,
    LabelKMeans,
    label_kmeans,
    learn_label_kmeans,
    squared_euclidean,
)
from gpuens.reduction import Reduction
from gpuens.scattered import Numbered, Pieces


class CgC(CoupledConsensus):
    """Clustering-based coupling: k-means on how similar each object's clusters are to all clusters (eqs 17-20).

    An object's features are, for each clustering, the row of CCSC that belongs to its cluster, less the mean over the
    clustering's clusters; a missing label has zeros. They are looked up and never built: an iteration costs O(G M k).

    Parameters
    ----------
    n_clusters : int
        Clusters wanted, at most the number of distinct label rows.
    weights : array (n_clusterings,), optional
        λ: what each clustering counts for in the coupling; equal if not given.
    n_init, max_iter : int
        Restarts of k-means, and its iterations at most.
    random_state : int, None or numpy.random.Generator
        The same seed gives the same labels, on every device.
    reduction : optional
        An object with ``reduce(ensemble)``, such as ``Sample(10_000)``; None is core groups, which is exact.
    device : {"auto", "cpu", "cuda", "emulated"}

    Attributes
    ----------
    labels_, n_clusters_, reduction_, coupling_
        See `gpuens.methods.base` and `gpuens.methods.coupled`.
    objective_ : float
        Sum of the squared distances of the objects to the centroids of their clusters.
    n_iter_ : int
    converged_ : bool

    References
    ----------
    Wang et al., "Coupled clustering ensemble by exploring data interdependence", ACM TKDD 12 (2018).

    Examples
    --------
    >>> import gpuens as ge
    >>> labels = [[0, 0, 0, 1, 1, 1], [0, 0, 1, 2, 2, 2], [0, 0, 0, 0, 1, 1]]
    >>> ge.CgC(n_clusters=2).fit_predict(labels).tolist()
    [0, 0, 0, 1, 1, 1]
    """

    def __init__(
        self,
        n_clusters: int | None = None,
        *,
        weights: Any = None,
        n_init: int = 10,
        max_iter: int = 100,
        random_state: Any = 0,
        reduction: Any = None,
        device: str = "auto",
    ) -> None:
        self.n_clusters = n_clusters
        self.weights = weights
        self.n_init = n_init
        self.max_iter = max_iter
        self.random_state = random_state
        self.reduction = reduction
        self.device = device

    def _check_parameters(self) -> None:
        checks.check_runs(self.n_init, self.max_iter)
        checks.make_generator(self.random_state)

    def _partition(self, reduced: Reduction, device: str) -> np.ndarray:
        self._couple(reduced, device)
        codes, offsets = reduced.ensemble.codes_on(device), reduced.ensemble.offsets
        found = label_kmeans(
            codes, offsets, reduced.weights, self._divergence(), self._k, **self._settings(), device=device
        )
        self._note(found)
        return found.labels

    def _learn(self, rows: Pieces) -> Numbered:
        self._couple_in_pieces(rows)
        found = learn_label_kmeans(rows, self._divergence(), self._k, **self._settings())
        self._note(found)
        return found.labels

    def _divergence(self) -> Divergence:
        return squared_euclidean([matrix - matrix.mean(axis=0) for matrix in self.coupling_])

    def _settings(self) -> dict[str, Any]:
        rng = checks.make_generator(self.random_state)
        return {"n_init": self.n_init, "max_iter": self.max_iter, "rng": rng}

    def _note(self, found: LabelKMeans) -> None:
        self.objective_, self.n_iter_, self.converged_ = found.objective, found.n_iter, found.converged
        checks.warn_of_fewer(len(found.const), self._k)

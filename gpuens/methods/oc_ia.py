"""OC-Ia: METIS on the coupled similarity of objects."""

from typing import Any

import numpy as np

from gpuens import checks
from gpuens import device as devices
from gpuens.methods.coupled import CoupledConsensus
from gpuens.partition.metis import graph_fits, metis
from gpuens.reduction import Reduction
from gpuens.similarity.coupled import coupled_tile


class OCIa(CoupledConsensus):
    """Intra-coupled object-based coupling: METIS cuts the complete graph of the objects' IaOSO (eq 21).

    METIS makes parts of like size, which costs accuracy where classes are unequal. It holds all pairs of distinct rows,
    28 bytes each (44 of fewer than 40 rows a cluster): beyond some ten thousand rows pass ``reduction=Sample(…)``.

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
        Where similarities are computed; METIS runs on the host.

    Attributes
    ----------
    labels_, n_clusters_, reduction_, coupling_
        See `gpuens.methods.base` and `gpuens.methods.coupled`.

    Raises
    ------
    MemoryError
        Before it starts, where the graph does not fit the memory budget.

    References
    ----------
    Wang et al., "Coupled clustering ensemble by exploring data interdependence", ACM TKDD 12 (2018).

    Examples
    --------
    >>> import gpuens as ge
    >>> labels = [[0, 0, 0, 1, 1, 1], [0, 0, 1, 2, 2, 2], [0, 0, 0, 0, 1, 1]]
    >>> ge.OCIa(n_clusters=2).fit_predict(labels).tolist()
    [0, 0, 0, 1, 1, 1]
    """

    def __init__(
        self,
        n_clusters: int | None = None,
        *,
        weights: Any = None,
        imbalance: float = 0.03,
        random_state: Any = 0,
        reduction: Any = None,
        device: str = "auto",
    ) -> None:
        self.n_clusters = n_clusters
        self.weights = weights
        self.imbalance = imbalance
        self.random_state = random_state
        self.reduction = reduction
        self.device = device

    def _check_parameters(self) -> None:
        checks.check_real(self.imbalance, "imbalance", above=0.0)
        checks.make_generator(self.random_state)

    def _partition(self, reduced: Reduction, device: str) -> np.ndarray:
        graph_fits(len(reduced.weights), self._k)
        blocks = self._couple(reduced, device).on(device)
        codes, offsets, counts = reduced.ensemble.codes_on(device), reduced.ensemble.offsets, reduced.weights

        def similarities_of(start: int, stop: int) -> np.ndarray:
            """Return the sums of the similarities of all pairs of objects of two rows."""
            tile = devices.to_host(coupled_tile(codes[start:stop], codes, offsets, blocks, device=device))
            tile *= counts[start:stop, None]
            tile *= counts
            return tile

        return metis(similarities_of, counts, self._k, imbalance=self.imbalance, random_state=self.random_state)

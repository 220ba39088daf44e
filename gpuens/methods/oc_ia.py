"""OC-Ia: METIS cuts the graph of the coupled similarity of objects."""

from typing import Any

from gpuens.methods.base import Seeded
from gpuens.partition import METIS, Partitioner
from gpuens.similarity import Coupled, Measure


class OCIa(Seeded):
    """Intra-coupled object-based coupling: METIS cuts the complete graph of the objects' IaOSO (eq 21).

    METIS makes parts of similar size, which is less accurate if classes have unequal sizes. The graph stores all pairs
    of distinct rows, and needs 28 bytes per pair (44 bytes if there are fewer than 40 rows per cluster). For more than
    ten thousand rows, pass
    ``reduction=Sample(…)``.

    Parameters
    ----------
    weights : array (n_clusterings,), optional
        λ: the weight of each clustering in the coupling; equal by default.
    imbalance : float > 0
        Largest excess of a part's weight over the average: 0.03 means 3 %. Equal parts are less accurate if classes
        have unequal sizes.
    device : {"auto", "cpu", "cuda"}
        Device of the similarities; METIS runs on the host.

    Attributes
    ----------
    labels_, n_clusters_, reduction_, coupling_
        See `gpuens.Consensus`.

    Raises
    ------
    MemoryError
        Before work starts, if the graph does not fit the memory budget.

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

    cost = "G²"
    on_gpu = "all but the last step"
    weights: Any = None
    imbalance: float = 0.03

    def _parts(self) -> tuple[Measure, Partitioner]:
        return Coupled(self.weights), METIS(self.imbalance, self.random_state)

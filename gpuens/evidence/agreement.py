"""Agreement of a consensus with the base clusterings, from the intersections of their clusters."""

from typing import Any, NamedTuple

import numpy as np

from gpuens.contingency.counting import Cells
from gpuens.contingency.scores import nmi_of_cells
from gpuens.evidence.inputs import checked_inputs
from gpuens.evidence.overlaps import clusterings_of, overlaps, rows_of
from gpuens.labels.rows import Rows


class Agreement(NamedTuple):
    """Agreement of a consensus with each base clustering, computed from the objects that the base clustering labels.

    Attributes
    ----------
    nmi, ecs : ndarray (n_clusterings,), float64
        The mutual information, normalised by the geometric mean of the entropies, and the element-centric similarity.
    n_labelled : ndarray (n_clusterings,), int64
        Number of objects that the clustering labels.
    """

    nmi: np.ndarray
    ecs: np.ndarray
    n_labelled: np.ndarray

    @property
    def anmi(self) -> float:
        """The mean NMI, weighted by the number of labelled objects (Strehl & Ghosh, JMLR 3 (2002), eq 5)."""
        return float(np.average(self.nmi, weights=self.n_labelled))

    @property
    def mean_ecs(self) -> float:
        """The mean element-centric similarity, weighted by the number of labelled objects."""
        return float(np.average(self.ecs, weights=self.n_labelled))


def agreement(labels: Any, consensus: Any, *, device: str = "auto") -> Agreement:
    """Return the agreement of a consensus with each base clustering.

    The element-centric similarity (Gates et al., Scientific Reports 9 (2019)) of an object whose clusters are A and B
    is |A ∩ B| / max(|A|, |B|). The element-centric similarity of two clusterings is the mean over the objects.

    Parameters
    ----------
    labels : anything that `gpuens.Ensemble` takes
        The base clusterings (n_objects, n_clusterings).
    consensus : array (n_objects,)
        A label for every object.
    device : {"auto", "cpu", "cuda"}

    Raises
    ------
    ValueError, TypeError
        For a consensus of another length, or a consensus with unlabelled objects.

    Examples
    --------
    >>> import gpuens as ge
    >>> found = ge.evidence.agreement([[0, 0, 1, 1], [0, 0, 1, 2], [0, 0, None, 1]], [0, 0, 1, 1])
    >>> found.nmi.round(3).tolist(), found.ecs.tolist(), round(found.anmi, 3)
    ([1.0, 0.816, 1.0], [1.0, 0.75, 1.0], 0.933)
    """
    return of_rows(*checked_inputs(labels, consensus, device))


def of_rows(rows: Rows, consensus: np.ndarray) -> Agreement:
    """Return the agreement for label rows and their consensus labels (G,), 0 … k - 1."""
    shared = overlaps(rows, consensus)
    cluster, labels, counts = rows_of(shared), shared.indices.astype(np.int64), shared.data
    clustering, n = clusterings_of(shared, rows.offsets), rows.n_clusterings
    labelled = np.bincount(clustering, weights=counts, minlength=n)
    starts, numbers = shared.indptr[rows.offsets].astype(np.int64), cluster - rows.offsets[clustering]
    tables = Cells(0, 1, starts, numbers, labels, counts)
    _, place = np.unique(clustering * shared.shape[1] + labels, return_inverse=True)
    larger = np.maximum(np.bincount(cluster, weights=counts)[cluster], np.bincount(place, weights=counts)[place])
    sums = np.bincount(clustering, weights=counts * (counts / larger), minlength=n)
    ecs = np.divide(sums, labelled, out=np.full(n, np.nan), where=labelled > 0)
    return Agreement(nmi_of_cells(tables), ecs, labelled.astype(np.int64))

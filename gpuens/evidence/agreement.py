"""Agreement of a consensus with the base clusterings, from the intersections of their clusters."""

from typing import Any, NamedTuple

import numpy as np

from gpuens.contingency.scores import nmi_of
from gpuens.contingency.tables import cells
from gpuens.evidence.inputs import check_tables, checked_inputs, members_of_clusters
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
    check_tables(rows.n_clusters, int(consensus.max()) + 1)
    tables = np.split(members_of_clusters(rows, consensus), rows.offsets[1:-1])
    labelled = np.array([int(table.sum()) for table in tables])
    return Agreement(
        np.array([nmi_of(table) for table in tables]),
        np.array([ecs_of(shares_of(table)) for table in tables]),
        labelled,
    )


class SharedCells(NamedTuple):
    """The cells of a contingency table, with the share |A ∩ B| / max(|A|, |B|) of each cell.

    A cell is the intersection of two clusters A and B. The shares are used to compute the element-centric similarity.
    """

    rows: np.ndarray
    cols: np.ndarray
    counts: np.ndarray
    shares: np.ndarray


def shares_of(table: Any) -> SharedCells:
    """Return the cells of a contingency table (dense or sparse) and their shares."""
    rows, cols, counts = cells(table)
    larger = np.maximum(np.bincount(rows, weights=counts)[rows], np.bincount(cols, weights=counts)[cols])
    return SharedCells(rows, cols, counts, counts / larger)


def ecs_of(found: SharedCells) -> float:
    """Return the element-centric similarity (ECS) of two clusterings, or NaN if no object is labelled by both."""
    return float((found.counts * found.shares).sum() / found.counts.sum()) if found.counts.size else float("nan")

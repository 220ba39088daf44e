"""The certainty of each cluster of a consensus, from its intersections with the base clusters."""

from typing import Any, NamedTuple

import numpy as np

from gpuens.evidence.inputs import CONVENTIONS, check_tables, checked_inputs, labelled_by, members_of_clusters
from gpuens.labels.rows import Rows
from gpuens.runtime import checks


class Clusters(NamedTuple):
    """Evidence for each of the k clusters of a consensus, in ascending order of their labels.

    Attributes
    ----------
    sizes : ndarray (k,), int64
    consensus : ndarray (k,), float64
        The mean of C over the pairs of members (Monti's cluster consensus), from 0 to 1; NaN for a single member.
    between : ndarray (k, k), float64
        The mean of C between the members of two clusters; `consensus` on the diagonal.
    stability : ndarray (k,), float64
        The Jaccard index with the most similar cluster of a base clustering, averaged over the clusterings that label
        at least one member. Members without a label in a clustering are ignored there. 1: all clusterings have this
        cluster.
    """

    sizes: np.ndarray
    consensus: np.ndarray
    between: np.ndarray
    stability: np.ndarray


def clusters(labels: Any, consensus: Any, *, missing: str = "zero", device: str = "auto") -> Clusters:
    """Return the evidence that the base clusterings give for each cluster of a consensus.

    The cost is O(G M) look-ups and N_c k² multiplications. Pairs of objects are not visited.

    Parameters
    ----------
    labels : anything that `gpuens.Ensemble` takes
        The base clusterings (n_objects, n_clusterings).
    consensus : array (n_objects,)
        A label for every object.
    missing : {"zero", "ignore"}
        As in `gpuens.evidence.objects`; with "ignore", a mean is Σ matches / Σ clusterings that label both objects.
    device : {"auto", "cpu", "cuda"}

    Raises
    ------
    ValueError, TypeError
        For a consensus of another length, or a consensus with unlabelled objects.

    References
    ----------
    Monti et al., Machine Learning 52 (2003); Hennig, "Cluster-wise assessment of cluster stability", CSDA 52 (2007).

    Examples
    --------
    >>> import gpuens as ge
    >>> found = ge.evidence.clusters([[0, 0, 0, 1, 1], [0, 0, 1, 2, 2]], [0, 0, 0, 1, 1])
    >>> found.consensus.round(3).tolist(), found.between.round(3).tolist()
    ([0.667, 1.0], [[0.667, 0.0], [0.0, 1.0]])
    >>> found.stability.round(3).tolist()
    [0.833, 1.0]
    """
    checks.check_choice(missing, "missing", CONVENTIONS)
    return of_rows(*checked_inputs(labels, consensus, device), missing)


def of_rows(rows: Rows, consensus: np.ndarray, missing: str = "zero") -> Clusters:
    """Return the evidence for the clusters, given distinct label rows and their consensus labels (G,), 0 … k - 1."""
    check_tables(rows.n_clusters, int(consensus.max()) + 1)
    shared, counted = members_of_clusters(rows, consensus), labelled_by(rows, consensus, missing)
    matches, clusterings = shared.T @ shared, counted.T @ counted
    each = np.arange(len(matches))
    matches[each, each] -= shared.sum(axis=0)  # do not count the match of each object with itself
    clusterings[each, each] -= counted.sum(axis=0)
    between = np.divide(matches, clusterings, out=np.zeros_like(matches), where=clusterings > 0)
    sizes = np.bincount(consensus, weights=rows.counts).astype(np.int64)
    between[each[sizes == 1], each[sizes == 1]] = np.nan
    return Clusters(sizes, between.diagonal().copy(), between, _stability(shared, rows.offsets))


def _stability(shared: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    labelled = np.add.reduceat(shared, offsets[:-1], axis=0)
    unions = np.repeat(labelled, np.diff(offsets), axis=0) + shared.sum(axis=1)[:, None] - shared
    alike = np.maximum.reduceat(shared / np.maximum(unions, 1), offsets[:-1], axis=0)
    stability: np.ndarray = alike.sum(axis=0) / np.count_nonzero(labelled, axis=0).clip(1)
    return stability

"""The certainty of each cluster of a consensus, from its intersections with the base clusters."""

from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from gpuens.evidence.inputs import CONVENTIONS, checked_inputs, labelled_by, members_of_clusters, product
from gpuens.evidence.overlaps import clusterings_of, is_sparse, labelled_in, overlaps, rows_of, sums_of_products
from gpuens.labels.rows import Rows
from gpuens.runtime import checks
from gpuens.runtime import device as devices

BYTES_PER_MATCH = 64  # bytes for each pair of consensus clusters that share a base cluster


class Clusters(NamedTuple):
    """Evidence for each of the k clusters of a consensus, in ascending order of their labels.

    Attributes
    ----------
    sizes : ndarray (k,), int64
        The number of objects, or the sum of the weights that were given.
    consensus : ndarray (k,), float64
        The mean of C over the pairs of members (Monti's cluster consensus), from 0 to 1; NaN for a single member.
    between : ndarray or scipy.sparse.csr_array (k, k), float64
        The mean of C between the members of two clusters; `consensus` on the diagonal. It is sparse if nearly all pairs
        of clusters have a mean of 0, as with thousands of small clusters.
    stability : ndarray (k,), float64
        The Jaccard index with the most similar cluster of a base clustering, averaged over the clusterings that label
        at least one member. Members without a label in a clustering are ignored there. 1: all clusterings have this
        cluster.
    """

    sizes: np.ndarray
    consensus: np.ndarray
    between: np.ndarray | sparse.csr_array
    stability: np.ndarray

    def among(self, some: Any) -> np.ndarray:
        """Return the part (n, n) of `between` for n of the clusters, as a dense array."""
        found: Any = self.between[some][:, some]
        dense: np.ndarray = found.toarray() if sparse.issparse(found) else found
        return dense

    def nearest(self) -> np.ndarray:
        """Return, for each cluster, the largest mean of C with another cluster (k,); NaN for a single cluster."""
        if len(self.sizes) == 1:
            return np.full(1, np.nan)
        if isinstance(self.between, np.ndarray):
            others = self.between.copy()
            np.fill_diagonal(others, -1.0)
            largest: np.ndarray = others.max(axis=0)
            return largest
        row, other = rows_of(self.between), self.between.indices != rows_of(self.between)
        largest = np.zeros(len(self.sizes))
        np.maximum.at(largest, row[other], self.between.data[other])
        return largest


def clusters(labels: Any, consensus: Any, *, missing: str = "zero", device: str = "auto") -> Clusters:
    """Return the evidence that the base clusterings give for each cluster of a consensus.

    The cost is O(G M) look-ups and N_c k² multiplications, or, with many clusters, one for each two consensus clusters
    that a base cluster touches. Pairs of objects are not visited.

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
    if is_sparse(rows, int(consensus.max()) + 1):
        return _of_sparse(rows, consensus, missing)
    shared, counted = members_of_clusters(rows, consensus), labelled_by(rows, consensus, missing)
    matches, clusterings = product(shared.T, shared), product(counted.T, counted)
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


def _of_sparse(rows: Rows, consensus: np.ndarray, missing: str) -> Clusters:
    """Return the result of `of_rows` from the pairs of clusters that share objects."""
    shared, k = overlaps(rows, consensus), int(consensus.max()) + 1
    sizes = np.bincount(consensus, weights=rows.counts)
    touched = np.diff(shared.indptr).astype(np.float64)
    checks.check_memory(
        int(BYTES_PER_MATCH * (touched @ touched)),
        devices.memory_budget(),
        f"evidence for the pairs of {k:,} clusters that share base clusters",
        "leave out base clusterings of few clusters, or leave the evidence and the report out",
    )
    labelled = labelled_in(shared, rows.offsets)
    counted = labelled if missing == "ignore" else None
    matches = sparse.csr_array(shared.T @ shared)
    row, column = rows_of(matches), matches.indices
    if counted is None:
        clusterings = rows.n_clusterings * sizes[row] * sizes[column]
    else:
        clusterings = sums_of_products(counted.T, row, counted, column)
    same = row == column
    matches.data[same] -= shared.sum(axis=0)[row[same]]  # do not count the match of each object with itself
    clusterings[same] -= (rows.n_clusterings * sizes if counted is None else counted.sum(axis=0))[row[same]]
    means = np.divide(matches.data, clusterings, out=np.zeros(len(clusterings)), where=clusterings > 0)
    consensus_of = np.zeros(k)
    consensus_of[row[same]] = means[same]
    consensus_of[sizes == 1] = np.nan
    each, apart = np.arange(k), ~same
    places = np.concatenate([row[apart], each]), np.concatenate([column[apart], each])
    between = sparse.csr_array((np.concatenate([means[apart], consensus_of]), places), shape=(k, k))
    stability = _stability_of_sparse(shared, labelled, rows.offsets)
    return Clusters(sizes.astype(np.int64), consensus_of, between, stability)


def _stability_of_sparse(shared: sparse.csr_array, labelled: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    row, column, clustering = rows_of(shared), shared.indices, clusterings_of(shared, offsets)
    unions = labelled[clustering, column] + shared.sum(axis=1)[row] - shared.data
    alike = np.zeros(labelled.size)
    np.maximum.at(alike, clustering * labelled.shape[1] + column, shared.data / np.maximum(unions, 1))
    stability: np.ndarray = alike.reshape(labelled.shape).sum(axis=0) / np.count_nonzero(labelled, axis=0).clip(1)
    return stability

"""The certainty of each cluster of a consensus, from its intersections with the base clusters."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from gpuens.evidence.inputs import CONVENTIONS, checked_inputs, labelled_by, members_of_clusters, product
from gpuens.evidence.overlaps import (
    clusterings_of,
    is_sparse,
    labelled_in,
    overlaps,
    pieces_of,
    rows_of,
    sums_of_products,
)
from gpuens.labels.rows import Rows
from gpuens.runtime import checks
from gpuens.runtime import device as devices

BYTES_PER_MATCH = 64  # bytes for each pair of consensus clusters that share a base cluster


@dataclass(frozen=True, eq=False, repr=False)
class Clusters:
    """Evidence for each of the k clusters of a consensus, in ascending order of their labels.

    Attributes
    ----------
    sizes : ndarray (k,), int64
        The number of objects, or the sum of the weights that were given.
    consensus : ndarray (k,), float64
        The mean of C over the pairs of members (Monti's cluster consensus), from 0 to 1; NaN for a single member.
    between : ndarray or scipy.sparse.csr_array (k, k), float64
        The mean of C between the members of two clusters; `consensus` on the diagonal. It is sparse if nearly all pairs
        of clusters have a mean of 0, as with thousands of small clusters, and then computed when it is first read,
        which raises MemoryError if the pairs that share a base cluster exceed the memory budget.
    stability : ndarray (k,), float64
        The Jaccard index with the most similar cluster of a base clustering, averaged over the clusterings that label
        at least one member. Members without a label in a clustering are ignored there. 1: all clusterings have this
        cluster.
    """

    sizes: np.ndarray
    consensus: np.ndarray
    stability: np.ndarray
    _means: "np.ndarray | SparseMeans"  # the means of C between clusters (k, k)

    @cached_property
    def between(self) -> np.ndarray | sparse.csr_array:
        return self._means if isinstance(self._means, np.ndarray) else self._means.of_all_pairs()

    def among(self, some: Any) -> np.ndarray:
        """Return the part (n, n) of `between` for n of the clusters, as a dense array."""
        if not isinstance(self._means, np.ndarray):
            return self._means.among(np.arange(len(self.sizes))[some])
        dense: np.ndarray = self._means[some][:, some]
        return dense

    def nearest(self) -> np.ndarray:
        """Return, for each cluster, the largest mean of C with another cluster (k,); NaN for a single cluster."""
        if len(self.sizes) == 1:
            return np.full(1, np.nan)
        if not isinstance(self._means, np.ndarray):
            return self._means.nearest()
        others = self._means.copy()
        np.fill_diagonal(others, -1.0)
        largest: np.ndarray = others.max(axis=0)
        return largest

    def __repr__(self) -> str:
        return f"Clusters(sizes={self.sizes!r}, consensus={self.consensus!r}, stability={self.stability!r})"


def clusters(labels: Any, consensus: Any, *, missing: str = "zero", device: str = "auto") -> Clusters:
    """Return the evidence that the base clusterings give for each cluster of a consensus.

    The cost is O(G M) look-ups and N_c k² multiplications. With many clusters, pairs of clusters are compared when they
    are asked for: one multiplication for each two consensus clusters that a base cluster touches. Pairs of objects are
    not visited.

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
        return _clusters_of_sparse(rows, consensus, missing)
    shared, counted = members_of_clusters(rows, consensus), labelled_by(rows, consensus, missing)
    matches, clusterings = product(shared.T, shared), product(counted.T, counted)
    each = np.arange(len(matches))
    matches[each, each] -= shared.sum(axis=0)  # do not count the match of each object with itself
    clusterings[each, each] -= counted.sum(axis=0)
    between = np.divide(matches, clusterings, out=np.zeros_like(matches), where=clusterings > 0)
    sizes = np.bincount(consensus, weights=rows.counts).astype(np.int64)
    between[each[sizes == 1], each[sizes == 1]] = np.nan
    return Clusters(sizes, between.diagonal().copy(), _stability(shared, rows.offsets), between)


def _stability(shared: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    labelled = np.add.reduceat(shared, offsets[:-1], axis=0)
    unions = np.repeat(labelled, np.diff(offsets), axis=0) + shared.sum(axis=1)[:, None] - shared
    alike = np.maximum.reduceat(shared / np.maximum(unions, 1), offsets[:-1], axis=0)
    stability: np.ndarray = alike.sum(axis=0) / np.count_nonzero(labelled, axis=0).clip(1)
    return stability


def _clusters_of_sparse(rows: Rows, consensus: np.ndarray, missing: str) -> Clusters:
    """Return the result of `of_rows` from the sparse table of overlaps, without the pairs of clusters.

    The matches within a cluster are Σ n_c² over its overlaps n_c with the base clusters, those of each object with
    itself included.
    """
    shared, k = overlaps(rows, consensus), int(consensus.max()) + 1
    sizes = np.bincount(consensus, weights=rows.counts)
    labelled = labelled_in(shared, rows.offsets)
    counted = labelled if missing == "ignore" else np.broadcast_to(sizes, labelled.shape)
    n = shared.data
    matches = np.bincount(shared.indices, weights=n * n, minlength=k) - np.bincount(
        shared.indices, weights=n, minlength=k
    )
    clusterings = (counted * counted).sum(axis=0) - counted.sum(axis=0)
    means_within = np.divide(matches, clusterings, out=np.zeros(k), where=clusterings > 0)
    means_within[sizes == 1] = np.nan
    means = SparseMeans(
        shared, shared.T.tocsr(), sizes, counted if missing == "ignore" else None, len(labelled), means_within
    )
    return Clusters(sizes.astype(np.int64), means_within, _stability_of_sparse(shared, labelled, rows.offsets), means)


@dataclass(frozen=True, eq=False)
class SparseMeans:
    """The means of C between clusters, which are computed from the overlaps for those pairs that are asked for."""

    shared: sparse.csr_array  # (N_c, k), the objects that base clusters and clusters share
    by_cluster: sparse.csr_array  # (k, N_c), its transpose
    sizes: np.ndarray
    counted: np.ndarray | None  # (M, k), the objects of a cluster that a clustering labels; None counts all objects
    n_clusterings: int
    means_within: np.ndarray  # (k,), the diagonal

    def of_all_pairs(self) -> sparse.csr_array:
        k = len(self.sizes)
        checks.check_memory(
            int(BYTES_PER_MATCH * self._n_pairs().sum()),
            devices.memory_budget(),
            f"the means of the pairs of {k:,} clusters that share base clusters",
            "take among(clusters) or nearest(), or leave out base clusterings of few clusters",
        )
        row, column, means = self._means_of_piece(slice(0, k))
        apart, each = row != column, np.arange(k)
        places = np.concatenate([row[apart], each]), np.concatenate([column[apart], each])
        return sparse.csr_array((np.concatenate([means[apart], self.means_within]), places), shape=(k, k))

    def among(self, queries: np.ndarray) -> np.ndarray:
        """Return the means (n, n) between the clusters numbered ``queries`` (n,)."""
        own = self.by_cluster[queries]
        matches = (own @ own.T).toarray()
        if self.counted is None:
            clusterings = self.n_clusterings * self.sizes[queries][:, None] * self.sizes[queries]
        else:
            clusterings = product(self.counted[:, queries].T, self.counted[:, queries])
        means: np.ndarray = np.divide(matches, clusterings, out=np.zeros_like(matches), where=clusterings > 0)
        np.fill_diagonal(means, self.means_within[queries])
        return means

    def nearest(self) -> np.ndarray:
        """Return the largest mean with another cluster (k,), from pieces of the pairs."""
        largest = np.zeros(len(self.sizes))
        for piece in pieces_of(self._n_pairs(), devices.scratch("cpu") / BYTES_PER_MATCH):
            row, column, means = self._means_of_piece(piece)
            apart = row != column
            np.maximum.at(largest, row[apart], means[apart])
        return largest

    def _n_pairs(self) -> np.ndarray:
        """Return a bound (k,) of the number of clusters that share a base cluster with each cluster."""
        touched = np.diff(self.shared.indptr).astype(np.float64)
        n_pairs = np.bincount(self.shared.indices, weights=np.repeat(touched, np.diff(self.shared.indptr)))
        bound: np.ndarray = np.minimum(n_pairs, len(self.sizes))
        return bound

    def _means_of_piece(self, piece: slice) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the pairs of clusters of a piece with clusters that share a base cluster, and their means."""
        matches = sparse.csr_array(self.by_cluster[piece] @ self.shared)
        row, column = rows_of(matches) + piece.start, matches.indices
        if self.counted is None:
            clusterings = self.n_clusterings * self.sizes[row] * self.sizes[column]
        else:
            clusterings = sums_of_products(self.counted.T, row, self.counted, column)
        means = np.divide(matches.data, clusterings, out=np.zeros(len(clusterings)), where=clusterings > 0)
        return row, column, means


def _stability_of_sparse(shared: sparse.csr_array, labelled: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    row, column, clustering = rows_of(shared), shared.indices, clusterings_of(shared, offsets)
    unions = labelled[clustering, column] + shared.sum(axis=1)[row] - shared.data
    alike = np.zeros(labelled.size)
    np.maximum.at(alike, clustering * labelled.shape[1] + column, shared.data / np.maximum(unions, 1))
    stability: np.ndarray = alike.reshape(labelled.shape).sum(axis=0) / np.count_nonzero(labelled, axis=0).clip(1)
    return stability

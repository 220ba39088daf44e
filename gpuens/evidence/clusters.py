"""The certainty of each cluster of a consensus, from its intersections with the base clusters."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from gpuens.evidence.inputs import CONVENTIONS, read_consensus
from gpuens.evidence.overlaps import Overlaps, multiply_counts, rows_of_cells, split_rows, sum_products
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
    _pairs: "PairMeans"

    @cached_property
    def between(self) -> np.ndarray | sparse.csr_array:
        return self._pairs.all_means()

    def among(self, clusters: Any) -> np.ndarray:
        """Return the part (n, n) of `between` for n of the clusters, as a dense array."""
        return self._pairs.means_among(np.arange(len(self.sizes))[clusters])

    def nearest(self) -> np.ndarray:
        """Return, for each cluster, the largest mean of C with another cluster (k,); NaN for a single cluster."""
        return np.full(1, np.nan) if len(self.sizes) == 1 else self._pairs.largest_means()

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
    return measure_clusters(Overlaps.of(*read_consensus(labels, consensus, device)), missing)


def measure_clusters(overlaps: Overlaps, missing: str = "zero") -> Clusters:
    """Return the evidence for the clusters of a consensus.

    The matches within a cluster are Σ n_c² over its overlaps n_c with the base clusters, those of each object with
    itself included.
    """
    sizes, n = overlaps.sizes, overlaps.counts.data
    k, labels = len(sizes), overlaps.counts.indices
    labelled = overlaps.labelled if missing == "ignore" else np.broadcast_to(sizes, (overlaps.n_clusterings, k))
    matches = np.bincount(labels, weights=n * n, minlength=k) - np.bincount(labels, weights=n, minlength=k)
    means = _divide(matches, (labelled * labelled).sum(axis=0) - labelled.sum(axis=0))
    means[sizes == 1] = np.nan
    pairs = PairMeans(overlaps, labelled if missing == "ignore" else None, means)
    return Clusters(sizes.astype(np.int64), means, _measure_stability(overlaps), pairs)


def _measure_stability(overlaps: Overlaps) -> np.ndarray:
    labelled, shared, labels = overlaps.labelled, overlaps.counts.data, overlaps.counts.indices
    clusterings, best = overlaps.clusterings, np.zeros(labelled.size)
    unions = labelled[clusterings, labels] + overlaps.counts.sum(axis=1)[overlaps.clusters] - shared
    np.maximum.at(best, clusterings * labelled.shape[1] + labels, shared / np.maximum(unions, 1))
    return best.reshape(labelled.shape).sum(axis=0) / np.count_nonzero(labelled, axis=0).clip(1)


@dataclass(frozen=True, eq=False)
class PairMeans:
    """The means of C between clusters, computed from the overlaps when they are asked for."""

    overlaps: Overlaps
    labelled: np.ndarray | None  # (M, k), the objects of a cluster that a clustering labels; None counts all objects
    means_within: np.ndarray  # (k,), the diagonal

    @cached_property
    def by_cluster(self) -> sparse.csr_array:
        """The transpose (k, N_c) of the overlaps."""
        return self.overlaps.counts.T.tocsr()

    def all_means(self) -> np.ndarray | sparse.csr_array:
        """Return the means (k, k) of all pairs, sparse if the overlaps are."""
        k = len(self.means_within)
        if self.overlaps.dense:
            return self.means_among(np.arange(k))
        checks.check_memory(
            int(BYTES_PER_MATCH * self._bound_pairs().sum()),
            devices.memory_budget(),
            f"the means of the pairs of {k:,} clusters that share base clusters",
            "take among(clusters) or nearest(), or leave out base clusterings of few clusters",
        )
        row, column, means = self._means_of_piece(slice(0, k))
        apart, diagonal = row != column, np.arange(k)
        places = np.concatenate([row[apart], diagonal]), np.concatenate([column[apart], diagonal])
        return sparse.csr_array((np.concatenate([means[apart], self.means_within]), places), shape=(k, k))

    def means_among(self, queries: np.ndarray) -> np.ndarray:
        """Return the means (n, n) between the clusters numbered ``queries`` (n,)."""
        members = self.by_cluster[queries]
        if self.overlaps.dense:
            members = members.toarray()
            matches = multiply_counts(members, members.T)
        else:
            matches = (members @ members.T).toarray()
        if self.labelled is None:
            sizes = self.overlaps.sizes[queries]
            clusterings = self.overlaps.n_clusterings * sizes[:, None] * sizes
        else:
            clusterings = multiply_counts(self.labelled[:, queries].T, self.labelled[:, queries])
        means = _divide(matches, clusterings)
        np.fill_diagonal(means, self.means_within[queries])
        return means

    def largest_means(self) -> np.ndarray:
        """Return the largest mean with another cluster (k,), from pieces of the pairs unless the overlaps are dense."""
        k = len(self.means_within)
        if self.overlaps.dense:
            means = self.means_among(np.arange(k))
            np.fill_diagonal(means, -1.0)
            return np.asarray(means.max(axis=0))
        largest = np.zeros(k)
        for piece in split_rows(self._bound_pairs(), devices.scratch("cpu") / BYTES_PER_MATCH):
            row, column, means = self._means_of_piece(piece)
            apart = row != column
            np.maximum.at(largest, row[apart], means[apart])
        return largest

    def _bound_pairs(self) -> np.ndarray:
        """Return a bound (k,) of the number of clusters that share a base cluster with each cluster."""
        counts = self.overlaps.counts
        n_touched = np.diff(counts.indptr).astype(np.float64)
        n_pairs = np.bincount(counts.indices, weights=n_touched[self.overlaps.clusters])
        return np.minimum(n_pairs, len(self.means_within))

    def _means_of_piece(self, piece: slice) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the pairs of clusters of a piece with clusters that share a base cluster, and their means."""
        matches = sparse.csr_array(self.by_cluster[piece] @ self.overlaps.counts)
        row, column = rows_of_cells(matches) + piece.start, matches.indices
        if self.labelled is None:
            sizes = self.overlaps.sizes
            clusterings = self.overlaps.n_clusterings * sizes[row] * sizes[column]
        else:
            clusterings = sum_products(self.labelled.T, row, self.labelled, column)
        return row, column, _divide(matches.data, clusterings)


def _divide(matches: np.ndarray, clusterings: np.ndarray) -> np.ndarray:
    """Return matches / clusterings, and 0 without clusterings."""
    return np.divide(matches, clusterings, out=np.zeros(np.shape(matches)), where=clusterings > 0)

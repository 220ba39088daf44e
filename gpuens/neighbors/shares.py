"""Rows of shares: the label rows around objects or of whole regions, as means of one-hot rows.

Whatever reads rows by products with the incidence matrix reads these too: the transfer cut, k-means in label space and
SCEC. Shares are whole multiples of 2⁻¹⁵, so that sums over objects are exact in any order.
"""

from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from gpuens.labels.codes import codes_dtype
from gpuens.labels.rows import Rows
from gpuens.labels.soft_ensemble import SoftEnsemble
from gpuens.neighbors.walk import ONE
from gpuens.runtime import device as devices
from gpuens.runtime.native import cpu

DENSE_VALUES = 2**22  # shares that are dense at a time


class ShareRows(Rows):
    """Rows of the shares S (G, N_c) of objects in clusters, in host memory.

    Attributes
    ----------
    shares : SciPy CSR array (G, N_c), float64
        The shares of each clustering sum to 1, or 0 where no object around has a label.
    counts : ndarray (G,), int64
        The number of objects of each row.
    """

    of_labels = False

    def __init__(self, shares: Any, offsets: np.ndarray, counts: np.ndarray) -> None:
        self.shares, self._offsets = shares, offsets
        self.counts, self.device = counts, "cpu"
        self._cluster_sizes, self.entropies = None, None

    @classmethod
    def of_objects(cls, shares: cpu.WalkShares, offsets: np.ndarray) -> "ShareRows":
        """Return the shares around each object as rows of one object each."""
        from scipy.sparse import csr_array

        shape = (len(shares.starts) - 1, shares.n_columns)
        matrix = csr_array((shares.values / np.float64(ONE), shares.columns, shares.starts), shape=shape)
        return cls(matrix, offsets, np.ones(shape[0], dtype=np.int64))

    @classmethod
    def of_dense(cls, shares: np.ndarray, offsets: np.ndarray) -> "ShareRows":
        """Return shares (G, N_c), uint16 in units, as rows of one object each."""
        from scipy.sparse import csr_array

        return cls(csr_array(shares / np.float64(ONE)), offsets, np.ones(len(shares), dtype=np.int64))

    @cached_property
    def ensemble(self) -> SoftEnsemble:  # type: ignore[override]
        """The shares as soft clusterings, whose rows sum to 1; missing where no object around has a label."""
        parts = np.split(self.shares.toarray(), self._offsets[1:-1], axis=1)
        totals = [part.sum(axis=1, keepdims=True) for part in parts]
        divisors = [np.where(total > 0, total, np.nan) for total in totals]
        return SoftEnsemble([part / total for part, total in zip(parts, divisors, strict=True)])

    @property
    def codes(self) -> np.ndarray:
        """The numbers of the rows (G, 1), in place of codes, by which `shares_at` finds them."""
        return np.arange(len(self))[:, None]

    @property
    def offsets(self) -> np.ndarray:
        return self._offsets

    @property
    def n_clusters(self) -> int:
        return int(self._offsets[-1])

    @property
    def n_clusterings(self) -> int:
        return len(self._offsets) - 1

    def take(self, rows: Any, counts: np.ndarray | None = None) -> "ShareRows":
        places = rows if isinstance(rows, slice) else devices.to_host(rows)
        return ShareRows(self.shares[places], self._offsets, self.counts[places] if counts is None else counts)

    def row_sums(self, values: Any) -> np.ndarray:
        return self.shares @ np.asarray(values, dtype=np.float64)

    def row_lookups(self, table: Any) -> np.ndarray:
        return self.shares @ np.asarray(table, dtype=np.float64)

    def cluster_sums(self, values: Any) -> np.ndarray:
        return self.shares.T @ values

    def label_histograms(self, labels: Any, n_labels: int) -> np.ndarray:
        """Return the numbers (N_c, n_labels), float64, of the objects' shares of each cluster with each label."""
        from scipy.sparse import csr_array

        places = np.arange(len(self) + 1)
        objects = csr_array((self.counts.astype(np.float64), labels, places), shape=(len(self), n_labels))
        return (self.shares.T @ objects).toarray()

    def shares_at(self, codes: np.ndarray) -> np.ndarray:
        return np.ascontiguousarray(self.shares[codes[:, 0]].toarray().T)

    def hardened(self) -> Rows:
        """Return rows of the labels with the largest share of each clustering, the first of equal ones."""
        step, codes = max(1, DENSE_VALUES // self.n_clusters), np.empty((len(self), self.n_clusterings), np.int64)
        dtype = codes_dtype(int(np.diff(self._offsets).max()))
        for start in range(0, len(self), step):
            part = self.shares[start : start + step].toarray()
            for m, (first, last) in enumerate(pairwise(self._offsets)):
                of_clustering = part[:, first:last]
                largest = of_clustering.argmax(axis=1)
                codes[start : start + step, m] = np.where(of_clustering.any(axis=1), largest, np.iinfo(dtype).max)
        return Rows.of_codes(np.asfortranarray(codes.astype(dtype)), self._offsets, self.counts, "cpu")

    def cluster_sizes(self) -> np.ndarray:
        """Return the sum of the objects' shares of each cluster (N_c,), float64."""
        if self._cluster_sizes is None:
            self._cluster_sizes = self.cluster_sums(self.counts.astype(np.float64))
        return self._cluster_sizes

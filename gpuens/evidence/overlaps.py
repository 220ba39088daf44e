"""The table of counts behind all evidence: the objects that base clusters share with the clusters of a consensus.

With tens of thousands of small clusters, such as the entities of record linkage, nearly all pairs of a base cluster and
a consensus cluster have no object in common. At most G M pairs have one, for G distinct label rows and M clusterings.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from gpuens.labels.incidence import label_histograms
from gpuens.labels.rows import Rows
from gpuens.runtime import checks, products
from gpuens.runtime import device as devices

WHOLE_CELLS = 2**22  # most cells of dense tables (N_c, k) that may have any number of cells for each label of the rows
WHOLE_CELLS_PER_LABEL = 4  # most cells of larger dense tables for each label
BYTES_PER_SHARE = 48  # bytes per entry of the tables (N_c, k): four float64 tables and a sparse one are held at once
BYTES_PER_PAIR = 40  # bytes per entry of the tables (k, k), because five float64 tables are in memory at once
BYTES_PER_LABEL = 64  # bytes for each label of the distinct rows, which has a cell in a sparse table
PAIRS_AT_ONCE = 2**20  # pairs of clusters for which sums over the clusterings are computed in one step
# most multiplications of a product for which BLAS uses one thread: several threads would wait for each other, which
# takes longer than such a product
PRODUCTS_OF_ONE_THREAD = 2**26


@dataclass(frozen=True, eq=False)
class Overlaps:
    """The objects that each base cluster shares with each of the k clusters of a consensus.

    ``counts`` (N_c, k) is a canonical float64 CSR array in host memory. ``sizes`` (k,) are the objects of the
    clusters of the consensus; ``offsets`` (M + 1,) number the base clusters. ``dense`` says whether dense tables
    (N_c, k) fit, and are the faster ones.
    """

    counts: sparse.csr_array
    sizes: np.ndarray
    offsets: np.ndarray
    dense: bool

    @classmethod
    def of(cls, rows: Rows, consensus: np.ndarray) -> "Overlaps":
        """Count the objects of label rows, which have the consensus labels ``consensus`` (G,), 0 … k - 1."""
        k = int(consensus.max()) + 1
        dense = not is_sparse(rows, k)
        counts = _count_dense(rows, consensus, k) if dense else _count_sparse(rows, consensus, k)
        return cls(counts, np.bincount(consensus, weights=rows.counts), rows.offsets, dense)

    @property
    def n_clusterings(self) -> int:
        return len(self.offsets) - 1

    @property
    def clusters(self) -> np.ndarray:
        """The base cluster of each cell."""
        return rows_of_cells(self.counts)

    @property
    def clusterings(self) -> np.ndarray:
        """The clustering of each cell's base cluster."""
        return np.repeat(np.arange(self.n_clusterings), np.diff(self.counts.indptr[self.offsets]))

    @cached_property
    def labelled(self) -> np.ndarray:
        """The number of objects (M, k) of each consensus cluster that each clustering labels."""
        shape = self.n_clusterings, len(self.sizes)
        cells = self.clusterings * shape[1] + self.counts.indices
        return np.bincount(cells, weights=self.counts.data, minlength=shape[0] * shape[1]).reshape(shape)


def _count_dense(rows: Rows, consensus: np.ndarray, k: int) -> sparse.csr_array:
    weights, labels = rows.xp.asarray(rows.counts), rows.xp.asarray(consensus)
    shared = label_histograms(rows.codes, rows.offsets, weights, labels, k, device=rows.device)
    return sparse.csr_array(devices.to_host(shared).astype(np.float64))


def _count_sparse(rows: Rows, consensus: np.ndarray, k: int) -> sparse.csr_array:
    check_overlaps(rows.n_rows * rows.n_clusterings, rows.n_clusters, k)
    codes, weights = devices.to_host(rows.codes), rows.counts.astype(np.float64)
    columns, counts, n_cells = [], [], []
    for m, column in enumerate(codes.T):
        labelled = np.flatnonzero(column != rows.ensemble.missing_code)
        cells, place = np.unique(column[labelled].astype(np.int64) * k + consensus[labelled], return_inverse=True)
        clusters, labels = np.divmod(cells, k)
        columns.append(labels)
        counts.append(np.bincount(place, weights=weights[labelled], minlength=len(cells)))
        n_cells.append(np.bincount(clusters, minlength=int(rows.offsets[m + 1] - rows.offsets[m])))
    starts = np.concatenate([[0], np.cumsum(np.concatenate(n_cells))])
    table = sparse.csr_array((np.concatenate(counts), np.concatenate(columns), starts), shape=(rows.n_clusters, k))
    table.has_canonical_format = True
    return table


def dense_bytes(n_base_clusters: int, k: int) -> int:
    """Return the bytes of the dense tables (N_c, k) and (k, k) of the evidence for k clusters."""
    return (BYTES_PER_SHARE * n_base_clusters + BYTES_PER_PAIR * k) * k


def is_sparse(rows: Rows, k: int) -> bool:
    """Return whether tables (N_c, k) of k consensus clusters are sparse: most cells are empty, or they do not fit."""
    roomy = rows.n_clusters * k > max(WHOLE_CELLS, WHOLE_CELLS_PER_LABEL * rows.n_rows * rows.n_clusterings)
    return roomy or dense_bytes(rows.n_clusters, k) > devices.memory_budget()


def check_overlaps(n_labels: int, n_base_clusters: int, k: int) -> None:
    """Raise an error if neither the dense nor the sparse tables of the evidence fit the memory."""
    checks.check_memory(
        min(dense_bytes(n_base_clusters, k), BYTES_PER_LABEL * n_labels),
        devices.memory_budget(),
        f"evidence for {k:,} clusters, from {n_base_clusters:,} base clusters,",
        "ask for fewer clusters, or leave the evidence and the report out",
    )


def multiply_counts(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return a @ b for tables of whole numbers: exact, and so equal for any number of threads."""
    is_small = a.shape[0] * a.shape[1] * b.shape[1] <= PRODUCTS_OF_ONE_THREAD
    with devices.library_threads(1 if is_small else None):
        product: np.ndarray = products.product(a, b)
    return product


# --- cells of sparse tables -------------------------------------------------------------------------------------------


def rows_of_cells(table: sparse.csr_array) -> np.ndarray:
    """Return the row of each cell of a CSR array."""
    return np.repeat(np.arange(table.shape[0]), np.diff(table.indptr))


def split_rows(n_cells: np.ndarray, at_once: float) -> Iterator[slice]:
    """Yield slices of rows with at most ``at_once`` cells together, or a single row; ``n_cells`` are those of each."""
    piece = np.floor(np.cumsum(n_cells) / max(1.0, at_once))
    ends = np.concatenate([np.flatnonzero(np.diff(piece)) + 1, [len(n_cells)]])
    for start, stop in zip(np.concatenate([[0], ends[:-1]]), ends, strict=True):
        yield slice(int(start), int(stop))


def sum_products(a: Any, rows: np.ndarray, b: Any, columns: np.ndarray) -> np.ndarray:
    """Return Σ_m a[rows[i], m] b[m, columns[i]] for each i, for dense ``a`` (n, M) and ``b`` (M, k)."""
    sums = np.empty(len(rows))
    b = np.ascontiguousarray(b.T, dtype=np.float64)
    for start in range(0, len(rows), PAIRS_AT_ONCE):
        piece = slice(start, start + PAIRS_AT_ONCE)
        np.einsum("im,im->i", a[rows[piece]].astype(np.float64), b[columns[piece]], out=sums[piece])
    return sums

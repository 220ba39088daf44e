"""The objects that base clusters share with the clusters of a consensus, as sparse tables.

With tens of thousands of small clusters, such as the entities of record linkage, nearly all pairs of a base cluster and
a consensus cluster have no object in common. At most G M pairs have one, for G distinct label rows and M clusterings.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy import sparse

from gpuens.evidence.inputs import BYTES_PER_PAIR, BYTES_PER_SHARE, members_of_clusters
from gpuens.labels.rows import Rows
from gpuens.runtime import checks
from gpuens.runtime import device as devices

WHOLE_CELLS = 2**22  # most cells of dense tables (N_c, k) that may have any number of cells for each label of the rows
WHOLE_CELLS_PER_LABEL = 4  # most cells of larger dense tables for each label
BYTES_PER_LABEL = 64  # bytes for each label of the distinct rows, which has a cell in a sparse table
PAIRS_AT_ONCE = 2**20  # pairs of clusters for which sums over the clusterings are computed in one step


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


def overlaps(rows: Rows, consensus: np.ndarray) -> sparse.csr_array:
    """Return the number of objects that each base cluster shares with each consensus cluster.

    The result is a canonical float64 CSR array (N_c, k) in host memory, equal to `inputs.members_of_clusters`.
    """
    k = int(consensus.max()) + 1
    if not is_sparse(rows, k):
        return sparse.csr_array(members_of_clusters(rows, consensus))
    check_overlaps(rows.n_rows * rows.n_clusterings, rows.n_clusters, k)
    codes, counts = devices.to_host(rows.codes), rows.counts.astype(np.float64)
    columns, shared, n_cells = [], [], []
    for m, own in enumerate(codes.T):
        known = np.flatnonzero(own != rows.ensemble.missing_code)
        cells, place = np.unique(own[known].astype(np.int64) * k + consensus[known], return_inverse=True)
        clusters, labels = np.divmod(cells, k)
        columns.append(labels)
        shared.append(np.bincount(place, weights=counts[known], minlength=len(cells)))
        n_cells.append(np.bincount(clusters, minlength=int(rows.offsets[m + 1] - rows.offsets[m])))
    starts = np.concatenate([[0], np.cumsum(np.concatenate(n_cells))])
    found = sparse.csr_array((np.concatenate(shared), np.concatenate(columns), starts), shape=(rows.n_clusters, k))
    found.has_canonical_format = True
    return found


def rows_of(table: sparse.csr_array) -> np.ndarray:
    """Return the row of each cell of a CSR array."""
    return np.repeat(np.arange(table.shape[0]), np.diff(table.indptr))


def pieces_of(n_cells: np.ndarray, at_once: float) -> Iterator[slice]:
    """Yield slices of rows with at most ``at_once`` cells together, or a single row; ``n_cells`` are those of each."""
    piece = np.floor(np.cumsum(n_cells) / max(1.0, at_once))
    ends = np.concatenate([np.flatnonzero(np.diff(piece)) + 1, [len(n_cells)]])
    for start, stop in zip(np.concatenate([[0], ends[:-1]]), ends, strict=True):
        yield slice(int(start), int(stop))


def labelled_in(shared: sparse.csr_array, offsets: np.ndarray) -> np.ndarray:
    """Return the number of objects (M, k) of each consensus cluster that each clustering labels."""
    n, k = len(offsets) - 1, shared.shape[1]
    cells = clusterings_of(shared, offsets) * k + shared.indices
    return np.bincount(cells, weights=shared.data, minlength=n * k).reshape(n, k)


def clusterings_of(shared: sparse.csr_array, offsets: np.ndarray) -> np.ndarray:
    """Return the clustering of each cell's base cluster."""
    return np.repeat(np.arange(len(offsets) - 1), np.diff(shared.indptr[offsets]))


def sums_of_products(a: Any, rows: np.ndarray, b: Any, columns: np.ndarray) -> np.ndarray:
    """Return Σ_m a[rows[i], m] b[m, columns[i]] for each i, for dense ``a`` (n, M) and ``b`` (M, k)."""
    found = np.empty(len(rows))
    b = np.ascontiguousarray(b.T, dtype=np.float64)
    for start in range(0, len(rows), PAIRS_AT_ONCE):
        some = slice(start, start + PAIRS_AT_ONCE)
        np.einsum("im,im->i", a[rows[some]].astype(np.float64), b[columns[some]], out=found[some])
    return found

"""Label columns as codes of one dtype, and the layout of the tables of two columns.

A table of many cells is sparse if most of its cells must be empty. Only a few tables are in memory at a time.
"""

import itertools
from collections.abc import Iterator
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from scipy import sparse

from gpuens.labels.columns import as_column
from gpuens.labels.encoding import encode_column
from gpuens.labels.ensemble import Ensemble
from gpuens.labels.object_names import in_one_order, in_order_of
from gpuens.labels.rows import Rows, as_rows
from gpuens.runtime import checks
from gpuens.runtime import device as devices

Table: TypeAlias = np.ndarray | sparse.csr_array

DENSE_CELLS = 2**22  # most cells of a dense table that has more than 4 cells per object


class Labels(NamedTuple):
    """Label columns as codes on the device: ``matrix`` (M, N), one row per clustering.

    In row m, a code of ``n_clusters[m]`` or more is a missing label.
    """

    matrix: Any
    n_clusters: list[int]
    device: str = "cpu"


def labels_of(ens: Ensemble, device: str = "cpu") -> Labels:
    return Labels(ens.codes_on(device).T, np.diff(ens.offsets).tolist(), device)


def encode(vectors: list[Any], names: list[Any]) -> Labels:
    """Return label vectors of the same objects (columns that Ensemble accepts) as codes of one dtype."""
    device = str(devices.home_of_all(vectors, names))
    columns = [as_column(vector) for vector in in_one_order(vectors, names)]
    for column, vector, name in zip(columns, vectors, names, strict=True):
        checks.check_label_vector(tuple(column.shape), type(vector).__name__, name)
    for name, column in zip(names, columns, strict=True):
        if len(column) != len(columns[0]):
            raise ValueError(
                f"labelings must label the same objects, but {names[0]} has {len(columns[0])} labels and {name} has "
                f"{len(column)}; pass labelings of one length, with -1 or None where a label is missing."
            )
    encoded = [encode_column(column, name) for column, name in zip(columns, names, strict=True)]
    n_clusters = [len(categories) for _, categories in encoded]
    missing = max(n_clusters)
    dtype = np.min_scalar_type(missing)
    matrix = np.stack([np.where(codes < 0, missing, codes).astype(dtype) for codes, _ in encoded])
    return Labels(matrix, n_clusters, device)


def ensemble_and_weights(labels: Any, weights: Any, device: str) -> tuple[Ensemble, Any, str]:
    """Return the ensemble, the weights of its rows and the device; from `Rows`, return their own."""
    rows = as_rows(labels, device)
    weights = in_order_of(rows.ensemble.index, weights, "weights")
    return rows.ensemble, rows.counts if weights is None and isinstance(labels, Rows) else weights, rows.device


def is_dense(labels: Labels, i: int, j: int) -> bool:
    """Return whether the table of clusterings i and j is dense."""
    return table_is_dense(labels.n_clusters[i], labels.n_clusters[j], labels.matrix.shape[1])


def table_is_dense(k_a: int, k_b: int, n_objects: int) -> bool:
    """Return whether a table (k_a, k_b) is dense; a larger table would be mostly zeros."""
    return bool(k_a * k_b <= max(DENSE_CELLS, 4 * n_objects))


def batches(labels: Labels) -> Iterator[list[tuple[int, int]]]:
    """Split the pairs i < j into batches whose tables are small compared with the labels and the memory budget."""
    n_objects, k = labels.matrix.shape[1], labels.n_clusters
    limit = min(max(2**24, 8 * n_objects), devices.memory_budget() // 32)
    if labels.device != "cpu":
        limit = min(limit, devices.scratch(labels.device) // 8)
    batch: list[tuple[int, int]] = []
    n_cells = 0
    for i, j in itertools.combinations(range(len(k)), 2):
        size = min(k[i] * k[j], 4 * n_objects + DENSE_CELLS)
        if batch and n_cells + size > limit:
            yield batch
            batch, n_cells = [], 0
        batch.append((i, j))
        n_cells += size
    if batch:
        yield batch

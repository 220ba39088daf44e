"""The input of evidence: base clusterings and a consensus of the same objects."""

from typing import Any

import numpy as np

from gpuens.labels.encoding import encode_vector
from gpuens.labels.incidence import label_histograms
from gpuens.labels.object_names import in_order_of
from gpuens.labels.rows import Rows, as_rows
from gpuens.runtime import device as devices
from gpuens.runtime import products

# "zero": an object without a label is apart from all objects; "ignore": its clustering is not counted for the object
CONVENTIONS = ("zero", "ignore")
BYTES_PER_SHARE = 32  # bytes per entry of the tables (N_c, k), because four float64 tables are in memory at once
BYTES_PER_PAIR = 40  # bytes per entry of the tables (k, k), because five float64 tables are in memory at once
# most multiplications of a product for which BLAS uses one thread: several threads would wait for each other, which
# takes longer than such a product
PRODUCTS_OF_ONE_THREAD = 2**26


def checked_inputs(labels: Any, consensus: Any, device: str) -> tuple[Rows, np.ndarray]:
    """Check the input; return the label rows of the objects, and their consensus labels 0 … k - 1 in host memory."""
    rows = as_rows(labels, device)
    found = encode_vector(in_order_of(rows.ensemble.index, consensus, "consensus"), "consensus", rows.n_rows)
    if (unlabelled := np.count_nonzero(found < 0)) > 0:
        raise ValueError(
            f"consensus has {unlabelled} object(s) without a label (-1, NaN or None); leave these objects out of the "
            "consensus and of the base clusterings."
        )
    return rows, found


def members_of_clusters(rows: Rows, consensus: np.ndarray) -> np.ndarray:
    """Return the number of objects that each base cluster shares with each consensus cluster.

    The result is a float64 table (N_c, k) in host memory.
    """
    counts, labels = rows.xp.asarray(rows.counts), rows.xp.asarray(consensus)
    shared = label_histograms(rows.codes, rows.offsets, counts, labels, int(consensus.max()) + 1, device=rows.device)
    return devices.to_host(shared).astype(np.float64)


def labelled_by(rows: Rows, consensus: np.ndarray, missing: str) -> np.ndarray:
    """Return the number of objects of each consensus cluster for which each base clustering is counted.

    The result is a float64 table (M, k) in host memory.
    """
    if missing == "ignore":
        return np.add.reduceat(members_of_clusters(rows, consensus), rows.offsets[:-1], axis=0)
    return np.tile(np.bincount(consensus, weights=rows.counts), (rows.n_clusterings, 1))


def product(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return a @ b for tables of whole numbers: exact, and so equal for any number of threads."""
    few = a.shape[0] * a.shape[1] * b.shape[1] <= PRODUCTS_OF_ONE_THREAD
    with devices.library_threads(1 if few else None):
        found: np.ndarray = products.product(a, b)
    return found

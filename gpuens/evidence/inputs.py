"""The input of evidence: base clusterings and a consensus of the same objects."""

from typing import Any

import numpy as np

from gpuens.labels.incidence import label_histograms
from gpuens.labels.object_names import in_order_of
from gpuens.labels.rows import Rows, as_rows
from gpuens.labels.values import encode_vector
from gpuens.runtime import checks
from gpuens.runtime import device as devices

CONVENTIONS = ("zero", "ignore")  # a missing label counts as apart from all objects, or its clustering does not count
BYTES_PER_SHARE = 32  # bytes per entry of (N_c, k): four float64 tables at once
BYTES_PER_PAIR = 40  # bytes per entry of (k, k): five float64 tables at once


def checked_inputs(labels: Any, consensus: Any, device: str) -> tuple[Rows, np.ndarray]:
    """Return the checked label rows of the objects, and their consensus labels 0 … k - 1 in host memory."""
    rows = as_rows(labels, device)
    found = encode_vector(in_order_of(rows.ensemble.index, consensus, "consensus"), "consensus", rows.n_rows)
    if (unlabelled := np.count_nonzero(found < 0)) > 0:
        raise ValueError(
            f"consensus has {unlabelled} object(s) without a label (-1, NaN or None); leave these objects out of the "
            "consensus and of the base clusterings."
        )
    return rows, found


def check_tables(n_base_clusters: int, k: int) -> None:
    """Refuse evidence whose tables (N_c, k) and (k, k) do not fit the memory."""
    checks.check_memory(
        (BYTES_PER_SHARE * n_base_clusters + BYTES_PER_PAIR * k) * k,
        devices.memory_budget(),
        f"evidence for {k:,} clusters, from {n_base_clusters:,} base clusters,",
        "ask for fewer clusters, or leave the evidence and the report out",
    )


def members_of_clusters(rows: Rows, consensus: np.ndarray) -> np.ndarray:
    """Return the number of objects that each base cluster shares with each consensus label: (N_c, k), float64, host."""
    counts, labels = rows.xp.asarray(rows.counts), rows.xp.asarray(consensus)
    shared = label_histograms(rows.codes, rows.offsets, counts, labels, int(consensus.max()) + 1, device=rows.device)
    return devices.to_host(shared).astype(np.float64)


def labelled_by(rows: Rows, consensus: np.ndarray, missing: str) -> np.ndarray:
    """Return the number of objects of each consensus label for which a clustering counts: (M, k), float64, host."""
    if missing == "ignore":
        return np.add.reduceat(members_of_clusters(rows, consensus), rows.offsets[:-1], axis=0)
    return np.tile(np.bincount(consensus, weights=rows.counts), (rows.n_clusterings, 1))

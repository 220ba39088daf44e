"""The input of evidence: base clusterings and a consensus of the same objects."""

from typing import Any

import numpy as np

from gpuens.labels.encoding import encode_vector
from gpuens.labels.object_names import in_order_of
from gpuens.labels.rows import Rows, as_rows

# "zero": an object without a label is apart from all objects; "ignore": its clustering is not counted for the object
CONVENTIONS = ("zero", "ignore")


def read_consensus(labels: Any, consensus: Any, device: str) -> tuple[Rows, np.ndarray]:
    """Check the input; return the label rows of the objects, and their consensus labels 0 … k - 1 in host memory."""
    rows = as_rows(labels, device)
    codes = encode_vector(in_order_of(rows.ensemble.index, consensus, "consensus"), "consensus", rows.n_rows)
    if (unlabelled := np.count_nonzero(codes < 0)) > 0:
        raise ValueError(
            f"consensus has {unlabelled} object(s) without a label (-1, NaN or None); leave these objects out of the "
            "consensus and of the base clusterings."
        )
    return rows, codes

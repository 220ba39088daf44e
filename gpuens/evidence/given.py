"""What evidence is asked for: base clusterings and a consensus of the same objects."""

from typing import Any

import numpy as np

from gpuens import checks
from gpuens import device as devices
from gpuens.encoding import as_column, encode_column
from gpuens.rows import Rows, as_rows


def given(labels: Any, consensus: Any, device: str) -> tuple[Rows, np.ndarray]:
    """Return the checked rows of the objects and their labels in the consensus, 0 … k - 1, host."""
    rows = as_rows(labels, device)
    column = as_column(consensus)
    checks.check_label_vector(tuple(column.shape), type(consensus).__name__, "consensus")
    checks.check_one_per_row(column, rows.n_rows, "consensus")
    found = devices.to_host(encode_column(column, "consensus")[0])
    if (unlabelled := np.count_nonzero(found < 0)) > 0:
        raise ValueError(
            f"consensus leaves {unlabelled} object(s) without a label (-1, NaN or None); leave these objects out of it "
            "and of the base clusterings."
        )
    return rows, found

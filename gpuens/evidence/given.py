"""What evidence is asked for: base clusterings and a consensus of the same objects."""

from typing import Any

import numpy as np

from gpuens.encoding import encode_vector
from gpuens.rows import Rows, as_rows


def given(labels: Any, consensus: Any, device: str) -> tuple[Rows, np.ndarray]:
    """Return the checked rows of the objects and their labels in the consensus, 0 … k - 1, host."""
    rows = as_rows(labels, device)
    found = encode_vector(consensus, "consensus", rows.n_rows)
    if (unlabelled := np.count_nonzero(found < 0)) > 0:
        raise ValueError(
            f"consensus leaves {unlabelled} object(s) without a label (-1, NaN or None); leave these objects out of it "
            "and of the base clusterings."
        )
    return rows, found

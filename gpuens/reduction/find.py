"""Search for label rows among rows in lexicographic order, such as core groups."""

from typing import Any

import numpy as np

from gpuens.runtime import device as devices
from gpuens.runtime import kernels
from gpuens.runtime.native import cpu


@kernels.primitive
def find_rows(rows: np.ndarray, sorted_rows: np.ndarray) -> np.ndarray:
    """Return the place of each row of ``rows`` (G, M) in ``sorted_rows`` (R, M), int64; -1 for a row that is not there.

    Both arrays are codes of the same dtype; ``sorted_rows`` are distinct and in lexicographic order.
    """
    places = np.empty(len(rows), dtype=np.int64)
    cpu.find_rows(np.ascontiguousarray(rows), np.ascontiguousarray(sorted_rows), places)
    return places


@find_rows.kernel
def _(rows: Any, sorted_rows: Any, *, device: str) -> Any:
    xp = devices.namespace(device)
    places = xp.empty(len(rows), dtype=np.int64)
    kernels.launch(
        "find_rows", kernels.blocks(len(rows), 128), 128,
        (xp.asfortranarray(rows).T, xp.asfortranarray(sorted_rows).T, places, len(rows), len(sorted_rows),
         rows.shape[1]),
        device=device, CODE=kernels.c_name(rows.dtype),
    )  # fmt: skip
    return places

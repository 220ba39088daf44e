"""Search for label rows among rows in lexicographic order, such as core groups."""

from typing import Any

import numpy as np

from gpuens.runtime import device as devices
from gpuens.runtime import kernels
from gpuens.runtime.native import cpu


@kernels.primitive
def find_rows(rows: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Return the place of each row of ``rows`` (G, M) in ``others`` (R, M), int64; -1 if ``others`` has no such row.

    Both arrays are codes of the same dtype; the rows of ``others`` are distinct and in lexicographic order.
    """
    places = np.empty(len(rows), dtype=np.int64)
    cpu.find_rows(np.ascontiguousarray(rows), np.ascontiguousarray(others), places)
    return places


@find_rows.kernel
def _(rows: Any, others: Any, *, device: str) -> Any:
    xp = devices.namespace(device)
    places = xp.empty(len(rows), dtype=np.int64)
    kernels.launch(
        "find_rows", kernels.blocks(len(rows), 128), 128,
        (xp.asfortranarray(rows).T, xp.asfortranarray(others).T, places, len(rows), len(others), rows.shape[1]),
        device=device, CODE=kernels.c_name(rows.dtype),
    )  # fmt: skip
    return places

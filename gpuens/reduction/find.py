"""Search for label rows among rows in lexicographic order, such as core groups."""

from typing import Any

import numpy as np

from gpuens.runtime import device as devices
from gpuens.runtime import kernels
from gpuens.runtime.compiled import njit


@kernels.primitive
def find_rows(rows: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Return the place of each row of ``rows`` (G, M) in ``others`` (R, M), int64; -1 if ``others`` has no such row.

    Both arrays are codes of the same dtype; the rows of ``others`` are distinct and in lexicographic order.
    """
    places = np.empty(len(rows), dtype=np.int64)
    rows, others = np.ascontiguousarray(rows), np.ascontiguousarray(others)
    devices.over_ranges(lambda a, b: _find(rows[a:b], others, places[a:b]), len(rows), grain=4096)
    return places


@njit(cache=True, nogil=True)
def _find(rows, others, places):
    for i in range(len(rows)):
        low, high, found = 0, len(others), -1
        while low < high and found < 0:
            middle = (low + high) // 2
            m = 0
            while m < rows.shape[1] and rows[i, m] == others[middle, m]:
                m += 1
            if m == rows.shape[1]:
                found = middle
            elif rows[i, m] > others[middle, m]:
                low = middle + 1
            else:
                high = middle
        places[i] = found


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

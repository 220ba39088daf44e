"""Usages of fixed programs: non-negative least squares for many objects, which share their programs.

    min_{u ≥ 0} ‖x - u H‖², for each row x of the data (N, d) and programs H (k, d)

Only the products x Hᵀ (k,) and H Hᵀ (k, k) matter. Coordinate descent changes one program at a time, of a block of
objects together; each step is the exact minimum over that program's usages.
"""

from typing import Any

import numpy as np

from gpuens.runtime import device as devices
from gpuens.runtime import progress
from gpuens.runtime.products import product

BLOCK = 2**14  # number of objects whose usages are iterated together
SWEEPS = 10_000  # most iterations over all programs
TOLERANCE = 1e-8  # change of a usage, relative to the largest one of the block, below which the descent ends


@devices.library_threads(1)  # sums of several threads could differ
def fit_usages(data: Any, programs: Any, *, device: str = "cpu") -> tuple[Any, float]:
    """Return the usages (n_objects, k), float64, and the sum of the squared errors of data (n_objects, d).

    ``data`` is an array on the device, or a CSR matrix on the CPU; ``programs`` (k, d), float64, are on the device.
    """
    xp = devices.namespace(device)
    usages, error, gram = xp.empty((data.shape[0], len(programs))), 0.0, programs @ programs.T
    for start in progress.bar(range(0, data.shape[0], BLOCK), "usages"):
        objects = data[start : start + BLOCK]
        dots = objects @ programs.T if hasattr(objects, "tocsr") else product(objects.astype(np.float64), programs.T)
        block = usages[start : start + BLOCK] = _descend(dots, gram, xp)
        values = (objects.data if hasattr(objects, "tocsr") else objects).astype(np.float64)
        error += float((values * values).sum() + (block * (block @ gram - 2.0 * dots)).sum())
    return usages, max(error, 0.0)


def _descend(dots: Any, gram: Any, xp: Any) -> Any:
    """Return the usages (n, k) ≥ 0 with the smallest error, from x Hᵀ (n, k) and H Hᵀ (k, k)."""
    usages = xp.zeros(dots.shape)
    squares = devices.to_host(gram).diagonal()
    for _ in range(SWEEPS):
        before = usages.copy()
        for j in np.flatnonzero(squares > 0).tolist():
            step = (dots[:, j] - usages @ gram[:, j]) / float(squares[j])
            usages[:, j] = xp.maximum(usages[:, j] + step, 0.0)
        change, largest = devices.floats(abs(usages - before).max(), usages.max())
        if change <= TOLERANCE * largest:
            break
    return usages

"""What the methods cost: a model of CPU seconds and bytes for each, made by bench/costs.py."""

import json
import math
import time
from functools import cache
from importlib import resources
from typing import Any

import numpy as np


@cache
def models() -> dict[str, Any]:
    """Return ``methods``, the coefficients of each, and ``standard_seconds`` of the machine that they are from."""
    found: dict[str, Any] = json.loads((resources.files("gpuens") / "costs.json").read_text())
    return found


def of(coefficients: list[float], n_rows: int, n_clusterings: int, n_base_clusters: int, k: int) -> float:
    """Return a + b · rows^p · clusterings^q · base clusters^r · clusters wanted^s.

    >>> of([1.0, 0.5, 2.0, 1.0, 0.0, 0.0], 10, 3, 20, 5)
    151.0
    """
    a, b, *powers = coefficients
    sizes = (n_rows, n_clusterings, n_base_clusters, k)
    return a + b * math.prod(size**power for size, power in zip(sizes, powers, strict=True))


def standard_seconds() -> float:
    """Return the CPU seconds of some work in which this machine is like the methods: comparisons, sorting, look-ups."""
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 50, (20_000, 20)).astype(np.uint8)
    started = time.process_time()
    for row in labels[:60]:
        np.count_nonzero(labels == row, axis=1)
    order = np.lexsort(labels[:, :4].T)
    labels[order].sum(axis=0, dtype=np.int64)
    return time.process_time() - started

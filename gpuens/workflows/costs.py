"""Cost models of the methods: CPU seconds and bytes of a fit, measured by bench/costs.py."""

import json
import math
import time
from functools import cache
from importlib import resources
from typing import Any, NamedTuple

import numpy as np


class Cost(NamedTuple):
    """The cost of a fit."""

    seconds: float  # CPU seconds on one thread of this machine
    memory: float  # bytes of host memory beside the labels


def of_fit(estimator: Any, n_rows: int, n_clusterings: int, n_base_clusters: int, k: int) -> Cost | None:
    """Return the cost of fitting an estimator, or None for a method without a model.

    The cost is proportional to ``n_init``; that of `gpuens.Auto` is the sum over its methods.
    """
    known = models()["methods"]
    names = [candidate for candidate, _ in getattr(estimator._parts()[1], "candidates", ())]
    names = names or [name for name, model in known.items() if model["estimator"] == type(estimator).__name__]
    if not names or not set(names) <= set(known):
        return None
    sizes = n_rows, n_clusterings, n_base_clusters, k
    seconds, memory = ([of(known[name][what], *sizes) for name in names] for what in Cost._fields)
    return Cost(sum(seconds) * speed() * _runs(estimator), max(memory))


def _runs(estimator: Any) -> float:
    """Return the estimator's n_init divided by its default, or 1.0 without n_init."""
    own, usual = (getattr(one, "n_init", None) for one in (estimator, type(estimator)()))
    return own / usual if isinstance(own, int) and isinstance(usual, int) else 1.0


@cache
def speed() -> float:
    """Return this machine's time for the standard work divided by that of the machine of the models."""
    return min(standard_seconds() for _ in range(3)) / float(models()["standard_seconds"])


@cache
def models() -> dict[str, Any]:
    """Return ``methods``, the coefficients of each method, and ``standard_seconds`` of the measuring machine."""
    found: dict[str, Any] = json.loads((resources.files("gpuens.workflows") / "costs.json").read_text())
    return found


def of(coefficients: list[float], n_rows: int, n_clusterings: int, n_base_clusters: int, k: int) -> float:
    """Return a + b · rows^p · clusterings^q · base clusters^r · clusters wanted^s.

    >>> of([1.0, 0.5, 2.0, 1.0, 0.0, 0.0], 10, 3, 20, 5)
    151.0
    """
    a, b, *powers = coefficients
    sizes = (n_rows, n_clusterings, n_base_clusters, k)
    return float(a + b * math.prod(size**power for size, power in zip(sizes, powers, strict=True)))


def standard_seconds() -> float:
    """Return the CPU seconds of the standard work, which resembles the methods: comparisons, sorting, look-ups."""
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 50, (20_000, 20)).astype(np.uint8)
    started = time.process_time()
    for row in labels[:60]:
        np.count_nonzero(labels == row, axis=1)
    order = np.lexsort(labels[:, :4].T)
    labels[order].sum(axis=0, dtype=np.int64)
    return time.process_time() - started

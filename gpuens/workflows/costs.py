"""Cost models of the methods, which predict the CPU seconds and the bytes of a fit; bench/costs.py measured them."""

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
    memory: float  # bytes of host memory in addition to the labels


def of_fit(estimator: Any, n_rows: int, n_clusterings: int, n_base_clusters: int, k: int) -> Cost | None:
    """Return the predicted cost of fitting an estimator, or None if its method has no cost model.

    The seconds are proportional to ``n_init``. For `gpuens.Auto`, the seconds are the sum over the methods that it
    runs, and the memory is their maximum.
    """
    known = models()["methods"]
    names = [candidate for candidate, _ in getattr(estimator._resolved_parts()[1], "candidates", ())]
    names = names or [name for name, model in known.items() if model["estimator"] == type(estimator).__name__]
    if not names or not set(names) <= set(known):
        return None
    sizes = n_rows, n_clusterings, n_base_clusters, k
    seconds, memory = ([of(known[name][what], *sizes) for name in names] for what in Cost._fields)
    return Cost(sum(seconds) * speed() * _runs(estimator), max(memory))


def _runs(estimator: Any) -> float:
    """Return the ``n_init`` of the estimator divided by the default ``n_init``; 1.0 if the estimator has none."""
    own, usual = (getattr(one, "n_init", None) for one in (estimator, type(estimator)()))
    return own / usual if isinstance(own, int) and isinstance(usual, int) else 1.0


@cache
def speed() -> float:
    """Return this machine's time for the standard work, divided by the time on the machine that measured the models."""
    return min(standard_seconds() for _ in range(3)) / float(models()["standard_seconds"])


@cache
def models() -> dict[str, Any]:
    """Return the cost models as a dict with two entries.

    ``methods`` holds the coefficients of each method. ``standard_seconds`` is the time for the standard work on the
    machine that measured the models.
    """
    found: dict[str, Any] = json.loads((resources.files("gpuens.workflows") / "costs.json").read_text())
    return found


def of(coefficients: list[float], n_rows: int, n_clusterings: int, n_base_clusters: int, k: int) -> float:
    """Return a + b · n_rows^p · n_clusterings^q · n_base_clusters^r · k^s, where the coefficients are a, b, p, q, r, s.

    >>> of([1.0, 0.5, 2.0, 1.0, 0.0, 0.0], 10, 3, 20, 5)
    151.0
    """
    a, b, *powers = coefficients
    sizes = (n_rows, n_clusterings, n_base_clusters, k)
    return float(a + b * math.prod(size**power for size, power in zip(sizes, powers, strict=True)))


def standard_seconds() -> float:
    """Run the standard work and return its CPU seconds; it compares, sorts and looks up labels as the methods do."""
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 50, (20_000, 20)).astype(np.uint8)
    started = time.process_time()
    for row in labels[:60]:
        np.count_nonzero(labels == row, axis=1)
    order = np.lexsort(labels[:, :4].T)
    labels[order].sum(axis=0, dtype=np.int64)
    return time.process_time() - started

"""A warning of results in which one cluster holds nearly everything, or single objects use up the clusters.

Both are judged beside the base clusterings, which have such clusters themselves where the data are so. Of 1,092 results
for 26 labelled sets (150 to 1,300 objects, 21 methods, clusterings by k-means and by landmarks) 97 are warned of. Their
mean ARI is .03, while the five best methods reach .40 there; one of them is as good as those. Classes of which one has
over nine tenths of the objects, and is split by all base clusterings, are warned of although they may be found right.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import numpy as np

from gpuens import checks
from gpuens import device as devices
from gpuens.partition import Partition
from gpuens.partition.label_kmeans import count_labels
from gpuens.rows import Rows

FEWEST = 150  # objects in all, and …
FEWEST_EACH = 20  # objects for each cluster, below which chance makes clusters of single objects
NEARLY_ALL = 0.9  # share of the objects in one cluster
LARGER = 2.0  # than the largest cluster of a base clustering, in the median: what is not due to the data
FEW = 0.01  # share of the mean size of a cluster; one object is always few
EATEN = 0.25  # share of the clusters that have few objects

_unsaid: ContextVar[bool] = ContextVar("_unsaid", default=False)


@contextmanager
def unsaid() -> Iterator[None]:
    """Warn of no result of a block, most of which the caller throws away."""
    token = _unsaid.set(True)
    try:
        yield
    finally:
        _unsaid.reset(token)


def warn_of_lopsided(rows: Rows, partition: Partition, remedy: str) -> None:
    """Warn where a partition is far less even than the base clusterings; ``remedy`` says what to do."""
    k, n = partition.n_clusters, rows.n_objects
    if _unsaid.get() or k < 2 or n < max(FEWEST, FEWEST_EACH * k):
        return
    sizes = _sizes(rows, partition)
    largest, eaten = int(sizes.max()), _share_of_few(sizes)
    if largest <= NEARLY_ALL * n and eaten < EATEN:
        return
    given = _base_sizes(rows)
    usual = float(np.median([own.max() / own.sum() for own in given]))
    if largest > max(NEARLY_ALL, LARGER * usual) * n:
        checks.warn(
            f"one of {k} clusters has {largest} of {n} objects, while the largest of a base clustering has {usual:.0%} "
            f"in the median: unless that is right, {remedy}."
        )
        return
    if eaten >= EATEN and eaten > LARGER * float(np.median([_share_of_few(own) for own in given])):
        checks.warn(
            f"clusters of at most {int(_few(n, k))} of {n} objects are {np.count_nonzero(sizes <= _few(n, k))} of {k}, "
            f"which is rare in the base clusterings: unless that is right, {remedy}."
        )


def remedy_of(estimator: Any, partitioner: Any, n_objects: int, n_clusters: int) -> str:
    """Return what to do about a lopsided result, with the parameter for it where the method has one."""
    names = estimator._get_param_names()
    other = "take another method" if type(estimator).__name__ == "LWGP" else "take another method, such as lwgp"
    if ("min_size" in names or "partitioner" in names) and getattr(partitioner, "min_size", 0) is None:
        return f"pass min_size={max(2, n_objects // (10 * n_clusters))} for larger ones, or {other}"
    return other


def _sizes(rows: Rows, partition: Partition) -> np.ndarray:
    """Return the objects of each cluster of a partition of rows, in memory or in pieces."""
    if partition.labels is not None:
        xp = devices.namespace(devices.kind_of(partition.labels))  # labels stay where they are
        sizes = xp.bincount(partition.labels, weights=xp.asarray(rows.counts), minlength=partition.n_clusters)
        return devices.to_host(sizes)
    assert partition.rule is not None
    return count_labels(rows, partition.rule, partition.n_clusters)[1]


def _base_sizes(rows: Rows) -> list[np.ndarray]:
    """Return the objects of each cluster of each base clustering, without empty ones."""
    rows = rows.hardened()
    parts = np.split(rows.cluster_sizes(), rows.offsets[1:-1])
    return [own[own > 0] for own in parts if own.any()]


def _few(n_objects: float, n_clusters: int) -> float:
    return max(1.0, FEW * n_objects / n_clusters)


def _share_of_few(sizes: np.ndarray) -> float:
    """Return the share of clusters with few objects."""
    return float(np.mean(sizes <= _few(sizes.sum(), len(sizes))))

"""A warning about lopsided results: one cluster holds nearly all objects, or many clusters hold only a few objects.

A result is compared with the base clusterings. If the data have very large or very small clusters, the base clusterings
have them, too, and there is no warning.

- The warning was tested on 1,092 results: 21 methods on 26 data sets with known classes (150 to 1,300 objects, base
clusterings by k-means and by landmarks). 97 results cause a warning. The mean ARI of these results is .03, while the
mean ARI of the five best methods is .40 on the same data sets. Only one of the 97 results reaches this ARI.
- A cluster with over nine tenths of the objects causes a warning even if it is a true class, if all base clusterings
split this class.
- In larger data sets, any cluster with less than a thousandth of the objects causes a warning if all other clusters are
large.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import numpy as np

from gpuens.labels.incidence import label_weights
from gpuens.labels.rows import Rows, sizes_by_rule
from gpuens.partition import Partition
from gpuens.partition.linkage.contiguous import ContiguousLinkage
from gpuens.runtime import checks
from gpuens.runtime import device as devices

# smallest number of objects for a warning, because fewer objects can have clusters of single objects by chance
FEWEST = 150
FEWEST_EACH = 20  # smallest number of objects per cluster for a warning, for the same reason
NEARLY_ALL = 0.9  # a cluster holds nearly all objects if its share of the objects is at least this value
# smallest ratio, for a warning, of the largest cluster to the median of the largest clusters of the base clusterings
LARGER = 2.0
FEW = 0.01  # a cluster is small if its size is at most this share of the mean size, or if it has one object
EATEN = 0.25  # smallest share, for a warning, of small clusters among all clusters
TINY = 0.001  # a cluster is tiny if its share of the objects is at most this value
LARGE = 0.01  # smallest share of the objects in each cluster that is not tiny, for a warning about tiny clusters

_unsaid: ContextVar[bool] = ContextVar("_unsaid", default=False)


@contextmanager
def unsaid() -> Iterator[None]:
    """Suppress warnings about lopsided results inside a ``with`` block, because the caller discards most results."""
    token = _unsaid.set(True)
    try:
        yield
    finally:
        _unsaid.reset(token)


def warn_of_lopsided(rows: Rows, partition: Partition, remedy: Callable[[], str], unit: int | float = 1) -> None:
    """Warn if the sizes of a partition are far less even than in the base clusterings; see `why_lopsided`."""
    if _unsaid.get() or partition.n_clusters < 2:
        return
    if (why := why_lopsided(rows, _sizes(rows, partition), remedy, unit)) is not None:
        checks.warn(why)


def why_lopsided(rows: Rows, sizes: np.ndarray, remedy: Callable[[], str], unit: int | float = 1) -> str | None:
    """Return a warning if cluster sizes are far less even than in the base clusterings, otherwise None.

    ``rows`` are the label rows of the base clusterings. ``sizes`` (k,) are the numbers of objects of the consensus
    clusters. ``remedy`` gives the advice. Each counted object stands for a weight of ``unit``, in which the warning is.
    """
    k, n = len(sizes), rows.n_objects
    if k < 2 or n < max(FEWEST, FEWEST_EACH * k):
        return None
    largest, eaten, few, tiny = int(sizes.max()), _share_of_few(sizes), int(_few(n, k)), _tiny_beside_large(sizes)
    if largest <= NEARLY_ALL * n and eaten < EATEN and not tiny:
        return None
    given = [own for own in rows.hardened().sizes_by_clustering() if len(own)]
    usual = float(np.median([own.max() / own.sum() for own in given]))
    found, whole = None, n * unit
    if largest > max(NEARLY_ALL, LARGER * usual) * n:
        found = (
            f"one of {k} clusters has {largest * unit} of {whole} objects, while the largest of a base clustering has "
            f"{usual:.0%} in the median"
        )
    elif eaten >= EATEN and eaten > LARGER * float(np.median([_share_of_few(own) for own in given])):
        n_few = np.count_nonzero(sizes <= few)
        found = (
            f"clusters of at most {few * unit} of {whole} objects are {n_few} of {k}, which is rare in the base "
            "clusterings"
        )
    elif tiny and np.median([own.min() <= TINY * own.sum() for own in given]) < 0.5:
        most, least = int(np.sort(sizes)[tiny - 1]) * unit, int(np.sort(sizes)[tiny]) * unit
        which = f"one of {k} clusters has {most}" if tiny == 1 else f"{tiny} of {k} clusters have at most {most}"
        found = f"{which} of {whole} objects, and the others at least {least}, which is rare in the base clusterings"
    return None if found is None else f"{found}: unless that is right, {remedy()}."


def remedy_of(estimator: Any, partitioner: Any, n_objects: int | float, n_clusters: int) -> str:
    """Return the advice for a lopsided result; it names a parameter if the method has a suitable parameter."""
    if isinstance(partitioner, ContiguousLinkage):
        return "ask for more clusters, or fit without graph"
    names = estimator._get_param_names()
    other = "take another method" if type(estimator).__name__ == "LWGP" else "take another method, such as lwgp"
    if getattr(partitioner, "min_size", 0) is not None:
        return other
    least = max(2, int(n_objects // (10 * n_clusters)))
    if "min_size" in names:
        return f"pass min_size={least} (--min-size {least}) for larger ones, or {other}"
    if "partitioner" not in names:
        return other
    written = estimator.partitioner
    if not isinstance(written, str):
        return f"pass {type(partitioner).__name__}(min_size={least}) for larger ones, or {other}"
    written += f"{',' if ':' in written else ':'}min_size={least}"
    return f"pass partitioner={written!r} (--partitioner {written}) for larger ones, or {other}"


def _sizes(rows: Rows, partition: Partition) -> np.ndarray:
    """Return the number of objects in each cluster of a partition; its rows are in memory or in pieces."""
    if partition.labels is not None:
        if devices.kind_of(partition.labels) == "cpu":
            return np.bincount(partition.labels, weights=rows.counts, minlength=partition.n_clusters)
        counts = rows.xp.asarray(rows.counts)  # CuPy's bincount would synchronise twice
        return devices.to_host(label_weights(counts, partition.labels, partition.n_clusters, device=rows.device))
    assert partition.rule is not None
    return sizes_by_rule(partition.rule, rows, partition.n_clusters)


def _tiny_beside_large(sizes: np.ndarray) -> int:
    """Return the number of tiny clusters if all other clusters are large, otherwise 0."""
    n = sizes.sum()
    tiny = int(np.count_nonzero(sizes <= TINY * n))
    return tiny if tiny < len(sizes) and sizes[sizes > TINY * n].min() >= LARGE * n else 0


def _few(n_objects: float, n_clusters: int) -> float:
    return max(1.0, FEW * n_objects / n_clusters)


def _share_of_few(sizes: np.ndarray) -> float:
    """Return the share of small clusters among all clusters."""
    return float(np.mean(sizes <= _few(sizes.sum(), len(sizes))))

"""The numbering of clusters by size: 0 is the largest; of equal sizes, the cluster of the first object comes first.

Sizes are numbers of objects, or sums of their weights. First objects are computed only if sizes are equal.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from gpuens.runtime import checks
from gpuens.runtime import device as devices
from gpuens.runtime.device import Array


def numbers_by_size(sizes: np.ndarray, first_objects: Callable[[], np.ndarray]) -> np.ndarray:
    """Return the number (k,), int64, of each cluster, from the sizes (k,) and a function that gives first objects (k,).

    >>> import numpy as np
    >>> from gpuens.labels.numbering import numbers_by_size
    >>> numbers_by_size(np.array([2, 5, 2]), lambda: np.array([4, 1, 0])).tolist()
    [2, 0, 1]
    """
    order = np.argsort(-sizes, kind="stable")
    descending = sizes[order]
    if (descending[1:] == descending[:-1]).any():
        order = np.lexsort((first_objects(), -sizes))
    numbers = np.empty(len(order), dtype=np.int64)
    numbers[order] = np.arange(len(order))
    return numbers


def label_sizes(labels: Array, n_labels: int) -> np.ndarray:
    """Return the number of objects of each label 0 … n_labels - 1, (n_labels,) int64, host."""
    return devices.to_host(np.bincount(labels, minlength=n_labels))


def first_objects_of(labels: Array, n_labels: int) -> np.ndarray:
    """Return the first object of each label 0 … n_labels - 1, (n_labels,) int64, host; ``len(labels)`` without one."""
    first = np.full(n_labels, len(labels), dtype=np.int64)
    if devices.kind_of(labels) == "cpu":
        # the last assignment to a cluster stays, which is that of its first object
        first[labels[::-1]] = np.arange(len(labels) - 1, -1, -1)
    else:
        values, places = np.unique(labels, return_index=True)
        first[devices.to_host(values)] = devices.to_host(places)
    return first


def number_labels(labels: Any) -> np.ndarray:
    """Return labels (N,) ≥ -1 in host memory with their clusters numbered by size; -1 stays -1.

    >>> import numpy as np
    >>> from gpuens.labels.numbering import number_labels
    >>> number_labels(np.array([7, 3, -1, 3, 0])).tolist()
    [1, 0, -1, 0, 2]
    """
    known = labels >= 0
    codes = np.unique(labels[known], return_inverse=True)[1]
    k = int(codes.max(initial=-1)) + 1
    numbers = numbers_by_size(label_sizes(codes, k), lambda: first_objects_of(codes, k))
    numbered = np.full(len(labels), checks.MISSING, dtype=np.int64)
    numbered[known] = numbers[codes]
    return numbered

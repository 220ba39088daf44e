"""Codes of labels: their types, counts and numberings.

Consensus clusters are numbered by size: 0 is the largest; of equal sizes, the cluster of the first object comes first.
Sizes are numbers of objects, or sums of their weights. First objects are computed only if sizes are equal.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from gpuens.runtime import checks
from gpuens.runtime import device as devices
from gpuens.runtime.device import Array


def codes_dtype(n_clusters: int) -> type:
    """Return the smallest unsigned dtype with a value for each cluster and one for missing labels."""
    for dtype in (np.uint8, np.uint16):
        if n_clusters <= np.iinfo(dtype).max:
            return dtype
    return np.uint32


def factorize(values: Any) -> tuple[np.ndarray, Any]:
    """Return the codes (n,) and the distinct values of an array in order of appearance; missing values have code -1.

    If all values are texts, pandas reads freed memory for those that UTF-8 cannot encode, such as lone surrogates. A
    first value that is no text makes pandas compare the texts as objects.
    """
    import pandas as pd

    if not isinstance(values, np.ndarray) or values.dtype != object:
        codes, distinct = pd.factorize(values)
        return codes, distinct
    after = np.empty(len(values) + 1, dtype=object)
    after[0], after[1:] = object(), values
    codes, distinct = pd.factorize(after)
    return np.maximum(codes[1:] - 1, -1), distinct[1:]


def cast_codes(codes: Any, dtype: np.dtype) -> Any:
    """Return codes in another dtype, which must be large enough; missing labels stay missing."""
    if codes.dtype == dtype:
        return codes
    cast = codes.astype(dtype, order="F")
    cast[codes == np.iinfo(codes.dtype).max] = np.iinfo(dtype).max
    return cast


def renumber_codes(codes: Any, dtype: Any, numbers: list[np.ndarray]) -> Any:
    """Return codes in another numbering: ``numbers[m][code]`` is the new code, -1 for missing."""
    xp, missing = devices.namespace(devices.kind_of(codes)), np.iinfo(dtype).max
    renumbered = xp.empty(codes.shape, dtype=dtype, order="F")
    for m, column_numbers in enumerate(numbers):
        extended = xp.asarray(np.append(np.where(column_numbers < 0, missing, column_numbers), missing).astype(dtype))
        renumbered[:, m] = extended[
            np.minimum(codes[:, m], codes.dtype.type(min(len(column_numbers), np.iinfo(codes.dtype).max)))
        ]
    return renumbered


def unlabelled_objects(codes: Any) -> Any:
    """Return the mask (N,) of the objects whose labels are all missing."""
    missing = np.iinfo(codes.dtype).max
    if devices.kind_of(codes) == "cuda":  # on a GPU one read of all labels is faster than one per clustering
        return (codes == missing).all(axis=1)
    everywhere = codes[:, 0] == missing
    for m in range(1, codes.shape[1]):
        if not everywhere.any():
            break
        everywhere &= codes[:, m] == missing
    return everywhere


def cluster_sizes(codes: Any, n_clusters: np.ndarray) -> np.ndarray:
    """Return the number of objects in each cluster of all clusterings, (N_c,), int64, host."""
    # missing codes become k, because a count table up to the largest uint32 would take 32 GB
    counts = [np.bincount(np.minimum(codes[:, m], k), minlength=k)[:k] for m, k in enumerate(n_clusters.tolist())]
    return devices.to_host(np.concatenate(counts)).astype(np.int64)


def select_columns(codes: Any, places: list[int], n_clusters: np.ndarray) -> Any:
    """Return the ``places`` columns of codes, in the smallest dtype for their numbers of clusters."""
    return cast_codes(np.stack([codes[:, m] for m in places]).T, np.dtype(codes_dtype(int(n_clusters[places].max()))))


def without_empty(codes: Any, categories: list[np.ndarray]) -> tuple[Any, list[np.ndarray]]:
    """Return the codes and label values without the clusters that have no objects."""
    n_clusters = np.array(list(map(len, categories)))
    is_used = np.split(cluster_sizes(codes, n_clusters) > 0, np.cumsum(n_clusters)[:-1])
    numbers = [np.where(mask, np.cumsum(mask) - 1, -1) for mask in is_used]
    used_values = [values[mask] for values, mask in zip(categories, is_used, strict=True)]
    return renumber_codes(codes, codes_dtype(max(map(len, used_values))), numbers), used_values


# --- numbering by size ------------------------------------------------------------------------------------------------


def numbers_by_size(sizes: np.ndarray, first_objects: Callable[[], np.ndarray]) -> np.ndarray:
    """Return the number (k,), int64, of each cluster, from the sizes (k,) and a function that gives first objects (k,).

    >>> import numpy as np
    >>> from gpuens.labels.codes import numbers_by_size
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
    >>> from gpuens.labels.codes import number_labels
    >>> number_labels(np.array([7, 3, -1, 3, 0])).tolist()
    [1, 0, -1, 0, 2]
    """
    is_labelled = labels >= 0
    codes = np.unique(labels[is_labelled], return_inverse=True)[1]
    k = int(codes.max(initial=-1)) + 1
    numbers = numbers_by_size(label_sizes(codes, k), lambda: first_objects_of(codes, k))
    numbered = np.full(len(labels), checks.MISSING, dtype=np.int64)
    numbered[is_labelled] = numbers[codes]
    return numbered

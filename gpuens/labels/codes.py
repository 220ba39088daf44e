"""Codes of labels: their types, other numberings of clusters, and counts."""

from typing import Any

import numpy as np

from gpuens.runtime import device as devices


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
    found = codes.astype(dtype, order="F")
    found[codes == np.iinfo(codes.dtype).max] = np.iinfo(dtype).max
    return found


def renumber_codes(codes: Any, dtype: Any, tables: list[np.ndarray]) -> Any:
    """Return codes in another numbering: ``tables[m][code]`` is the new code, -1 for missing."""
    xp, missing = devices.namespace(devices.kind_of(codes)), np.iinfo(dtype).max
    found = xp.empty(codes.shape, dtype=dtype, order="F")
    for m, table in enumerate(tables):
        extended = xp.asarray(np.append(np.where(table < 0, missing, table), missing).astype(dtype))
        found[:, m] = extended[np.minimum(codes[:, m], codes.dtype.type(min(len(table), np.iinfo(codes.dtype).max)))]
    return found


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


def select_columns(codes: Any, kept: list[int], n_clusters: np.ndarray) -> Any:
    """Return the ``kept`` columns of codes, in the smallest dtype for their numbers of clusters."""
    return cast_codes(np.stack([codes[:, m] for m in kept]).T, np.dtype(codes_dtype(int(n_clusters[kept].max()))))


def without_empty(codes: Any, categories: list[np.ndarray]) -> tuple[Any, list[np.ndarray]]:
    """Return the codes and label values without the clusters that have no objects."""
    n_clusters = np.array(list(map(len, categories)))
    used = np.split(cluster_sizes(codes, n_clusters) > 0, np.cumsum(n_clusters)[:-1])
    tables = [np.where(of_one, np.cumsum(of_one) - 1, -1) for of_one in used]
    kept = [values[of_one] for values, of_one in zip(categories, used, strict=True)]
    return renumber_codes(codes, codes_dtype(max(map(len, kept))), tables), kept

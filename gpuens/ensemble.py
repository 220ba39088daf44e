"""The label matrix: M base clusterings of N objects in one compact array, with its cluster numbering."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from gpuens import device, validation


class Ensemble:
    """M base clusterings of the same N objects.

    Parameters
    ----------
    labels : array (n_objects, n_clusterings), DataFrame, list of columns, or Ensemble
        Integers of any width, whole floats, booleans, strings or categories. -1, NaN, None and pandas.NA mean that
        the label is missing. Labels may have gaps and mean something only within their own clustering. NumPy and CuPy
        arrays, DLPack and ``__cuda_array_interface__`` are accepted; results go back where the labels came from.
        In a list, each element is one base clustering (a column), whatever its own type.
    names : sequence of str, optional
        The names of the clusterings; a DataFrame brings its own.

    Attributes
    ----------
    codes : ndarray (n_objects, n_clusterings), uint8, uint16 or uint32, columns contiguous
        Clusters of each clustering numbered 0 … k_m - 1 in the order of their label values; `missing_code` where
        the label is missing.
    missing_code : int
        The largest value of ``codes.dtype``.
    categories : list of M arrays
        The label value of each cluster: ``categories[m][code]``.
    offsets : ndarray (n_clusterings + 1,), int64
        Cluster ``code`` of clustering m has the ensemble-wide number ``offsets[m] + code``.
    sizes : ndarray (n_clusters,), int64
        Objects in each cluster.
    n_objects, n_clusterings, n_clusters : int
        N, M and N_c, the number of clusters of all clusterings together.
    names : list of M names

    Raises
    ------
    ValueError, TypeError
        In one sentence, for labels that are 1-D, empty, transposed, fractional, infinite, of different lengths, on
        different devices, missing for a whole clustering or for an object everywhere. A clustering with a single
        cluster is a warning.

    Examples
    --------
    >>> import gpuens as ge
    >>> ens = ge.Ensemble([["b", "a", "a", None], [3, 3, 7, 7]])
    >>> ens.n_objects, ens.n_clusterings, ens.n_clusters
    (4, 2, 4)
    >>> ens.offsets.tolist(), ens.sizes.tolist()
    ([0, 2, 4], [2, 1, 2, 2])
    >>> ens.to_array().tolist()
    [[1, 0], [0, 0], [0, 1], [-1, 1]]
    """

    codes: np.ndarray
    categories: list[np.ndarray]
    offsets: np.ndarray
    sizes: np.ndarray
    names: list
    device_kind: str  # "cpu" or "cuda": where the caller's labels live, and so where results go

    def __init__(self, labels: Any, *, names: Sequence | None = None) -> None:
        if isinstance(labels, Ensemble):
            self.__dict__.update(labels.__dict__)
            if names is not None:
                self.names = _checked_names(names, self.n_clusterings)
            return
        columns, found_names, self.device_kind = _columns(labels)
        self.names = found_names if names is None else _checked_names(names, len(columns))
        self.codes, self.categories = _encode(columns, self.names)
        n_clusters = np.array([len(c) for c in self.categories], dtype=np.int64)
        validation.clusterings_say_something(n_clusters, self.names)
        validation.objects_are_labelled(self._missing_everywhere())
        self.offsets = np.concatenate([[0], np.cumsum(n_clusters)])
        self.sizes = np.concatenate(
            [np.bincount(self.codes[:, m], minlength=k)[:k] for m, k in enumerate(n_clusters)]
        ).astype(np.int64)

    def take(self, rows: np.ndarray) -> "Ensemble":
        """Return the ensemble of some of the objects, with this one's cluster numbering (clusters may become empty)."""
        subset = object.__new__(Ensemble)
        subset.__dict__.update(self.__dict__)
        subset.codes = np.asfortranarray(self.codes[rows])
        subset.sizes = np.concatenate(
            [
                np.bincount(subset.codes[:, m], minlength=len(categories))[: len(categories)]
                for m, categories in enumerate(self.categories)
            ]
        ).astype(np.int64)
        return subset

    def to_array(self) -> np.ndarray:
        """Return the codes as int64 (n_objects, n_clusterings) with -1 for missing."""
        array = self.codes.astype(np.int64)
        array[self.codes == self.missing_code] = validation.MISSING
        return array

    @property
    def n_objects(self) -> int:
        return self.codes.shape[0]

    @property
    def n_clusterings(self) -> int:
        return self.codes.shape[1]

    @property
    def n_clusters(self) -> int:
        return int(self.offsets[-1])

    @property
    def missing_code(self) -> int:
        return int(np.iinfo(self.codes.dtype).max)

    @property
    def has_missing(self) -> bool:
        return bool(self.sizes.sum() < self.codes.size)

    def __len__(self) -> int:
        return self.n_objects

    def __repr__(self) -> str:
        return f"Ensemble(n_objects={self.n_objects}, n_clusterings={self.n_clusterings}, n_clusters={self.n_clusters})"

    def _missing_everywhere(self) -> np.ndarray:
        everywhere = self.codes[:, 0] == self.missing_code
        for m in range(1, self.n_clusterings):
            if not everywhere.any():
                break
            everywhere &= self.codes[:, m] == self.missing_code
        return everywhere


# --- from what callers have to columns --------------------------------------------------------------------------------


def _columns(labels: Any) -> tuple[list, list, str]:
    """Split what the caller gave into M columns; return them with their names and where they live."""
    validation.not_nothing(labels)
    validation.dense(labels)
    if hasattr(labels, "columns") and hasattr(labels, "shape"):  # a DataFrame: pandas, polars, cuDF
        names = list(labels.columns)
        columns = [labels.iloc[:, m] if hasattr(labels, "iloc") else labels[name] for m, name in enumerate(names)]
        validation.label_matrix_shape(tuple(labels.shape), columns_are_clusterings=True)
        return columns, names, device.common_kind(columns)
    if isinstance(labels, (list, tuple)):
        columns = list(labels)
        if not columns or any(np.ndim(c) != 1 if not _is_array(c) else len(c.shape) != 1 for c in columns):
            validation.label_matrix_shape(np.shape(columns), columns_are_clusterings=False)
            raise ValueError("labels: in a list every element is one base clustering, a 1-D column of labels.")
        kind = device.common_kind(columns)
        validation.columns_of_one_length(len(c) for c in columns)
        nested = all(isinstance(c, (list, tuple)) for c in columns)
        validation.label_matrix_shape((len(columns[0]), len(columns)), columns_are_clusterings=not nested)
        return columns, list(range(len(columns))), kind
    kind = device.kind_of(labels)
    matrix = device.to_host(labels)
    validation.label_matrix_shape(matrix.shape, columns_are_clusterings=False)
    return [matrix[:, m] for m in range(matrix.shape[1])], list(range(matrix.shape[1])), kind


def _is_array(column: Any) -> bool:
    return hasattr(column, "shape")


def _checked_names(names: Sequence, n_clusterings: int) -> list:
    names = list(names)
    if len(names) != n_clusterings:
        raise ValueError(f"names: {len(names)} were given for {n_clusterings} clusterings.")
    return names


# --- from columns to codes --------------------------------------------------------------------------------------------


def _encode(columns: list, names: list) -> tuple[np.ndarray, list[np.ndarray]]:
    """Number the clusters of each column; widen the common dtype only when a column needs it."""
    codes = np.empty((len(columns[0]), len(columns)), dtype=np.uint8, order="F")
    categories = []
    for m, (column, name) in enumerate(zip(columns, names, strict=True)):
        column_codes, column_categories = _encode_column(column, name)
        categories.append(column_categories)
        needed = _dtype_for(len(column_categories))
        if np.iinfo(needed).max > np.iinfo(codes.dtype).max:
            codes = _widen(codes, needed)
        column_codes[column_codes < 0] = np.iinfo(codes.dtype).max
        codes[:, m] = column_codes
    return codes, categories


def _dtype_for(n_clusters: int) -> type:
    """Return the smallest unsigned dtype with a value for each cluster and one more for missing."""
    for dtype in (np.uint8, np.uint16):
        if n_clusters <= np.iinfo(dtype).max:
            return dtype
    return np.uint32


def _widen(codes: np.ndarray, dtype: type) -> np.ndarray:
    wide = codes.astype(dtype, order="F")
    wide[codes == np.iinfo(codes.dtype).max] = np.iinfo(dtype).max
    return wide


def _encode_column(column: Any, name: object) -> tuple[np.ndarray, np.ndarray]:
    """Return int64 codes (-1 = missing) numbered by ascending label value, and the label values."""
    values = column if hasattr(column, "cat") else device.to_host(column)
    if isinstance(values, np.ndarray) and values.dtype.kind in "fc":
        values = validation.numeric_column(values, name)
    if isinstance(values, np.ndarray) and values.dtype.kind in "iub":
        return _encode_integers(values, name)
    return _encode_objects(values, name)


def _encode_integers(values: np.ndarray, name: object) -> tuple[np.ndarray, np.ndarray]:
    if values.dtype.kind == "b":
        values = values.view(np.uint8)
    smallest, largest = int(values.min()), int(values.max())
    validation.non_negative(smallest, name)
    if largest > 4 * values.size + 1024:  # too sparse for a table of the label values
        found, codes = np.unique(values, return_inverse=True)
        codes = codes.astype(np.int64)
        if found[0] == validation.MISSING:
            return codes - 1, found[1:]
        return codes, found
    shifted = values.astype(np.int64)
    shifted += 1  # slot 0 is "missing"
    present = np.bincount(shifted, minlength=largest + 2) > 0
    present[0] = True
    code_of = np.cumsum(present) - 2
    return code_of[shifted], (np.flatnonzero(present)[1:] - 1).astype(values.dtype)


def _encode_objects(values: Any, name: object) -> tuple[np.ndarray, np.ndarray]:
    """Strings, categories and mixed objects; numbers hidden in an object column are treated as numbers."""
    import pandas as pd

    series = pd.Series(values)
    try:
        codes, found = pd.factorize(series)
    except TypeError as error:
        raise validation.hashable_labels(error, name) from None
    found = np.asarray(found)
    if len(found) and all(isinstance(v, (int, float, np.number, bool, np.bool_)) for v in found):
        numbers = np.full(len(codes), np.nan)
        if any(isinstance(v, (int, np.integer)) and abs(int(v)) > 2**53 for v in found):
            return _ranked(codes, found)
        numbers[codes >= 0] = found.astype(np.float64)[codes[codes >= 0]]
        return _encode_integers(validation.numeric_column(numbers, name), name)
    return _ranked(codes, found)


def _ranked(codes: np.ndarray, found: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Renumber first-seen codes by ascending value, so that the order of the objects cannot matter."""
    order = np.array(sorted(range(len(found)), key=lambda i: (type(found[i]).__name__, found[i])), dtype=np.int64)
    rank = np.empty(len(found) + 1, dtype=np.int64)
    rank[order] = np.arange(len(found))
    rank[-1] = validation.MISSING
    return rank[codes], found[order]

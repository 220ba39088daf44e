"""The label matrix: M base clusterings of N objects in one compact array, with its cluster numbering."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from gpuens import checks, device, validation
from gpuens.columns import warn_of_strangers


class Ensemble:
    """M base clusterings of the same N objects.

    Parameters
    ----------
    labels : array (n_objects, n_clusterings), DataFrame, list of columns, or Ensemble
        Integers of any width, whole floats, booleans, strings or categories. -1 (the number), NaN, None, pandas.NA
        and masked entries mean that the label is missing. Labels may have gaps and mean something only within their
        own clustering. NumPy and CuPy arrays, DLPack and ``__cuda_array_interface__`` are accepted; results go back
        where the labels came from. In a list, each element is one base clustering (a column), whatever its own type.
    names : sequence, optional
        The names of the clusterings; a DataFrame brings its own, and elsewhere they are 0 … M - 1.

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

    categories: list[np.ndarray]
    offsets: np.ndarray
    sizes: np.ndarray
    names: list
    device_kind: str  # "cpu" or "cuda": where the caller's labels live, and so where results go
    _copies: dict[str, Any]  # the codes, by the memory that they are in

    def __init__(self, labels: Any, *, names: Sequence | None = None) -> None:
        if isinstance(labels, Ensemble):
            self.__dict__.update(labels.__dict__)
            if names is not None:
                self.names = checks.check_names(names, self.n_clusterings)
            return
        found, kind = _coded(labels, names)
        checks.refuse_unlabelled(_missing_everywhere(found[0]))
        self.__dict__.update(Ensemble.of_codes(*found, kind).__dict__)
        if hasattr(labels, "columns"):
            warn_of_strangers(self.codes, np.diff(self.offsets), self.names, "labels")

    @classmethod
    def of_labelled(cls, labels: Any, *, names: Sequence | None = None) -> tuple["Ensemble", np.ndarray]:
        """Return the ensemble of the objects that have a label in some clustering, and the mask (n_objects,) of them.

        Parameters and errors are those of the class.

        >>> import gpuens as ge
        >>> ens, labelled = ge.Ensemble.of_labelled([["a", None, "b"], [3, -1, 5]])
        >>> ens.n_objects, labelled.tolist()
        (2, [True, False, True])
        """
        (codes, categories, names), kind = _coded(labels, names)
        labelled = ~_missing_everywhere(codes)
        return cls.of_codes(codes[labelled].copy(order="F"), categories, names, kind), device.to_host(labelled)

    @classmethod
    def of_codes(cls, codes: Any, categories: list[np.ndarray], names: list, device_kind: str = "cpu") -> "Ensemble":
        """Return the ensemble of codes (n_objects, n_clusterings) that are numbered as `categories` are.

        Nothing is checked; clusters may be without objects.
        """
        ensemble = object.__new__(cls)
        n_clusters = np.array([len(c) for c in categories], dtype=np.int64)
        ensemble.names, ensemble.categories, ensemble.device_kind = list(names), categories, device_kind
        ensemble.offsets = np.concatenate([[0], np.cumsum(n_clusters)])
        ensemble.sizes = _sizes(codes, n_clusters)
        ensemble._copies = {device.kind_of(codes): codes}
        return ensemble

    def take(self, rows: Any) -> "Ensemble":
        """Return the ensemble of some of the objects, with this one's cluster numbering (clusters may become empty).

        ``rows`` is a 1-D array of object indices, a mask over objects or a slice. Indices in GPU memory (trusted to be
        in range) choose from the labels there, and the subset stays there.
        """
        kind = device.kind_of(rows)
        if kind == "cpu":
            rows = checks.check_indices(rows, self.n_objects, "rows")
        codes = self._copy(kind)[rows].copy(order="F")
        subset = object.__new__(Ensemble)
        subset.__dict__.update(self.__dict__)
        subset.sizes = _sizes(codes, np.diff(self.offsets))
        subset._copies = {kind: codes}
        return subset

    @property
    def codes(self) -> np.ndarray:
        return self._copy("cpu")

    def codes_on(self, where: str) -> Any:
        """Return the codes where a device ("cpu", "cuda", "emulated") works; they are brought there once."""
        return self._copy("cuda" if where == "cuda" else "cpu")

    def _copy(self, kind: str) -> Any:
        if kind not in self._copies:
            ((_, codes),) = self._copies.items()
            self._copies[kind] = device.move(codes.T, kind).T  # both ways the columns stay contiguous
        return self._copies[kind]

    def to_array(self) -> np.ndarray:
        """Return the codes as int64 (n_objects, n_clusterings) with -1 for missing."""
        array = self.codes.astype(np.int64)
        array[self.codes == self.missing_code] = checks.MISSING
        return array

    @property
    def n_objects(self) -> int:
        return int(self._any_copy.shape[0])

    @property
    def n_clusterings(self) -> int:
        return len(self.offsets) - 1

    @property
    def n_clusters(self) -> int:
        return int(self.offsets[-1])

    @property
    def missing_code(self) -> int:
        return int(np.iinfo(self._any_copy.dtype).max)

    @property
    def has_missing(self) -> bool:
        return bool(self.sizes.sum() < self.n_objects * self.n_clusterings)

    @property
    def _any_copy(self) -> Any:
        return next(iter(self._copies.values()))

    def __len__(self) -> int:
        return self.n_objects

    def __repr__(self) -> str:
        return f"Ensemble(n_objects={self.n_objects}, n_clusterings={self.n_clusterings}, n_clusters={self.n_clusters})"


def _coded(labels: Any, names: Sequence | None) -> tuple[tuple[Any, list[np.ndarray], list], str]:
    """Return the codes of what the caller gave, the categories and the names, and where the labels live."""
    columns, found_names, kind = _columns(labels)
    names = found_names if names is None else checks.check_names(names, len(columns))
    codes, categories = _encode(columns, names)
    checks.check_clusterings([len(c) for c in categories], names, len(codes))
    return (codes, categories, names), kind


# --- from what callers have to columns --------------------------------------------------------------------------------


def _columns(labels: Any) -> tuple[list, list, str]:
    """Split what the caller gave into M columns; return them with their names and where they live."""
    validation.not_nothing(labels)
    checks.refuse_sparse(labels)
    if hasattr(labels, "columns") and hasattr(labels, "shape"):  # a DataFrame: pandas, polars, cuDF
        kind = "cpu"
        if hasattr(labels, "to_pandas") and hasattr(labels, "iloc"):  # cuDF, whose strings no array interface carries
            labels, kind = labels.to_pandas(), "cuda"
        checks.check_label_shape(tuple(labels.shape), columns_are_clusterings=True)
        names = list(labels.columns)  # which may repeat in pandas, so columns are taken by position there
        columns = [labels.iloc[:, m] if hasattr(labels, "iloc") else labels[name] for m, name in enumerate(names)]
        return columns, names, kind
    if isinstance(labels, (list, tuple)):
        kind = device.common_kind(list(labels))
        columns = [_as_column(c) for c in labels]
        validation.list_of_columns([c.shape for c in columns])
        if all(isinstance(c, (list, tuple)) for c in labels):
            validation.columns_not_rows(len(columns), len(columns[0]))
        return columns, list(range(len(columns))), kind
    kind = device.kind_of(labels)
    matrix = device.native(labels)
    checks.check_label_shape(matrix.shape, columns_are_clusterings=False)
    if isinstance(matrix, np.matrix):  # its columns would stay 2-D
        matrix = np.asarray(matrix)
    return [matrix[:, m] for m in range(matrix.shape[1])], list(range(matrix.shape[1])), kind


def _as_column(column: Any) -> Any:
    """Return one element of a list as an array on the host, or as the pandas Series that it is."""
    if _is_pandas(column):
        return column
    if not isinstance(column, (list, tuple)):
        return device.native(column)
    try:
        array = np.asarray(column)
    except ValueError:  # a list of unequal lists
        array = np.empty(len(column), dtype=object)
        array[:] = column
        return array
    # NumPy would write None and NaN among strings as strings, and round large integers among floats
    return np.array(column, dtype=object) if array.dtype.kind in "USf" else array


def _is_pandas(column: Any) -> bool:
    return hasattr(column, "iloc")


# --- from columns to codes --------------------------------------------------------------------------------------------


# NumPy's functions call CuPy's for arrays in GPU memory, so that what follows encodes labels where they are.


def _encode(columns: list, names: list) -> tuple[Any, list[np.ndarray]]:
    """Number the clusters of each column; widen the common dtype only when a column needs it."""
    shape = (len(columns[0]), len(columns))
    codes = device.namespace(device.kind_of(columns[0])).empty(shape, dtype=np.uint8, order="F")
    categories = []
    for m, (column, name) in enumerate(zip(columns, names, strict=True)):
        column_codes, column_categories = _encode_column(column, name)
        categories.append(device.to_host(column_categories))
        needed = codes_dtype(len(column_categories))
        if np.iinfo(needed).max > np.iinfo(codes.dtype).max:
            codes = _widen(codes, needed)
        column_codes[column_codes < 0] = np.iinfo(codes.dtype).max
        codes[:, m] = column_codes
    return codes, categories


def codes_dtype(n_clusters: int) -> type:
    """Return the smallest unsigned dtype with a value for each cluster and one more for missing."""
    for dtype in (np.uint8, np.uint16):
        if n_clusters <= np.iinfo(dtype).max:
            return dtype
    return np.uint32


def _widen(codes: np.ndarray, dtype: type) -> np.ndarray:
    wide: np.ndarray = codes.astype(dtype, order="F")
    wide[codes == np.iinfo(codes.dtype).max] = np.iinfo(dtype).max
    return wide


def _missing_everywhere(codes: Any) -> Any:
    missing = np.iinfo(codes.dtype).max
    everywhere = codes[:, 0] == missing
    for m in range(1, codes.shape[1]):
        if not everywhere.any():
            break
        everywhere &= codes[:, m] == missing
    return everywhere


def _sizes(codes: Any, n_clusters: np.ndarray) -> np.ndarray:
    """Count the objects of each cluster, all clusterings in one array."""
    # missing codes are brought down to k first: the largest uint32 would ask for a table of 32 GB
    counts = [np.bincount(np.minimum(codes[:, m], k), minlength=k)[:k] for m, k in enumerate(n_clusters.tolist())]
    return device.to_host(np.concatenate(counts)).astype(np.int64)


def _encode_column(column: Any, name: object) -> tuple[np.ndarray, np.ndarray]:
    """Return int64 codes (-1 = missing) numbered by ascending label value, and the label values."""
    if _is_pandas(column) and not isinstance(column.dtype, np.dtype):  # categories, Int64, string, …
        return _encode_objects(column, name)
    values = device.native(column)
    if isinstance(values, np.ma.MaskedArray):
        known = ~np.ma.getmaskarray(values)
        codes = np.full(values.shape, checks.MISSING, dtype=np.int64)
        codes[known], categories = _encode_column(values.data[known], name)
        return codes, categories
    if values.dtype.kind in "fc":
        values = validation.numeric_column(values, name)
    if values.dtype.kind in "iub":
        return _encode_integers(values, name)
    return _encode_objects(values, name)


def _encode_integers(values: np.ndarray, name: object) -> tuple[np.ndarray, np.ndarray]:
    dtype = values.dtype
    if dtype.kind == "b":
        values = values.view(np.uint8)
    smallest, largest = (int(values.min()), int(values.max())) if values.size else (0, 0)
    validation.non_negative(smallest, name)
    if largest > 4 * values.size + 1024:  # too sparse for a table of the label values
        found, codes = np.unique(values, return_inverse=True)
        codes = codes.astype(np.int64)
        if int(found[0]) == checks.MISSING:
            return codes - 1, found[1:]
        return codes, found
    shifted = values.astype(np.int64)
    shifted += 1  # slot 0 is "missing"
    present = np.bincount(shifted, minlength=largest + 2) > 0
    present[0] = True
    code_of = np.cumsum(present) - 2
    return code_of[shifted], (np.flatnonzero(present)[1:] - 1).astype(dtype)


def _encode_objects(values: Any, name: object) -> tuple[np.ndarray, np.ndarray]:
    """Strings, categories and mixed objects; numbers among them mean what they mean in a column of numbers."""
    import pandas as pd

    try:
        codes, distinct = pd.factorize(values.astype(object) if values.dtype.kind in "SUT" else values)
    except (TypeError, ValueError) as error:  # lists, records, …
        raise validation.hashable_labels(error, name) from None
    found = list(np.asarray(distinct))
    validation.numeric_column(np.array([v for v in found if isinstance(v, (float, np.floating))], dtype=float), name)
    keys = [_sort_key(value) for value in found]
    whole = [value for kind, _, value in keys if kind == 0]
    validation.non_negative(min(whole, default=0), name)
    try:
        ordered = sorted(set(keys) - {_sort_key(checks.MISSING)})
    except TypeError as error:
        raise validation.hashable_labels(error, name) from None
    code_of = {key: code for code, key in enumerate(ordered)}
    code_of_found = np.array([code_of.get(key, checks.MISSING) for key in keys] + [checks.MISSING])
    labels = [value for _, _, value in ordered]
    numeric = all(kind == 0 for kind, _, _ in ordered)
    categories = np.array(labels or [0])[: len(labels)] if numeric else np.fromiter(labels, object, len(labels))
    return code_of_found[codes], categories


def _sort_key(value: Any) -> tuple[int, str, Any]:
    """Order labels of all kinds by value, numbers first, so that the order of the objects cannot matter."""
    number = isinstance(value, (int, float, np.integer, np.floating, np.bool_))
    if number and not isinstance(value, np.timedelta64):  # which NumPy counts among the integers
        return 0, "", int(value)
    if isinstance(value, str):
        return 1, "", str(value)
    return 2, type(value).__name__, value

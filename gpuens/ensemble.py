"""The label matrix: M base clusterings of N objects in one compact array, with one numbering of all clusters."""

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from gpuens import checks, device
from gpuens.columns import warn_of_strangers


class Ensemble:
    """M base clusterings of the same N objects.

    Parameters
    ----------
    labels : array (n_objects, n_clusterings), DataFrame, list of columns, or Ensemble
        Integers of any width, whole floats, booleans, strings or categories. -1 (the number), NaN, None, pandas.NA
        and masked entries are missing labels. Label values need not be consecutive and are local to their clustering.
        NumPy and CuPy arrays, DLPack and ``__cuda_array_interface__`` are accepted; results return to the memory of the
        labels. In a list, each element is one base clustering (a column) of any type.
    names : sequence, optional
        The names of the clusterings; by default the columns of a DataFrame, else 0 … M - 1.

    Attributes
    ----------
    codes : ndarray (n_objects, n_clusterings), uint8, uint16 or uint32, columns contiguous
        Clusters of each clustering numbered 0 … k_m - 1 in the order of their label values; `missing_code` is a
        missing label.
    missing_code : int
        The largest value of ``codes.dtype``.
    categories : list of M arrays
        The label value of each cluster: ``categories[m][code]``.
    offsets : ndarray (n_clusterings + 1,), int64
        Cluster ``code`` of clustering m has the number ``offsets[m] + code`` in the ensemble.
    sizes : ndarray (n_clusters,), int64
        Objects in each cluster.
    n_objects, n_clusterings, n_clusters : int
        N, M and N_c, the number of clusters of all clusterings together.
    names : list of M names

    Raises
    ------
    ValueError, TypeError
        For labels that are 1-D, empty, transposed, fractional, infinite, of different lengths, on different devices, or
        missing for a whole clustering or for an object everywhere. A clustering with one cluster is a warning.

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
    names: list
    device_kind: str  # "cpu" or "cuda": the memory of the caller's labels, and so of results
    _copies: dict[str, Any]  # the codes, by memory

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
        """Return the ensemble of the objects with any label, and their mask (n_objects,).

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
    def of_codes(
        cls, codes: Any, categories: list[np.ndarray], names: list, device_kind: str = "cpu", *, sizes: Any = None
    ) -> "Ensemble":
        """Return the ensemble of codes (n_objects, n_clusterings) numbered like `categories`.

        Nothing is checked; clusters may be empty. `sizes` are counted if not given.
        """
        ensemble = object.__new__(cls)
        n_clusters = np.array([len(c) for c in categories], dtype=np.int64)
        ensemble.names, ensemble.categories, ensemble.device_kind = list(names), categories, device_kind
        ensemble.offsets = np.concatenate([[0], np.cumsum(n_clusters)])
        if sizes is not None:
            ensemble.__dict__["sizes"] = sizes
        ensemble._copies = {device.kind_of(codes): codes}
        return ensemble

    def take(self, rows: Any) -> "Ensemble":
        """Return the ensemble of some objects, with the same cluster numbering (clusters may become empty).

        ``rows`` is a 1-D array of object indices, a mask over objects or a slice. Indices in GPU memory (not checked)
        select from the labels there, and the subset stays there.
        """
        kind = device.kind_of(rows)
        if kind == "cpu":
            rows = checks.check_indices(rows, self.n_objects, "rows")
        codes = self._copy(kind)[rows].copy(order="F")
        subset = object.__new__(Ensemble)
        subset.__dict__.update(self.__dict__)
        subset.__dict__.pop("sizes", None)  # of all objects
        subset._copies = {kind: codes}
        return subset

    def with_(self, labels: Any, *, names: Sequence | None = None) -> "Ensemble":
        """Return the ensemble with more clusterings of the same objects after its own, which are not encoded again.

        Parameters
        ----------
        labels : whatever Ensemble takes, or {name: column}
            Objects may be without a label in them.
        names : sequence, optional
            The names of the new clusterings. Without names they are numbered on from the largest number that is one.

        Raises
        ------
        ValueError, TypeError
            For labels that Ensemble refuses, of other objects or in other memory, and names that are there already.

        Examples
        --------
        >>> import gpuens as ge
        >>> ens = ge.Ensemble([[0, 0, 1, 1], [0, 1, 1, 1]])
        >>> ens.with_([[5, 5, 5, 7]]).with_({"leiden": ["a", None, None, "b"]}).names
        [0, 1, 2, 'leiden']
        """
        if isinstance(labels, Mapping):
            names, labels = list(labels) if names is None else names, list(labels.values())
        if isinstance(labels, Ensemble):
            new = Ensemble(labels, names=names)
        else:
            found, kind = _coded(labels, names)
            new = Ensemble.of_codes(*found, kind)
        if new.n_objects != self.n_objects:
            raise ValueError(
                f"labels are of {new.n_objects} objects and the ensemble has {self.n_objects}; pass labels of the same "
                "objects in the same order."
            )
        if new.device_kind != self.device_kind:
            raise TypeError(
                f"labels are in {_MEMORY[new.device_kind]} and the ensemble in {_MEMORY[self.device_kind]}; move them "
                "there first (cupy.asarray or cupy.asnumpy)."
            )
        if new.names == list(range(new.n_clusterings)):  # nobody has given them names
            whole = [int(name) for name in self.names if isinstance(name, (int, np.integer))]
            new.names = [1 + max(whole, default=-1) + name for name in new.names]
        for name in new.names:
            if name in self.names:
                raise ValueError(f"names: there is a clustering {name!r} already; give the new one another name.")
        kind = device.kind_of(self._any_copy)
        parts = [self._any_copy, new._copy(kind)]
        dtype = max((part.dtype for part in parts), key=lambda dtype: dtype.itemsize)
        shape = (self.n_objects, self.n_clusterings + new.n_clusterings)
        codes = device.namespace(kind).empty(shape, dtype=dtype, order="F")
        codes[:, : self.n_clusterings], codes[:, self.n_clusterings :] = (_recoded(part, dtype) for part in parts)
        return Ensemble.of_codes(
            codes,
            self.categories + new.categories,
            self.names + new.names,
            self.device_kind,
            sizes=np.concatenate([self.sizes, new.sizes]),
        )

    def without(self, clusterings: Any) -> "Ensemble":
        """Return the ensemble without some of its clusterings; the others are not encoded again.

        Parameters
        ----------
        clusterings : name, index, or a list of them
            A number is an index, from 0 on, unless there are names that are numbers: then it is one of them.

        Raises
        ------
        ValueError, TypeError
            For names that are not there or that several clusterings have, where no clustering is left, and where an
            object has a label in none of those that are left.

        Examples
        --------
        >>> import gpuens as ge
        >>> ens = ge.Ensemble([[0, 0, 1, 1], [0, 1, 1, 1], [5, 5, 5, 7]])
        >>> ens.without(1).names, ens.without([0, 2]).to_array().ravel().tolist()
        ([0, 2], [0, 1, 1, 1])
        """
        out = _places(clusterings, self.names)
        kept = [m for m in range(self.n_clusterings) if m not in out]
        if not kept:
            raise ValueError("clusterings: none would be left; leave out fewer of them.")
        n_clusters = np.diff(self.offsets)[kept]
        dtype = np.dtype(codes_dtype(int(n_clusters.max())))
        xp = device.namespace(device.kind_of(self._any_copy))
        codes = xp.empty((self.n_objects, len(kept)), dtype=dtype, order="F")
        for place, m in enumerate(kept):
            codes[:, place] = _recoded(self._any_copy[:, m], dtype)
        if (gone := device.to_host(_missing_everywhere(codes))).any():
            raise ValueError(
                f"clusterings: {int(gone.sum())} object(s) have a label in none of the others, the first is object "
                f"{int(gone.argmax())}; leave these objects out first (take)."
            )
        return Ensemble.of_codes(
            codes,
            [self.categories[m] for m in kept],
            [self.names[m] for m in kept],
            self.device_kind,
            sizes=np.concatenate([self.sizes[self.offsets[m] : self.offsets[m + 1]] for m in kept]),
        )

    def encoded(self, labels: Any) -> "Ensemble":
        """Return the ensemble of other objects' labels, with this one's cluster numbering.

        ``labels`` are as the class takes them, of as many clusterings. Values that no cluster here has become missing.

        Raises
        ------
        ValueError
            For another number of clusterings, and for objects without a label that is known here.
        """
        if isinstance(labels, Ensemble):
            codes, categories, kind = labels._any_copy, labels.categories, labels.device_kind
        else:
            columns, names, kind = _columns(labels, self.n_clusterings)
            codes, categories = _encode(columns, names)
        if len(categories) != self.n_clusterings:
            raise ValueError(
                f"labels are of {len(categories)} clusterings, and {self.n_clusterings} are expected; pass the same "
                "clusterings in the same order."
            )
        tables = [_places_among(own, known) for own, known in zip(categories, self.categories, strict=True)]
        codes = renumbered(codes, codes_dtype(int(np.diff(self.offsets).max())), tables)
        unknown = device.to_host(_missing_everywhere(codes))
        if unknown.any():
            raise ValueError(
                f"{int(unknown.sum())} object(s), the first of them {int(unknown.argmax())}, have no label that is "
                "known; leave them out."
            )
        return Ensemble.of_codes(codes, self.categories, self.names, kind)

    @cached_property
    def sizes(self) -> np.ndarray:
        return _sizes(self._any_copy, np.diff(self.offsets))

    @property
    def codes(self) -> np.ndarray:
        return self._copy("cpu")

    def codes_on(self, where: str) -> Any:
        """Return the codes on a device ("cpu", "cuda", "emulated"); they are copied there once."""
        return self._copy("cuda" if where == "cuda" else "cpu")

    def _copy(self, kind: str) -> Any:
        if kind not in self._copies:
            ((_, codes),) = self._copies.items()
            self._copies[kind] = device.move(codes.T, kind).T  # columns stay contiguous
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


_MEMORY = {"cpu": "host memory", "cuda": "GPU memory"}


def _places(clusterings: Any, names: list) -> set[int]:
    """Return the indices of clusterings that are given by their names or indices, or refuse what is neither."""
    single = isinstance(clusterings, str) or not isinstance(clusterings, Iterable)
    numbered = any(isinstance(name, (int, np.integer)) for name in names)
    found = set()
    for one in [clusterings] if single else clusterings:
        if isinstance(one, (bool, np.bool_)):
            raise TypeError(f"clusterings must be names or indices, not {one}; pass np.flatnonzero(mask) of a mask.")
        if names.count(one) > 1:
            raise ValueError(f"clusterings: {one!r} is the name of several; give their indices, from 0 on.")
        if one in names:
            found.add(names.index(one))
        elif isinstance(one, (int, np.integer)) and not numbered and 0 <= one < len(names):
            found.add(int(one))
        else:
            raise ValueError(f"clusterings: there is no {checks.shown(one)}; there are {checks.listed(names)}.")
    return found


def _coded(labels: Any, names: Sequence | None) -> tuple[tuple[Any, list[np.ndarray], list], str]:
    """Return ((codes, categories, names), memory) of the caller's labels."""
    columns, found_names, kind = _columns(labels)
    names = found_names if names is None else checks.check_names(names, len(columns))
    codes, categories = _encode(columns, names)
    checks.check_clusterings([len(c) for c in categories], names, len(codes))
    return (codes, categories, names), kind


# --- from labels to columns -------------------------------------------------------------------------------------------


def _columns(labels: Any, n_clusterings: int | None = None) -> tuple[list, list, str]:
    """Split what the caller gave into M columns; return them with their names and where they live.

    Where the number of clusterings is known, so few objects that they could be columns are no reason to refuse.
    """
    if hasattr(labels, "obs") and hasattr(labels, "obsm"):  # whose columns would be looked at row by row
        raise TypeError(
            "labels must be base clusterings, not AnnData: pass adata.obs[columns] with the columns that hold them, "
            f"of {checks.listed(labels.obs.columns)}."
        )
    checks.refuse_sparse(labels)
    nothing = labels is None or isinstance(labels, (str, bytes, dict, set, frozenset)) or np.isscalar(labels)
    if nothing or type(labels).__name__ == "NAType":
        raise TypeError(
            f"labels must be an array (n_objects, n_clusterings), a DataFrame or a list of columns, not "
            f"{type(labels).__name__}."
        )
    if hasattr(labels, "columns") and hasattr(labels, "shape"):  # a DataFrame: pandas, polars, cuDF
        kind = "cpu"
        if hasattr(labels, "to_pandas") and hasattr(labels, "iloc"):  # cuDF: the array interface carries no strings
            labels, kind = labels.to_pandas(), "cuda"
        checks.check_label_shape(tuple(labels.shape), columns_are_clusterings=True)
        names = list(labels.columns)  # they may repeat in pandas, so columns are taken by position
        columns = [labels.iloc[:, m] if hasattr(labels, "iloc") else labels[name] for m, name in enumerate(names)]
        return columns, names, kind
    if isinstance(labels, (list, tuple)):
        kind = device.common_kind(list(labels))
        columns = [_as_column(c) for c in labels]
        _check_columns([c.shape for c in columns])
        if n_clusterings != len(columns) > len(columns[0]) and all(isinstance(c, (list, tuple)) for c in labels):
            raise ValueError(
                f"labels are a list of {len(columns)} lists of {len(columns[0])} label(s), and in a list each element "
                "is one base clustering, so this looks transposed: pass numpy.array(labels) if each element is an "
                "object (or a list of arrays, if there really are so few objects)."
            )
        return columns, list(range(len(columns))), kind
    kind = device.kind_of(labels)
    matrix = device.native(labels)
    as_known = len(matrix.shape) == 2 and matrix.shape[1] == n_clusterings
    checks.check_label_shape(matrix.shape, columns_are_clusterings=as_known)
    if isinstance(matrix, np.matrix):  # its columns would stay 2-D
        matrix = np.asarray(matrix)
    return [matrix[:, m] for m in range(matrix.shape[1])], list(range(matrix.shape[1])), kind


def _check_columns(shapes: list[tuple[int, ...]]) -> None:
    """Refuse lists whose elements are not 1-D columns of one length, with at least one label each."""
    if not shapes or (len(set(shapes)) == 1 and len(shapes[0]) != 1):
        checks.check_label_shape((len(shapes), *shapes[0]) if shapes else (0, 0), columns_are_clusterings=True)
    for position, shape in enumerate(shapes):
        if len(shape) != 1:
            raise ValueError(
                "labels: in a list every element is one base clustering, a 1-D column of labels, but element "
                f"{position} is {'no column' if not shape else f'{len(shape)}-D'}."
            )
    for position, (length,) in enumerate(shapes):
        if length != shapes[0][0]:
            raise ValueError(
                f"labels: every base clustering must label the same objects, but clustering 0 has {shapes[0][0]} "
                f"labels and clustering {position} has {length}."
            )
    checks.check_label_shape((shapes[0][0], len(shapes)), columns_are_clusterings=True)


def _as_column(column: Any) -> Any:
    """Return one element of a list as an array, or unchanged if it is a pandas Series."""
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
    # NumPy would turn None and NaN among strings into strings, and round large integers among floats
    return np.array(column, dtype=object) if array.dtype.kind in "USf" else array


def _is_pandas(column: Any) -> bool:
    return hasattr(column, "iloc")


# --- from columns to codes --------------------------------------------------------------------------------------------


# NumPy's functions dispatch to CuPy for arrays in GPU memory: labels are encoded where they are.


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
            codes = _recoded(codes, np.dtype(needed))
        column_codes[column_codes < 0] = np.iinfo(codes.dtype).max
        codes[:, m] = column_codes
    return codes, categories


def codes_dtype(n_clusters: int) -> type:
    """Return the smallest unsigned dtype with a value for each cluster and one for missing."""
    for dtype in (np.uint8, np.uint16):
        if n_clusters <= np.iinfo(dtype).max:
            return dtype
    return np.uint32


def _recoded(codes: Any, dtype: np.dtype) -> Any:
    """Return codes in another, large enough dtype; missing labels stay missing."""
    if codes.dtype == dtype:
        return codes
    found = codes.astype(dtype, order="F")
    found[codes == np.iinfo(codes.dtype).max] = np.iinfo(dtype).max
    return found


def renumbered(codes: Any, dtype: Any, tables: list[np.ndarray]) -> Any:
    """Return codes by another numbering: ``tables[m]`` is the new code of each old one, -1 of what becomes missing."""
    xp, missing = device.namespace(device.kind_of(codes)), np.iinfo(dtype).max
    found = xp.empty(codes.shape, dtype=dtype, order="F")
    for m, table in enumerate(tables):
        extended = xp.asarray(np.append(np.where(table < 0, missing, table), missing).astype(dtype))
        found[:, m] = extended[np.minimum(codes[:, m], codes.dtype.type(min(len(table), np.iinfo(codes.dtype).max)))]
    return found


def _places_among(values: np.ndarray, known: np.ndarray) -> np.ndarray:
    """Return the place of each label value among those known, -1 of one that is not."""
    place = {_sort_key(value): i for i, value in enumerate(known.tolist())}
    return np.array([place.get(_sort_key(value), -1) for value in values.tolist()], dtype=np.int64)


def _missing_everywhere(codes: Any) -> Any:
    missing = np.iinfo(codes.dtype).max
    everywhere = codes[:, 0] == missing
    for m in range(1, codes.shape[1]):
        if not everywhere.any():
            break
        everywhere &= codes[:, m] == missing
    return everywhere


def _sizes(codes: Any, n_clusters: np.ndarray) -> np.ndarray:
    """Return the number of objects of each cluster of the ensemble (N_c,)."""
    # missing codes become k: the largest uint32 would need a table of 32 GB
    counts = [np.bincount(np.minimum(codes[:, m], k), minlength=k)[:k] for m, k in enumerate(n_clusters.tolist())]
    return device.to_host(np.concatenate(counts)).astype(np.int64)


def _encode_column(column: Any, name: object) -> tuple[np.ndarray, np.ndarray]:
    """Return int64 codes (-1 = missing), numbered by ascending label value, and the label values."""
    if _is_pandas(column) and not isinstance(column.dtype, np.dtype):  # categories, Int64, string, …
        return _encode_objects(column, name)
    values = device.native(column)
    if isinstance(values, np.ma.MaskedArray):
        known = ~np.ma.getmaskarray(values)
        codes = np.full(values.shape, checks.MISSING, dtype=np.int64)
        codes[known], categories = _encode_column(values.data[known], name)
        return codes, categories
    if values.dtype.kind in "fc":
        values = _whole_numbers(values, name)
    if values.dtype.kind in "iub":
        return _encode_integers(values, name)
    return _encode_objects(values, name)


def _whole_numbers(column: np.ndarray, name: object) -> np.ndarray:
    """Return float labels as integers with ``MISSING`` for NaN; refuse complex, infinite and fractional labels."""
    if column.dtype.kind == "c":
        raise ValueError(
            f"labels of clustering {name!r} are complex numbers: Complex data not supported; labels are integers or "
            "strings."
        )
    missing = np.isnan(column)
    known = column[~missing]
    if np.isinf(known).any():
        raise ValueError(
            f"labels of clustering {name!r} contain infinity; labels are integers or strings, and NaN means missing."
        )
    if known.size and (known != np.floor(known)).any():
        example = float(known[known != np.floor(known)][0])
        raise ValueError(
            f"labels of clustering {name!r} are not whole numbers ({example:g} was found): pass cluster labels, not "
            "feature values."
        )
    bits = min(np.finfo(column.dtype).nmant + 1, 53)
    if known.size and float(np.abs(known).max()) >= 2.0**bits:  # 2**53 may have been 2**53 + 1
        raise ValueError(
            f"labels of clustering {name!r} are {column.dtype} of 2**{bits} or more, beyond exact whole numbers; pass "
            "integers or strings."
        )
    whole = np.full_like(column, checks.MISSING, dtype=np.int64)
    whole[~missing] = known.astype(np.int64)
    return whole


def _refuse_negative(smallest: int, name: object) -> None:
    """Refuse integer labels below ``MISSING``."""
    if smallest < checks.MISSING:
        raise ValueError(
            f"labels of clustering {name!r} contain {smallest}: integer labels are >= 0, and -1 alone means missing."
        )


def _unhashable(error: Exception, name: object) -> TypeError:
    return TypeError(f"labels of clustering {name!r} must be integers or strings ({error}).")


def _encode_integers(values: np.ndarray, name: object) -> tuple[np.ndarray, np.ndarray]:
    dtype = values.dtype
    if dtype.kind == "b":
        values = values.view(np.uint8)
    smallest, largest = (int(values.min()), int(values.max())) if values.size else (0, 0)
    _refuse_negative(smallest, name)
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
    """Encode strings, categories and mixed objects; numbers among them count as in a numeric column."""
    import pandas as pd

    try:
        codes, distinct = pd.factorize(values.astype(object) if values.dtype.kind in "SUT" else values)
    except (TypeError, ValueError) as error:  # lists, records, …
        raise _unhashable(error, name) from None
    found = list(np.asarray(distinct))
    _whole_numbers(np.array([v for v in found if isinstance(v, (float, np.floating))], dtype=float), name)
    keys = [_sort_key(value) for value in found]
    whole = [value for kind, _, value in keys if kind == 0]
    _refuse_negative(min(whole, default=0), name)
    try:
        ordered = sorted(set(keys) - {_sort_key(checks.MISSING)})
    except TypeError as error:
        raise _unhashable(error, name) from None
    code_of = {key: code for code, key in enumerate(ordered)}
    code_of_found = np.array([code_of.get(key, checks.MISSING) for key in keys] + [checks.MISSING])
    labels = [value for _, _, value in ordered]
    numeric = all(kind == 0 for kind, _, _ in ordered)
    categories = np.array(labels or [0])[: len(labels)] if numeric else np.fromiter(labels, object, len(labels))
    return code_of_found[codes], categories


def _sort_key(value: Any) -> tuple[int, str, Any]:
    """Return a key that orders labels of all kinds by value, numbers first, whatever the order of the objects."""
    number = isinstance(value, (int, float, np.integer, np.floating, np.bool_))
    if number and not isinstance(value, np.timedelta64):  # an integer to NumPy
        return 0, "", int(value)
    if isinstance(value, str):
        return 1, "", str(value)
    return 2, type(value).__name__, value

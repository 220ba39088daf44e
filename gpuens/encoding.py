"""Labels become codes: the clusters of each clustering are numbered 0 … k_m - 1 in the order of their label values.

    labels ─▶ split_columns ─▶ M columns ─▶ encode_column ─▶ codes (N, M) in the smallest dtype, and label values

NumPy's functions dispatch to CuPy for arrays in GPU memory: labels are encoded where they are.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from gpuens import checks, device


def encode_labels(labels: Any, names: Sequence | None) -> tuple[tuple[Any, list[np.ndarray], list], str]:
    """Return (codes, categories, names) of the caller's labels, and the kind of memory they live in."""
    columns, found_names, kind = split_columns(labels)
    names = found_names if names is None else checks.check_names(names, len(columns))
    codes, categories = encode_columns(columns, names)
    checks.check_clusterings([len(c) for c in categories], names, len(codes))
    return (codes, categories, names), kind


# --- from labels to columns -------------------------------------------------------------------------------------------


def split_columns(labels: Any, n_clusterings: int | None = None) -> tuple[list, list, str]:
    """Split the caller's labels into M columns; return them with their names and the kind of memory they live in.

    Fewer objects than clusterings are refused as transposed, unless ``n_clusterings`` says how many columns to expect.
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
        columns = [as_column(c) for c in labels]
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


def as_column(column: Any) -> Any:
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


def encode_columns(columns: list, names: list) -> tuple[Any, list[np.ndarray]]:
    """Return the codes (N, M) of columns in the smallest dtype that fits all of them, and the label values of each."""
    shape = (len(columns[0]), len(columns))
    codes = device.namespace(device.kind_of(columns[0])).empty(shape, dtype=np.uint8, order="F")
    categories = []
    for m, (column, name) in enumerate(zip(columns, names, strict=True)):
        column_codes, column_categories = encode_column(column, name)
        categories.append(device.to_host(column_categories))
        needed = codes_dtype(len(column_categories))
        if np.iinfo(needed).max > np.iinfo(codes.dtype).max:
            codes = cast_codes(codes, np.dtype(needed))
        column_codes[column_codes < 0] = np.iinfo(codes.dtype).max
        codes[:, m] = column_codes
    return codes, categories


def codes_dtype(n_clusters: int) -> type:
    """Return the smallest unsigned dtype with a value for each cluster and one for missing."""
    for dtype in (np.uint8, np.uint16):
        if n_clusters <= np.iinfo(dtype).max:
            return dtype
    return np.uint32


def cast_codes(codes: Any, dtype: np.dtype) -> Any:
    """Return codes in another dtype, which must be large enough; missing labels stay missing."""
    if codes.dtype == dtype:
        return codes
    found = codes.astype(dtype, order="F")
    found[codes == np.iinfo(codes.dtype).max] = np.iinfo(dtype).max
    return found


def renumber_codes(codes: Any, dtype: Any, tables: list[np.ndarray]) -> Any:
    """Return codes in another numbering: ``tables[m][code]`` is the new code, -1 for missing."""
    xp, missing = device.namespace(device.kind_of(codes)), np.iinfo(dtype).max
    found = xp.empty(codes.shape, dtype=dtype, order="F")
    for m, table in enumerate(tables):
        extended = xp.asarray(np.append(np.where(table < 0, missing, table), missing).astype(dtype))
        found[:, m] = extended[np.minimum(codes[:, m], codes.dtype.type(min(len(table), np.iinfo(codes.dtype).max)))]
    return found


def find_values(values: np.ndarray, known: np.ndarray) -> np.ndarray:
    """Return the position of each label value among the known ones, -1 if it is not there."""
    place = {_sort_key(value): i for i, value in enumerate(known.tolist())}
    return np.array([place.get(_sort_key(value), -1) for value in values.tolist()], dtype=np.int64)


def unlabelled_objects(codes: Any) -> Any:
    """Return the mask (N,) of the objects whose labels are all missing."""
    missing = np.iinfo(codes.dtype).max
    everywhere = codes[:, 0] == missing
    for m in range(1, codes.shape[1]):
        if not everywhere.any():
            break
        everywhere &= codes[:, m] == missing
    return everywhere


def cluster_sizes(codes: Any, n_clusters: np.ndarray) -> np.ndarray:
    """Return the number of objects in each cluster of all clusterings, (N_c,), int64, host."""
    # missing codes become k: the largest uint32 would need a table of 32 GB
    counts = [np.bincount(np.minimum(codes[:, m], k), minlength=k)[:k] for m, k in enumerate(n_clusters.tolist())]
    return device.to_host(np.concatenate(counts)).astype(np.int64)


def encode_column(column: Any, name: object) -> tuple[np.ndarray, np.ndarray]:
    """Return the codes of one column (int64, -1 for missing), in ascending order of label values, and these values."""
    if _is_pandas(column) and not isinstance(column.dtype, np.dtype):  # categories, Int64, string, …
        return _encode_objects(column, name)
    values = device.native(column)
    if isinstance(values, np.ma.MaskedArray):
        known = ~np.ma.getmaskarray(values)
        codes = np.full(values.shape, checks.MISSING, dtype=np.int64)
        codes[known], categories = encode_column(values.data[known], name)
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

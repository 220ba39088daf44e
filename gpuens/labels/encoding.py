"""Labels become codes: the clusters of each clustering are numbered 0 … k_m - 1 in the order of their label values.

    labels ─▶ split_columns ─▶ M columns ─▶ encode_column ─▶ codes (N, M) in the smallest dtype, and label values

NumPy's functions dispatch to CuPy for arrays in GPU memory: labels are encoded where they are. There a label matrix is
encoded as a whole (kernels/labels.cu), except columns with labels that a table of bits cannot hold.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from gpuens.labels.object_names import in_one_order, index_of, index_of_all
from gpuens.labels.odd_labels import missing_texts
from gpuens.runtime import checks, kernels
from gpuens.runtime import device as devices

TABLE_BITS = 2**16  # bits in a clustering's table of labels on a GPU
AT_ONCE = 2**16  # labels of a matrix that NumPy encodes as a whole


def encode_labels(labels: Any, names: Sequence[Any] | None) -> tuple[tuple[Any, list[np.ndarray], list[Any]], str]:
    """Return (codes, categories, names) of the caller's labels, and the kind of memory they live in."""
    columns, found_names, kind = split_columns(labels)
    names = found_names if names is None else checks.check_names(names, len(columns))
    codes, categories = encode_columns(columns, names)
    return (codes, categories, names), kind


# --- from labels to columns -------------------------------------------------------------------------------------------


def split_columns(labels: Any, n_clusterings: int | None = None) -> tuple[Any, list[Any], str]:
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
        kind = devices.common_kind(list(labels))
        columns = [as_column(c) for c in in_one_order(labels, [f"labels[{m}]" for m in range(len(labels))])]
        _check_columns([c.shape for c in columns])
        if n_clusterings != len(columns) > len(columns[0]) and all(isinstance(c, (list, tuple)) for c in labels):
            raise ValueError(
                f"labels are a list of {len(columns)} lists of {len(columns[0])} label(s), and in a list each element "
                "is one base clustering, so this looks transposed: pass numpy.array(labels) if each element is an "
                "object (or a list of arrays, if there really are so few objects)."
            )
        return columns, list(range(len(columns))), kind
    kind = devices.kind_of(labels)
    matrix = devices.native(labels)
    as_known = len(matrix.shape) == 2 and matrix.shape[1] == n_clusterings
    checks.check_label_shape(matrix.shape, columns_are_clusterings=as_known)
    if isinstance(matrix, np.matrix):  # its columns would stay 2-D
        matrix = np.asarray(matrix)
    return matrix.T, list(range(matrix.shape[1])), kind


def index_of_labels(labels: Any) -> Any:
    """Return the index of the columns into which labels are split: of a DataFrame, or of Series in a list; or None."""
    return index_of_all(labels) if isinstance(labels, (list, tuple)) else index_of(labels)


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
        return devices.native(column)
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


def encode_columns(columns: Any, names: list[Any], *, in_part: bool = False) -> tuple[Any, list[np.ndarray]]:
    """Return the codes (N, M) of columns in the smallest dtype that fits all of them, and the label values of each.

    ``columns``: a list of M columns, or an array (M, N). ``in_part`` is that of `encode_column`.
    """
    columns = _as_matrix(columns)
    if devices.kind_of(columns) == "cuda" and columns.dtype in _READ_AS and _fits_as_read(columns):
        return _encode_matrix(columns, names)
    if type(columns) in (np.ndarray, np.memmap):
        columns = np.asarray(columns)
        if columns.size <= AT_ONCE and (found := _encode_at_once(columns)) is not None:
            return found
        if columns.size > AT_ONCE and columns.dtype.kind in "iubf":
            return _encode_by_tables(columns, names)
    shape = (len(columns[0]), len(columns))
    codes = devices.namespace(devices.kind_of(columns[0])).empty(shape, dtype=np.uint8, order="F")
    categories = []
    for m, (column, name) in enumerate(zip(columns, names, strict=True)):
        column_codes, column_categories = encode_column(column, name, in_part=in_part)
        categories.append(devices.to_host(column_categories))
        needed = codes_dtype(len(column_categories))
        if np.iinfo(needed).max > np.iinfo(codes.dtype).max:
            codes = cast_codes(codes, np.dtype(needed))
        codes[:, m] = column_codes  # -1 becomes the largest code
    return codes, categories


def _encode_at_once(columns: np.ndarray) -> tuple[np.ndarray, list[np.ndarray]] | None:
    """Return the result of `encode_columns` for an array (M, N) of whole numbers, None if it is none or some are far.

    A table has a slot for each label value of each clustering, the first of which is "missing".
    """
    if columns.dtype.kind not in "iub":
        return None
    smallest, largest = int(columns.min()), int(columns.max())
    if smallest < checks.MISSING or largest > 4 * columns.shape[1] + 1024:
        return None
    n_slots = largest + 2
    slots = columns.astype(np.int64, order="C")
    slots += 1 + n_slots * np.arange(len(columns))[:, None]
    present = np.bincount(slots.ravel(), minlength=n_slots * len(columns)).reshape(-1, n_slots) > 0
    present[:, 0] = False
    code_of = np.cumsum(present, axis=1) - 1
    dtype = codes_dtype(int(code_of[:, -1].max()) + 1)
    code_of[:, 0] = np.iinfo(dtype).max
    values = np.nonzero(present)[1] - 1
    ends = np.cumsum(code_of[:, -1] + 1)[:-1].tolist()
    categories = [values[a:b].astype(columns.dtype) for a, b in pairwise([0, *ends, len(values)])]
    return code_of.astype(dtype).ravel()[slots].T, categories


def _encode_by_tables(columns: np.ndarray, names: list[Any]) -> tuple[np.ndarray, list[np.ndarray]]:
    """Return the result of `encode_columns` for an array (M, N) of numbers, in host memory."""
    from gpuens.labels import tables as label_tables  # compiled functions take longer to load than few labels to encode

    tables = label_tables.tabled(columns)
    of_values, ends = np.int64 if columns.dtype.kind == "f" else columns.dtype, np.cumsum(tables.n_values).tolist()
    categories = [tables.values[a:b].astype(of_values) for a, b in pairwise([0, *ends])]
    odd: dict[int, np.ndarray] = {}
    for m in np.flatnonzero(tables.is_odd).tolist():
        column_codes, categories[m] = encode_column(columns[m], names[m])
        odd[m] = column_codes.astype(codes_dtype(len(categories[m])))  # -1 becomes the largest code
    codes: np.ndarray = np.empty(columns.shape, dtype=codes_dtype(max(map(len, categories))))
    label_tables.write(columns, tables, codes)
    for m, column_codes in odd.items():
        codes[m] = cast_codes(column_codes, codes.dtype)
    return codes.T, categories


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
    xp, missing = devices.namespace(devices.kind_of(codes)), np.iinfo(dtype).max
    found = xp.empty(codes.shape, dtype=dtype, order="F")
    for m, table in enumerate(tables):
        extended = xp.asarray(np.append(np.where(table < 0, missing, table), missing).astype(dtype))
        found[:, m] = extended[np.minimum(codes[:, m], codes.dtype.type(min(len(table), np.iinfo(codes.dtype).max)))]
    return found


def find_values(values: np.ndarray, known: np.ndarray, *, as_written: bool = False) -> np.ndarray:
    """Return the position of each label value among the known ones, -1 if it is not there.

    ``as_written``: a number and its text are the same, as a column of a file may be read as either, depending on the
    other labels in it.
    """
    place = {_sort_key(value): i for i, value in enumerate(known.tolist())}
    found = [place.get(_sort_key(value), -1) for value in values.tolist()]
    if as_written and min(found, default=0) < 0:
        written = {str(value): i for i, value in enumerate(known.tolist())}
        found = [written.get(str(value), -1) if i < 0 else i for value, i in zip(values.tolist(), found, strict=True)]
    return np.array(found, dtype=np.int64)


def unlabelled_objects(codes: Any) -> Any:
    """Return the mask (N,) of the objects whose labels are all missing."""
    missing = np.iinfo(codes.dtype).max
    if devices.kind_of(codes) == "cuda":  # asking after each clustering would take longer than reading all labels
        return (codes == missing).all(axis=1)
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
    return devices.to_host(np.concatenate(counts)).astype(np.int64)


# --- a label matrix in GPU memory -------------------------------------------------------------------------------------

_READ_AS = {  # by kernels; what is not here goes column by column
    np.dtype(dtype): np.dtype(read)
    for read, dtypes in {"u1": "?B", "i4": "bhHi", "i8": "lqI", "f8": "fd"}.items()
    for dtype in dtypes
}


def _as_matrix(columns: Any) -> Any:
    """Return columns in GPU memory as an array (M, N) if they share a dtype that kernels read, and it fits."""
    first = columns[0]
    if not isinstance(columns, list) or devices.kind_of(first) != "cuda" or first.dtype not in _READ_AS:
        return columns
    needed = len(columns) * len(first) * (first.dtype.itemsize + 8 + 1)  # this, a copy as kernels read it, codes
    if {column.dtype for column in columns} != {first.dtype} or needed > devices.memory_budget("cuda"):
        return columns
    return devices.namespace("cuda").stack(columns)


def _fits_as_read(labels: Any) -> bool:
    """Return whether kernels read labels (M, N) as they are, or a copy that fits the memory budget with their codes."""
    read = _READ_AS[labels.dtype]
    if read.itemsize == labels.dtype.itemsize and (labels.flags.c_contiguous or labels.flags.f_contiguous):
        return True
    return bool(labels.size * (read.itemsize + 1) <= devices.memory_budget("cuda"))


def _encode_matrix(labels: Any, names: list[Any]) -> tuple[Any, list[np.ndarray]]:
    """Return the result of `encode_columns` for labels (M, N) in GPU memory; only the tables come to the host."""
    read = labels.view(np.uint8) if labels.dtype == bool else labels.astype(_READ_AS[labels.dtype], copy=False)
    if not (read.flags.c_contiguous or read.flags.f_contiguous):
        read = read.copy()
    n_words = min(TABLE_BITS, labels.shape[1] + 1024) // 32  # less than the labels take
    tables, ranks = mark_labels(read, n_words, device="cuda")
    on_host = devices.to_host(tables)
    of_values = np.int64 if labels.dtype.kind == "f" else labels.dtype
    categories = [np.flatnonzero(present).astype(of_values) for present in _bits_set(on_host)]
    odd = np.flatnonzero(on_host[:, -1] & 2).tolist()
    encoded = [encode_column(labels[m], names[m]) for m in odd]
    for m, (_, values) in zip(odd, encoded, strict=True):
        categories[m] = devices.to_host(values)
    dtype = codes_dtype(max(map(len, categories)))
    codes = write_codes(read, tables, ranks, dtype, device="cuda")
    for m, (column_codes, _) in zip(odd, encoded, strict=True):
        codes[:, m] = column_codes  # as above
    return codes, categories


@kernels.primitive
def mark_labels(labels: np.ndarray, n_words: int) -> tuple[np.ndarray, np.ndarray]:
    """Return bit tables (M, n_words + 1), uint32, of the values in labels (M, N), and their number before each word.

    The last word of a table has bit 0 set if labels are missing, and bit 1 if there are labels without a bit.
    """
    tables = np.zeros((len(labels), n_words + 1), dtype=np.uint32)
    for table, column in zip(tables, labels, strict=True):
        bits = _bits_of(column, 32 * n_words)
        np.bitwise_or.at(table, bits[bits >= 0] // 32, np.uint32(1) << (bits[bits >= 0] % 32).astype(np.uint32))
        table[-1] = np.bitwise_or.reduce(1 << (-1 - bits[bits < 0]), initial=0)
    counts = _bits_set(tables).reshape(len(labels), n_words, 32).sum(axis=2, dtype=np.int32)
    return tables, np.cumsum(counts, axis=1, dtype=np.int32) - counts


@kernels.primitive
def write_codes(labels: np.ndarray, tables: np.ndarray, ranks: np.ndarray, dtype: Any) -> np.ndarray:
    """Return the codes (N, M) of labels (M, N) that are in their tables; other labels become missing."""
    codes = np.full(labels.shape, np.iinfo(dtype).max, dtype=dtype)
    for own, column, present in zip(codes, labels, _bits_set(tables), strict=True):
        bits = _bits_of(column, 32 * ranks.shape[1])
        own[bits >= 0] = (np.cumsum(present) - 1)[bits[bits >= 0]]
    return codes.T


def _bits_set(tables: np.ndarray) -> np.ndarray:
    """Return the bits of tables, without their last words, one per byte."""
    return np.unpackbits(tables[:, :-1].astype("<u4").view(np.uint8), axis=1, bitorder="little")


def _bits_of(column: np.ndarray, n_bits: int) -> np.ndarray:
    """Return the bit of each label, -1 if it is missing, -2 if there is no bit for it."""
    inside = (column >= 0) & (column < n_bits)
    bits = np.where(inside, column, 0).astype(np.int64)
    missing = (column == checks.MISSING) | (column != column)
    return np.where(inside & (bits == column), bits, np.where(missing, -1, -2))


@mark_labels.kernel
def _(labels: Any, n_words: int, *, device: str) -> tuple[Any, Any]:
    xp, n_clusterings = devices.namespace(device), len(labels)
    tables = xp.zeros((n_clusterings, n_words + 1), dtype=np.uint32)
    ranks = xp.empty((n_clusterings, n_words), dtype=np.int32)
    kernels.launch(
        "mark_labels", kernels.blocks(labels.size, 256), 256, (*_laid_out(labels), n_words, tables), device=device,
        LABEL=kernels.c_name(labels.dtype), CODE="u8",
    )  # fmt: skip
    kernels.launch(
        "rank_labels", kernels.blocks(n_clusterings, 4), 128, (tables, n_clusterings, n_words, ranks), device=device,
        LABEL=kernels.c_name(labels.dtype), CODE="u8",
    )  # fmt: skip
    return tables, ranks


@write_codes.kernel
def _(labels: Any, tables: Any, ranks: Any, dtype: Any, *, device: str) -> Any:
    codes = devices.namespace(device).empty(labels.shape, dtype=dtype)
    kernels.launch(
        "write_codes", kernels.blocks(labels.size, 256), 256,
        (*_laid_out(labels), ranks.shape[1], tables, ranks, codes), device=device,
        LABEL=kernels.c_name(labels.dtype), CODE=kernels.c_name(dtype),
    )  # fmt: skip
    return codes.T


def _laid_out(labels: Any) -> tuple[Any, ...]:
    """Return labels (M, N) as the kernels take them: contiguous, whether by rows, and their numbers."""
    by_rows = not labels.flags.c_contiguous
    return labels.T if by_rows else labels, np.int32(by_rows), labels.shape[1], labels.shape[0]


# --- one column -------------------------------------------------------------------------------------------------------


def encode_column(column: Any, name: object, *, in_part: bool = False) -> tuple[np.ndarray, np.ndarray]:
    """Return the codes of one column (int64, -1 for missing), in ascending order of label values, and these values.

    ``in_part``: the column is one chunk; only the whole column can tell whether the text "-1" is missing, so it stays.
    """
    if _is_pandas(column) and not isinstance(column.dtype, np.dtype):  # categories, Int64, string, …
        return _encode_objects(column, name, in_part)
    values = devices.native(column)
    if isinstance(values, np.ma.MaskedArray):
        known = ~np.ma.getmaskarray(values)
        codes = np.full(values.shape, checks.MISSING, dtype=np.int64)
        codes[known], categories = encode_column(values.data[known], name, in_part=in_part)
        return codes, categories
    if values.dtype.kind in "fc":
        values = _whole_numbers(values, name)
    if values.dtype.kind in "iub":
        return _encode_integers(values, name)
    return _encode_objects(values, name, in_part)


def encode_vector(values: Any, name: str, n_objects: int) -> np.ndarray:
    """Return the codes (n_objects,) of one label vector, int64, -1 for missing, host; refuse other shapes."""
    column = as_column(values)
    checks.check_label_vector(tuple(column.shape), type(values).__name__, name)
    checks.check_one_per_row(column, n_objects, name)
    codes: np.ndarray = devices.to_host(encode_column(column, name)[0])
    return codes


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
            "feature values; features have a parameter of their own, and a column that is neither goes by exclude "
            "(--exclude)."
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
    if not values.flags.c_contiguous:  # a column of a matrix, slow to read twice
        values = values.copy()
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


def _encode_objects(values: Any, name: object, in_part: bool) -> tuple[np.ndarray, np.ndarray]:
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
    absent = [] if in_part else missing_texts(found)
    try:
        ordered = sorted(set(keys) - set(map(_sort_key, (checks.MISSING, *absent))))
    except TypeError as error:
        raise _unhashable(error, name) from None
    code_of = {key: code for code, key in enumerate(ordered)}
    code_of_found = np.array([code_of.get(key, checks.MISSING) for key in keys] + [checks.MISSING])
    return code_of_found[codes], label_values([value for _, _, value in ordered])


def label_values(values: list[Any]) -> np.ndarray:
    """Return label values (k,) as an array of whole numbers, of objects if some are none or too large."""
    if not all(isinstance(value, int) for value in values):
        return np.fromiter(values, object, len(values))
    # NumPy would take floats for numbers on both sides of 2^63
    dtype = next((d for d in (np.int64, np.uint64) if max(values, default=0) <= np.iinfo(d).max), object)
    return np.array(values, dtype=dtype)


def _sort_key(value: Any) -> tuple[int, str, Any]:
    """Return a key that orders labels of all kinds by value, numbers first, whatever the order of the objects."""
    number = isinstance(value, (int, float, np.integer, np.floating, np.bool_))
    if number and not isinstance(value, np.timedelta64):  # an integer to NumPy
        return 0, "", int(value)
    if isinstance(value, str):
        return 1, "", str(value)
    return 2, type(value).__name__, value

"""Encoding of labels: the clusters of each clustering are numbered 0 … k_m - 1 in the order of their label values.

    labels ─▶ split_columns ─▶ Columns ─▶ encode_columns ─▶ codes (N, M) in the smallest dtype, and label values

    columns are                           codes are read from
    numbers in host memory                a lookup table for each clustering, in the order of the labels' memory
    numbers in GPU memory                 a table of bits for each clustering; only the tables come to the host
    anything else                         the sorted values of one column after the other

NumPy's functions dispatch to CuPy for arrays in GPU memory, so labels are encoded in the memory where they are.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np

from gpuens.labels.codes import cast_codes, codes_dtype, factorize
from gpuens.labels.columns import as_column
from gpuens.labels.odd_labels import missing_texts
from gpuens.runtime import checks, kernels
from gpuens.runtime import device as devices
from gpuens.runtime.native import cpu

BYTES_AT_ONCE = 2**24  # bytes for the copy and the lookup tables of columns that are encoded together
SLOTS = 2**12  # largest number of label values in a lookup table
SPARE_SLOTS = 2**8  # number of label values in a lookup table beyond the number of objects
READABLE = {"i": (1, 2, 4, 8), "u": (1, 2, 4, 8), "f": (4, 8)}  # bytes of the types that the extension reads
TABLE_BITS = 2**16  # largest number of bits in the bit table of a clustering

# dtype of labels -> the dtype as which kernels read them; labels of other dtypes are encoded column by column
_READ_AS = {
    np.dtype(dtype): np.dtype(read)
    for read, dtypes in {"u1": "?B", "i4": "bhHi", "i8": "lqI", "f8": "fd"}.items()
    for dtype in dtypes
}


def encode_columns(columns: Any, names: list[Any], *, in_part: bool = False) -> tuple[Any, list[np.ndarray]]:
    """Return the codes (N, M) of columns in the smallest dtype that fits all, and the label values of each column.

    ``columns``: a list of M columns, or an array (M, N). ``in_part``: see `encode_column`.
    """
    if devices.kind_of(columns[0]) == "cuda" and (matrix := _gpu_matrix(columns)) is not None:
        return _encode_on_gpu(matrix, names)
    if type(columns) in (np.ndarray, np.memmap) and columns.dtype.kind in "iubf":
        return _encode_on_host(np.asarray(columns), names)
    return _encode_each(columns, names, in_part)


def _encode_each(columns: Any, names: list[Any], in_part: bool) -> tuple[Any, list[np.ndarray]]:
    """Return the codes and label values of columns of any kind, encoded in groups of one type."""
    parts: list[Any] = []  # each (number of columns, N)
    categories: list[np.ndarray] = []
    for start, stop in _groups(columns):
        if stop - start > 1:
            codes, group_values = _encode_on_host(np.stack(columns[start:stop]), names[start:stop])
            parts.append(codes.T)
            categories += group_values
            continue
        codes, values = encode_column(columns[start], names[start], in_part=in_part)
        parts.append(codes.astype(codes_dtype(len(values)))[None])  # -1 becomes the largest code
        categories.append(devices.to_host(values))
    dtype = codes_dtype(max(map(len, categories)))
    return np.concatenate([cast_codes(part, np.dtype(dtype)) for part in parts]).T, categories


def _groups(columns: Any) -> Iterator[tuple[int, int]]:
    """Yield (start, stop) of columns that are encoded together: neighbours of one type of numbers, copied at once."""
    n_objects = len(columns[0])
    column_bytes = 12 * n_objects + 4 * (min(SLOTS, n_objects + SPARE_SLOTS) + 2)  # a copy, its codes and its table
    start, largest_group = 0, max(1, BYTES_AT_ONCE // column_bytes)
    of_numbers = [type(c) is np.ndarray and c.dtype.kind in "iubf" and c.dtype.isnative for c in columns]
    while start < len(columns):
        stop = start + 1
        while (
            stop < min(len(columns), start + largest_group)
            and of_numbers[start]
            and of_numbers[stop]
            and columns[stop].dtype == columns[start].dtype
        ):
            stop += 1
        yield start, stop
        start = stop


# --- numbers in host memory -------------------------------------------------------------------------------------------


def _encode_on_host(columns: np.ndarray, names: list[Any]) -> tuple[np.ndarray, list[np.ndarray]]:
    """Return the codes (N, M) of an array (M, N) of numbers, and the label values of each clustering.

    A label l has slot l + 1 in the table of its clustering. Slot 0 is that of missing labels, and the last slot that of
    labels beyond the table; a clustering with such labels is encoded alone.
    """
    n_clusterings, n_objects = columns.shape
    labels = _as_readable(columns)
    exact = 2 ** (np.finfo(columns.dtype).nmant + 1) if columns.dtype.kind == "f" else SLOTS
    tables = np.zeros((n_clusterings, min(SLOTS, exact, n_objects + SPARE_SLOTS) + 2), dtype=np.uint32)
    cpu.mark_slots(labels, tables)
    is_beyond = tables[:, -1] != 0
    values, n_values = np.empty(np.count_nonzero(tables), dtype=np.int64), np.empty(n_clusterings, dtype=np.int64)
    cpu.number_slots(tables, values, n_values)
    values = values[: n_values.sum()].astype(np.int64 if columns.dtype.kind == "f" else columns.dtype)
    categories = np.split(values, np.cumsum(n_values)[:-1])
    codes_beyond: dict[int, np.ndarray] = {}
    for m in np.flatnonzero(is_beyond).tolist():
        column_codes, categories[m] = encode_column(columns[m], names[m])
        codes_beyond[m] = column_codes.astype(codes_dtype(len(categories[m])))  # -1 becomes the largest code
    codes: np.ndarray = np.empty(columns.shape, dtype=codes_dtype(max(map(len, categories))))
    cpu.write_codes(labels, tables, is_beyond, codes)
    for m, column_codes in codes_beyond.items():
        codes[m] = cast_codes(column_codes, codes.dtype)
    return codes.T, categories


def _as_readable(columns: np.ndarray) -> np.ndarray:
    """Return labels of a type and with steps that the extension reads: the array itself, or a copy."""
    dtype = columns.dtype
    if dtype == np.bool_:
        return columns.view(np.uint8)
    aligned = not any(step % dtype.itemsize for step in columns.strides)
    if dtype.itemsize in READABLE[dtype.kind] and dtype.isnative and aligned:
        return columns
    if dtype.itemsize > 8:  # rounded to float64, some would be whole
        with np.errstate(invalid="ignore"):
            integers = columns.astype(np.int64)
        not_integer = np.where(columns == columns, checks.MISSING - 1, checks.MISSING)
        return np.where(integers == columns, integers, not_integer)
    return columns.astype({"f": np.float64, "i": np.int64, "u": np.uint64}[dtype.kind])


# --- numbers in GPU memory: kernels/codes.cu --------------------------------------------------------------------------


def _gpu_matrix(columns: Any) -> Any:
    """Return columns in GPU memory as one array (M, N) for the kernels, or None if they or their copy do not fit.

    Kernels read contiguous arrays of four dtypes; other arrays are copied, and columns of one dtype are stacked.
    """
    first, in_list = columns[0], isinstance(columns, list)
    if (read := _READ_AS.get(first.dtype)) is None or (in_list and any(c.dtype != first.dtype for c in columns)):
        return None
    contiguous = not in_list and (columns.flags.c_contiguous or columns.flags.f_contiguous)
    label_bytes = in_list * first.dtype.itemsize + read.itemsize + 1  # the stack, the copy for the kernels, a code
    copied = not contiguous or read.itemsize != first.dtype.itemsize
    if copied and len(columns) * len(first) * label_bytes > devices.memory_budget("cuda"):
        return None
    return devices.namespace("cuda").stack(columns) if in_list else columns


def _encode_on_gpu(labels: Any, names: list[Any]) -> tuple[Any, list[np.ndarray]]:
    """Return the codes (N, M) of an array (M, N) of `_gpu_matrix`, and the label values of each clustering."""
    read = labels.view(np.uint8) if labels.dtype == bool else labels.astype(_READ_AS[labels.dtype], copy=False)
    if not (read.flags.c_contiguous or read.flags.f_contiguous):
        read = read.copy()
    n_words = min(TABLE_BITS, labels.shape[1] + 1024) // 32  # fewer bytes than the labels
    tables, ranks = mark_labels(read, n_words, device="cuda")
    host_tables = devices.to_host(tables)
    bits = np.unpackbits(host_tables[:, :-1].astype("<u4").view(np.uint8), axis=1, bitorder="little")
    value_dtype = np.int64 if labels.dtype.kind == "f" else labels.dtype
    categories = [np.flatnonzero(column_bits).astype(value_dtype) for column_bits in bits]
    beyond = np.flatnonzero(host_tables[:, -1] & 2).tolist()  # clusterings with labels that have no bit
    columns_beyond = [encode_column(labels[m], names[m]) for m in beyond]
    for m, (_, values) in zip(beyond, columns_beyond, strict=True):
        categories[m] = devices.to_host(values)
    codes = write_codes(read, tables, ranks, codes_dtype(max(map(len, categories))), device="cuda")
    for m, (column_codes, _) in zip(beyond, columns_beyond, strict=True):
        codes[:, m] = column_codes  # -1 becomes the largest code
    return codes, categories


def mark_labels(labels: Any, n_words: int, *, device: str) -> tuple[Any, Any]:
    """Return bit tables (M, n_words + 1), uint32, of the values in labels (M, N), and the values before each word.

    In the last word of a table, bit 0 is set if labels are missing, bit 1 if a label is too large for the table.
    """
    xp, n_clusterings = devices.namespace(device), len(labels)
    tables = xp.zeros((n_clusterings, n_words + 1), dtype=np.uint32)
    ranks = xp.empty((n_clusterings, n_words), dtype=np.int32)
    kernels.launch(
        "mark_labels", kernels.blocks(labels.size, 256), 256, (*_label_arguments(labels), n_words, tables),
        device=device, LABEL=kernels.c_name(labels.dtype), CODE="u8",
    )  # fmt: skip
    kernels.launch(
        "rank_labels", kernels.blocks(n_clusterings, 4), 128, (tables, n_clusterings, n_words, ranks), device=device,
        LABEL=kernels.c_name(labels.dtype), CODE="u8",
    )  # fmt: skip
    return tables, ranks


def write_codes(labels: Any, tables: Any, ranks: Any, dtype: Any, *, device: str) -> Any:
    """Return the codes (N, M) of labels (M, N); labels without a bit in their table become missing."""
    codes = devices.namespace(device).empty(labels.shape, dtype=dtype)
    kernels.launch(
        "write_codes", kernels.blocks(labels.size, 256), 256,
        (*_label_arguments(labels), ranks.shape[1], tables, ranks, codes), device=device,
        LABEL=kernels.c_name(labels.dtype), CODE=kernels.c_name(dtype),
    )  # fmt: skip
    return codes.T


def _label_arguments(labels: Any) -> tuple[Any, ...]:
    """Return the kernels' arguments for labels (M, N): the contiguous array, whether it is (N, M), and N and M."""
    by_rows = not labels.flags.c_contiguous
    return labels.T if by_rows else labels, np.int32(by_rows), labels.shape[1], labels.shape[0]


# --- one column of any type -------------------------------------------------------------------------------------------


def encode_column(column: Any, name: object, *, in_part: bool = False) -> tuple[np.ndarray, np.ndarray]:
    """Return the codes of one column (int64, -1 for missing) and its label values, ascending.

    ``column`` is a result of `labels.columns.as_column`. ``in_part``: the column is one chunk, in which the text "-1"
    is kept, because only the whole column tells whether it means missing.
    """
    if not isinstance(column.dtype, np.dtype):  # a pandas dtype: categories, Int64, string, …
        return _encode_objects(column, name, in_part)
    if isinstance(column, np.ma.MaskedArray):
        is_labelled = ~np.ma.getmaskarray(column)
        codes = np.full(column.shape, checks.MISSING, dtype=np.int64)
        codes[is_labelled], values = encode_column(column.data[is_labelled], name, in_part=in_part)
        return codes, values
    if column.dtype.kind in "fc":
        column = _as_integers(column, name)
    return _encode_integers(column, name) if column.dtype.kind in "iub" else _encode_objects(column, name, in_part)


def encode_vector(values: Any, name: str, n_objects: int) -> np.ndarray:
    """Return the codes (n_objects,) of one label vector, int64, -1 for missing, host; refuse other shapes."""
    devices.check_readable(values, name)
    column = as_column(values)
    checks.check_label_vector(tuple(column.shape), type(values).__name__, name)
    checks.check_one_per_row(column, n_objects, name)
    return devices.to_host(encode_column(column, name)[0])


def _as_integers(column: np.ndarray, name: object) -> np.ndarray:
    """Return float labels as integers with ``MISSING`` for NaN; refuse complex, infinite and fractional labels."""
    if column.dtype.kind == "c":
        raise ValueError(
            f"labels of clustering {name!r} are complex numbers: Complex data not supported; labels are integers or "
            "strings."
        )
    missing = np.isnan(column)
    labels = column[~missing]
    if np.isinf(labels).any():
        raise ValueError(
            f"labels of clustering {name!r} contain infinity; labels are integers or strings, and NaN means missing."
        )
    if labels.size and (labels != np.floor(labels)).any():
        example = float(labels[labels != np.floor(labels)][0])
        raise ValueError(
            f"labels of clustering {name!r} are not whole numbers ({example:g} was found): pass cluster labels, not "
            "feature values; features are a separate argument, and exclude (--exclude) leaves out other columns."
        )
    bits = min(np.finfo(column.dtype).nmant + 1, 53)
    if labels.size and float(np.abs(labels).max()) >= 2.0**bits:  # 2**53 may be a rounded 2**53 + 1
        raise ValueError(
            f"labels of clustering {name!r} are {column.dtype} of 2**{bits} or more, beyond exact whole numbers; pass "
            "integers or strings."
        )
    integers = np.full_like(column, checks.MISSING, dtype=np.int64)
    integers[~missing] = labels.astype(np.int64)
    return integers


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
    if not values.flags.c_contiguous:  # a column of a row-major matrix is slow to read twice
        values = values.copy()
    if dtype.kind == "b":
        values = values.view(np.uint8)
    smallest, largest = (int(values.min()), int(values.max())) if values.size else (0, 0)
    _refuse_negative(smallest, name)
    if largest > 4 * values.size + 1024:  # too few labels for a table of all values up to the largest
        distinct, codes = np.unique(values, return_inverse=True)
        codes = codes.astype(np.int64)
        return (codes - 1, distinct[1:]) if int(distinct[0]) == checks.MISSING else (codes, distinct)
    shifted = values.astype(np.int64)
    shifted += 1  # slot 0 means missing
    present = np.bincount(shifted, minlength=largest + 2) > 0
    present[0] = True
    code_of = np.cumsum(present) - 2
    return code_of[shifted], (np.flatnonzero(present)[1:] - 1).astype(dtype)


def _encode_objects(values: Any, name: object, in_part: bool) -> tuple[np.ndarray, np.ndarray]:
    """Return the codes and values of strings, categories or mixed objects; numbers count as in a numeric column."""
    try:
        codes, first_values = factorize(values.astype(object) if values.dtype.kind in "SUT" else values)
    except (TypeError, ValueError) as error:  # lists, records, …
        raise _unhashable(error, name) from None
    distinct = list(np.asarray(first_values))
    _as_integers(np.array([v for v in distinct if isinstance(v, (float, np.floating))], dtype=float), name)
    keys = [_sort_key(value) for value in distinct]
    _refuse_negative(min((value for kind, _, value in keys if kind == 0), default=0), name)
    missing_values = [checks.MISSING] if in_part else [checks.MISSING, *missing_texts(distinct)]
    try:
        ascending = sorted(set(keys) - set(map(_sort_key, missing_values)))
    except TypeError as error:
        raise _unhashable(error, name) from None
    code_of_key = {key: code for code, key in enumerate(ascending)}
    code_of_value = np.array([code_of_key.get(key, checks.MISSING) for key in keys] + [checks.MISSING])
    return code_of_value[codes], label_values([value for _, _, value in ascending])


def label_values(values: list[Any]) -> np.ndarray:
    """Return label values (k,) as an integer array, or an object array if some are not integers or too large."""
    if not all(isinstance(value, int) for value in values):
        return np.fromiter(values, object, len(values))
    # chosen here because NumPy would use float64 for integers on both sides of 2^63
    dtype = next((d for d in (np.int64, np.uint64) if max(values, default=0) <= np.iinfo(d).max), object)
    return np.array(values, dtype=dtype)


def find_values(values: np.ndarray, label_values: np.ndarray, *, as_written: bool = False) -> np.ndarray:
    """Return the position of each value among ``label_values``, -1 for an unknown value.

    ``as_written``: a number and its text are the same value, because a column of a file is read as numbers or as text
    depending on its other labels.
    """
    position = {_sort_key(value): i for i, value in enumerate(label_values.tolist())}
    positions = [position.get(_sort_key(value), -1) for value in values.tolist()]
    if as_written and min(positions, default=0) < 0:
        position_of_text = {str(value): i for i, value in enumerate(label_values.tolist())}
        positions = [
            position_of_text.get(str(value), -1) if i < 0 else i
            for value, i in zip(values.tolist(), positions, strict=True)
        ]
    return np.array(positions, dtype=np.int64)


def _sort_key(value: Any) -> tuple[int, str, Any]:
    """Return a sorting key that orders labels of any type by value, numbers first."""
    number = isinstance(value, (int, float, np.integer, np.floating, np.bool_))
    if number and not isinstance(value, np.timedelta64):  # timedelta64 is an integer type in NumPy
        return 0, "", int(value)
    if isinstance(value, str):
        return 1, "", str(value)
    return 2, type(value).__name__, value

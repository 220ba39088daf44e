"""Label values: the codes of one column, and the order of label values of any type."""

from typing import Any

import numpy as np

from gpuens.labels.codes import factorize
from gpuens.labels.columns import as_column
from gpuens.labels.odd_labels import missing_texts
from gpuens.runtime import checks
from gpuens.runtime import device as devices


def encode_column(column: Any, name: object, *, in_part: bool = False) -> tuple[np.ndarray, np.ndarray]:
    """Return the codes of one column (int64, -1 for missing) and its label values, ascending.

    ``column`` is a result of `labels.columns.as_column`. ``in_part``: the column is one chunk, in which the text "-1"
    is kept, because only the whole column tells whether it means missing.
    """
    if not isinstance(column.dtype, np.dtype):  # a pandas dtype: categories, Int64, string, …
        return _encode_objects(column, name, in_part)
    if isinstance(column, np.ma.MaskedArray):
        known = ~np.ma.getmaskarray(column)
        codes = np.full(column.shape, checks.MISSING, dtype=np.int64)
        codes[known], values = encode_column(column.data[known], name, in_part=in_part)
        return codes, values
    if column.dtype.kind in "fc":
        column = _whole_numbers(column, name)
    return _encode_integers(column, name) if column.dtype.kind in "iub" else _encode_objects(column, name, in_part)


def encode_vector(values: Any, name: str, n_objects: int) -> np.ndarray:
    """Return the codes (n_objects,) of one label vector, int64, -1 for missing, host; refuse other shapes."""
    devices.check_readable(values, name)
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
            "feature values; features are a separate argument, and exclude (--exclude) leaves out other columns."
        )
    bits = min(np.finfo(column.dtype).nmant + 1, 53)
    if known.size and float(np.abs(known).max()) >= 2.0**bits:  # 2**53 may be a rounded 2**53 + 1
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
    if not values.flags.c_contiguous:  # a column of a row-major matrix is slow to read twice
        values = values.copy()
    if dtype.kind == "b":
        values = values.view(np.uint8)
    smallest, largest = (int(values.min()), int(values.max())) if values.size else (0, 0)
    _refuse_negative(smallest, name)
    if largest > 4 * values.size + 1024:  # too few labels for a table of all values up to the largest
        found, codes = np.unique(values, return_inverse=True)
        codes = codes.astype(np.int64)
        if int(found[0]) == checks.MISSING:
            return codes - 1, found[1:]
        return codes, found
    shifted = values.astype(np.int64)
    shifted += 1  # slot 0 means missing
    present = np.bincount(shifted, minlength=largest + 2) > 0
    present[0] = True
    code_of = np.cumsum(present) - 2
    return code_of[shifted], (np.flatnonzero(present)[1:] - 1).astype(dtype)


def _encode_objects(values: Any, name: object, in_part: bool) -> tuple[np.ndarray, np.ndarray]:
    """Return the codes and values of strings, categories or mixed objects; numbers count as in a numeric column."""
    try:
        codes, distinct = factorize(values.astype(object) if values.dtype.kind in "SUT" else values)
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
    """Return label values (k,) as an integer array, or an object array if some are not integers or too large."""
    if not all(isinstance(value, int) for value in values):
        return np.fromiter(values, object, len(values))
    # chosen here because NumPy would use float64 for integers on both sides of 2^63
    dtype = next((d for d in (np.int64, np.uint64) if max(values, default=0) <= np.iinfo(d).max), object)
    return np.array(values, dtype=dtype)


def find_values(values: np.ndarray, known: np.ndarray, *, as_written: bool = False) -> np.ndarray:
    """Return the position of each label value among the known values, -1 for an unknown value.

    ``as_written``: a number and its text are the same value, because a column of a file is read as numbers or as text
    depending on its other labels.
    """
    place = {_sort_key(value): i for i, value in enumerate(known.tolist())}
    found = [place.get(_sort_key(value), -1) for value in values.tolist()]
    if as_written and min(found, default=0) < 0:
        written = {str(value): i for i, value in enumerate(known.tolist())}
        found = [written.get(str(value), -1) if i < 0 else i for value, i in zip(values.tolist(), found, strict=True)]
    return np.array(found, dtype=np.int64)


def _sort_key(value: Any) -> tuple[int, str, Any]:
    """Return a sorting key that orders labels of any type by value, numbers first."""
    number = isinstance(value, (int, float, np.integer, np.floating, np.bool_))
    if number and not isinstance(value, np.timedelta64):  # timedelta64 is an integer type in NumPy
        return 0, "", int(value)
    if isinstance(value, str):
        return 1, "", str(value)
    return 2, type(value).__name__, value

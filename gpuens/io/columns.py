"""The choice of the columns of a file that are read as base clusterings."""

import fnmatch
import numbers
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np

from gpuens.io.paths import Words
from gpuens.labels.long_form import Triples
from gpuens.labels.odd_labels import warn_of_twins, warn_of_words
from gpuens.runtime import checks

UNTITLED = "id"  # title of a column of object names in a file whose columns have no names


class Opened(NamedTuple):
    """An opened file whose column names are known, but whose columns have not been read."""

    names: list[Any]
    read: Callable[[list[int]], Any]  # function: positions of columns → an array or a DataFrame with these columns
    # function that returns the names of the objects as a pandas Index, or None if there are none; its argument is the
    # position of the column that holds the names, or None for the row names
    ids: Callable[[int | None], Any]
    first_line: int | None = None  # number of the first object's line in a text file
    form: str = ""  # form of a table whose columns are not the clusterings, such as "a cluster in each line"
    triples: Triples | None = None  # lines of a table in long form, of which ``read`` makes columns


class TextOptions(NamedTuple):
    """The options of `gpuens.io.read_labels` for text."""

    sep: str | None = None
    header: bool | None = None
    missing: Words | None = None
    no_missing: Words | None = None


NO_OPTIONS = TextOptions()


# --- choosing ---------------------------------------------------------------------------------------------------------


def choose_columns(
    names: list[Any], columns: Any = None, exclude: Any = None, id_column: Any = None
) -> tuple[list[int], int | None]:
    """Return the positions of the columns to read, and the position of the id column, or None without an id column.

    Raise an error for unknown names.
    """
    ids = None
    if id_column is not None:
        ids, *more_places = positions(id_column, names, "id_column")
        if more_places:
            raise ValueError(f"id_column must name one column, but {id_column!r} names {len(more_places) + 1}.")
    excluded = set() if exclude is None else set(positions(exclude, names, "exclude"))
    candidates = range(len(names)) if columns is None else positions(columns, names, "columns")
    places = [m for m in candidates if m not in excluded and m != ids]
    if not places:
        raise ValueError("columns: none is left; exclude fewer columns.")
    return places, ids


def find_present(columns: list[str], names: list[Any]) -> list[str]:
    """Return the elements of ``columns`` (names, patterns or numbers) that fit a column of a file.

    If the file has a single column, numbers are ignored.
    """
    single = len(names) == 1
    return [c for c in columns if _fitting(c, names) and not (single and c.isdecimal() and c not in names)]


def positions(columns: Any, names: list[Any], argument: str) -> list[int]:
    """Return the positions of columns given by name, number or pattern, such as 'leiden_*'.

    Raise an error if a name, number or pattern fits no column.
    """
    places: list[int] = []
    single = isinstance(columns, (str, numbers.Integral)) or not isinstance(columns, Iterable)
    for column in [columns] if single else columns:
        if isinstance(column, (bool, np.bool_)) or not isinstance(column, (str, numbers.Integral)):
            raise TypeError(f"{argument} must be names or numbers of columns, not {checks.shown(column)}.")
        if isinstance(column, str) and names.count(column) > 1:
            raise ValueError(f"{argument}: {column!r} is the name of several columns; give their numbers, from 0 on.")
        fitting = _fitting(column, names)
        if not fitting:
            existing = f"0 … {len(names) - 1}" if all(isinstance(name, int) for name in names) else checks.listed(names)
            raise ValueError(f"{argument}: there is no column {column!r}; there are {existing}.")
        by_pattern = isinstance(column, str) and column not in names and not column.isdecimal()
        places += [m for m in fitting if not (by_pattern and m in places)]
    if not places:
        raise ValueError(f"{argument} is empty; name at least one column, or leave it out to read all.")
    return places


def _fitting(column: Any, names: list[Any]) -> list[int]:
    """Return the position of a column given by name or number, or the positions of all columns that match a pattern."""
    if isinstance(column, str) and column in names:
        return [names.index(column)]
    if isinstance(column, str) and set(column) & set("*?["):
        return [m for m, name in enumerate(names) if fnmatch.fnmatchcase(str(name), column)]
    position = int(column) if not isinstance(column, str) or column.isdecimal() else -1
    return [position] if 0 <= position < len(names) else []


def each_column(table: Any) -> list[Any]:
    """Return the columns (n_objects,) of an array or a DataFrame, by their positions."""
    return [table.iloc[:, m] if hasattr(table, "iloc") else table[:, m] for m in range(table.shape[1])]


# --- missing labels ---------------------------------------------------------------------------------------------------


def missing_words(missing: Any) -> list[str]:
    """Return the words that mean a missing label as a list of strings."""
    if missing is None:
        return []
    if isinstance(missing, str) or not isinstance(missing, Iterable):
        missing = [missing]
    return [str(word).strip() for word in missing]


def mask_missing(labels: Any, missing: Any) -> Any:
    """Replace the words or numbers ``missing`` in an array or DataFrame of labels by missing values; return the result.

    The missing value is -1 in a column of integers, and None or NaN in other columns.
    """
    words = missing_words(missing)
    if not words:
        return labels
    if hasattr(labels, "iloc"):
        masked = [_mask_column(labels.iloc[:, m], words) for m in range(labels.shape[1])]
        return type(labels)(dict(enumerate(masked))).set_axis(labels.columns, axis=1)
    if labels.dtype.kind in "iuf":
        is_missing = np.isin(labels, _numbers(words, labels.dtype))
        if labels.dtype.kind == "u" and not _fit_int64(labels):
            result = labels.astype(object)
            result[is_missing] = None
            return result
        return np.where(is_missing, checks.MISSING, labels.astype(np.int64) if labels.dtype.kind == "u" else labels)
    result = labels.astype(object)
    result[np.isin(labels.astype(str), words)] = None
    return result


def _mask_column(column: Any, words: list[str]) -> Any:
    if column.dtype.kind in "iu":  # missing integers become -1, because NaN would convert the column to floats
        is_missing = column.isin(_numbers(words, getattr(column.dtype, "numpy_dtype", column.dtype)))
        if column.dtype.kind == "u" and not _fit_int64(column):
            return column.astype("UInt64").mask(is_missing)
        return column.astype("int64").mask(is_missing, checks.MISSING)
    numbers = [int(word) for word in words if _is_whole(word)]
    return column.mask(column.isin(numbers if column.dtype.kind in "bf" else [*words, *numbers]))


def _numbers(words: list[str], dtype: np.dtype) -> np.ndarray:
    """Return the words that are whole numbers of a dtype, in this dtype: NumPy would round a mixture to floats."""
    numbers = [int(word) for word in words if _is_whole(word)]
    if dtype.kind in "iu":
        numbers = [number for number in numbers if np.iinfo(dtype).min <= number <= np.iinfo(dtype).max]
    return np.array(numbers, dtype=dtype)


def _is_whole(word: str) -> bool:
    return word.removeprefix("-").isdecimal()


def _fit_int64(values: Any) -> bool:
    return not len(values) or bool(values.max() <= np.iinfo(np.int64).max)


def warn_of_odd_texts(labels: Any, names: list[Any], missing: Any, source: str, *, no_missing: Any = None) -> None:
    """Warn about labels that may be misread: words that look missing, and labels that look like twins.

    If ``missing`` is given, there is no warning about words that look missing, and never about those of ``no_missing``.
    """
    values = [(name, _values_of_texts(column)) for name, column in zip(names, each_column(labels), strict=True)]
    if missing is None:
        kept_words = set(missing_words(no_missing))
        values = [(name, [value for value in column if value not in kept_words]) for name, column in values]
        warn_of_words(values, source, "say missing={words!r} (--missing {option!r})")
    warn_of_twins(values, source)


def _values_of_texts(column: Any) -> list[Any]:
    """Return the distinct labels of a column that may hold texts; return [] for a column of numbers."""
    if hasattr(column.dtype, "categories"):
        categories = column.cat.categories
        if categories.dtype.kind in "iufbc":
            return []
        occurs = np.bincount(column.cat.codes.to_numpy() + 1, minlength=len(categories) + 1)[1:] > 0
        return list(categories[occurs])
    if column.dtype.kind in "iufbc":
        return []
    import pandas as pd

    return list(pd.unique(pd.Series(column)))

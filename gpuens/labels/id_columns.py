"""Columns that name the objects, recognised by their form: such a column is never a clustering.

The form is that of an id: a different text or whole number for each object. It does not depend on the number of
objects. Names that are repeated or blank by mistake are still names if nearly all are different.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from gpuens.labels.odd_columns import named_like_ids
from gpuens.labels.odd_labels import LOOKS_MISSING
from gpuens.runtime import checks

NEARLY_ALL = 0.8  # smallest share of different values in a first column of names with mistakes
FAR_MORE = 2  # ratio of different values, compared with any other column, above which a doubtful column holds names
HEAD = 1000  # objects that tell most clusterings from names


def places_of_names(columns: Sequence[Any], names: Sequence[Any], *, named: bool = False) -> list[int]:
    """Return the places of the columns that name the objects, the best one first; [] if all columns are clusterings.

    Each column is an array or a Series (n_objects,). These forms are names, beside a column that repeats a value or if
    the column is called like ids:

    - a first column of different texts or whole numbers;
    - a later column of different texts, or of different whole numbers that is called like ids or has far more values
      than any other column;
    - a first column of nearly all different texts or whole numbers, if it has far more values than any other column.

    ``named`` says that the objects already have names, so that the first column is like the later ones.

    Examples
    --------
    >>> from gpuens.labels.id_columns import places_of_names
    >>> places_of_names([["c1", "c2", "c3"], [0, 0, 1], [1, 1, 0]], ["cell", "a", "b"])
    [0]
    """
    n = len(columns[0])
    if len(columns) < 2 or n < 2:
        return []
    forms = [_form(column) for column in columns]
    counts: dict[int, int] = {}

    def count(m: int) -> int:
        if m not in counts:
            counts[m] = _number_of_values(columns[m])
        return counts[m]

    def has_far_more(m: int) -> bool:
        return all(count(m) > FAR_MORE * count(other) for other in range(len(columns)) if other not in (m, *places))

    places: list[int] = []
    for m, form in enumerate(forms):
        first = m == 0 and not named
        if form is None or not _may_name(columns[m], NEARLY_ALL if first else 1.0):
            continue
        if count(m) == n:
            if first or form == "text" or named_like_ids(names[m]) or has_far_more(m):
                places.append(m)
        elif first and count(m) >= NEARLY_ALL * n and has_far_more(m):
            places.append(m)
    if not places or any(0 < count(m) < n for m in range(len(columns)) if m not in places):
        return places
    return places[:1] if named_like_ids(names[places[0]]) else []


def _form(column: Any) -> str | None:
    """Return "text" or "whole" for a column of texts or whole numbers, None for one of other values."""
    dtype = getattr(column, "dtype", None)
    if dtype is None:
        return _form(np.asarray(column))
    if hasattr(dtype, "categories"):
        return _form(dtype.categories)
    if dtype.kind in "iu":
        return "whole" if not len(column) or column[:HEAD].min() >= 0 else None  # -1 is a missing label
    if dtype.kind == "f":  # pandas reads whole numbers beside a blank field as floats
        head = np.asarray(column[:HEAD], dtype=np.float64)
        head = head[~np.isnan(head)]
        return "whole" if len(head) and (head == np.floor(head)).all() else None
    if dtype.kind in "bc":
        return None
    import pandas as pd

    head = column[:HEAD]
    texts = {value.lower() for value in head if isinstance(value, str)}
    if texts & LOOKS_MISSING or str(checks.MISSING) in texts:
        return None
    others = [value for value in head if not isinstance(value, str)]
    return None if texts and others and not pd.isna(np.array(others, dtype=object)).all() else "text"


def _may_name(column: Any, share: float) -> bool:
    """Return whether the first objects have different values, as all have in a column of names, or a share of them."""
    if hasattr(getattr(column, "dtype", None), "categories") and len(column.dtype.categories) < share * len(column):
        return False
    head = column[:HEAD]
    return _number_of_values(head) >= share * len(head) - (share < 1)


def _number_of_values(column: Any) -> int:
    """Return the number of different values in a column, without missing and empty ones."""
    if isinstance(column, np.ndarray) and column.dtype.kind in "iu":
        values = np.unique(column)
        return len(values) - int(checks.MISSING in values[:1])
    import pandas as pd

    series = pd.Series(column)
    empty = series.dtype.kind == "O" and not hasattr(series.dtype, "categories") and bool((series == "").any())
    return int(series.nunique()) - empty


def columns_without_names(
    columns: Sequence[Any],
    names: Sequence[Any],
    source: str,
    *,
    named: bool = False,
    argument: str = "columns (--columns)",
) -> tuple[list[int], int | None]:
    """Return the places of the columns that may be clusterings, and that of the column which names the objects or None.

    A warning tells further columns of the form of names, which are neither; it names the ``argument`` that keeps them.
    ``named``: as in `places_of_names`.
    """
    places = places_of_names(columns, names, named=named)
    further = places if named else places[1:]
    if further:
        checks.warn(
            f"{source}: {checks.listed([names[m] for m in further])} has a different value for each of the "
            f"{len(columns[0]):,} objects, like ids, and is left out; name it in {argument} if it is a clustering."
        )
    kept = [m for m in range(len(columns)) if m not in places]
    return kept, places[0] if places and not named else None


def place_of_names_beside_features(frame: Any) -> int | None:
    """Return the place of the column of a DataFrame of features that names the objects, None without one.

    Numbers are features more often than names. They are names only if they count the objects, in any order, in the
    first column, or if the column is called like ids.
    """
    for m, name in enumerate(frame.columns if frame.shape[1] > 1 else []):
        column = frame.iloc[:, m]
        form = _form(column)
        if form is None or not _may_name(column, NEARLY_ALL if m == 0 else 1.0):
            continue
        count = _number_of_values(column)
        if form == "text":
            if count >= len(frame) * (NEARLY_ALL if m == 0 else 1.0):
                return m
        elif count == len(frame) and (named_like_ids(name) or (m == 0 and column.max() - column.min() == count - 1)):
            return m
    return None


def name_objects_alone(index: Any, *, nearly: bool) -> bool:
    """Return whether the values of a single column have the form of names, all of them or ``nearly`` all."""
    share = NEARLY_ALL if nearly else 1.0
    return _form(index) is not None and _number_of_values(index) >= share * len(index)


def check_names(index: Any, source: str, first_line: int | None = None) -> None:
    """Warn about names of objects that are repeated or blank by mistake, and refuse names of which many are repeated.

    ``index`` is a pandas Index (n_objects,); ``first_line`` is the number of the first object's line in a text file.
    """
    what = "the first column" if index.name is None else repr(str(index.name))
    blank = is_blank(index)
    n_named, n_different = int((~blank).sum()), _number_of_values(index)
    if n_different < NEARLY_ALL * n_named:
        raise ValueError(
            f"{source}: {what} has {n_different:,} different names for {n_named:,} objects, which have one row each in "
            "a table of clusterings; if each row is one answer, of an annotator for an object, say long=True (--long)."
        )
    instead = "correct it, or leave the column out (--exclude)"
    if blank.any():
        where = places_told(np.flatnonzero(blank), first_line)
        checks.warn(f"{source}: {what} names the objects, but is blank in {where}; {instead}.")
    repeated = index.duplicated() & ~blank
    if repeated.any():
        first = index[int(repeated.argmax())]
        places = np.flatnonzero(np.asarray(index == first))
        more = int(repeated.sum()) - len(places) + 1
        where = places_told(places, first_line) + f", and {more:,} more" * (more > 0)
        checks.warn(f"{source}: {what} names the objects, but repeats {first!r} in {where}; {instead}.")


def places_told(places: np.ndarray, first_line: int | None = None) -> str:
    """Return the places of objects as a readable list: "lines 2 and 5", or "objects 0, 3, 4 and 7 more"."""
    shown = [f"{place if first_line is None else place + first_line}" for place in places[:3].tolist()]
    noun = ("object" if first_line is None else "line") + "s" * (len(places) > 1)
    if len(places) > 3:
        return f"{noun} {', '.join(shown)} and {len(places) - 3:,} more"
    return f"{noun} {' and '.join([', '.join(shown[:-1]), shown[-1]] if len(shown) > 1 else shown)}"


def is_blank(index: Any) -> np.ndarray:
    """Return the mask (n_objects,) of the missing and empty names."""
    return np.asarray(index.isna() | (index == ""))

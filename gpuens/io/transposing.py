"""Label files in which each line is a clustering and each column an object, such as draws of R's samplers."""

import os
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from gpuens.io.columns import Opened, choose_columns
from gpuens.io.kinds import ANNOTATED, ARRAYS, FOLDERS, TEXT_INPUTS, Path_, Words
from gpuens.io.opening import open_file, read_npz_ids, usual_separator
from gpuens.io.text import text_lines
from gpuens.labels.object_names import names_of_objects, start_of_count
from gpuens.labels.odd_labels import WHOLE
from gpuens.runtime import checks

FEWEST_LINES = 10  # smallest number of lines whose first column may count them


class Lines(NamedTuple):
    """The clusterings of a file, one for each line."""

    labels: Any  # an array or a DataFrame (n_objects, n_lines)
    names: list[Any] | None  # the names of the lines, or None
    objects: Sequence[Any] | None  # the names of the objects, or None


def open_transposed(
    path: Path_,
    suffix: str,
    key: str | None,
    *,
    sep: str | None,
    header: bool | None,
    missing: Words | None,
    no_missing: Words | None = None,
    id_column: str | int | None,
) -> Opened:
    """Open a file of labels with its lines as columns; the labels are read at once.

    The columns are called by the row names of the file or by its ``id_column``, or are numbered. The names of the
    objects are those of the columns of the file, or ``ids`` of an npz file. A first column that counts the lines, like
    the iterations of a sampler, is omitted with a warning.
    """
    import pandas as pd

    if suffix in ANNOTATED:
        raise ValueError(f"transpose is not for {suffix} files, whose rows are objects; leave it (--transpose) out.")
    how: dict[str, Any] = {"sep": sep, "header": header, "missing": missing, "no_missing": no_missing}
    if suffix in TEXT_INPUTS:
        lines = _lines_of_text(path, how, id_column)
    else:
        lines = _lines(path, suffix, open_file(path, suffix, key, **how), id_column)
    names = list(range(lines.labels.shape[1])) if lines.names is None else lines.names
    index = None if lines.objects is None else pd.Index(lines.objects, dtype=object)

    def read(positions: list[int]) -> Any:
        if positions == list(range(len(names))):
            return lines.labels
        return lines.labels.iloc[:, positions] if hasattr(lines.labels, "iloc") else lines.labels[:, positions]

    return Opened(names, read, lambda position: index)


def _lines(path: Path_, suffix: str, opened: Opened, id_column: str | int | None) -> Lines:
    """Return the lines of an array or of a table that is not text."""
    places, of_names = choose_columns(opened.names, id_column=id_column)
    table = opened.read(places)
    if suffix in (*ARRAYS, *FOLDERS):
        ids = names_of_objects(read_npz_ids(path)) if suffix == ".npz" else None
        return Lines(table.T, None, ids if ids is not None and len(ids) == table.shape[1] else None)
    if of_names is None and len(places) > 1 and _counts(table.iloc[:, 0].tolist()):
        _warn_of_counts(path, opened.names[places[0]])
        places, table = places[1:], table.iloc[:, 1:]
    labels, names = table.to_numpy(), _names(opened.ids(of_names))
    if labels.dtype == object:
        labels = np.where(table.notna(), labels, None)
    return Lines(labels.T, names, [opened.names[place] for place in places])


def _lines_of_text(path: Path_, how: dict[str, Any], id_column: str | int | None) -> Lines:
    """Return the lines of a text table, each read as a column of labels is."""
    import pandas as pd

    text = text_lines(path, usual_separator(path), **how)
    places, of_names = choose_columns(text.names, id_column=id_column)
    called: list[str | None] = []
    first: list[str] = []
    columns: list[Any] = []
    for fields in text.records:
        row_name = fields.pop(0) if text.row_names else None
        name = row_name if of_names is None else fields.pop(of_names)
        called.append(name)
        first.append(fields[0])
        columns.append(text.parse(fields, len(columns) if name is None else name))
    text.words.warn_of_na(path)
    counted = of_names is None and len(places) > 1 and all(map(WHOLE.fullmatch, first)) and _counts([*map(int, first)])
    if counted:
        _warn_of_counts(path, text.names[places[0]])
        places, columns = places[1:], [column[1:] for column in columns]
    if all(column.categories.dtype.kind in "iuf" for column in columns):
        labels: Any = np.stack([np.asarray(column) for column in columns], axis=1)
    else:
        labels = pd.DataFrame(dict(enumerate(columns)))
    names = None if called[0] is None else _names(pd.Index(called, dtype=object))
    objects = [text.names[place] for place in places]
    named = all(isinstance(name, str) for name in objects)
    return Lines(labels, names, objects if named else None)


def _names(index: Any) -> list[Any] | None:
    """Return the names of lines, or None if they only count the lines."""
    named = names_of_objects(index) is not None and start_of_count(index) is None
    return index.tolist() if named else None


def _counts(values: Sequence[Any]) -> bool:
    """Return whether the values of many lines are whole numbers that grow by the same step."""
    if len(values) < FEWEST_LINES or not all(isinstance(value, int) for value in values):
        return False
    steps = {b - a for a, b in pairwise(values)}
    return len(steps) == 1 and steps.pop() > 0


def _warn_of_counts(path: Path_, name: Any) -> None:
    checks.warn(
        f"path {os.fspath(path)!r}: the first column, {name!r}, counts the lines, like iterations, and is left out."
    )

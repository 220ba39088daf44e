"""Label files whose objects are joined by name: a file may lack objects of the others."""

import os
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from gpuens.io.columns import there
from gpuens.io.content import PACKED_ENDINGS, input_kind, without_ending
from gpuens.io.forms import Forms, read_form
from gpuens.io.kinds import TEXT_INPUTS, Columns, Path_
from gpuens.io.opening import open_file
from gpuens.io.reading import LabelFile, read_column_file
from gpuens.io.transposing import open_transposed
from gpuens.labels.columns import Columns as Labels
from gpuens.labels.columns import as_column
from gpuens.labels.ensemble import Ensemble
from gpuens.labels.joining import Source
from gpuens.labels.object_names import names_of_objects
from gpuens.labels.odd_columns import file_source, warn_of_equal_clusterings
from gpuens.labels.orientation import check_orientation, spelling_of_file
from gpuens.runtime import checks
from gpuens.runtime.defaults import FORMS, HOW_TO_JOIN

CHOOSING = ("columns", "exclude", "id_column")  # options that name columns
OF_TEXT = ("sep", "header", "no_missing")  # options for text


def read_joined(
    files: Sequence[Path_],
    how: str = "outer",
    *,
    columns: Columns | None = None,
    drop_unlabelled: bool = False,
    wide: bool = False,
    **options: Any,
) -> LabelFile:
    """Read base clusterings from several files, and join them by the names of the objects.

    Parameters
    ----------
    files : list of str or path
        Label files of any kinds, as for `read_labels`. The names of their objects are row or cell names, an array
        ``ids``, the column ``id_column``, or the first column of a table if it has a different text for each object; so
        has a file with just the name of an object and its label in each line, with or without names of these columns.
        Files without names are joined by position if none has names and all have the same number of objects.
    how : {"outer", "inner"}
        As in `Ensemble.join`.
    columns, exclude, id_column : optional
        As in `read_labels`; each file is read with those that it has.
    drop_unlabelled : bool
        Omit objects without any label instead of refusing them.
    wide, transpose, key, missing, no_missing, sep, header, long, members, one_hot : optional
        As in `read_labels`, for each file.

    Returns
    -------
    LabelFile
        ``ensemble``; ``ids``, a pandas Index (n_objects,) of the names of all objects, as texts unless all files have
        numbers, or None; ``labelled``, the mask of the objects in the ensemble if others were dropped, otherwise None.
        A clustering without a name is called by its file, and a name that several files have is preceded by the name of
        the file: "metabat:bin".

    Raises
    ------
    OSError, ValueError, TypeError, ImportError, MemoryError
        As `read_labels` and `Ensemble.join`; for a file given twice, and for columns that no file has.
    """
    checks.check_choice(how, "how", HOW_TO_JOIN)
    titles, every_column = _titles(files), columns is None and not options.get("transpose")
    found = [_read(path, columns, options) for path in files]
    _refuse_absent(found)
    sources = []
    for path, title, file, ids in zip(files, titles, found, _alike([file.ids for file in found]), strict=True):
        read = list(file.columns.values())
        if not (wide or options.get("transpose") or file.form):
            check_orientation(read, spelling_of_file(path))
        called: list[Any] = list(file.columns)
        if len(called) == 1 and not isinstance(called[0], str):
            called = [None]
        labels = Labels([as_column(column) for column in read], called, "cpu", ids)
        sources.append(
            Source(labels, title, _owner(path), file_source(path) if every_column and not file.form else None)
        )
    ensemble, labelled, ids = Ensemble.from_sources(sources, how, drop_unlabelled=drop_unlabelled)
    ensemble.index = names_of_objects(ensemble.index)
    if every_column:
        warn_of_equal_clusterings(ensemble.codes, np.diff(ensemble.offsets), ensemble.names, "the joined files")
    forms = "; ".join(dict.fromkeys(file.form for file in found if file.form))
    return LabelFile(ensemble, ids, None if labelled is None or labelled.all() else labelled, forms)


class _Found(NamedTuple):
    """The columns and object names of a file, the columns in the options that it lacks, and its form in words."""

    columns: dict[Any, Any]
    ids: Any
    lacks: set[str]
    form: str


def _read(path: Path_, columns: Any, options: dict[str, Any]) -> _Found:
    """Read a file with those of the columns in the options that it has."""
    suffix = input_kind(path)
    how: dict[str, Any] = {name: options.get(name) if suffix in TEXT_INPUTS else None for name in OF_TEXT}
    key, how["missing"] = options.get("key"), options.get("missing")
    asked = {name: _listed(value) for name, value in {**options, "columns": columns}.items() if name in CHOOSING}
    form = Forms(*(bool(options.get(name)) for name in FORMS)).chosen
    if options.get("transpose"):
        opened = open_transposed(path, suffix, key, id_column=options.get("id_column"), **how)
        options, asked = options | {"id_column": None}, {name: asked[name] for name in asked if name != "id_column"}
    elif form is None:
        opened = open_file(path, suffix, key, **how)
    else:
        chosen = [{**options, "columns": columns}.get(name) for name in CHOOSING]
        opened, asked = read_form(path, suffix, form, key, how, *chosen), {"columns": []}
    own = {name: there(given, opened.names) for name, given in asked.items()}
    if asked["columns"] and not own["columns"]:
        raise ValueError(
            f"{_owner(path)} has none of the columns {checks.listed(asked['columns'])}; it has "
            f"{checks.listed(opened.names)}."
        )
    id_column = next(iter(own.get("id_column", ())), None)
    read = read_column_file(
        path,
        beside=True,
        opened=opened,
        **{**options, "columns": own["columns"] or None, "exclude": own.get("exclude"), "id_column": id_column},
    )
    lacks = {column for name, given in asked.items() for column in given if column not in own[name]}
    return _Found(read.columns, read.ids, lacks, opened.form)


def _listed(columns: Any) -> list[str]:
    """Return the argument ``columns``, ``exclude`` or ``id_column`` as a list of texts."""
    if columns is None:
        return []
    return [str(column) for column in ([columns] if isinstance(columns, (str, int)) else columns)]


def _refuse_absent(found: Sequence[_Found]) -> None:
    """Raise an error for a column in the options that no file has."""
    if nowhere := set.intersection(*(file.lacks for file in found)):
        raise ValueError(f"columns, exclude, id_column: no file has a column {min(nowhere)!r}; correct the name.")


# --- names of objects and of files ------------------------------------------------------------------------------------


def _alike(ids: Sequence[Any]) -> list[Any]:
    """Return the names of objects of all files as texts, or unchanged if all are numbers or all are of one type."""
    given = [index for index in ids if index is not None]
    if len({"f" if index.dtype.kind in "iuf" else index.dtype.kind for index in given}) < 2:
        return list(ids)
    return [None if index is None else index.astype(str) for index in ids]


def _owner(path: Path_) -> str:
    return f"path {os.fspath(path)!r}"


def _titles(files: Sequence[Path_]) -> list[str]:
    """Return a different name for each file: without folders and ending, unless several files are then called alike.

    In that case, the folders that all files have in common are cut, and so is a common name of the files.
    """
    if isinstance(files, (str, os.PathLike)) or not files:
        raise TypeError(f"files must be a list of paths, not {checks.shown(files)}.")
    names = [os.fspath(path).rstrip("/") for path in files]
    real = [os.path.realpath(name) for name in names]
    for name, place in zip(names, real, strict=True):
        if real.count(place) > 1:
            raise ValueError(f"path {name!r} is given twice; its clusterings would count twice.")
    short = list(map(without_ending, names))
    unpacked = [name.removesuffix(next(filter(name.endswith, PACKED_ENDINGS), "")) for name in names]
    for titles in (
        *([os.path.basename(name) for name in group] for group in (short, unpacked)),
        _without_common_parts(short),
    ):
        if len(set(titles)) == len(titles):
            return titles
    return _without_common_parts(names)


def _without_common_parts(names: Sequence[str]) -> list[str]:
    """Return paths without the first and the last parts that all of them have; each keeps at least one part.

    >>> _without_common_parts(["outs/analysis/graph/clusters", "outs/analysis/kmeans/10/clusters"])
    ['graph', 'kmeans/10']
    """
    parts = [name.replace(os.sep, "/").split("/") for name in names]
    for end in (0, -1):
        while min(map(len, parts)) > 1 and len({path[end] for path in parts}) == 1:
            for path in parts:
                del path[end]
    return list(map("/".join, parts))

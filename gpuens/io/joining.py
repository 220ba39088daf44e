"""Label files whose objects are joined by name: a file may lack objects of the others."""

import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from gpuens.io.content import PACKED_ENDINGS, without_ending
from gpuens.io.paths import Columns, Path_
from gpuens.io.reading import LabelFile, read_column_file
from gpuens.labels.columns import Columns as Labels
from gpuens.labels.columns import as_column
from gpuens.labels.ensemble import Ensemble
from gpuens.labels.joining import Source
from gpuens.labels.object_names import names_of_objects
from gpuens.labels.odd_columns import file_source, warn_of_equal_clusterings
from gpuens.labels.orientation import check_orientation, spelling_of_file
from gpuens.runtime import checks
from gpuens.runtime.defaults import HOW_TO_JOIN


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
    transpose, titles = options.get("transpose"), _titles(files)
    every_column = columns is None and not transpose
    files_read = [read_column_file(path, join=True, columns=columns, **options) for path in files]
    if nowhere := set.intersection(*(set(file.lacks) for file in files_read)):
        raise ValueError(f"columns, exclude, id_column: no file has a column {min(nowhere)!r}; correct the name.")
    sources = []
    for path, title, file, ids in zip(
        files, titles, files_read, _as_one_type([file.ids for file in files_read]), strict=True
    ):
        labels = list(file.columns.values())
        if not (wide or transpose or file.form):
            check_orientation(labels, spelling_of_file(path))
        names: list[Any] = list(file.columns)
        if len(names) == 1 and not isinstance(names[0], str):
            names = [None]
        split = Labels([as_column(column) for column in labels], names, "cpu", ids)
        odd = file_source(path) if every_column and not file.form else None
        sources.append(Source(split, title, f"path {os.fspath(path)!r}", odd))
    ensemble, labelled, ids = Ensemble.from_sources(sources, how, drop_unlabelled=drop_unlabelled)
    ensemble.index = names_of_objects(ensemble.index)
    if every_column:
        warn_of_equal_clusterings(ensemble.codes, np.diff(ensemble.offsets), ensemble.names, "the joined files")
    forms = "; ".join(dict.fromkeys(file.form for file in files_read if file.form))
    return LabelFile(ensemble, ids, None if labelled is None or labelled.all() else labelled, forms)


# --- names of objects and of files ------------------------------------------------------------------------------------


def _as_one_type(ids: Sequence[Any]) -> list[Any]:
    """Return the names of objects of all files as texts, or unchanged if all are numbers or all are of one type."""
    kinds = {"f" if index.dtype.kind in "iuf" else index.dtype.kind for index in ids if index is not None}
    if len(kinds) < 2:
        return list(ids)
    return [None if index is None else index.astype(str) for index in ids]


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

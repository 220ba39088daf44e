"""Base clusterings, features and the names of objects, read from files."""

import os
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gpuens.io import annotated, paths
from gpuens.io.columns import choose_columns, informative_names, mask_missing, omit_ids, there, warn_of_odd_texts
from gpuens.io.kinds import ANNOTATED, ARRAYS, FOLDERS, INPUTS, TABLES, TEXTS, Columns, Path_, Words, needs
from gpuens.io.opening import open_file, read_npz_ids
from gpuens.labels.ensemble import Ensemble
from gpuens.labels.features import check_sparse
from gpuens.labels.odd_columns import named_like_ids, of_file, warn_of_equal_columns
from gpuens.runtime import checks

if TYPE_CHECKING:
    import pandas as pd
    from scipy.sparse import sparray, spmatrix


class ColumnFile(NamedTuple):
    """The result of `read_column_file`."""

    columns: dict[Any, Any]  # by name or number: array or pandas Series (n_objects,)
    ids: "pd.Index | None"  # names of the objects
    lacks: list[str]  # columns asked for as ids or to be left out that are not there, with ``beside``


class LabelFile(NamedTuple):
    """The result of `read_label_file`."""

    ensemble: Ensemble  # for the objects that have labels
    ids: "pd.Index | None"  # names of all objects of the file
    labelled: np.ndarray | None  # mask of the objects that are in the ensemble; None: all are


def read_labels(
    path: Path_,
    *,
    columns: Columns | None = None,
    exclude: Columns | None = None,
    key: str | None = None,
    id_column: str | int | None = None,
    missing: Words | None = None,
    drop_unlabelled: bool = False,
    wide: bool = False,
    sep: str | None = None,
    header: bool | None = None,
) -> Ensemble:
    """Read base clusterings from a file.

    Parameters
    ----------
    path : str or path
        The ending says what kind of file it is:

        - ``.npy``: an array (n_objects, n_clusterings), or (n_objects,) for a single clustering, read through a memory
          map, column by column.
        - ``.npz``: one such array, or 1-D arrays of one length, each a clustering; else ``key`` says which array.
          Beside it, or beside ``labels``, an array ``ids`` names the objects.
        - ``.csv``, ``.tsv``, also with ``.gz``, in UTF-8 or UTF-16: a column for each clustering. An unnamed first
          column of row numbers or names, as pandas and R write it, is omitted. Labels are read as text: 01 is not 1. A
          column with nothing but numbers is numeric; in it -1 and nan are missing. Otherwise only empty fields are
          missing: a cluster may be called NA. Blanks around a field are ignored.
        - ``.parquet``: a column for each clustering (needs pyarrow).
        - ``.h5ad``: columns of ``obs``, by default those of categories and integers (needs anndata).
        - ``.zarr``: an array of numbers or strings as in ``.npy`` (needs zarr).

        Texts of all kinds of files mean what `Ensemble` says of texts. Nothing in a file is run, and links to other
        files are not followed.
    columns : name, number, pattern, or list of them, optional
        The columns to read, in this order; numbers count from 0, and a pattern is such as ``"leiden_*"``. By default
        all, but a column with a different value for each object, as ids have, is omitted with a warning, and so are
        columns unlike the others: a truth, a batch, a donor or ids by their names, what has far more values, and what
        agrees with none of the others. Clusterings that are the same as another cause a warning.
    exclude : name, number, pattern, or list of them, optional
        The columns to omit.
    key : str, optional
        The name of the array in an npz file.
    id_column : name or number, optional
        The column of object names, which is not a clustering; `read_label_file` returns it.
    missing : str or list of str, optional
        Words for missing labels, such as ``["?", "unknown"]``; in numeric columns also numbers, such as ``"0"``. Any
        list, even an empty one, turns off the warning about other words that look missing.
    drop_unlabelled : bool
        Omit objects without any label instead of refusing them.
    wide : bool
        Accept more clusterings than objects, which are refused as transposed otherwise.
    sep : str, optional
        The separator of text fields; by default comma, semicolon, tab or |, detected from the first lines.
    header : bool, optional
        Whether the first line of text holds names. By default it does, unless it holds only numbers; numbers are names
        above a column of row names, and, with a warning, where they count the columns and are unlike the other lines.

    Returns
    -------
    Ensemble (n_objects, n_clusterings)

    Raises
    ------
    OSError, ValueError, TypeError, ImportError
        For missing, unreadable or unknown files, pipes and devices, data that are kept in other files, codecs that
        could run code, unknown columns and keys, missing packages, text with an ambiguous separator or first line or
        with lines of different lengths, more clusterings than objects, and labels that `Ensemble` refuses.
    MemoryError
        For files that claim more than the memory budget, before they are read.

    Examples
    --------
    >>> import gpuens as ge, pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "labels.csv")
    ...     written = path.write_text("p,q\\na,1\\na,2\\nb,\\n")
    ...     ens = ge.io.read_labels(path)
    >>> ens.names, ens.to_array().tolist()
    (['p', 'q'], [[0, 0], [0, 1], [1, -1]])
    """
    return read_label_file(
        path,
        columns=columns,
        exclude=exclude,
        key=key,
        id_column=id_column,
        missing=missing,
        drop_unlabelled=drop_unlabelled,
        wide=wide,
        sep=sep,
        header=header,
    ).ensemble


def read_label_file(path: Path_, *, drop_unlabelled: bool = False, wide: bool = False, **options: Any) -> LabelFile:
    """Read base clusterings and the names of the objects; parameters and errors are those of `read_labels`.

    ``named=True``: a column that is left out because its values are like ids names the objects.

    Returns
    -------
    LabelFile
        ``ensemble``; ``ids``, a pandas Index (n_objects,) with the id column, else the row or cell names, else None;
        ``labelled``, the mask of the objects in the ensemble if others were dropped, else None.
    """
    found, names, ids, _ = _read_labels(path, **options)
    if not wide:
        check_label_file(path, found.shape)
    if names is None and not wide:
        clusterings: Any = found
    else:
        clusterings = [found.iloc[:, m] for m in range(found.shape[1])] if hasattr(found, "iloc") else list(found.T)
    source = of_file(path) if names is not None and options.get("columns") is None else None
    ensemble, labelled = Ensemble.of_read(clusterings, names, source, drop_unlabelled=drop_unlabelled)
    ensemble.index = None  # files go together by ids
    if options.get("columns") is None:
        warn_of_equal_columns(ensemble.codes, np.diff(ensemble.offsets), ensemble.names, f"path {os.fspath(path)!r}")
    return LabelFile(ensemble, ids, None if labelled is None or labelled.all() else labelled)


def read_columns(path: Path_, **options: Any) -> dict[Any, Any]:
    """Read label columns by name without encoding them: a single one may have unlabelled objects.

    Parameters and errors are those of `read_labels`, except for labels that `Ensemble` refuses.

    Returns
    -------
    dict of name or number: array or pandas Series (n_objects,)
    """
    return read_column_file(path, **options).columns


def read_column_file(path: Path_, **options: Any) -> ColumnFile:
    """Read label columns as `read_columns` does, and the names of the objects.

    ``beside=True``: the options are those of another file, and columns that this one lacks may be named as ids or as to
    be excluded. ``results=True``: of an h5ad file with consensuses, or a table that gpuens wrote, read these alone.
    ``named`` is that of `read_label_file`.
    """
    found, names, ids, lacks = _read_labels(path, **options)
    if hasattr(found, "iloc"):
        return ColumnFile({name: found.iloc[:, m] for m, name in enumerate(found.columns)}, ids, lacks)
    return ColumnFile({name: found[:, m] for m, name in enumerate(names or range(found.shape[1]))}, ids, lacks)


def _read_labels(
    path: Path_,
    *,
    columns: Columns | None = None,
    exclude: Columns | None = None,
    key: str | None = None,
    id_column: str | int | None = None,
    missing: Words | None = None,
    sep: str | None = None,
    header: bool | None = None,
    beside: bool = False,
    results: bool = False,
    named: bool = False,
) -> tuple[Any, list[Any] | None, Any, list[str]]:
    """Return labels (array or DataFrame), the column names or None, the ids or None, and the columns that it lacks."""
    suffix = paths.file_kind(path, INPUTS)
    if beside and suffix not in TEXTS:
        sep = header = None
    opened = open_file(path, suffix, key, sep=sep, header=header, missing=missing)
    lacks: list[str] = []
    out: Any = exclude
    if beside:
        out = exclude or []  # texts, as the command line gives them
        given = [*out, id_column] if isinstance(id_column, str) else out
        own = there(given, opened.names)
        lacks = [column for column in given if column not in own]
        out = [column for column in out if column in own] or None
        id_column = id_column if id_column in own else None
    everything = columns is None
    if everything and suffix in ANNOTATED:
        added = annotated.read_results(path) & set(opened.names)
        if results and added:
            columns = sorted(added)
        else:
            columns = annotated.like_labels(opened.read(list(range(len(opened.names)))), added)
    if results and everything and suffix in TABLES and "label" in opened.names:  # as `write_labels` calls them
        beside_them = [name for name in (*annotated.BESIDE, annotated.REST) if name in opened.names]
        out = [*(out or ()), *beside_them] or None
    wanted, of_ids = choose_columns(opened.names, columns, out, id_column)
    ids = opened.ids(of_ids)
    if ids is None and named and not everything:
        others = [m for m, name in enumerate(opened.names) if m not in wanted and named_like_ids(name)]
        if len(others) == 1 and (index := opened.ids(others[0])).is_unique and not index.hasnans:
            ids = informative_names(index)
    found = opened.read(wanted)
    names = [opened.names[m] for m in wanted]
    if suffix not in TEXTS:  # readers of text handle missing words themselves
        found = mask_missing(found, missing)
    if everything and len(names) > 1:
        named = named and ids is None
        kept = omit_ids(found, names, f"path {os.fspath(path)!r}", id_column=ids is None, named=named)
        if named and len(kept) == len(names) - 1:
            (like_ids,) = set(wanted) - {wanted[m] for m in kept}
            ids = informative_names(opened.ids(like_ids))
        if len(kept) < len(names):
            found = found.iloc[:, kept] if hasattr(found, "iloc") else found[:, kept]
            names = [names[m] for m in kept]
    warn_of_odd_texts(found, names, missing, f"path {os.fspath(path)!r}")
    unnamed = suffix in (*ARRAYS, *FOLDERS)
    return found, None if unnamed and names == list(range(found.shape[1])) else names, ids, lacks


def read_features(
    path: Path_,
    *,
    columns: Columns | None = None,
    exclude: Columns | None = None,
    key: str | None = None,
    id_column: str | int | None = None,
    missing: Words | None = None,
    sep: str | None = None,
    header: bool | None = None,
) -> Any:
    """Read features (n_objects, n_features) from a file.

    Parameters
    ----------
    path : str or path
        As in `read_labels`. An ``.npz`` file holds one array, or ``X`` among others, or a sparse matrix of
        ``scipy.sparse.save_npz``; else ``key`` chooses the array. An ``.h5ad`` file gives X, or the entry ``key`` of
        obsm or layers, such as ``"X_pca"``.
    columns, exclude : name, number, pattern, or list of them, optional
        The features to read, and those to omit.
    key : str, optional
        The name of the array in an npz or h5ad file.
    id_column : name or number, optional
        The column of object names, which is not a feature; `read_ids` returns it.
    missing, sep, header
        As in `read_labels`, for text.

    Returns
    -------
    ndarray (memory-mapped from npy), SciPy sparse matrix, or DataFrame for tables

    Raises
    ------
    OSError, ValueError, TypeError, ImportError, MemoryError
        As `read_labels`, and for sparse matrices whose indices do not fit. Values are not checked to be numbers here.
    """
    suffix = paths.file_kind(path, INPUTS)
    opened = open_file(path, suffix, key, sep=sep, header=header, missing=missing, features=True)
    return opened.read(choose_columns(opened.names, columns, exclude, id_column)[0])


def read_graph(path: Path_) -> "sparray | spmatrix":
    """Read the graph of the cells of an h5ad file, ``obsp["connectivities"]``, where `scanpy.pp.neighbors` leaves it.

    Returns
    -------
    SciPy sparse matrix (n_objects, n_objects)

    Raises
    ------
    OSError, ValueError, ImportError, MemoryError
        As `read_labels`, and for files without a graph.
    """
    paths.file_kind(path, ANNOTATED)
    paths.check_readable(path)
    with needs("anndata", "h5ad"), paths.reading(path):
        found = annotated.read_graph(path)
    if found is None:
        raise ValueError(
            f"path {os.fspath(path)!r} has no graph in obsp['connectivities']: run scanpy.pp.neighbors, or name "
            "features by key, such as 'X_pca'."
        )
    check_sparse(found, f"path {os.fspath(path)!r}")
    return found


def names_in(path: Path_, *, key: str | None = None, sep: str | None = None, header: bool | None = None) -> list[Any]:
    """Return the names of a file's columns, numbers where it has none; parameters are those of `read_labels`."""
    return open_file(path, paths.file_kind(path, INPUTS), key, sep=sep, header=header, missing=None).names


def read_ids(
    path: Path_, *, id_column: str | int | None = None, sep: str | None = None, header: bool | None = None
) -> "pd.Index | None":
    """Return the names of a file's objects: the id column, or the row or cell names.

    Returns
    -------
    pandas Index (n_objects,), or None for files without names

    Raises
    ------
    OSError, ValueError, TypeError, ImportError
        As `read_labels`.
    """
    suffix = paths.file_kind(path, INPUTS)
    if id_column is None and suffix in (*ARRAYS, *FOLDERS):
        return read_npz_ids(path) if suffix == ".npz" else None
    opened = open_file(path, suffix, None, sep=sep, header=header, missing=None)
    of_ids = None if id_column is None else choose_columns([*opened.names, ""], id_column=id_column)[1]
    return opened.ids(of_ids)


def check_label_file(path: str | os.PathLike[str], shape: tuple[int, ...]) -> None:
    """Refuse files with more clusterings than objects."""
    checks.check_label_shape(shape, columns_are_clusterings=True)
    n_objects, n_clusterings = shape
    if n_clusterings > n_objects:
        raise ValueError(
            f"labels in {os.fspath(path)!r} are {n_clusterings} clusterings of {n_objects} object(s), as if "
            "transposed: rows are objects and columns are base clusterings, so transpose the file, or say wide=True "
            "(--wide, without --scheduler) if there really are so few objects."
        )

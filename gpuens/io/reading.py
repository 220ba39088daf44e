"""Base clusterings, features and the names of objects, read from files."""

import math
import os
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gpuens.io import annotated, paths
from gpuens.io.columns import (
    Opened,
    TextOptions,
    choose_columns,
    each_column,
    find_present,
    mask_missing,
    positions,
    warn_of_odd_texts,
)
from gpuens.io.content import input_kind
from gpuens.io.forms import choose_form, open_transposed, read_form, refuse_long_table, warn_of_one_hot
from gpuens.io.opening import open_file, read_npz_ids
from gpuens.io.paths import ANNOTATED, ARRAYS, FOLDERS, TABLE_INPUTS, TEXT_INPUTS, Columns, Path_, Words, needs
from gpuens.labels.ensemble import Ensemble
from gpuens.labels.features import check_sparse
from gpuens.labels.object_names import names_of_objects
from gpuens.labels.odd_columns import (
    check_object_names,
    file_source,
    find_id_column_of_features,
    looks_like_ids,
    named_like_ids,
    separate_id_columns,
    warn_of_equal_clusterings,
)
from gpuens.labels.orientation import check_orientation, spelling_of_file
from gpuens.labels.soft_ensemble import refuse_memberships
from gpuens.runtime import checks
from gpuens.runtime.defaults import FORMS

if TYPE_CHECKING:
    import pandas as pd
    from scipy.sparse import sparray, spmatrix


class ColumnFile(NamedTuple):
    """The result of `read_column_file`."""

    columns: dict[Any, Any]  # name or number of a column → array or pandas Series (n_objects,)
    ids: "pd.Index | None"  # names of the objects
    lacks: list[str]  # columns in the options that the file lacks, if the options are those of several files
    form: str = ""  # form of the file, in words, if its columns are not the clusterings


class FeatureFile(NamedTuple):
    """The result of `read_feature_file`."""

    X: Any  # features (n_objects, n_features) as those of `read_features`
    ids: "pd.Index | None"  # names of the objects, or a RangeIndex if the rows have only numbers


class LabelFile(NamedTuple):
    """The result of `read_label_file`."""

    # base clusterings of the objects that have labels: an Ensemble, or, of a long table, a SoftEnsemble or Answers
    ensemble: Any
    ids: "pd.Index | None"  # names of all objects of the file, or a RangeIndex if the rows have only numbers
    labelled: np.ndarray | None  # mask of the objects in the ensemble; None if the ensemble has all objects
    form: str = ""  # form of the file, in words, if its columns are not the clusterings


def read_labels(
    path: Path_,
    *,
    columns: Columns | None = None,
    exclude: Columns | None = None,
    key: str | None = None,
    id_column: str | int | None = None,
    missing: Words | None = None,
    no_missing: Words | None = None,
    drop_unlabelled: bool = False,
    wide: bool = False,
    transpose: bool = False,
    sep: str | None = None,
    header: bool | None = None,
    long: bool = False,
    members: bool = False,
    one_hot: bool = False,
    grid: tuple[int, ...] | None = None,
) -> Ensemble:
    """Read base clusterings from a file.

    Parameters
    ----------
    path : str or path
        The ending determines the kind of file:

        - ``.npy``: an array (n_objects, n_clusterings), or (n_objects,) for a single clustering, read through a memory
          map, column by column.
        - ``.npz``: one such array, or 1-D arrays of one length, each a clustering; otherwise ``key`` chooses an
          array. An array ``ids`` beside a single array, or beside ``labels``, names the objects.
        - ``.csv``, ``.tsv``, or any other ending of a text in UTF-8 or UTF-16, also packed (gz, bz2, xz, zst): a column
          for each clustering, separated by commas, semicolons, tabs, | or blanks. Lines before the table that begin
          with # are comments; the last may name the columns. An unnamed first column of row numbers or names, as pandas
          and R write it, is omitted. Labels are read as text: 01 is not 1. A column with nothing but numbers is
          numeric; in it -1 is missing. Empty fields and NA, <NA>, N/A, #N/A, NaN and nan are missing, with a warning
          that counts these words. Blanks around a field are ignored.
        - ``.parquet``, ``.feather``: a column for each clustering (needs pyarrow).
        - ``.h5ad``: columns of ``obs``, by default those of categories and integers (needs anndata).
        - ``.zarr``: an array of numbers or strings as in ``.npy`` (needs zarr).

        Texts in all kinds of files have the meaning that `Ensemble` describes. No code in a file is run, and links to
        other files are not followed.
    columns : name, number, pattern, or list of them, optional
        The columns to read, in this order; numbers count from 0, and ``"leiden_*"`` is a pattern. By default, all
        columns are read, except two kinds, which are omitted with a warning: a column with a different value for each
        object, like ids; and a column unlike the others, whose name is that of a truth, batch, donor or id, that has
        far more values than the others, or that agrees with none of them. Equal clusterings cause a warning.
    exclude : name, number, pattern, or list of them, optional
        The columns to omit.
    key : str, optional
        The name of the array in an npz file.
    id_column : name or number, optional
        The column of object names, which is not a clustering; `read_label_file` returns it.
    missing : str or list of str, optional
        Words for missing labels, such as ``["?", "unknown"]``; in numeric columns also numbers, such as ``"0"``. Any
        list, even an empty one, turns off the warning about other words that look missing.
    no_missing : str or list of str, optional
        Words of text that name a cluster, though they usually mean a missing label, such as ``["NA"]``.
    drop_unlabelled : bool
        Omit objects without any label instead of refusing them.
    wide : bool
        Each line is an object, even if there are more clusterings than objects or lines look like clusterings;
        otherwise such a file is refused.
    transpose : bool
        Each line is a clustering, such as a draw of R's samplers, and each column is an object. The names of the
        columns are then those of the objects, and ``id_column`` holds the names of the clusterings; ``columns`` and
        ``exclude`` choose clusterings. A first column that counts the lines, such as iterations, is omitted with a
        warning.
    sep : str, optional
        The separator of text fields; by default comma, semicolon, tab, | or blanks, detected from the first lines.
    header : bool, optional
        Whether the first line of text holds names. By default, a line of numbers is data, and any other line holds
        names. Numbers are names too behind an empty field above row names, and, with a warning, if they count the
        columns.
    long : bool
        The table has a line for each label: object, clustering (or annotator), label. These are its three columns in
        this order, or columns called task, object or item; worker, annotator or rater; label, answer or rating; or
        ``columns``, three names in this order. A missing label is like no line; an equal line twice counts once.
    members : bool
        The text has the members of a cluster in each line (of MCL, for example), or a cluster and one of its members
        (of MMseqs2, by its representative); it is the latter if each line has two fields and a first field repeats or
        equals the second.
    one_hot : bool
        The columns are 0 and 1, one for each cluster. The names of a clustering's columns have a common beginning, as
        in run1_1, run1_2; or they are consecutive columns with one 1 in each row. A row of zeros is a missing label.
    grid : tuple of int, optional
        The objects are the cells of a grid in C order, such as the pixels of images (height, width). An array may then
        be a stack of maps, (n_clusterings, height, width) or (height, width, n_clusterings).

    Returns
    -------
    Ensemble (n_objects, n_clusterings)

    Raises
    ------
    OSError, ValueError, TypeError, ImportError
        For missing, unreadable or unknown files, pipes and devices, data stored in other files, codecs that could run
        code, unknown columns and keys, missing packages, text with an ambiguous separator or first line or with lines
        of different lengths, more clusterings than objects, lines that look like clusterings, and labels that
        `Ensemble` refuses.
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
        no_missing=no_missing,
        drop_unlabelled=drop_unlabelled,
        wide=wide,
        transpose=transpose,
        sep=sep,
        header=header,
        long=long,
        members=members,
        one_hot=one_hot,
        grid=grid,
    ).ensemble


class LabelOptions(NamedTuple):
    """The parameters of `read_labels` by which a file is opened and its columns are chosen."""

    columns: Columns | None = None
    exclude: Columns | None = None
    key: str | None = None
    id_column: str | int | None = None
    missing: Words | None = None
    no_missing: Words | None = None
    transpose: bool = False
    sep: str | None = None
    header: bool | None = None
    long: bool = False
    members: bool = False
    one_hot: bool = False
    grid: tuple[int, ...] | None = None
    share_column: str | None = None


def read_label_file(
    path: Path_, *, drop_unlabelled: bool = False, shared_names: bool = False, wide: bool = False, **options: Any
) -> LabelFile:
    """Read base clusterings and the names of the objects from a file.

    The parameters and errors are those of `read_labels`; ``shared_names`` is that of `Ensemble.from_labels`.

    Returns
    -------
    LabelFile
        ``ensemble``, whose index has the names of its objects; ``ids``, a pandas Index (n_objects,) of the id column,
        of the first column if its form is that of ids, or of the row or cell names, a RangeIndex if these only count
        the rows, or None;
        ``labelled``, the mask of the objects in the ensemble if others were dropped, otherwise None.
    """
    how = {"drop_unlabelled": drop_unlabelled, "shared_names": shared_names, "wide": wide}
    return read_opened(path, None, LabelOptions(**options), **how)


def read_opened(
    path: Path_,
    opening: tuple[Opened, LabelOptions] | None,
    options: LabelOptions,
    *,
    drop_unlabelled: bool = False,
    shared_names: bool = False,
    wide: bool = False,
) -> LabelFile:
    """Return the result of `read_label_file` for a file that `open_labels` has opened, or None."""
    table, names, ids, _, form = _read_labels(path, options, opening=opening)
    checks.check_label_shape(table.shape)
    grid, source = options.grid, f"path {os.fspath(path)!r}"
    if grid is not None and table.shape[0] != math.prod(grid):
        raise ValueError(
            f"grid {'x'.join(map(str, grid))} has {math.prod(grid):,} cells, but {source} has {table.shape[0]:,} "
            "objects; name the height and the width of the images."
        )
    clusterings = each_column(table)
    if not (wide or options.transpose or form or grid):
        check_orientation(clusterings, spelling_of_file(path))
    # draws may repeat, and all columns of other forms are meant
    every_column = options.columns is None and not options.transpose and not form
    ensemble, labelled = Ensemble.from_labels(
        table if names is None else clusterings,
        names,
        file_source(path) if names is not None and every_column else None,
        drop_unlabelled=drop_unlabelled,
        shared_names=shared_names,
        wide=True,
    )
    object_names = names_of_objects(ids)
    ensemble.index = object_names if object_names is None or labelled is None else object_names[labelled]
    if every_column:
        warn_of_equal_clusterings(ensemble.codes, np.diff(ensemble.offsets), ensemble.names, source)
    return LabelFile(ensemble, ids, None if labelled is None or labelled.all() else labelled, form)


def read_columns(path: Path_, **options: Any) -> dict[Any, Any]:
    """Read columns of labels as a dict, without encoding the labels; objects without any label are allowed.

    Parameters and errors are those of `read_labels`, except for labels that `Ensemble` refuses.

    Returns
    -------
    dict of name or number: array or pandas Series (n_objects,)
    """
    return read_column_file(path, **options).columns


def read_column_file(
    path: Path_, *, beside: bool = False, join: bool = False, results: bool = False, **options: Any
) -> ColumnFile:
    """Read columns of labels as `read_columns` does, and also the names of the objects.

    If ``beside`` is true, the options describe another file: ``id_column`` and ``exclude`` may name columns that this
    file lacks, and its form is not theirs. With ``join``, they describe several files, each with some of the columns.
    If ``results`` is true, only the labels that gpuens found are read from an h5ad file or a table that contains them.
    """
    if beside:
        options = {name: value for name, value in options.items() if name not in FORMS}
    lacking = ("columns", "exclude", "id_column") if join else ("exclude", "id_column") if beside else ()
    table, names, ids, lacks, form = _read_labels(path, LabelOptions(**options), lacking, results=results)
    if hasattr(table, "iloc"):
        names = list(table.columns)
    columns = each_column(table)
    return ColumnFile(dict(zip(names or range(len(columns)), columns, strict=True)), ids, lacks, form)


class _Labels(NamedTuple):
    """The labels in a file."""

    table: Any  # array or DataFrame (n_objects, n_clusterings)
    names: list[Any] | None  # names of the clusterings
    ids: Any  # names of the objects, or None
    lacks: list[str]  # columns in the options that the file lacks, if these are the options of several files
    form: str  # form of the file, in words, if its columns are not the clusterings


def _read_labels(
    path: Path_,
    options: LabelOptions,
    lacking: Sequence[str] = (),
    *,
    results: bool = False,
    opening: tuple[Opened, LabelOptions] | None = None,
) -> _Labels:
    """Read labels from a file; ``lacking`` are the options that may name columns of other files."""
    suffix, source = input_kind(path), f"path {os.fspath(path)!r}"
    if lacking and suffix not in TEXT_INPUTS:
        options = options._replace(sep=None, header=None, no_missing=None)
    opened, options = open_labels(path, suffix, options) if opening is None else opening
    options, lacks = _options_of_columns(source, options, opened.names, lacking)
    is_table = options.columns is None and not opened.form  # whether some columns may be no clusterings
    if is_table:
        columns, exclude = _choose_among_results(path, suffix, opened, options.exclude, results=results)
        options = options._replace(columns=columns, exclude=exclude)
    places, id_place = choose_columns(
        opened.names, options.columns, options.exclude, _titled(opened, options.id_column)
    )
    table, names = opened.read(places), [opened.names[m] for m in places]
    is_table = is_table and not options.transpose
    if is_table:
        refuse_long_table(path, suffix, opened, None if id_place is None else opened.ids(id_place), table, names)
    refuse_memberships(table, source)
    if suffix not in TEXT_INPUTS:  # the reader of text files has already replaced the words in ``missing``
        table = mask_missing(table, options.missing)
    ids = opened.ids(None) if id_place is None else None
    named = id_place is not None or names_of_objects(ids) is not None
    if is_table:
        clusterings, name_place = separate_id_columns(each_column(table), names, source, named=named)
        id_place = id_place if name_place is None else places[name_place]
        if len(clusterings) < len(names):
            table = table.iloc[:, clusterings] if hasattr(table, "iloc") else table[:, clusterings]
            names = [names[m] for m in clusterings]
        warn_of_one_hot(table, names, source)
    elif not named and not opened.form and not options.transpose:
        id_place = _column_of_names(opened, places, options.exclude)
    if id_place is not None:
        ids = opened.ids(id_place)
        check_object_names(ids, source, opened.first_line)
    warn_of_odd_texts(table, names, options.missing, source, no_missing=options.no_missing)
    unnamed = (options.transpose or suffix in (*ARRAYS, *FOLDERS)) and names == list(range(table.shape[1]))
    return _Labels(table, None if unnamed else names, ids, lacks, opened.form)


def open_labels(path: Path_, suffix: str, options: LabelOptions) -> tuple[Opened, LabelOptions]:
    """Open a file in the form that the options name; return also the options without those that are done."""
    if options.share_column is not None and not options.long:
        raise ValueError(
            f"share_column={options.share_column!r} (--share-column) is for tables with a line for each label; say "
            "long=True (--long), or leave it out."
        )
    text = TextOptions(*(getattr(options, name) for name in TextOptions._fields))
    form = choose_form(options)
    if options.transpose:
        opened = open_transposed(path, suffix, options.key, text, options.id_column)
        return opened, options._replace(id_column=None)
    if form is None:
        return open_file(path, suffix, options.key, text, grid=options.grid), options
    columns = options.columns, options.exclude, options.id_column
    opened = read_form(path, suffix, form, options.key, text, *columns, options.share_column)
    return opened, options._replace(columns=None, exclude=None, id_column=None)


def _options_of_columns(
    source: str, options: LabelOptions, names: list[Any], lacking: Sequence[str]
) -> tuple[LabelOptions, list[str]]:
    """Return the options without the columns that a file lacks, and these columns."""
    lacks: list[str] = []
    for option in lacking:
        columns = _listed(getattr(options, option))
        present = find_present(columns, names)
        if option == "columns" and columns and not present:
            raise ValueError(
                f"{source} has none of the columns {checks.listed(columns)}; it has {checks.listed(names)}."
            )
        lacks += [column for column in columns if column not in present]
        value: Any = next(iter(present), None) if option == "id_column" else present or None
        options = options._replace(**{option: value})
    return options, lacks


def _listed(columns: Any) -> list[str]:
    """Return the argument ``columns``, ``exclude`` or ``id_column`` as a list of texts."""
    if columns is None:
        return []
    return [str(column) for column in ([columns] if isinstance(columns, (str, int)) else columns)]


def _choose_among_results(
    path: Path_, suffix: str, opened: Opened, exclude: Columns | None, *, results: bool
) -> tuple[Any, Any]:
    """Return the columns to read and those to omit in a file to which gpuens may have added results."""
    columns: Any = None
    if suffix in ANNOTATED:
        added = annotated.read_results(path) & set(opened.names)
        if results and added:
            columns = sorted(added)
        else:
            columns = annotated.like_labels(opened.read(list(range(len(opened.names)))), added)
    # "label" is the name that `write_labels` gives to the column of labels in a table
    if results and suffix in TABLE_INPUTS and "label" in opened.names:
        evidence = [name for name in (*annotated.BESIDE, annotated.REST) if name in opened.names]
        exclude = [*_listed(exclude), *evidence] or None
    return columns, exclude


def _titled(opened: Opened, id_column: str | int | None) -> str | int | None:
    """Return the id column, or None if it is an untitled first column, which names the rows of the file already."""
    return None if id_column in (0, "0") and opened.ids(None) is not None else id_column


def _column_of_names(opened: Opened, places: list[int], exclude: Columns | None) -> int | None:
    """Return the position of the column that names the objects among those that are not read; None without one.

    It is the first column of the file, or one that is called like ids.
    """
    clusterings = {*places, *([] if exclude is None else positions(exclude, opened.names, "exclude"))}
    for m, name in enumerate(opened.names):
        if m in clusterings or not (m == 0 or named_like_ids(name)):
            continue
        with suppress(ValueError):  # a column of a kind that cannot be read is no column of names
            if looks_like_ids(opened.ids(m), nearly=m == 0):
                return m
    return None


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
        ``scipy.sparse.save_npz``; otherwise ``key`` chooses an array. From an ``.h5ad`` file, X is read, or the entry
        ``key`` of obsm or layers, such as ``"X_pca"``.
    columns, exclude : name, number, pattern, or list of them, optional
        The features to read, and those to omit.
    key : str, optional
        The name of the array in an npz or h5ad file.
    id_column : name or number, optional
        The column of object names, which is not a feature; `read_ids` returns it. By default, a first column that has a
        different text for each object, or counts the objects, names them; so does a column of different values that is
        called like ids.
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
    return read_feature_file(
        path,
        columns=columns,
        exclude=exclude,
        key=key,
        id_column=id_column,
        missing=missing,
        sep=sep,
        header=header,
    ).X


def read_feature_file(
    path: Path_,
    *,
    columns: Columns | None = None,
    exclude: Columns | None = None,
    key: str | None = None,
    id_column: str | int | None = None,
    missing: Words | None = None,
    sep: str | None = None,
    header: bool | None = None,
) -> FeatureFile:
    """Read features and the names of the objects from a file; parameters and errors are those of `read_features`."""
    suffix = input_kind(path)
    opened = open_file(path, suffix, key, TextOptions(sep, header, missing), features=True)
    places, of_ids = choose_columns(opened.names, columns, exclude, _titled(opened, id_column))
    X, ids = opened.read(places), opened.ids(of_ids)
    if of_ids is None and names_of_objects(ids) is None and hasattr(X, "columns"):
        place = None if columns is not None else find_id_column_of_features(X)
        of_ids = _column_of_names(opened, places, exclude) if place is None else places[place]
        if place is not None:
            X = X.iloc[:, np.arange(X.shape[1]) != place]
    if of_ids is not None:
        ids = opened.ids(of_ids)
        check_object_names(ids, f"path {os.fspath(path)!r}", opened.first_line)
    return FeatureFile(X, ids)


def read_graph(path: Path_, *, key: str = annotated.GRAPH) -> "sparray | spmatrix":
    """Read the graph of the cells from an h5ad file, by default that of `scanpy.pp.neighbors`.

    Parameters
    ----------
    path : str or path
        An h5ad file.
    key : str
        The entry of ``obsp`` with the graph, such as ``"spatial_connectivities"``.

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
        graph = annotated.read_graph(path, key)
    if graph is None:
        instead = "run scanpy.pp.neighbors, or name features by key, such as 'X_pca'"
        raise ValueError(
            f"path {os.fspath(path)!r} has no graph in obsp[{key!r}]; "
            f"{instead if key == annotated.GRAPH else 'name another entry, or a file with a dot in its name'}."
        )
    check_sparse(graph, f"path {os.fspath(path)!r}")
    return graph


def names_in(path: Path_, *, key: str | None = None, sep: str | None = None, header: bool | None = None) -> list[Any]:
    """Return the names of the columns of a file, or their numbers if they have no names.

    The parameters are those of `read_labels`.
    """
    return open_file(path, input_kind(path), key, TextOptions(sep, header)).names


def read_ids(
    path: Path_, *, id_column: str | int | None = None, sep: str | None = None, header: bool | None = None
) -> "pd.Index | None":
    """Read the names of the objects in a file: the id column, if given, or the names of the rows or cells.

    Without both, a first column that has a different text or whole number for each object names them.

    Returns
    -------
    pandas Index (n_objects,), a RangeIndex if the rows have only numbers, or None for files without names

    Raises
    ------
    OSError, ValueError, TypeError, ImportError
        As `read_labels`.
    """
    suffix = input_kind(path)
    if id_column is None and suffix in (*ARRAYS, *FOLDERS):
        return read_npz_ids(path) if suffix == ".npz" else None
    opened = open_file(path, suffix, None, TextOptions(sep, header))
    if (titled := _titled(opened, id_column)) is not None:
        return opened.ids(choose_columns([*opened.names, ""], id_column=titled)[1])
    ids = opened.ids(None)
    of_ids = _column_of_names(opened, [], None) if names_of_objects(ids) is None and len(opened.names) > 1 else None
    return ids if of_ids is None else opened.ids(of_ids)

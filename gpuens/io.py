"""Label and feature files: npy, npz, csv, tsv, parquet, h5ad and zarr, told by their ending.

The claimed size of a file is compared with the memory budget before the file is read.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import IO, Any, NamedTuple

import numpy as np

from gpuens import annotated, checks, device
from gpuens.checks import reading
from gpuens.columns import Opened, chosen, left_out, telling, warn_of_strangers, without
from gpuens.device import to_host
from gpuens.ensemble import Ensemble
from gpuens.writing import replacing, replacing_folder

TEXTS = (".csv", ".tsv", ".csv.gz", ".tsv.gz")
TABLES = (*TEXTS, ".parquet")
ARRAYS = (".npy", ".npz")
ANNOTATED = (".h5ad",)
FOLDERS = (".zarr",)
INPUTS = (*ARRAYS, *TABLES, *ANNOTATED)
IN_CHUNKS = (".npy", ".zarr", ".parquet")  # read by `gpuens.distributed`
OUTPUTS = (*ARRAYS, *TABLES, *ANNOTATED, *FOLDERS)

Path_ = str | os.PathLike
Columns = str | int | Sequence[str | int]
Words = str | Sequence[str]


class LabelFile(NamedTuple):
    """The result of `read_label_file`."""

    ensemble: Ensemble  # of the objects that have labels
    ids: Any  # names of all objects of the file, a pandas Index or None
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
        - ``.csv``, ``.tsv``, also with ``.gz``, in UTF-8 or UTF-16: a column for each clustering. An unnamed first
          column of row numbers or names, as pandas and R write it, is omitted. Labels are read as text: 01 is not 1. A
          column with nothing but numbers is numeric; in it -1 and nan are missing. Otherwise only empty fields are
          missing: a cluster may be called NA. Blanks around a field are ignored.
        - ``.parquet``: a column for each clustering (needs pyarrow).
        - ``.h5ad``: columns of ``obs``, by default those of categories and integers (needs anndata).
    columns : name, number, pattern, or list of them, optional
        The columns to read, in this order; numbers count from 0, and a pattern is such as ``"leiden_*"``. By default
        all, but a column with a different value for each object, as ids have, is omitted with a warning. Columns unlike
        the others cause a warning, too (`gpuens.columns.warn_of_strangers`).
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
    sep : str, optional
        The separator of text fields; by default comma, semicolon, tab or |, detected from the first lines.
    header : bool, optional
        Whether the first line of text holds names; by default, unless it holds only numbers.

    Returns
    -------
    Ensemble (n_objects, n_clusterings)

    Raises
    ------
    OSError, ValueError, TypeError, ImportError
        For missing, unreadable or unknown files, unknown columns and keys, missing packages, text with an ambiguous
        separator or first line or with lines of different lengths, more clusterings than objects, and labels that
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
        drop_unlabelled=drop_unlabelled,
        sep=sep,
        header=header,
    ).ensemble


def read_label_file(path: Path_, *, drop_unlabelled: bool = False, **options: Any) -> LabelFile:
    """Read base clusterings and the names of the objects; parameters and errors are those of `read_labels`.

    Returns
    -------
    LabelFile
        ``ensemble``; ``ids``, a pandas Index (n_objects,) with the id column, else the row or cell names, else None;
        ``labelled``, the mask of the objects in the ensemble if others were dropped, else None.
    """
    found, names, ids = _read_labels(path, **options)
    if names is None:  # an array
        check_label_file(path, found.shape)
        clusterings: Any = found
    else:
        check_label_file(path, (len(found), len(names)))
        clusterings = [found.iloc[:, m] for m in range(len(names))] if hasattr(found, "iloc") else list(found.T)
    if drop_unlabelled:
        ensemble, labelled = Ensemble.of_labelled(clusterings, names=names)
    else:
        ensemble, labelled = Ensemble(clusterings, names=names), None
    if options.get("columns") is None and names is not None:
        warn_of_strangers(ensemble.codes, np.diff(ensemble.offsets), ensemble.names, f"path {os.fspath(path)!r}")
    return LabelFile(ensemble, ids, None if labelled is None or labelled.all() else labelled)


def read_columns(path: Path_, **options: Any) -> dict[Any, Any]:
    """Read label columns by name without encoding them: a single one may have unlabelled objects.

    Parameters and errors are those of `read_labels`, except for labels that `Ensemble` refuses.

    Returns
    -------
    dict of name or number: array or pandas Series (n_objects,)
    """
    found, names, _ = _read_labels(path, **options)
    if hasattr(found, "iloc"):
        return {name: found.iloc[:, m] for m, name in enumerate(found.columns)}
    return {name: found[:, m] for m, name in enumerate(names or range(found.shape[1]))}


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
) -> tuple[Any, list | None, Any]:
    """Return the labels in a file (array or DataFrame), the column names or None, and the ids or None."""
    suffix = checks.file_kind(path, INPUTS)
    opened = _open(path, suffix, key, sep=sep, header=header, missing=missing)
    everything = columns is None
    if everything and suffix in ANNOTATED:
        columns = annotated.like_labels(opened.read(list(range(len(opened.names)))))
    wanted, of_ids = chosen(opened.names, columns, exclude, id_column)
    ids = opened.ids(of_ids)
    found = opened.read(wanted)
    names = [opened.names[m] for m in wanted]
    if suffix not in TEXTS:  # which handle missing words themselves
        found = without(found, missing)
    if everything and len(names) > 1:
        kept = left_out(found, names, f"path {os.fspath(path)!r}")
        if len(kept) < len(names):
            found = found.iloc[:, kept] if hasattr(found, "iloc") else found[:, kept]
            names = [names[m] for m in kept]
    return found, None if suffix in ARRAYS and names == list(range(found.shape[1])) else names, ids


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
        As `read_labels`. Values are not checked to be numbers here.
    """
    suffix = checks.file_kind(path, INPUTS)
    opened = _open(path, suffix, key, sep=sep, header=header, missing=missing, features=True)
    return opened.read(chosen(opened.names, columns, exclude, id_column)[0])


def read_ids(
    path: Path_, *, id_column: str | int | None = None, sep: str | None = None, header: bool | None = None
) -> Any:
    """Return the names of a file's objects: the id column, or the row or cell names.

    Returns
    -------
    pandas Index (n_objects,), or None for files without names

    Raises
    ------
    OSError, ValueError, TypeError, ImportError
        As `read_labels`.
    """
    suffix = checks.file_kind(path, INPUTS)
    if id_column is None and suffix in ARRAYS:
        return None
    opened = _open(path, suffix, None, sep=sep, header=header, missing=None)
    of_ids = None if id_column is None else chosen([*opened.names, ""], id_column=id_column)[1]
    return opened.ids(of_ids)


def write_labels(path: Path_, labels: Any, *, names: Sequence | None = None, ids: Any = None) -> None:
    """Write one labelling, or the base clusterings of an ensemble, to a file.

    Parameters
    ----------
    path : str or path
        The ending says what is written: ``.npy``, ``.npz`` (an array ``labels``), ``.csv``, ``.tsv``, both also with
        ``.gz``, ``.parquet``, ``.h5ad`` (an AnnData without variables: ``obs`` holds the labels as categories) or
        ``.zarr`` (an array). An existing file is replaced when the new one is complete.
    labels : array (n_objects,) or (n_objects, n_clusterings), or Ensemble
        Integers or strings; for an ensemble the cluster numbers, with -1 for missing. In csv and tsv, a string that a
        spreadsheet would run as a formula (it begins with = + - or @) is escaped by ', which `read_labels` removes.
    names : sequence of str, optional
        Column names of a table; by default "label" for one labelling, the ensemble's own names unless they are numbers,
        else "clustering_0", ….
    ids : sequence or pandas Index (n_objects,), optional
        The names of the objects: the first column of a table, titled by the Index (row names if it has no name), or the
        cell names. Other kinds of files do not hold them.

    Raises
    ------
    OSError, ValueError, TypeError, ImportError
        For unknown kinds of files, unwritable directories, labels that are not labels or would not be read back from
        text, and without pyarrow, anndata or zarr.

    Examples
    --------
    >>> import gpuens as ge, pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "consensus.csv")
    ...     ge.io.write_labels(path, [0, 0, 1])
    ...     path.read_text()
    'label\\n0\\n0\\n1\\n'
    """
    suffix = checks.file_kind(path, OUTPUTS)
    if isinstance(labels, Ensemble):
        if names is None and all(isinstance(name, str) for name in labels.names):
            names = labels.names
        # the smallest signed type that holds every code, and -1
        labels = labels.to_array().astype(np.min_scalar_type(-int(labels.codes.max(initial=0)) - 1))
    else:
        labels = to_host(labels)
    if labels.ndim not in (1, 2) or 0 in labels.shape:
        raise ValueError(f"labels must be (n_objects,) or (n_objects, n_clusterings), but have shape {labels.shape}.")
    if labels.dtype.kind not in "iubU":
        raise TypeError(f"labels must be integers or strings to be written, but have dtype {labels.dtype}.")
    matrix = labels.reshape(len(labels), -1)
    if names is None:
        names = ["label"] if labels.ndim == 1 else [f"clustering_{m}" for m in range(matrix.shape[1])]
    names = [str(name) for name in checks.check_names(names, matrix.shape[1])]
    if ids is not None and len(ids) != len(matrix):
        raise ValueError(f"ids must be one for each object, but {len(ids)} were given for {len(matrix)}.")
    packages_for(suffix)
    if suffix in FOLDERS:
        with replacing_folder(path) as folder:
            import zarr

            zarr.save_array(folder, labels)
        return
    with replacing(path) as file:
        if suffix == ".npy":
            np.save(file, labels, allow_pickle=False)
        elif suffix == ".npz":
            np.savez(file, labels=labels)
        else:
            _write_table(file, suffix, matrix, names, ids)


def packages_for(suffix: str) -> None:
    """Refuse a kind of output whose package is not installed, before the work."""
    package = {".parquet": "pyarrow", ".h5ad": "anndata", ".zarr": "zarr"}.get(suffix)
    if package is not None:
        with needs(package, suffix[1:]):
            import_module(package)


def check_label_file(path: str | os.PathLike, shape: tuple[int, ...]) -> None:
    """Refuse files with more clusterings than objects."""
    checks.check_label_shape(shape, columns_are_clusterings=True)
    n_objects, n_clusterings = shape
    if n_clusterings > n_objects:
        raise ValueError(
            f"labels in {os.fspath(path)!r} are {n_clusterings} clusterings of {n_objects} object(s), as if "
            "transposed: rows are objects and columns are base clusterings, so transpose the file (or pass "
            "a list of columns in Python, if there really are so few objects)."
        )


# --- reading ----------------------------------------------------------------------------------------------------------


def _open(
    path: Path_,
    suffix: str,
    key: str | None,
    *,
    sep: str | None,
    header: bool | None,
    missing: Words | None,
    features: bool = False,
) -> Opened:
    """Open a file and find its columns."""
    checks.check_readable(path)
    if key is not None and suffix != ".npz" and not (features and suffix == ".h5ad"):
        raise ValueError(f"key={key!r} names an array in an npz file, and this is a {suffix} file; leave it out.")
    for name, value in (("sep", sep), ("header", header)):
        if value is not None and suffix not in TEXTS:
            raise ValueError(f"{name}={value!r} is about csv and tsv files, and this is a {suffix} file; leave it out.")
    if suffix in TEXTS:
        from gpuens.tables import open_text

        own = "\t" if suffix.startswith(".tsv") else ","
        return open_text(path, own, sep=sep, header=header, missing=missing, features=features)
    if suffix == ".parquet":
        return _open_parquet(path)
    if suffix == ".npz":
        return _open_npz(path, key, features=features)
    if suffix == ".npy":
        from gpuens.arrays import open_npy

        with reading(path):
            array = open_npy(path)
        return _of_array(array, features)
    with needs("anndata", "h5ad"), reading(path):
        found = annotated.read_features(path, key) if features else annotated.read_obs(path)
    if features:
        return _of_array(found, features)
    return _opened(list(found.columns), lambda positions: found.iloc[:, positions], lambda: found.index)


def _opened(names: list, get: Callable, row_names: Callable | None = None) -> Opened:
    """Return an opened file; ``get`` reads columns by position, ``row_names`` their ids."""

    def ids(position: int | None) -> Any:
        import pandas as pd

        if position is None:
            return None if row_names is None else telling(row_names())
        found = get([position])
        values = found.iloc[:, 0] if hasattr(found, "iloc") else found[:, 0]
        return pd.Index(np.asarray(values), name=str(names[position]))

    return Opened(names, get, ids)


def _of_array(array: Any, features: bool) -> Opened:
    """Return an array, a sparse matrix or a DataFrame as an opened file."""
    if array.ndim == 1:
        array = array.reshape(-1, 1)
    if features:
        checks.check_feature_shape(tuple(array.shape))
    else:
        checks.check_label_shape(array.shape, columns_are_clusterings=True)
        n_objects, n_clusterings = array.shape
        needed = n_objects * (n_clusterings + 16)  # codes of one byte, and one column of labels in work
        checks.check_memory(needed, device.memory_budget(), f"labels of shape {array.shape}", "take fewer objects")
    names = list(getattr(array, "columns", range(array.shape[1])))

    def get(positions: list[int]) -> Any:
        if positions == list(range(len(names))):
            return array  # still a memory map
        return array.iloc[:, positions] if hasattr(array, "iloc") else array[:, positions]

    return _opened(names, get)


def _open_npz(path: Path_, key: str | None, *, features: bool) -> Opened:
    from gpuens.arrays import Archive

    with reading(path), Archive(path) as archive:
        headers = {name: archive.header(name) for name in archive.names}
    stored = list(headers)
    if features and key is None:
        if {"format", "shape", "data"} <= set(stored):
            return _of_array(_sparse(path, sum(found.n_bytes for found in headers.values())), features)
        key = "X" if "X" in stored else None
    if key is None and len(stored) == 1:
        key = stored[0]
    if key in stored:
        with reading(path), Archive(path) as archive:
            array = archive.read(key)
        return _of_array(array, features)
    if key is not None:
        raise ValueError(f"key={key!r} is not in this npz file; it has {checks.listed(stored)}.")
    if not stored:
        raise ValueError("path names an npz file without any array in it; write the file anew.")
    shapes = {found.shape for found in headers.values()}
    if features or len(shapes) > 1 or len(shapes.pop()) != 1:  # else each is a clustering
        raise ValueError(f"key is needed to choose an array of this npz file; it has {checks.listed(stored)}.")

    def get(positions: list[int]) -> Any:
        import pandas as pd

        with reading(path), Archive(path) as archive:
            return pd.DataFrame({stored[m]: archive.read(stored[m]) for m in positions})

    return _opened(stored, get)


def _sparse(path: Path_, n_bytes: int) -> Any:
    import scipy.sparse

    checks.check_memory(
        n_bytes, device.memory_budget(), f"the sparse matrix in {os.fspath(path)!r}", "take fewer objects"
    )
    with reading(path):
        return scipy.sparse.load_npz(path)


def _open_parquet(path: Path_) -> Opened:
    import pandas as pd

    with needs("pyarrow", "parquet"):
        from pyarrow import parquet

    with reading(path), parquet.ParquetFile(path) as file:
        n_rows, schema = file.metadata.num_rows, file.schema_arrow
    index = [name for name in (schema.pandas_metadata or {}).get("index_columns", []) if isinstance(name, str)]
    names = [name for name in schema.names if name not in index]

    def get(positions: list[int]) -> Any:
        needed = 8 * n_rows * len(positions)
        checks.check_memory(needed, device.memory_budget(), f"reading {os.fspath(path)!r}", "read fewer of its columns")
        with reading(path):
            found = pd.read_parquet(path, columns=[names[m] for m in positions])
        return found.set_axis(found.columns.map(str), axis=1)[[names[m] for m in positions]]

    def row_names() -> Any:
        found = get([0]).index
        return found.rename(None if str(found.name).startswith("__index") else found.name)

    return _opened(names, get, row_names if index else None)


@contextmanager
def needs(package: str, kind: str, install: str = "gpuens[io]") -> Iterator[None]:
    """Refuse a kind of file whose package is not installed."""
    try:
        yield
    except ImportError as error:
        raise ImportError(
            f"path: {kind} files need {package}, which is not installed: pip install '{install}'."
        ) from error


# --- writing ----------------------------------------------------------------------------------------------------------


def _write_table(file: IO[bytes], suffix: str, matrix: np.ndarray, names: list[str], ids: Any) -> None:
    import gzip

    import pandas as pd

    frame = pd.DataFrame(matrix, columns=pd.Index(names))
    if suffix in ANNOTATED:
        annotated.write_obs(file, frame, ids)
        return
    if ids is not None:
        frame = frame.set_axis(pd.Index(ids), axis=0)
    if suffix == ".parquet":
        (frame if ids is None or frame.index.name is None else frame.reset_index()).to_parquet(file)
        return
    from gpuens.tables import as_text

    options: dict[str, Any] = {
        "sep": "\t" if suffix.startswith(".tsv") else ",",
        "index": ids is not None,
        "lineterminator": "\n",
        "mode": "wb",
    }
    frame = as_text(frame)
    if suffix.endswith(".gz"):
        with gzip.GzipFile("", "wb", 6, file, mtime=0) as packed:  # same labels, same bytes
            frame.to_csv(packed, **options)
    else:
        frame.to_csv(file, **options)

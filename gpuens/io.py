"""Label files and feature files: npy, npz, csv, tsv, parquet and h5ad, by the ending of their name."""

import os
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import IO, Any

import numpy as np

from gpuens import validation
from gpuens.device import to_host
from gpuens.ensemble import Ensemble
from gpuens.writing import replacing

TABLES = (".csv", ".tsv", ".csv.gz", ".tsv.gz", ".parquet")
ARRAYS = (".npy", ".npz")
ANNOTATED = (".h5ad",)
IN_CHUNKS = (".npy", ".zarr", ".parquet")  # that `gpuens.distributed` reads

Path_ = str | os.PathLike
Columns = str | int | Sequence[str | int]


def read_labels(path: Path_, *, columns: Columns | None = None, key: str | None = None) -> Ensemble:
    """Read base clusterings from a file.

    Parameters
    ----------
    path : str or path
        The ending of its name says what kind of file it is:

        - ``.npy``: an array (n_objects, n_clusterings), or (n_objects,) for a single clustering, read through a memory
          map, column by column.
        - ``.npz``: one such array, or 1-D arrays of one length, each a clustering; else ``key`` says which array.
        - ``.csv``, ``.tsv``, also with ``.gz``: a column for each clustering. The first row holds names unless all of
          it are numbers. Empty fields are missing labels. An unnamed first column that numbers or names the rows, as
          pandas writes it, is left out.
        - ``.parquet``: a column for each clustering (needs pyarrow).
        - ``.h5ad``: columns of ``obs``; those of categories and integers unless ``columns`` says which (needs anndata).
    columns : name, number, or list of them, optional
        Which columns to read, in this order; numbers count from 0.
    key : str, optional
        The name of the array in an npz file.

    Returns
    -------
    Ensemble (n_objects, n_clusterings)

    Raises
    ------
    OSError, ValueError, TypeError, ImportError
        In one sentence, for files that are not there, cannot be read or are of an unknown kind, for unknown columns and
        keys, where a package is missing, and for labels that `Ensemble` refuses.

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
    found, names = _read_labels(path, columns, key)
    return Ensemble(found, names=names)


def read_columns(path: Path_, *, columns: Columns | None = None, key: str | None = None) -> dict[Any, Any]:
    """Read label columns as they are, by name: a single one may then leave objects without a label.

    Parameters and errors are those of `read_labels`, but for what `Ensemble` refuses.

    Returns
    -------
    dict of name or number: array or pandas Series (n_objects,)
    """
    found, names = _read_labels(path, columns, key)
    if hasattr(found, "iloc"):
        return {name: found.iloc[:, m] for m, name in enumerate(found.columns)}
    return {name: found[:, m] for m, name in enumerate(names or range(found.shape[1]))}


def _read_labels(path: Path_, columns: Columns | None, key: str | None) -> tuple[Any, list | None]:
    """Return the labels in a file as an array or a DataFrame, and the names of the columns that were chosen."""
    found = _read(path, ARRAYS + TABLES + ANNOTATED, key)
    if columns is None and str(path).lower().endswith(ANNOTATED):
        columns = _like_labels(found)
    return (found, None) if columns is None else _selected(found, columns)


def read_features(path: Path_, *, columns: Columns | None = None, key: str | None = None) -> Any:
    """Read features (n_objects, n_features) from a file.

    Parameters
    ----------
    path : str or path
        As in `read_labels`, but for ``.h5ad``. An ``.npz`` file holds one array, or one called ``X`` beside others, or
        what ``scipy.sparse.save_npz`` writes; else ``key`` says which array.
    columns : name, number, or list of them, optional
        Which features to read.
    key : str, optional
        The name of the array in an npz file.

    Returns
    -------
    ndarray (memory-mapped from npy), SciPy sparse matrix, or DataFrame for tables

    Raises
    ------
    OSError, ValueError, TypeError, ImportError
        As `read_labels`. Whether the features are numbers is for those to check who use them.
    """
    found = _read(path, ARRAYS + TABLES, key, features=True)
    return found if columns is None else _selected(found, columns)[0]


def write_labels(path: Path_, labels: Any, *, names: Sequence | None = None) -> None:
    """Write one labelling, or the base clusterings of an ensemble, to a file.

    Parameters
    ----------
    path : str or path
        The ending of its name says what is written: ``.npy``, ``.npz`` (an array ``labels``), ``.csv``, ``.tsv``, both
        also with ``.gz``, or ``.parquet``. A file of that name is replaced once the new one is complete.
    labels : array (n_objects,) or (n_objects, n_clusterings), or Ensemble
        Integers or strings. Of an ensemble the cluster numbers are written, with -1 for missing.
    names : sequence of str, optional
        The names of the columns of a table: for one labelling "label", for an ensemble its own names unless they are
        numbers, else "clustering_0", ….

    Raises
    ------
    OSError, ValueError, TypeError, ImportError
        In one sentence, for unknown kinds of files, directories that cannot be written to, labels that are none, and
        where pyarrow is missing.

    Examples
    --------
    >>> import gpuens as ge, pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "consensus.csv")
    ...     ge.io.write_labels(path, [0, 0, 1])
    ...     path.read_text()
    'label\\n0\\n0\\n1\\n'
    """
    suffix = validation.file_kind(path, ARRAYS + TABLES)
    if isinstance(labels, Ensemble):
        if names is None and all(isinstance(name, str) for name in labels.names):
            names = labels.names
        # the smallest signed type that holds every code, and -1
        labels = labels.to_array().astype(np.min_scalar_type(-int(labels.codes.max(initial=0)) - 1))
    else:
        labels = to_host(labels)
    validation.writable_labels(labels)
    matrix = labels.reshape(len(labels), -1)
    if names is None:
        names = ["label"] if labels.ndim == 1 else [f"clustering_{m}" for m in range(matrix.shape[1])]
    names = [str(name) for name in validation.clustering_names(names, matrix.shape[1])]
    if suffix == ".parquet":
        _parquet()
    with replacing(path) as file:
        if suffix == ".npy":
            np.save(file, labels, allow_pickle=False)
        elif suffix == ".npz":
            np.savez(file, labels=labels)
        else:
            _write_table(file, suffix, matrix, names)


# --- reading ----------------------------------------------------------------------------------------------------------


def _read(path: Path_, kinds: tuple[str, ...], key: str | None, *, features: bool = False) -> Any:
    """Return what a file holds: an array with at least two dimensions, a sparse matrix or a DataFrame."""
    suffix = validation.file_kind(path, kinds)
    validation.readable_path(path)
    validation.key_fits(key, suffix)
    if suffix == ".npy":
        with reading(path):
            return _as_columns(np.lib.format.open_memmap(path, mode="r"))
    if suffix == ".npz":
        return _read_npz(path, key, features=features)
    if suffix == ".parquet":
        _parquet()
        import pandas as pd

        with reading(path):
            return pd.read_parquet(path)
    if suffix == ".h5ad":
        return _read_obs(path)
    return _read_text(path, "\t" if suffix.startswith(".tsv") else ",")


@contextmanager
def reading(path: Path_) -> Iterator[None]:
    """Turn what goes wrong in a reader into one sentence."""
    # what NumPy, pandas, pyarrow and h5py raise for damaged files
    try:
        yield
    except (OSError, ValueError, EOFError, KeyError, TypeError, zipfile.BadZipFile, zlib.error) as error:
        raise validation.unreadable(path, error) from error


def _as_columns(array: np.ndarray) -> np.ndarray:
    return array.reshape(-1, 1) if array.ndim == 1 else array


def _read_npz(path: Path_, key: str | None, *, features: bool) -> Any:
    import pandas as pd

    validation.is_npz(path, zipfile.is_zipfile(path))
    with reading(path), np.load(path, allow_pickle=False) as archive:
        stored = list(archive.files)
        if features and key is None and {"format", "shape", "data"} <= set(stored):
            import scipy.sparse

            return scipy.sparse.load_npz(path)
        if features and key is None and "X" in stored:
            key = "X"
        if key is None and len(stored) == 1:
            key = stored[0]
        if key in stored:
            return _as_columns(archive[key])
        arrays = {} if features or key is not None else {name: archive[name] for name in stored}
    validation.npz_columns(key, stored, [array.shape for array in arrays.values()])
    return pd.DataFrame(arrays)


def _read_text(path: Path_, separator: str) -> Any:
    import pandas as pd

    options: dict[str, Any] = {
        "sep": separator,
        "header": None,
        "skip_blank_lines": False,  # a blank line is an object without labels: to skip it would shift all that follow
        "skipinitialspace": True,
        "float_precision": "round_trip",  # the features that were written, not nearly those
    }
    with reading(path):
        first = pd.read_csv(path, nrows=1, dtype=str, keep_default_na=False, **options).iloc[0].tolist()
        names_first = not all(_is_number(cell) for cell in first)
        frame = pd.read_csv(path, skiprows=int(names_first), low_memory=False, **options)
        if names_first:
            frame.columns = pd.Index(first)
    if names_first and first[0] == "" and len(first) > 1:
        return frame.iloc[:, 1:]
    if not names_first and _is_numbered(frame):
        return frame.iloc[1:, 1:].set_axis(range(frame.shape[1] - 1), axis=1)
    return frame


def _is_number(cell: str) -> bool:
    """Tell whether a cell can belong to a row of numbers, some of them missing."""
    if cell.strip().lower() in ("", "na", "n/a", "<na>", "none", "null"):
        return True
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _is_numbered(frame: Any) -> bool:
    """Tell whether the first row and column only count the others, as pandas writes them where nothing has a name."""
    import pandas as pd

    n_rows, n_columns = frame.shape
    if n_rows < 2 or n_columns < 2 or not pd.isna(frame.iat[0, 0]):
        return False
    across = pd.to_numeric(frame.iloc[0, 1:], errors="coerce")
    down = pd.to_numeric(frame.iloc[1:, 0], errors="coerce")
    return bool((across == np.arange(n_columns - 1)).all() and (down == np.arange(n_rows - 1)).all())


def _read_obs(path: Path_) -> Any:
    """Read the annotations of the cells of an h5ad file, without the expression matrix."""
    try:
        import h5py
        from anndata.io import read_elem
    except ImportError as error:
        raise validation.package_missing("h5ad", "anndata") from error
    with reading(path), h5py.File(path, "r") as file:
        return read_elem(file["obs"])


def _like_labels(frame: Any) -> list[int]:
    """Return which columns of a DataFrame hold categories or integers."""
    import pandas as pd

    kinds = [isinstance(dtype, pd.CategoricalDtype) or pd.api.types.is_integer_dtype(dtype) for dtype in frame.dtypes]
    validation.some_like_labels(any(kinds), list(frame.columns))
    return [m for m, like in enumerate(kinds) if like]


def _selected(found: Any, columns: Columns) -> tuple[Any, list]:
    """Return some columns of an array or a DataFrame, and their names."""
    names = list(found.columns) if hasattr(found, "columns") else list(range(found.shape[1]))
    chosen = validation.chosen_columns(columns, names)
    labels = found.iloc[:, chosen] if hasattr(found, "iloc") else found[:, chosen]
    return labels, [names[m] for m in chosen]


def _parquet() -> None:
    try:
        import pyarrow  # noqa: F401
    except ImportError as error:
        raise validation.package_missing("parquet", "pyarrow") from error


# --- writing ----------------------------------------------------------------------------------------------------------


def _write_table(file: IO[bytes], suffix: str, matrix: np.ndarray, names: list[str]) -> None:
    import gzip

    import pandas as pd

    frame = pd.DataFrame(matrix, columns=pd.Index(names))
    if suffix == ".parquet":
        frame.to_parquet(file, index=False)
        return
    separator = "\t" if suffix.startswith(".tsv") else ","
    if suffix.endswith(".gz"):
        with gzip.GzipFile("", "wb", 6, file, mtime=0) as packed:  # same labels, same bytes
            frame.to_csv(packed, sep=separator, index=False, lineterminator="\n", mode="wb")
    else:
        frame.to_csv(file, sep=separator, index=False, lineterminator="\n", mode="wb")

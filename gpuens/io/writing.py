"""Writing of labels to files."""

from collections.abc import Sequence
from typing import IO, Any

import numpy as np

from gpuens.io import annotated, paths
from gpuens.io.atomic import replacing, replacing_zarr
from gpuens.io.formulas import as_text
from gpuens.io.paths import ANNOTATED, FOLDERS, IDS, OUTPUTS, TABLES, WITH_NUMBERS, Path_, packages_for
from gpuens.labels.ensemble import Ensemble
from gpuens.labels.frames import as_pandas
from gpuens.labels.object_names import index_of_names, names_of_objects
from gpuens.runtime import checks
from gpuens.runtime.device import kind_of, to_host


def write_labels(
    path: Path_,
    labels: Any,
    *,
    names: Sequence[Any] | None = None,
    ids: Any = None,
    beside: Any = None,
    values: bool = False,
) -> None:
    """Write one labelling, or the base clusterings of an ensemble, to a file.

    Parameters
    ----------
    path : str or path
        The ending determines the kind of file: ``.npy``, ``.npz`` (an array ``labels``, and ``ids``), ``.csv`` or
        ``.tsv`` (also with ``.gz``), ``.parquet``, ``.h5ad`` (an AnnData without variables: ``obs`` holds the labels as
        categories) or ``.zarr`` (an array). An existing file is replaced when the new one is complete.
    labels : array (n_objects,) or (n_objects, n_clusterings), or Ensemble
        Integers or strings; for an ensemble the cluster numbers, with -1 for missing. In csv and tsv, a string that a
        spreadsheet would run as a formula (it begins with = + - or @) is escaped by ', which `read_labels` removes.
    names : sequence of str, optional
        Column names of a table; by default "label" for one labelling, the ensemble's own names unless they are numbers,
        else "clustering_0", ….
    ids : sequence or pandas Index (n_objects,), optional
        The names of the objects: the first column of a table, titled by the Index (row names if it has no name), the
        cell names, or an array ``ids`` of an npz file, as texts unless they are numbers. npy and zarr do not hold them.
        A RangeIndex without a name, which only counts the objects, is not written.
    beside : dict of str to array (n_objects,) or (n_objects, n), optional
        Real numbers for each object, by name: further columns of a table (n of them are "name_0", "name_1", …), or
        arrays of an npz file. Other kinds of files are refused.
    values : bool
        For an ensemble in a table or h5ad file: write the label values, with missing labels empty, in place of the
        cluster numbers.

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
    suffix = paths.file_kind(path, OUTPUTS)
    if isinstance(labels, Ensemble) and names is None and all(isinstance(name, str) for name in labels.names):
        names = labels.names
    table: Any = _labels_as_values(labels) if values and suffix in (*TABLES, *ANNOTATED) else _labels_as_numbers(labels)
    if names is None:
        names = ["label"] if table.ndim == 1 else [f"clustering_{m}" for m in range(table.shape[1])]
    matrix = table.reshape(len(table), -1) if table.ndim == 1 else table
    names = [str(name) for name in checks.check_names(names, matrix.shape[1])]
    if kind_of(ids) == "cuda" or hasattr(ids, "__dlpack__"):
        ids = to_host(ids)
    if ids is not None and len(ids) != len(matrix):
        raise ValueError(f"ids must be one for each object, but {len(ids)} were given for {len(matrix)}.")
    ids = names_of_objects(None if ids is None else _index_of_ids(ids))
    beside = {str(name): to_host(values) for name, values in (beside or {}).items()}
    if beside:
        paths.file_kind(path, WITH_NUMBERS)
    packages_for(suffix)
    if suffix in FOLDERS:
        with replacing_zarr(path) as folder:
            import zarr

            zarr.save_array(folder, table)
        return
    with replacing(path) as file:
        if suffix == ".npy":
            np.save(_Stream(file), table, allow_pickle=False)
        elif suffix == ".npz":
            named: dict[str, Any] = {} if ids is None else {IDS: _as_plain_array(ids)}
            np.savez(file, labels=table, **named, **beside)
        else:
            _write_table(file, suffix, matrix, names, ids, beside)


def _labels_as_numbers(labels: Any) -> np.ndarray:
    """Return labels as an array of integers or strings; of an ensemble, the cluster numbers with -1 for missing."""
    if isinstance(labels, Ensemble):
        # the smallest signed integer type that can hold every label code and -1
        return labels.to_array().astype(np.min_scalar_type(-int(labels.codes.max(initial=0)) - 1))
    array: np.ndarray = to_host(as_pandas(labels))
    if array.ndim not in (1, 2) or 0 in array.shape:
        raise ValueError(f"labels must be (n_objects,) or (n_objects, n_clusterings), but have shape {array.shape}.")
    if array.dtype.kind == "O" and all(isinstance(label, str) for label in array.ravel()):
        array = array.astype(str)
    if array.dtype.kind not in "iubU":
        raise TypeError(f"labels must be integers or strings to be written, but have dtype {array.dtype}.")
    return array


def _labels_as_values(labels: Any) -> Any:
    """Return the label values of an ensemble as a DataFrame of categories without row names.

    Label values of several types become texts, as a column of a file has one type.
    """
    if not isinstance(labels, Ensemble):
        raise TypeError(f"values=True writes the label values of an Ensemble, not of {type(labels).__name__}.")
    frame = labels.to_frame().reset_index(drop=True)
    columns = [frame.iloc[:, m] for m in range(frame.shape[1])]
    return type(frame)(dict(enumerate(map(_as_one_type, columns)))).set_axis(frame.columns, axis=1)


def _as_one_type(column: Any) -> Any:
    """Return a column of categories, as texts if its categories are of several types."""
    values = column.cat.categories.tolist()
    if len(set(map(type, values))) < 2:
        return column
    texts = list(map(str, values))
    if len(set(texts)) < len(texts):
        twice = next(text for text in texts if texts.count(text) > 1)
        raise ValueError(
            f"labels of clustering {column.name!r} include {twice!r} and a value of another type that is written "
            "alike; rename one of them."
        )
    return column.cat.rename_categories(texts)


def _index_of_ids(ids: Any) -> Any:
    """Return the names of objects as a pandas Index; names that are neither all numbers nor all texts become texts."""
    import pandas as pd

    index = (
        index_of_names(ids) if isinstance(ids, (list, tuple)) else ids if isinstance(ids, pd.Index) else pd.Index(ids)
    )
    if index.nlevels > 1:
        index = index.to_flat_index()
    if index.dtype != object:
        return index
    texts = index.map(str, na_action="ignore").astype(object)
    if len(texts.unique()) < len(index.unique()):
        twice = index[texts == texts[texts.duplicated() & ~index.duplicated()][0]].unique()
        raise ValueError(f"ids include {twice[0]!r} and {twice[1]!r}, which are written alike; rename one of them.")
    return texts


def _as_plain_array(ids: Any) -> np.ndarray:
    """Convert the names of objects to an array of numbers or texts, which an npz file can hold without pickling."""
    array = np.asarray(ids)
    return array if array.dtype.kind in "iufb" else array.astype(str)


class _Stream:
    """A file object without a file descriptor, so that NumPy writes by ``write``, whose errors state their reasons."""

    def __init__(self, file: IO[bytes]) -> None:
        self.write = file.write


def _write_table(
    file: IO[bytes], suffix: str, matrix: Any, names: list[str], ids: Any, beside: dict[str, np.ndarray]
) -> None:
    import gzip

    import pandas as pd

    frames = [pd.DataFrame(matrix).set_axis(pd.Index(names), axis=1)]
    for name, values in beside.items():
        columns = [name] if values.ndim == 1 else [f"{name}_{j}" for j in range(values.shape[1])]
        frames.append(pd.DataFrame(values, columns=pd.Index(columns)))
    frame = pd.concat(frames, axis=1)
    if suffix in ANNOTATED:
        annotated.write_obs(file, frame, ids)
        return
    if ids is not None:
        frame = frame.set_axis(ids, axis=0)
    if suffix == ".parquet":
        (frame if ids is None or frame.index.name is None else frame.reset_index()).to_parquet(file)
        return

    options: dict[str, Any] = {
        "sep": "\t" if suffix.startswith(".tsv") else ",",
        "index": ids is not None,
        "lineterminator": "\n",
        "mode": "wb",
    }
    frame = as_text(frame)
    if suffix.endswith(".gz"):
        # the time in the header is always 0, so that equal labels give files with equal bytes
        with gzip.GzipFile("", "wb", 6, file, mtime=0) as packed:
            frame.to_csv(packed, **options)
    else:
        frame.to_csv(file, **options)

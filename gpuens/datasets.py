"""Data sets for experiments: data sets of scikit-learn, Covertype, and data sets in the files of a directory.

The argument ``data`` or GPUENS_DATA names the directory. It holds ``<name>.npz`` files with features ``X`` (n_objects,
n_features), classes ``y`` (n_objects,) and optionally ``scale``, a factor of X; or a sparse X as written by
``scipy.sparse.save_npz``, with ``y`` added.
"""

import os
import warnings
import zipfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from gpuens import io
from gpuens.io import paths
from gpuens.io.arrays import Archive
from gpuens.io.reading import read_feature_file
from gpuens.labels.object_names import match_files, names_of_objects
from gpuens.runtime import checks

__all__ = ["Dataset", "load", "load_beside", "names", "names_file"]

BUNDLED = ("breast_cancer", "digits", "iris", "wine")
# names of columns that hold classes; if a table also has the column on the right, the column does not hold classes
CLASSES = {"y": "x", "class": None, "label": None, "target": "source"}


@dataclass(frozen=True)
class Dataset:
    """A data set: the features of objects, and the classes of objects, with which clusterings are compared.

    Attributes
    ----------
    name : str
    X : ndarray, SciPy sparse matrix or DataFrame (n_objects, n_features)
    y : ndarray (n_objects,) int64, with 0 … n_classes - 1, and -1 for missing; None without classes
    source : str
        The origin, as a readable text.
    ids : pandas Index (n_objects,) or None
        The names of the objects in a file, as those of `gpuens.io.read_ids`.
    """

    name: str
    X: Any
    y: np.ndarray | None
    source: str
    ids: Any = None

    @property
    def n_classes(self) -> int | None:
        return None if self.y is None else int(self.y.max()) + 1


def names(data: str | os.PathLike[str] | None = None) -> list[str]:
    """Return the names that `load` accepts, including those of the directory ``data`` (or GPUENS_DATA).

    Examples
    --------
    >>> "digits" in names()
    True
    """
    folder = _folder(data)
    of_folder = [] if folder is None else [path.stem for path in folder.glob("*.npz")]
    return sorted({*BUNDLED, "covtype", *of_folder})


def load(name: str | os.PathLike[str], *, data: str | os.PathLike[str] | None = None, **reading: Any) -> Dataset:
    """Load a data set by its name, or from a file.

    Parameters
    ----------
    name : str or path
        - "digits", "iris", "wine", "breast_cancer": bundled with scikit-learn.
        - "covtype": ``covtype.npz`` of the directory, or otherwise downloaded and stored by scikit-learn.
        - Any other name: ``<name>.npz`` of the directory.
        - A path of such an npz file, or of an npy, csv, tsv, parquet or h5ad file. In tables, the column ``y``,
          ``class``, ``label`` or ``target`` holds the classes, except ``y`` beside ``x`` and ``target`` beside
          ``source``.
    data : path, optional
        The directory of data sets; by default that of GPUENS_DATA.
    **reading
        For a file, parameters of `gpuens.io.read_features`, such as ``exclude`` and ``id_column``.

    Returns
    -------
    Dataset

    Raises
    ------
    ValueError, OSError
        For unknown names, missing or unreadable files, failed downloads, and ``reading`` for another data set.

    Examples
    --------
    >>> import gpuens as ge
    >>> digits = ge.datasets.load("digits")
    >>> digits.X.shape, digits.n_classes
    ((1797, 64), 10)
    """
    if not isinstance(name, (str, os.PathLike)):
        raise TypeError(f"data set must be given by a name or the path of a file, not {type(name).__name__}.")
    if names_file(name):
        return _from_file(Path(name), Path(name).name.split(".")[0], **reading)
    if reading:
        raise ValueError(
            f"{next(iter(reading))} (--{next(iter(reading)).replace('_', '-')}) is for a file, but {name!r} is a data "
            "set; leave it out."
        )
    name = os.fspath(name)
    if name in BUNDLED:
        from sklearn import datasets

        X, y = getattr(datasets, f"load_{name}")(return_X_y=True)
        return Dataset(name, X, _numbered(y), "scikit-learn")
    folder = _folder(data)
    if folder is not None and (folder / f"{name}.npz").is_file():
        return _from_file(folder / f"{name}.npz", name)
    if name == "covtype":
        return _fetch_covtype()
    where = f"{str(folder)!r} included" if folder else "set GPUENS_DATA to a directory of npz files for others"
    raise ValueError(f"data set {name!r} is unknown; there are {checks.listed(names(data))} ({where}).")


def names_file(name: str | os.PathLike[str]) -> bool:
    """Return whether the argument of `load` is the path of a file, and not the name of a data set."""
    path = os.fspath(name)
    if isinstance(name, os.PathLike) or os.path.basename(path) != path or paths.known_kind(path, io.INPUTS) is not None:
        return True
    return path not in BUNDLED and os.path.isfile(path)


def load_beside(labels: str, ids: Any, name: str, *, by_position: bool = False, **reading: Any) -> Dataset:
    """Load a data set, and return its data in the order of the objects of the file ``labels``.

    ``ids`` are the names of these objects, or None. ``by_position``: both files have one order, whatever the names.

    Raises
    ------
    ValueError
        As `load`; if a file of features names other objects, or if only one of both files names its objects.
    """
    dataset = load(name, **reading)
    places = match_files(ids, labels, dataset.ids, name) if names_file(name) and not by_position else None
    X, y = dataset.X, dataset.y
    if places is not None:
        X, y = X.iloc[places] if hasattr(X, "iloc") else X[places], None if y is None else y[places]
    if hasattr(X, "iloc") and names_of_objects(ids) is not None and len(ids) == len(X):
        X = X.set_axis(ids, axis=0)
    return replace(dataset, X=X, y=y, ids=ids)


def _folder(data: str | os.PathLike[str] | None) -> Path | None:
    setting = data if data is not None else os.environ.get("GPUENS_DATA") or None
    if setting is None:
        return None
    if not os.path.isdir(setting):
        name = "GPUENS_DATA" if data is None else "data"
        raise FileNotFoundError(
            f"{name} names {os.fspath(setting)!r}, which is no directory; name a directory of data sets."
        )
    return Path(setting)


def _from_file(path: Path, name: str, **reading: Any) -> Dataset:
    X, ids = read_feature_file(path, **reading)
    y = None
    if path.suffix.lower() == ".npz":
        with paths.reading(path), Archive(path) as archive:
            y = archive.read("y").ravel() if "y" in archive.names else None
            if "scale" in archive.names:
                X = X * archive.read("scale")
    elif hasattr(X, "columns"):
        names = {str(column).lower() for column in X.columns}
        of_classes = [c for c in X.columns if str(c).lower() in CLASSES and CLASSES[str(c).lower()] not in names]
        classes = [] if reading.get("columns") else of_classes
        if classes:
            y = X[classes[0]].to_numpy()
            X = X.drop(columns=classes[0])
    if y is not None and len(y) != X.shape[0]:
        raise ValueError(
            f"data set {str(path)!r} has {X.shape[0]} objects in X but {len(y)} in y; write the file again."
        )
    return Dataset(name, X, None if y is None else _numbered(y), str(path), ids)


def _fetch_covtype() -> Dataset:
    from sklearn.datasets import fetch_covtype

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # hides scikit-learn's warning "Retry downloading"
            X, y = fetch_covtype(return_X_y=True, n_retries=1, delay=0.0)
    except (OSError, EOFError, zipfile.BadZipFile) as error:
        raise ConnectionError(
            f"data set 'covtype' could not be downloaded ({checks.gist(error)}); connect to the network, or set "
            "GPUENS_DATA to a directory with covtype.npz."
        ) from error
    return Dataset("covtype", X, _numbered(y), "UCI Covertype, downloaded by scikit-learn")


def _numbered(classes: np.ndarray) -> np.ndarray:
    """Number the classes from 0 in the order of their values; return the number of each class; -1 is missing."""
    import pandas as pd

    return pd.factorize(classes, sort=True)[0].astype(np.int64)


def __dir__() -> list[str]:
    return sorted(__all__)

"""Data sets to try methods on: those of scikit-learn, Covertype, and the files of a directory.

The directory is named by the argument ``data`` or by GPUENS_DATA; it holds ``<name>.npz`` files with features ``X``
(n_objects, n_features), classes ``y`` (n_objects,), and ``scale`` where X is to be multiplied by it; or a sparse X as
``scipy.sparse.save_npz`` writes it, with ``y`` added.
"""

import os
import warnings
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from gpuens import checks, io
from gpuens.arrays import Archive

BUNDLED = ("breast_cancer", "digits", "iris", "wine")


@dataclass(frozen=True)
class Dataset:
    """Features with the classes that clusterings are compared with.

    Attributes
    ----------
    name : str
    X : ndarray, SciPy sparse matrix or DataFrame (n_objects, n_features)
    y : ndarray (n_objects,) int64, 0 … n_classes - 1 and -1 for missing, or None where no classes are known
    source : str
        Where it came from, for people to read.
    """

    name: str
    X: Any
    y: np.ndarray | None
    source: str

    @property
    def n_classes(self) -> int | None:
        return None if self.y is None else int(self.y.max()) + 1


def names(data: str | os.PathLike | None = None) -> list[str]:
    """Return the names that `load` knows, those in the directory ``data`` (or GPUENS_DATA) included.

    Examples
    --------
    >>> "digits" in names()
    True
    """
    folder = _folder(data)
    found = [] if folder is None else [path.stem for path in folder.glob("*.npz")]
    return sorted({*BUNDLED, "covtype", *found})


def load(name: str | os.PathLike, *, data: str | os.PathLike | None = None) -> Dataset:
    """Load a data set by its name, or from a file.

    Parameters
    ----------
    name : str or path
        "digits", "iris", "wine", "breast_cancer": the ones that scikit-learn brings along. "covtype": ``covtype.npz``
        of the directory if it is there, else downloaded (and kept) by scikit-learn. Any other name: ``<name>.npz`` of
        the directory. Or the path of an npz file as described above, or of an npy, csv, tsv, parquet or h5ad file; in
        those tables a column called ``y``, ``class``, ``label`` or ``target`` holds the classes.
    data : path, optional
        The directory of data sets; without it, the one that GPUENS_DATA names.

    Returns
    -------
    Dataset

    Raises
    ------
    ValueError, OSError
        In one sentence, for unknown names, files that are not there or cannot be read, and downloads that fail.

    Examples
    --------
    >>> import gpuens as ge
    >>> digits = ge.datasets.load("digits")
    >>> digits.X.shape, digits.n_classes
    ((1797, 64), 10)
    """
    if not isinstance(name, (str, os.PathLike)):
        raise TypeError(f"data set must be given by a name or the path of a file, not {type(name).__name__}.")
    if isinstance(name, os.PathLike) or os.path.basename(name) != name or name.lower().endswith(io.INPUTS):
        return _from_file(Path(name), Path(name).name.split(".")[0])
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


def _folder(data: str | os.PathLike | None) -> Path | None:
    setting = data if data is not None else os.environ.get("GPUENS_DATA") or None
    if setting is None:
        return None
    if not os.path.isdir(setting):
        name = "GPUENS_DATA" if data is None else "data"
        raise FileNotFoundError(f"{name} names {os.fspath(setting)!r}, which is no directory; name one with data sets.")
    return Path(setting)


def _from_file(path: Path, name: str) -> Dataset:
    X = io.read_features(path)
    y = None
    if path.suffix.lower() == ".npz":
        with checks.reading(path), Archive(path) as archive:
            y = archive.read("y").ravel() if "y" in archive.names else None
            if "scale" in archive.names:
                X = X * archive.read("scale")
    elif hasattr(X, "columns"):
        classes = [column for column in X.columns if str(column).lower() in ("y", "class", "label", "target")]
        if classes:
            y = X[classes[0]].to_numpy()
            X = X.drop(columns=classes[0])
    if y is not None and len(y) != X.shape[0]:
        raise ValueError(f"data set {str(path)!r} has {X.shape[0]} objects in X but {len(y)} in y; write it anew.")
    return Dataset(name, X, None if y is None else _numbered(y), str(path))


def _fetch_covtype() -> Dataset:
    from sklearn.datasets import fetch_covtype

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # "Retry downloading"
            X, y = fetch_covtype(return_X_y=True, n_retries=1, delay=0.0)
    except (OSError, EOFError, zipfile.BadZipFile) as error:
        raise ConnectionError(
            f"data set 'covtype' could not be downloaded ({checks.gist(error)}): connect to the network, or set "
            "GPUENS_DATA to a directory with covtype.npz."
        ) from error
    return Dataset("covtype", X, _numbered(y), "UCI Covertype, downloaded by scikit-learn")


def _numbered(classes: np.ndarray) -> np.ndarray:
    """Number the classes from 0 on, in the order of their values; -1 where the class is missing."""
    import pandas as pd

    return pd.factorize(classes, sort=True)[0].astype(np.int64)

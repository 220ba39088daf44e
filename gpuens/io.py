"""Label files and feature files: npy, npz, csv, parquet and h5ad, by the ending of their name.

Nothing partial is ever found under a final name: files are written beside it and renamed when they are complete.
"""

import os
import secrets
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np

from gpuens import validation
from gpuens.device import to_host
from gpuens.ensemble import Ensemble

LABEL_FILES = (".npy", ".npz", ".csv", ".tsv", ".csv.gz", ".tsv.gz", ".parquet", ".h5ad")
FEATURE_FILES = (".npy", ".npz", ".csv", ".tsv", ".csv.gz", ".tsv.gz", ".parquet")
WRITTEN_FILES = (".npy", ".npz", ".csv", ".tsv", ".csv.gz", ".tsv.gz", ".parquet")


def read_labels(
    path: str | os.PathLike, *, columns: str | int | Sequence[str | int] | None = None, key: str | None = None
) -> Ensemble:
    """Read base clusterings from a file.

    Parameters
    ----------
    path : str or path
        What kind of file it is follows from the ending of its name:

        - ``.npy``: an array (n_objects, n_clusterings), or (n_objects,) for a single clustering; read through a memory
          map, column by column.
        - ``.npz``: one such array, or several 1-D arrays, which are the clusterings; else ``key`` says which array.
        - ``.csv``, ``.tsv``, also with ``.gz``: a column for each clustering. The first row holds names if not all of
          it are numbers. Empty fields are missing labels. An unnamed first column, as pandas writes it, is left out.
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
    FileNotFoundError, ValueError, TypeError, ImportError
        In one sentence, for files that are not there, cannot be read or are of an unknown kind, for unknown columns or
        keys, where a package is missing, and for labels that `Ensemble` refuses.

    Examples
    --------
    >>> import gpuens as ge, tempfile, pathlib
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "labels.csv"
    ...     _ = path.write_text("p,q\\\\na,1\\\\na,2\\\\nb,\\\\n")
    ...     ens = ge.io.read_labels(path)
    >>> ens.names, ens.to_array().tolist()
    (['p', 'q'], [[0, 0], [0, 1], [1, -1]])
    """
    path, suffix = _existing(path, LABEL_FILES)
    validation.key_for(key, suffix, path)
    with validation.readable(path):
        names, found = _READERS[suffix.removesuffix(".gz")](path, suffix, key)
'''

"""Kinds of files, told by their endings, and the packages they need."""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module

from gpuens.runtime import installing

TEXTS = (".csv", ".tsv", ".csv.gz", ".tsv.gz")
TABLES = (*TEXTS, ".parquet")
ARRAYS = (".npy", ".npz")
ANNOTATED = (".h5ad",)
FOLDERS = (".zarr",)
WITH_NUMBERS = (".npz", *TABLES)  # outputs that hold real numbers beside labels
INPUTS = (*ARRAYS, *TABLES, *ANNOTATED, *FOLDERS)
IN_CHUNKS = (".npy", ".zarr", ".parquet")  # read by `gpuens.distributed`
OUTPUTS = INPUTS
IDS = "ids"  # array of an npz file with the names of the objects

Path_ = str | os.PathLike[str]
Columns = str | int | Sequence[str | int]
Words = str | Sequence[str]


def packages_for(suffix: str) -> None:
    """Refuse a kind of output whose package is not installed, before the work."""
    package = {".parquet": "pyarrow", ".h5ad": "anndata", ".zarr": "zarr"}.get(suffix)
    if package is not None:
        with needs(package, suffix[1:]):
            import_module(package)


@contextmanager
def needs(package: str, kind: str, extra: str = "io") -> Iterator[None]:
    """Refuse a kind of file whose package is not installed."""
    try:
        yield
    except ImportError as error:
        raise ImportError(
            f"path: {kind} files need {package}, which is not installed: {installing.command(extra)}."
        ) from error

"""Kinds of files, recognised by their endings, and the packages that reading or writing them needs."""

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
WITH_NUMBERS = (".npz", *TABLES)  # kinds of outputs that hold real numbers beside labels
INPUTS = (*ARRAYS, *TABLES, *ANNOTATED, *FOLDERS)
IN_CHUNKS = (".npy", ".zarr", ".parquet")  # kinds that `gpuens.distributed` reads
OUTPUTS = INPUTS
IDS = "ids"  # name of the array of an npz file that holds the names of the objects

Path_ = str | os.PathLike[str]
Columns = str | int | Sequence[str | int]
Words = str | Sequence[str]


def packages_for(suffix: str) -> None:
    """Refuse, before any work, a kind of output whose package is not installed."""
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

"""Kinds of files, which are recognised by their endings, and the packages that are needed to read or write them."""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module

from gpuens.runtime import installing

TEXTS = (".csv", ".tsv", ".csv.gz", ".tsv.gz")
OTHER_TEXT = ".txt"  # kind of text tables with any other ending, which are recognised by their content
TABLES = (*TEXTS, ".parquet")
ARRAYS = (".npy", ".npz")
ANNOTATED = (".h5ad",)
FOLDERS = (".zarr",)
WITH_NUMBERS = (".npz", *TABLES)  # kinds of output files that can hold real numbers in addition to labels
OUTPUTS = (*ARRAYS, *TABLES, *ANNOTATED, *FOLDERS)
INPUTS = (*OUTPUTS, ".feather")  # endings of input files; files with other endings are text, or refused
TEXT_INPUTS = (*TEXTS, OTHER_TEXT)
TABLE_INPUTS = (*TABLES, OTHER_TEXT, ".feather")
IN_CHUNKS = (".npy", ".zarr", ".parquet")  # kinds of files that `gpuens.distributed` can read in chunks
IDS = "ids"  # name of the array that holds the names of the objects in an npz file

Path_ = str | os.PathLike[str]
Columns = str | int | Sequence[str | int]
Words = str | Sequence[str]


def packages_for(suffix: str) -> None:
    """Raise an error, before any work, if the package for a kind of output file is not installed."""
    package = {".parquet": "pyarrow", ".h5ad": "anndata", ".zarr": "zarr"}.get(suffix)
    if package is not None:
        with needs(package, suffix[1:]):
            import_module(package)


@contextmanager
def needs(package: str, kind: str, extra: str = "io") -> Iterator[None]:
    """If the block cannot import ``package``, raise an error that says how to install it for this kind of file."""
    try:
        yield
    except ImportError as error:
        raise ImportError(
            f"path: {kind} files need {package}, which is not installed: {installing.command(extra)}."
        ) from error

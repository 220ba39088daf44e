"""Paths of files: kinds by their endings, the packages that they need, and errors for paths that cannot be read."""

import os
import stat
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import Any

from gpuens.runtime import installing
from gpuens.runtime.checks import gist

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


def is_zarr(path: str) -> bool:
    """Return whether a path or URI names a zarr array; it may end in a slash, because a zarr array is a folder."""
    return path.rstrip("/").lower().endswith(".zarr")


def without_slash(path: str) -> str:
    """Return the path of a zarr array without a slash at its end; return other paths unchanged."""
    return path.rstrip("/") if is_zarr(path) else path


def known_kind(path: Any, kinds: Iterable[str]) -> str | None:
    """Return the element of ``kinds`` with which a path ends, or None."""
    if not isinstance(path, (str, os.PathLike)):
        raise TypeError(f"path must be the name of a file, not {type(path).__name__}.")
    name = without_slash(os.fspath(path)).lower()
    return max((kind for kind in kinds if name.endswith(kind)), key=len, default=None)


def file_kind(path: Any, kinds: Iterable[str]) -> str:
    """Return the element of ``kinds`` with which a path ends; raise an error if there is none."""
    kind = known_kind(path, kinds)
    if kind is None:
        name = os.path.basename(without_slash(os.fspath(path)))
        raise ValueError(f"path {name!r} has no known ending; it must end in {', '.join(kinds)}.")
    return kind


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


def check_readable(path: str | os.PathLike[str], *, folder: bool = False) -> None:
    """Raise an error if a path is not a readable file, or, if ``folder`` is true, a readable directory.

    Pipes, sockets and devices are errors, because their data may never end. In a directory, so are symbolic links.
    """
    path = os.fspath(path)
    if os.path.isdir(path) and not folder:
        raise IsADirectoryError(f"path {path!r} is a directory; name a file.")
    if not os.path.exists(path):
        raise FileNotFoundError(f"path {path!r} does not exist; check the name.")
    if not os.access(path, os.R_OK):
        raise PermissionError(f"path {path!r} may not be read by this user; change its permissions or choose another.")
    if os.path.isdir(path):
        _refuse_ways_out(path)
    elif not stat.S_ISREG(os.stat(path).st_mode):
        raise ValueError(f"path {path!r} is a pipe, a socket or a device; save its data in a file, and name this file.")


def _refuse_ways_out(folder: str) -> None:
    """Raise an error if a folder contains symbolic links, pipes, sockets or devices, or cannot be read completely."""
    folders = [folder]
    while folders:
        try:
            with os.scandir(folders.pop()) as scan:
                entries = list(scan)
        except OSError as error:
            raise PermissionError(
                f"path {folder!r} cannot be read completely ({gist(error)}); copy it to a readable place."
            ) from error
        for entry in entries:
            name = os.path.relpath(entry.path, folder)
            if entry.is_symlink():
                raise ValueError(
                    f"path {folder!r} contains the link {name!r}, which is not followed; copy the folder by cp -rL."
                )
            if entry.is_dir():
                folders.append(entry.path)
            elif not entry.is_file():
                raise ValueError(f"path {folder!r} contains {name!r}, a pipe, a socket or a device; remove it.")


@contextmanager
def reading(path: str | os.PathLike[str]) -> Iterator[None]:
    """Replace any error in the block by a ValueError that says in one sentence that the file cannot be read.

    MemoryError and ImportError are not replaced.
    """
    try:
        yield
    except (MemoryError, ImportError):
        raise
    except Exception as error:  # NumPy, pandas, pyarrow, h5py, anndata and zlib raise errors of nearly every type
        path = os.fspath(path)
        raise ValueError(
            f"path {path!r} cannot be read as a file of the kind that its ending names ({gist(error)}); write it again."
        ) from error

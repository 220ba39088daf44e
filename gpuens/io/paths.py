"""Paths of input files: their kinds by their endings, and refusals of unreadable paths."""

import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from gpuens.runtime.checks import gist


def is_zarr(path: str) -> bool:
    """Return whether a path or URI names a zarr array: a folder, so that shells may append a slash."""
    return path.rstrip("/").lower().endswith(".zarr")


def without_slash(path: str) -> str:
    """Return the path of a zarr array without a trailing slash; other paths unchanged."""
    return path.rstrip("/") if is_zarr(path) else path


def file_kind(path: Any, kinds: Iterable[str]) -> str:
    """Return the ending of a path among ``kinds``; refuse other paths."""
    if not isinstance(path, (str, os.PathLike)):
        raise TypeError(f"path must be the name of a file, not {type(path).__name__}.")
    name = os.path.basename(without_slash(os.fspath(path)))
    found = [kind for kind in kinds if name.lower().endswith(kind)]
    if not found:
        raise ValueError(f"path {name!r} has no known ending; it must end in {', '.join(kinds)}.")
    return max(found, key=len)


def check_readable(path: str | os.PathLike[str], *, folder: bool = False) -> None:
    """Refuse paths without a readable file; ``folder``: files of this kind may be directories.

    Pipes, sockets and devices, whose data may never end, are refused; in a directory, so are links that lead out of it.
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
    """Refuse a folder that contains links to other places, pipes, sockets or devices."""
    left = [folder]
    while left:
        try:
            with os.scandir(left.pop()) as found:
                entries = list(found)
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
                left.append(entry.path)
            elif not entry.is_file():
                raise ValueError(f"path {folder!r} contains {name!r}, a pipe, a socket or a device; remove it.")


@contextmanager
def reading(path: str | os.PathLike[str]) -> Iterator[None]:
    """Turn any error of a reader into one sentence about a damaged file."""
    try:
        yield
    except (MemoryError, ImportError):
        raise
    except Exception as error:  # NumPy, pandas, pyarrow, h5py, anndata and zlib raise errors of nearly every type
        path = os.fspath(path)
        raise ValueError(
            f"path {path!r} cannot be read as a file of the kind that its ending names ({gist(error)}); write it again."
        ) from error

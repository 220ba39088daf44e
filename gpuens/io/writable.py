"""Checks, before the work begins, that an output file can be written; error messages say why it cannot be written."""

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager

from gpuens.io import zarr_folder
from gpuens.runtime import checks

Path_ = str | os.PathLike[str]

ADVICE: dict[int | None, str] = {  # number of an OSError → advice in the error message
    errno.ENAMETOOLONG: "choose a shorter name",
    errno.ENOSPC: "make room there, or choose another place",
    errno.EDQUOT: "make room there, or choose another place",
    errno.EFBIG: "raise the limit of file sizes (ulimit -f), or choose another place",
}


def check_writable(path: Path_, name: str = "path") -> None:
    """Raise an error if no file can be written at a path; ``name`` is the argument that the error message names."""
    path = os.fspath(path)
    try:
        there = os.stat(path).st_mode
    except (FileNotFoundError, NotADirectoryError):
        there = None
    except (OSError, ValueError) as error:  # the name of the file is too long or invalid
        raise _unwritable(path, error, name) from error
    folder = os.path.dirname(os.path.realpath(path))
    if there is not None and stat.S_ISDIR(there):
        raise IsADirectoryError(f"{name} {path!r} is a directory; name a file in it.")
    if not os.path.isdir(folder):
        raise FileNotFoundError(f"{name} {path!r} is in a directory that does not exist; make {folder!r} first.")
    if there is not None and not stat.S_ISREG(there):
        raise ValueError(f"{name} {path!r} is a pipe or a device, which a file would replace; name a file.")


def check_zarr_place(path: Path_) -> None:
    """Raise an error if a zarr array cannot be written at a path, or must not replace the folder at this path."""
    check_folder(path, "path")
    zarr_folder.refuse_other(path)
    parent = os.path.dirname(os.path.realpath(path))
    if not os.path.isdir(parent):
        raise FileNotFoundError(
            f"path {os.fspath(path)!r} is in a directory that does not exist; make {parent!r} first."
        )


def check_folder(path: Path_, name: str = "path") -> None:
    """Raise an error if a path exists but is not a folder in which this user may write.

    ``name`` is the argument that the error message names.
    """
    path = os.fspath(path)
    try:
        os.lstat(path)
    except FileNotFoundError:
        return
    except (OSError, ValueError) as error:
        raise _unwritable(path, error, name) from error
    if not os.path.isdir(path):
        raise NotADirectoryError(f"{name} {path!r} must be a folder, but is a file; move it away.")
    if not os.access(path, os.W_OK):
        raise PermissionError(f"{name} {path!r} is a folder that this user may not write to; choose another place.")


def _unwritable(path: Path_, error: OSError | ValueError, name: str = "path") -> Exception:
    """Return the error to raise for a path that cannot be written, with the reason and advice."""
    reason = getattr(error, "strerror", None) or checks.gist(error)
    too_long = getattr(error, "errno", None) == errno.ENAMETOOLONG
    # a ValueError if the name is at fault; otherwise the OSError of the folder or disk
    kind = type(error) if isinstance(error, OSError) and not too_long else ValueError
    instead = ADVICE.get(getattr(error, "errno", None), "choose another place")
    return kind(f"{name} {os.fspath(path)!r} cannot be written ({reason}); {instead}.")


@contextmanager
def refusing(path: Path_) -> Iterator[None]:
    """Replace an OSError in the block by an error that says in one sentence why the path cannot be written."""
    try:
        yield
    except ConnectionError:  # this error concerns the source of the data, not the file that is written
        raise
    except OSError as error:
        raise _unwritable(path, error) from error

"""Checks, before the work begins, that an output file can be written; error messages say why it cannot be written."""

import errno
import json
import os
import re
import stat
from collections.abc import Iterator
from contextlib import contextmanager

from gpuens.runtime import checks

Path_ = str | os.PathLike[str]

# metadata files of a zarr array, two of zarr format 2 and one of format 3, and the names of chunks
METADATA = (".zarray", ".zattrs", "zarr.json")
CHUNK = re.compile(r"(c|(c[/.])?[0-9]+([/.][0-9]+)*)")

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
        mode = os.stat(path).st_mode
    except (FileNotFoundError, NotADirectoryError):
        mode = None
    except (OSError, ValueError) as error:  # the name of the file is too long or invalid
        raise _error_for_unwritable(path, error, name) from error
    folder = os.path.dirname(os.path.realpath(path))
    if mode is not None and stat.S_ISDIR(mode):
        raise IsADirectoryError(f"{name} {path!r} is a directory; name a file in it.")
    if not os.path.isdir(folder):
        raise FileNotFoundError(f"{name} {path!r} is in a directory that does not exist; make {folder!r} first.")
    if mode is not None and not stat.S_ISREG(mode):
        raise ValueError(f"{name} {path!r} is a pipe or a device, which a file would replace; name a file.")


def check_zarr_place(path: Path_) -> None:
    """Raise an error if a zarr array cannot be written at a path, or must not replace the folder at this path."""
    check_folder(path, "path")
    refuse_other_folder(path)
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
        raise _error_for_unwritable(path, error, name) from error
    if not os.path.isdir(path):
        raise NotADirectoryError(f"{name} {path!r} must be a folder, but is a file; move it away.")
    if not os.access(path, os.W_OK):
        raise PermissionError(f"{name} {path!r} is a folder that this user may not write to; choose another place.")


def _error_for_unwritable(path: Path_, error: OSError | ValueError, name: str = "path") -> Exception:
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
        raise _error_for_unwritable(path, error) from error


def refuse_other_folder(path: str | os.PathLike[str]) -> None:
    """Raise an error if ``path`` is a folder that must not be replaced: neither empty nor one zarr array."""
    path = os.fspath(path)
    entries = sorted(_entries_of_folder(path)) if os.path.isdir(path) else []
    foreign = [entry for entry in entries if entry not in METADATA and not CHUNK.fullmatch(entry)]
    if entries and not foreign and not _is_zarr_array(path):
        foreign = entries
    if foreign:
        raise FileExistsError(
            f"path {path!r} is a folder that contains {foreign[0]!r}, but only an empty folder or a zarr array may be "
            "replaced; name another place, or move the folder away."
        )


def _entries_of_folder(path: str) -> Iterator[str]:
    """Yield the path of each file and subfolder in a folder, relative to the folder and with slashes."""
    for folder, folders, files in os.walk(path):
        for entry in (*folders, *files):
            yield os.path.relpath(os.path.join(folder, entry), path).replace(os.sep, "/")


def _is_zarr_array(path: str) -> bool:
    """Return whether the metadata in a folder describe one zarr array, not a group of arrays."""
    try:
        if os.path.exists(os.path.join(path, ".zarray")):
            return True
        with open(os.path.join(path, "zarr.json"), encoding="utf-8") as file:
            metadata = json.load(file)
        return isinstance(metadata, dict) and metadata.get("node_type") == "array"
    except (OSError, ValueError):
        return False

"""Atomic writing of files: nothing partial under a final name, and no labels beside the record of other labels.

A file is written under a temporary name in the same folder, ``.gpuens-<host>-<random>.part``, and renamed when it is
complete. Its writer holds a lock, which the system releases when the process ends: this tells the leftovers of a killed
run from files in progress, and the next run that writes to the folder removes the leftovers.
"""

import errno
import hashlib
import json
import os
import platform
import secrets
import shutil
import stat
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from contextvars import ContextVar
from functools import cache
from typing import IO, Any

import numpy as np

from gpuens.io import paths, zarr_folder
from gpuens.runtime import checks

try:
    import fcntl
except ImportError:  # Windows, where open files cannot be removed
    fcntl = None  # type: ignore[assignment]

Path_ = str | os.PathLike[str]

ADVICE: dict[int | None, str] = {  # by the number of an error
    errno.ENAMETOOLONG: "choose a shorter name",
    errno.ENOSPC: "make room there, or choose another place",
    errno.EDQUOT: "make room there, or choose another place",
    errno.EFBIG: "raise the limit of file sizes (ulimit -f), or choose another place",
}
NO_LINKS = (errno.EPERM, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP)  # errors of file systems without hard links
LONG = 7 * 24 * 3600  # seconds after which a part of another host, whose locks may not be visible, is a leftover


@contextmanager
def replacing(path: Path_) -> Iterator[IO[bytes]]:
    """Open a temporary binary file; it is renamed to ``path`` when the block ends, and removed if the block fails.

    Inside a block of `recorded` it is renamed at the end of that block.

    Raises
    ------
    OSError, ValueError
        Where it cannot be written.
    """
    check_writable(path)
    with _beside(path) as (file, beside, _, waiting):
        yield file
        file.close()
        waiting.append((path, beside))


@contextmanager
def replacing_zarr(path: Path_) -> Iterator[str]:
    """Make a temporary folder and yield its path; it is renamed to ``path`` like a file of `replacing`.

    An existing zarr array is moved away just before: for a moment there is neither.

    Raises
    ------
    OSError, ValueError
        Where it cannot be made, and where a folder is there that is not one zarr array alone.
    """
    check_zarr_place(path)
    with _beside(path) as (_, beside, kept, waiting):
        for folder in _folders_of(beside):
            kept.callback(shutil.rmtree, folder, ignore_errors=True)
        new, _ = _folders_of(beside)
        os.mkdir(new)
        yield new
        waiting.append((path, new))


@contextmanager
def _beside(path: Path_) -> Iterator[tuple[IO[bytes], str, ExitStack, list[tuple[Path_, str]]]]:
    """Yield a part and its path, the stack that removes it, and the list of parts to rename.

    Parts are renamed at the end of this block, or of the block of `recorded`.
    """
    with ExitStack() as alone:
        parts = _together.get()
        kept, waiting = (alone, []) if parts is None else parts
        with refusing(path):
            yield *kept.enter_context(_part(os.path.dirname(os.path.realpath(path)))), kept, waiting
        if parts is None:
            _take_names(waiting)


def _folders_of(part: str) -> tuple[str, str]:
    """Return the temporary names of a part's new folder and of the folder it replaces."""
    return f"{part}.new", f"{part}.old"


@contextmanager
def recorded(path: Path_, *, at: Path_ | None = None) -> Iterator[dict[str, Any]]:
    """Yield an empty record of the file that `replacing` writes to ``path`` in this block.

    It is written to ``at``, by default ``<path>.json``, with the file's SHA-256. All files of the block are renamed at
    its end, or none is. A record never stands beside other files: the old record is removed first, the new one is
    renamed last.
    """
    at = record_of(path) if at is None else at
    record: dict[str, Any] = {}
    with ExitStack() as kept:
        waiting: list[tuple[Path_, str]] = []
        token = _together.set((kept, waiting))
        try:
            yield record
            (beside,) = (part for written, part in waiting if os.fspath(written) == os.fspath(path))
            record["sha256"] = digest(beside)
            write_record(at, record)
        finally:
            _together.reset(token)
        with refusing(at):
            unlink(os.path.realpath(at))
        _take_names(waiting)


def digest(path: Path_) -> str:
    """Return the SHA-256 of a file; for a folder, that of the sorted ``sha256sum`` listing of its files."""
    if os.path.isfile(path):
        with open(path, "rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    files = sorted(os.path.relpath(file, path).replace(os.sep, "/") for file in files_in(path))
    lines = [f"{digest(os.path.join(path, name))}  {name}\n" for name in files]
    return hashlib.sha256("".join(lines).encode(errors="surrogateescape")).hexdigest()


def files_in(path: Path_) -> Iterator[str]:
    """Yield the paths of all files in a folder, and nothing of a file."""
    for folder, _, names in os.walk(os.fspath(path)):
        yield from (os.path.join(folder, name) for name in names)


def record_of(path: Path_) -> str:
    """Return the path of a file's record."""
    return f"{paths.without_slash(os.fspath(path))}.json"


def write_record(path: Path_, record: dict[str, Any]) -> None:
    """Write a record, as JSON."""
    with replacing(path) as file:
        file.write(encoded(record))


def create_record(path: Path_, record: dict[str, Any]) -> None:
    """Write a record unless there is a file of its name: of several processes the first one's stays.

    It is whole as soon as it is there.
    """
    check_writable(path)
    folder = os.path.dirname(os.path.realpath(path))
    with refusing(path), _part(folder) as (file, beside):
        file.write(encoded(record))
        file.close()
        _to_disk(beside)
        try:
            os.link(beside, path)
        except FileExistsError:
            pass
        except OSError as error:
            if error.errno not in NO_LINKS:
                raise
            os.replace(beside, path)
        _to_disk(folder)


def encoded(record: dict[str, Any]) -> bytes:
    """Return a record as the JSON of a file: NumPy's numbers as numbers, what JSON does not know by its text."""
    text = json.dumps(record, indent=2, ensure_ascii=False, default=_plain)
    # bytes of file names that are not text are written as \uXXXX, which is JSON too
    return f"{text}\n".encode(errors="backslashreplace")


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else str(value)


_together: ContextVar[tuple[ExitStack, list[tuple[Path_, str]]] | None] = ContextVar("together", default=None)


def _take_names(waiting: list[tuple[Path_, str]]) -> None:
    """Rename complete parts, in order; each is on the disk before the next one gets its name."""
    for path, beside in waiting:
        target = os.path.realpath(path)  # a link stays a link
        with refusing(path):
            for part in (*files_in(beside), beside):
                _to_disk(part)
            if os.path.isdir(beside) and os.path.isdir(target):
                zarr_folder.refuse_other(target)  # it may have changed since the work began
                os.replace(target, _folders_of(beside.removesuffix(".new"))[1])
            os.replace(beside, target)
            _to_disk(os.path.dirname(target))


def _to_disk(path: str) -> None:
    """Wait until a file, or a folder's list of files, would survive a loss of power."""
    folder = os.path.isdir(path)
    with suppress(PermissionError) if folder else nullcontext():  # a writable folder need not be listable
        descriptor = os.open(path, os.O_RDONLY if folder else os.O_RDWR)
        try:
            os.fsync(descriptor)
        except OSError as error:
            if not (folder and error.errno in (errno.EINVAL, errno.ENOTSUP)):  # some systems sync no folders
                raise
        finally:
            os.close(descriptor)


@contextmanager
def refusing(path: Path_) -> Iterator[None]:
    """Turn an error of writing into one sentence."""
    try:
        yield
    except ConnectionError:  # the source of the contents fails, not the file
        raise
    except OSError as error:
        raise _unwritable(path, error) from error


# --- places -----------------------------------------------------------------------------------------------------------


def check_writable(path: Path_, name: str = "path") -> None:
    """Refuse paths that cannot be written; ``name`` is the argument's name."""
    path = os.fspath(path)
    try:
        there = os.stat(path).st_mode
    except (FileNotFoundError, NotADirectoryError):
        there = None
    except (OSError, ValueError) as error:  # names that are too long or invalid
        raise _unwritable(path, error, name) from error
    folder = os.path.dirname(os.path.realpath(path))
    if there is not None and stat.S_ISDIR(there):
        raise IsADirectoryError(f"{name} {path!r} is a directory; name a file in it.")
    if not os.path.isdir(folder):
        raise FileNotFoundError(f"{name} {path!r} is in a directory that does not exist; make {folder!r} first.")
    if there is not None and not stat.S_ISREG(there):
        raise ValueError(f"{name} {path!r} is a pipe or a device, which a file would replace; name a file.")


def check_zarr_place(path: Path_) -> None:
    """Refuse paths where a zarr array cannot be written or replaced."""
    check_folder(path, "path")
    zarr_folder.refuse_other(path)
    parent = os.path.dirname(os.path.realpath(path))
    if not os.path.isdir(parent):
        raise FileNotFoundError(
            f"path {os.fspath(path)!r} is in a directory that does not exist; make {parent!r} first."
        )


def check_folder(path: Path_, name: str = "path") -> None:
    """Refuse paths where a folder cannot be made or written to; ``name`` is the argument's name."""
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
    """Return the refusal of an unwritable path."""
    reason = getattr(error, "strerror", None) or checks.gist(error)
    too_long = getattr(error, "errno", None) == errno.ENAMETOOLONG
    kind = type(error) if isinstance(error, OSError) and not too_long else ValueError  # the place is bad, or the name
    instead = ADVICE.get(getattr(error, "errno", None), "choose another place")
    return kind(f"{name} {os.fspath(path)!r} cannot be written ({reason}); {instead}.")


# --- parts ------------------------------------------------------------------------------------------------------------


@contextmanager
def _part(folder: str) -> Iterator[tuple[IO[bytes], str]]:
    """Yield a new file in a folder and its path; it is removed at the end of the block unless renamed."""
    _remove_leftovers(folder)
    while True:
        beside = os.path.join(folder, f"{_prefix()}{secrets.token_hex(4)}.part")
        with ExitStack() as held:
            held.callback(unlink, beside)
            file = open(beside, "xb")  # noqa: SIM115 - closed below, or before it is renamed
            held.callback(_discard, file)
            if fcntl is not None:
                lock = os.dup(file.fileno())  # outlives the file, which is closed before it is renamed
                held.callback(os.close, lock)
                _lock(lock)
            if os.path.exists(beside):  # not removed as a leftover before it was locked
                yield file, beside
                return


def _discard(file: IO[bytes]) -> None:
    """Close a file whose contents do not matter: what it still holds back may not fit the disk."""
    with suppress(OSError):
        file.close()


def _remove_leftovers(folder: str) -> None:
    """Remove parts whose writers are gone; those of other hosts only after a long time."""
    with suppress(OSError), os.scandir(folder) as entries:  # a writable folder need not be listable
        for entry in entries:
            if not is_part(entry.name):
                continue
            with suppress(OSError):
                age = time.time() - entry.stat(follow_symlinks=False).st_mtime
                if entry.name.startswith(_prefix()) or age > LONG:
                    with open(entry.path, "r+b") as file:
                        if _lock(file.fileno(), wait=False):
                            for left in _folders_of(entry.path):
                                shutil.rmtree(left, ignore_errors=True)
                            os.unlink(entry.path)


def is_part(name: str) -> bool:
    """Return whether a file of this name is one that is being written, or was when its writer died."""
    return name.startswith(".gpuens-") and name.endswith(".part")


def _lock(descriptor: int, *, wait: bool = True) -> bool:
    """Lock an open file; return False if another process holds the lock or the system has no such locks."""
    if fcntl is None:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except OSError:
        return False
    return True


def unlink(path: Path_) -> None:
    """Remove a file, if it is there."""
    with suppress(FileNotFoundError):
        os.unlink(path)


@cache
def _prefix() -> str:
    """Return the prefix of this host's parts."""
    host = platform.node().encode()
    with suppress(OSError), open("/etc/machine-id", "rb") as file:
        host += file.read()
    return f".gpuens-{hashlib.sha256(host).hexdigest()[:8]}-"

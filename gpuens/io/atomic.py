"""Atomic writing of files: nothing partial under a final name, and no labels beside the record of other labels.

A file is written under a temporary name in the same folder (`gpuens.io.parts`) and renamed when it is complete.
"""

import errno
import hashlib
import json
import os
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from contextvars import ContextVar
from pathlib import Path
from typing import IO, Any

import numpy as np

from gpuens.io import paths, zarr_folder
from gpuens.io.parts import folders_of, new_part
from gpuens.io.writable import check_writable, check_zarr_place, refusing

Path_ = str | os.PathLike[str]

NO_LINKS = (errno.EPERM, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP)  # errors of file systems without hard links


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
        for folder in folders_of(beside):
            kept.callback(shutil.rmtree, folder, ignore_errors=True)
        new, _ = folders_of(beside)
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
            yield *kept.enter_context(new_part(os.path.dirname(os.path.realpath(path)))), kept, waiting
        if parts is None:
            _take_names(waiting)


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
            Path(os.path.realpath(at)).unlink(missing_ok=True)
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
    with refusing(path), new_part(folder) as (file, beside):
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
                os.replace(target, folders_of(beside.removesuffix(".new"))[1])
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

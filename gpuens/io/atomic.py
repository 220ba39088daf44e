"""Atomic writing of files: a file gets its final name only when it is complete.

Until then, it has a temporary name in the same folder (`gpuens.io.parts`). Labels and their record are renamed
together, so that labels never have the record of other labels.
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

from gpuens.io import paths
from gpuens.io.parts import folders_of, new_part
from gpuens.io.writable import check_writable, check_zarr_place, refuse_other_folder, refusing

Path_ = str | os.PathLike[str]

# numbers of the errors that file systems without hard links raise if a hard link is made
NO_LINKS = (errno.EPERM, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP)


@contextmanager
def replacing(path: Path_) -> Iterator[IO[bytes]]:
    """Open a temporary binary file, and rename it to ``path`` when the block ends; remove it if the block fails.

    Inside a block of `recorded`, the file is renamed at the end of the block of `recorded`.

    Raises
    ------
    OSError, ValueError
        If the file cannot be written at ``path``.
    """
    check_writable(path)
    with _beside(path) as (file, beside, _, waiting):
        yield file
        file.close()
        waiting.append((path, beside))


@contextmanager
def replacing_zarr(path: Path_) -> Iterator[str]:
    """Make a temporary folder and yield its path; rename the folder to ``path`` when the block ends.

    Inside a block of `recorded`, the folder is renamed at the end of the block of `recorded`. An existing zarr array is
    moved away just before the new one is renamed, so that for a moment no array has the name ``path``.

    Raises
    ------
    OSError, ValueError
        If the folder cannot be made, or if ``path`` is a folder that is neither empty nor a zarr array.
    """
    check_zarr_place(path)
    with _beside(path) as (_, beside, stack, waiting):
        for folder in folders_of(beside):
            stack.callback(shutil.rmtree, folder, ignore_errors=True)
        new, _ = folders_of(beside)
        os.mkdir(new)
        yield new
        waiting.append((path, new))


@contextmanager
def _beside(path: Path_) -> Iterator[tuple[IO[bytes], str, ExitStack, list[tuple[Path_, str]]]]:
    """Make a part, a temporary file in the folder of ``path``; yield the file, its path, a stack and a list.

    When the stack is closed, it removes the part. The caller appends complete parts to the list. The parts in the list
    are renamed at the end of this block, or, inside a block of `recorded`, at the end of the block of `recorded`.
    """
    with ExitStack() as own_stack:
        parts = _together.get()
        stack, waiting = (own_stack, []) if parts is None else parts
        with refusing(path):
            yield *stack.enter_context(new_part(os.path.dirname(os.path.realpath(path)))), stack, waiting
        if parts is None:
            _take_names(waiting)


@contextmanager
def recorded(path: Path_, *, at: Path_ | None = None) -> Iterator[dict[str, Any]]:
    """Yield an empty dict for the record of the file that `replacing` writes to ``path`` in this block.

    At the end of the block, the record and the SHA-256 of the file are written to ``at``, by default ``<path>.json``.
    If the block fails, none of its files is renamed. Otherwise, the old record is removed, then all files of the block
    are renamed, and the new record last. So a record never describes another version of the file.
    """
    at = record_of(path) if at is None else at
    record: dict[str, Any] = {}
    with ExitStack() as stack:
        waiting: list[tuple[Path_, str]] = []
        token = _together.set((stack, waiting))
        try:
            yield record
            *_, beside = (part for target, part in waiting if os.fspath(target) == os.fspath(path))
            record["sha256"] = digest(beside)
            write_record(at, record)
        finally:
            _together.reset(token)
        with refusing(at):
            Path(os.path.realpath(at)).unlink(missing_ok=True)
        _take_names(waiting)


def digest(path: Path_) -> str:
    """Return the SHA-256 of a file; for a folder, return the SHA-256 of the sorted ``sha256sum`` list of its files."""
    if os.path.isfile(path):
        with open(path, "rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    files = sorted(os.path.relpath(file, path).replace(os.sep, "/") for file in files_in(path))
    lines = [f"{digest(os.path.join(path, name))}  {name}\n" for name in files]
    return hashlib.sha256("".join(lines).encode(errors="surrogateescape")).hexdigest()


def files_in(path: Path_) -> Iterator[str]:
    """Yield the paths of all files in a folder and its subfolders; yield nothing if ``path`` is a file."""
    for folder, _, names in os.walk(os.fspath(path)):
        yield from (os.path.join(folder, name) for name in names)


def record_of(path: Path_) -> str:
    """Return the default path of the record of a file: the path of the file followed by ``.json``."""
    return f"{paths.without_slash(os.fspath(path))}.json"


def write_record(path: Path_, record: dict[str, Any]) -> None:
    """Write a record to ``path`` as JSON."""
    with replacing(path) as file:
        file.write(encoded(record))


def create_record(path: Path_, record: dict[str, Any]) -> None:
    """Write a record to ``path`` as JSON, unless a file ``path`` exists.

    If several processes do so at the same time, the record of the first process is kept. No process ever sees an
    incomplete record.
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
    """Return a record as the bytes of a JSON file.

    NumPy's numbers become numbers. Other values whose types JSON lacks are converted to texts.
    """
    text = json.dumps(record, indent=2, ensure_ascii=False, default=_as_json_value)
    # a file name may contain bytes that are not valid text; these are written as \uXXXX, which is valid JSON
    return f"{text}\n".encode(errors="backslashreplace")


def _as_json_value(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else str(value)


_together: ContextVar[tuple[ExitStack, list[tuple[Path_, str]]] | None] = ContextVar("together", default=None)


def _take_names(waiting: list[tuple[Path_, str]]) -> None:
    """Rename complete parts in the order of the list; store each part on the disk before the next one is renamed."""
    for path, beside in waiting:
        target = os.path.realpath(path)  # if ``path`` is a symbolic link, the link is kept and its target is replaced
        with refusing(path):
            for part in (*files_in(beside), beside):
                _to_disk(part)
            if os.path.isdir(beside) and os.path.isdir(target):
                refuse_other_folder(target)  # checked again, because the folder may have changed since the start
                os.replace(target, folders_of(beside.removesuffix(".new"))[1])
            os.replace(beside, target)
            _to_disk(os.path.dirname(target))


def _to_disk(path: str) -> None:
    """Wait until a file, or the list of files in a folder, is stored on the disk and would survive a loss of power."""
    folder = os.path.isdir(path)
    # a folder in which the user may write, but which the user may not read, cannot be opened
    with suppress(PermissionError) if folder else nullcontext():
        descriptor = os.open(path, os.O_RDONLY if folder else os.O_RDWR)
        try:
            os.fsync(descriptor)
        except OSError as error:
            # some file systems do not support fsync for folders
            if not (folder and error.errno in (errno.EINVAL, errno.ENOTSUP)):
                raise
        finally:
            os.close(descriptor)

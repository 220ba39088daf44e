"""Outputs of commands: where they can be written, and what they may replace."""

import json
import os
import stat
from collections.abc import Iterable
from contextlib import suppress

from gpuens.io import paths, writable
from gpuens.io.kinds import ANNOTATED, FOLDERS, INPUTS, WITH_NUMBERS, Path_

PAGE_MARK = b'<meta name="generator" content="gpuens">'  # in the head of every report
HEAD_BYTES = 1024  # first bytes of a page, which hold its mark


def check_output(path: str, kinds: Iterable[str], *, inputs: Iterable[Path_] = ()) -> str:
    """Return the kind of an output; refuse unknown kinds, unwritable places and the inputs themselves."""
    kind = paths.file_kind(path, kinds)
    _check_apart(path, inputs)
    (writable.check_zarr_place if kind in FOLDERS else writable.check_writable)(path)
    target = os.path.realpath(path)
    folder = os.path.dirname(target)
    if not os.access(folder, os.W_OK):
        raise PermissionError(f"path {path!r} is in a directory that this user may not write to; choose another place.")
    if os.path.exists(target) and not _replaceable(target, folder):
        raise PermissionError(f"path {path!r} belongs to another user, who alone may replace it; choose another name.")
    return kind


def kind_like(path: Path_, *, in_chunks: bool = False, numbers: bool = False) -> str:
    """Return the kind of an output that nobody has named: that of the input, which has the names of the objects too.

    ``numbers``: real numbers are written beside the labels. Names of cells are kept in csv, as a copy of an h5ad file
    has to be asked for. Chunks are written as they come, in npy.

    >>> kind_like("a.csv.gz"), kind_like("a.h5ad"), kind_like("a.npy", numbers=True), kind_like("a.zarr")
    ('.csv.gz', '.csv', '.npz', '.npy')
    """
    kind = paths.file_kind(path, INPUTS)
    if kind in ANNOTATED:
        return ".csv"
    if kind in WITH_NUMBERS and not in_chunks:
        return kind
    return ".npz" if numbers else ".npy"


def _check_apart(output: Path_, inputs: Iterable[Path_]) -> None:
    """Refuse an output that is an input, holds one, or is inside one."""
    target = os.path.realpath(output)
    for source in inputs:
        place = os.path.realpath(source)
        if place == target:
            raise ValueError(f"output {os.fspath(output)!r} is the input itself; choose another name.")
        if place.startswith(target + os.sep) and os.path.isdir(target):
            raise ValueError(f"output {os.fspath(output)!r} holds the input {os.fspath(source)!r}; name another place.")
        if target.startswith(place + os.sep) and paths.is_zarr(os.fspath(source)):  # and no data set of that name
            raise ValueError(
                f"output {os.fspath(output)!r} is inside the input {os.fspath(source)!r}; name another place."
            )


def check_record(path: Path_) -> None:
    """Refuse to replace a file that is not the record of an earlier run by a record."""
    writable.check_writable(path, "record")
    if os.path.exists(path) and "gpuens" not in _read_record(path):
        raise FileExistsError(
            f"record {os.fspath(path)!r} would replace a file that gpuens did not write; move it away, or give the "
            "output another name."
        )


def _read_record(path: Path_) -> dict[str, object]:
    """Return the contents of a record or a marker; an empty dict for other files, or without one."""
    with suppress(OSError, ValueError), open(path, encoding="utf-8") as file:
        found = json.load(file)
        return found if isinstance(found, dict) else {}
    return {}


def check_page_place(path: Path_) -> None:
    """Refuse to replace a foreign file by a report whose name gpuens chose."""
    with suppress(FileNotFoundError), open(path, "rb") as file:
        if PAGE_MARK not in file.read(HEAD_BYTES):
            raise FileExistsError(
                f"page {os.fspath(path)!r} would replace a file that gpuens did not write; move it away, or give the "
                "output another name."
            )


def _replaceable(path: str, folder: str) -> bool:
    """Return whether this user may replace a file; in sticky folders such as /tmp only its owner may."""
    where = os.stat(folder)
    if not where.st_mode & stat.S_ISVTX or not hasattr(os, "geteuid"):
        return True
    return os.geteuid() in (0, where.st_uid, os.stat(path).st_uid)

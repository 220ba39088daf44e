"""Outputs of commands: the places where they can be written, and the files that they may replace."""

import json
import os
import stat
from collections.abc import Iterable
from contextlib import suppress

from gpuens.io import paths, writable
from gpuens.io.kinds import ANNOTATED, FOLDERS, INPUTS, WITH_NUMBERS, Path_

PAGE_MARK = b'<meta name="generator" content="gpuens">'  # mark in the head of every report
HEAD_BYTES = 1024  # leading bytes of a page that contain its mark


def check_output(path: str, kinds: Iterable[str], *, inputs: Iterable[Path_] = ()) -> str:
    """Return the kind of an output; refuse unknown kinds, unwritable places and the input files."""
    kind = paths.file_kind(path, kinds)
    _check_apart(path, inputs)
    (writable.check_zarr_place if kind in FOLDERS else writable.check_writable)(path)
    target = os.path.realpath(path)
    folder = os.path.dirname(target)
    if not os.access(folder, os.W_OK):
        raise PermissionError(f"path {path!r} is in a directory that this user may not write to; choose another place.")
    if os.path.exists(target) and not _replaceable(target, folder):
        raise PermissionError(
            f"path {path!r} belongs to another user, and only this user may replace it; choose another name."
        )
    return kind


def kind_like(path: Path_, *, in_chunks: bool = False, numbers: bool = False) -> str:
    """Return the default kind of an output: the kind of the input, which can also hold the names of the objects.

    ``numbers``: real numbers are written beside the labels. The default for h5ad is csv, which keeps the names of the
    cells; a copy of the h5ad file is written only on request. Chunks are written one after the other, in npy.

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
    """Refuse an output that is an input, contains an input, or is inside an input."""
    target = os.path.realpath(output)
    for source in inputs:
        place = os.path.realpath(source)
        if place == target:
            raise ValueError(f"output {os.fspath(output)!r} is the input itself; choose another name.")
        if place.startswith(target + os.sep) and os.path.isdir(target):
            raise ValueError(f"output {os.fspath(output)!r} holds the input {os.fspath(source)!r}; name another place.")
        # a name without this ending may be that of a data set
        if target.startswith(place + os.sep) and paths.is_zarr(os.fspath(source)):
            raise ValueError(
                f"output {os.fspath(output)!r} is inside the input {os.fspath(source)!r}; name another place."
            )


def check_record(path: Path_) -> None:
    """Refuse to write a record over a file that is not the record of an earlier run."""
    writable.check_writable(path, "record")
    if os.path.exists(path) and "gpuens" not in _read_record(path):
        raise FileExistsError(
            f"record {os.fspath(path)!r} would replace a file that gpuens did not write; move it away, or give the "
            "output another name."
        )


def _read_record(path: Path_) -> dict[str, object]:
    """Return the contents of a record or a marker; {} for any other or absent file."""
    with suppress(OSError, ValueError), open(path, encoding="utf-8") as file:
        found = json.load(file)
        return found if isinstance(found, dict) else {}
    return {}


def check_page_place(path: Path_) -> None:
    """Refuse to write a report, under a name that gpuens chose, over a file that is no report."""
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

"""Output files of commands: checks that a file can be written at a path, and that it may replace an existing file."""

import json
import os
import stat
from collections.abc import Iterable
from contextlib import suppress

from gpuens.io import paths, writable
from gpuens.io.paths import ANNOTATED, FOLDERS, OUTPUTS, WITH_NUMBERS, Path_

PAGE_MARK = b'<meta name="generator" content="gpuens">'  # text in the head of every report page
HEAD_BYTES = 1024  # number of bytes, from the beginning of a page, in which `PAGE_MARK` is searched


def check_output(path: str, kinds: Iterable[str], *, inputs: Iterable[Path_] = ()) -> str:
    """Check that an output file can be written and replaces no input file; return the kind of the file, its ending.

    Raise an error if the kind is not in ``kinds``.
    """
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
    """Return the default kind of the output file for an input file.

    This is the kind of the input file, if this kind can hold the names of the objects and real numbers. For h5ad,
    feather and text of other endings it is csv, which holds the names, too; a copy of an h5ad file is written only on
    request. Otherwise it is npz if ``numbers`` are written in addition to the labels, and npy if not. Work in chunks
    writes the chunks to npy, one after the other.

    >>> kind_like("a.csv.gz"), kind_like("a.txt"), kind_like("a.npy", numbers=True), kind_like("a.zarr")
    ('.csv.gz', '.csv', '.npz', '.npy')
    """
    kind = paths.known_kind(path, OUTPUTS)
    if kind is None or kind in ANNOTATED:  # text of any ending, feather or h5ad
        return ".csv"
    if kind in WITH_NUMBERS and not in_chunks:
        return kind
    return ".npz" if numbers else ".npy"


def _check_apart(output: Path_, inputs: Iterable[Path_]) -> None:
    """Raise an error if the output is an input, contains an input, or is inside an input."""
    target = os.path.realpath(output)
    for source in inputs:
        place = os.path.realpath(source)
        if place == target:
            raise ValueError(f"output {os.fspath(output)!r} is the input itself; choose another name.")
        if place.startswith(target + os.sep) and os.path.isdir(target):
            raise ValueError(f"output {os.fspath(output)!r} holds the input {os.fspath(source)!r}; name another place.")
        # only for zarr, because a source with another ending may be the name of a data set, not a path
        if target.startswith(place + os.sep) and paths.is_zarr(os.fspath(source)):
            raise ValueError(
                f"output {os.fspath(output)!r} is inside the input {os.fspath(source)!r}; name another place."
            )


def check_record(path: Path_) -> None:
    """Raise an error if a new record at ``path`` would replace a file that is not the record of an earlier run."""
    writable.check_writable(path, "record")
    if os.path.exists(path) and "gpuens" not in _read_record(path):
        raise FileExistsError(
            f"record {os.fspath(path)!r} would replace a file that gpuens did not write; move it away, or give the "
            "output another name."
        )


def _read_record(path: Path_) -> dict[str, object]:
    """Return the JSON object that a file holds; return {} if the file is absent or holds no JSON object."""
    with suppress(OSError, ValueError), open(path, encoding="utf-8") as file:
        record = json.load(file)
        return record if isinstance(record, dict) else {}
    return {}


def _replaceable(path: str, folder: str) -> bool:
    """Return whether this user may replace a file.

    In a folder with the sticky bit, such as /tmp, only the owner of the file, the owner of the folder and root may.
    """
    where = os.stat(folder)
    if not where.st_mode & stat.S_ISVTX or not hasattr(os, "geteuid"):
        return True
    return os.geteuid() in (0, where.st_uid, os.stat(path).st_uid)

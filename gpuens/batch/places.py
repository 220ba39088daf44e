"""Places, which are local paths or URIs: patterns of places, sizes and stamps of files, and local copies of files.

A URI is any address that fsspec can open: s3://, gs://, az://, file://, memory://, ….
"""

import glob
import os
import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from gpuens.io import atomic, paths
from gpuens.runtime import checks, installing

# entries in the description of a file by fsspec that change when the file changes
STAMPS = ("ETag", "etag", "generation", "md5Hash", "content_md5", "mtime", "LastModified", "last_modified", "created")


def is_uri(place: str) -> bool:
    """Return whether a place is a URI, not a local path.

    >>> is_uri("s3://bucket/labels.npy"), is_uri("labels.npy"), is_uri("C:/labels.npy")
    (True, False, False)
    """
    return re.match(r"[A-Za-z][A-Za-z0-9+.-]+://", place) is not None


def filesystem(uri: str) -> tuple[Any, str]:
    """Return the file system that fsspec provides for a URI, and the path of the URI in this file system."""
    protocol = uri.split("://")[0]
    extra = {"s3": "s3fs", "gs": "gcsfs", "gcs": "gcsfs", "az": "adlfs", "abfs": "adlfs"}.get(protocol, "fsspec")
    try:
        import fsspec

        fs_and_path: tuple[Any, str] = fsspec.core.url_to_fs(uri)
    except ImportError as error:
        raise ImportError(
            f"{protocol}:// needs {extra}, which is not installed: {installing.command('cloud')}."
        ) from error
    except ValueError as error:
        raise ValueError(f"{uri!r} is on a file system unknown to fsspec ({checks.gist(error)}).") from error
    return fs_and_path


@contextmanager
def talking(uri: str) -> Iterator[None]:
    """Replace errors of a storage service by PermissionError or ConnectionError.

    After a ConnectionError, another try may succeed.
    """
    try:
        yield
    except (OSError, ImportError, ValueError, MemoryError):
        raise
    except Exception as error:  # the client library of each storage service raises its own types of errors
        name = type(error).__name__
        if type(error).__module__ == "builtins":  # the error is not from the service
            raise
        if "Credential" in name or "Auth" in name:
            raise PermissionError(f"{uri!r} needs credentials ({checks.gist(error)}).") from error
        raise ConnectionError(f"{uri!r} did not answer ({checks.gist(error)}).") from error


def local(place: str, base: str) -> str:
    """Return the path of a place that is not a URI; a relative place is relative to the folder ``base``."""
    return os.path.join(base, place)


def joined(place: str, base: str) -> str:
    """Return a place relative to ``base`` if ``base`` is a URI; otherwise return the place unchanged.

    >>> joined("a.npy", "s3://bucket/runs"), joined("a.npy", "runs"), joined("/a.npy", "s3://bucket")
    ('s3://bucket/runs/a.npy', 'a.npy', '/a.npy')
    """
    return f"{base}/{place}" if is_uri(base) and not is_uri(place) and not os.path.isabs(place) else place


def matching(place: str, base: str) -> list[str]:
    """Return the sorted places that a pattern matches; if ``place`` is not a pattern, return only ``place``."""
    if not glob.has_magic(place) or (not is_uri(place) and os.path.exists(local(place, base))):
        return [place]
    if is_uri(place):
        fs, path = filesystem(place)
        with talking(place):
            matches = sorted(fs.unstrip_protocol(match) for match in fs.glob(path))
    else:
        matches = sorted(glob.glob(place, root_dir=base or None, recursive=True))
    if not matches:
        raise ValueError(f"input {place!r} matches no file; correct the pattern.")
    return matches


def stamp(place: str, base: str, *, checksum: bool = False) -> dict[str, Any]:
    """Return a dict with the size of a file in bytes, and its "stamp" (time of change or etag) or its "sha256".

    Raises
    ------
    OSError
        If the file does not exist.
    """
    if is_uri(place):
        fs, path = filesystem(place)
        with talking(place):
            fs.invalidate_cache(path)
            info = fs.info(path)
        mark = next((str(info[name]) for name in STAMPS if info.get(name)), None)
        if mark is None or checksum:
            with at_hand(place, base) as copy:
                return {"size": _size(copy), "sha256": atomic.digest(copy)}
        return {"size": int(info.get("size") or 0), "stamp": mark}
    path = local(place, base)
    paths.check_readable(path, folder=paths.is_zarr(place))
    if checksum:
        return {"size": _size(path), "sha256": atomic.digest(path)}
    newest = max(os.stat(file).st_mtime_ns for file in (path, *atomic.files_in(path)))
    return {"size": _size(path), "stamp": str(newest)}


def _size(path: str) -> int:
    return sum(map(os.path.getsize, atomic.files_in(path))) if os.path.isdir(path) else os.path.getsize(path)


@contextmanager
def at_hand(place: str, base: str) -> Iterator[str]:
    """Yield the path of a local file with the contents of a place; copy the file of a URI to a temporary folder."""
    if not is_uri(place):
        yield local(place, base)
        return
    fs, path = filesystem(place)
    if paths.is_zarr(place):
        raise ValueError(f"input {place!r} is a folder of chunks; copy it to a local disk first.")
    with tempfile.TemporaryDirectory(prefix="gpuens-") as folder:
        copy = os.path.join(folder, path.rstrip("/").split("/")[-1])
        with talking(place):
            try:
                fs.get_file(path, copy)
            except FileNotFoundError as error:
                raise FileNotFoundError(f"path {place!r} does not exist; check the name.") from error
        yield copy

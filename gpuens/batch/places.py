"""Local paths and URIs: what they match, their size and stamp, and a local copy of a file.

A URI is whatever fsspec opens: s3://, gs://, az://, file://, memory://, ….
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

# fields of os.stat that differ between two states of a file
STAMPS = ("ETag", "etag", "generation", "md5Hash", "content_md5", "mtime", "LastModified", "last_modified", "created")


def is_uri(place: str) -> bool:
    """Return whether a place is a URI and not a local path.

    >>> is_uri("s3://bucket/labels.npy"), is_uri("labels.npy"), is_uri("C:/labels.npy")
    (True, False, False)
    """
    return re.match(r"[A-Za-z][A-Za-z0-9+.-]+://", place) is not None


def filesystem(uri: str) -> tuple[Any, str]:
    """Return fsspec's file system of a URI, and the path in it."""
    protocol = uri.split("://")[0]
    extra = {"s3": "s3fs", "gs": "gcsfs", "gcs": "gcsfs", "az": "adlfs", "abfs": "adlfs"}.get(protocol, "fsspec")
    try:
        import fsspec

        found: tuple[Any, str] = fsspec.core.url_to_fs(uri)
    except ImportError as error:
        raise ImportError(
            f"{protocol}:// needs {extra}, which is not installed: {installing.command('cloud')}."
        ) from error
    except ValueError as error:
        raise ValueError(f"{uri!r} is on no file system that fsspec knows ({checks.gist(error)}).") from error
    return found


@contextmanager
def talking(uri: str) -> Iterator[None]:
    """Turn errors of a storage service into errors of the system: most are gone at the next try."""
    try:
        yield
    except (OSError, ImportError, ValueError, MemoryError):
        raise
    except Exception as error:  # every client has its own
        name = type(error).__name__
        if type(error).__module__ == "builtins":  # a mistake here, not of a service
            raise
        if "Credential" in name or "Auth" in name:
            raise PermissionError(f"{uri!r} needs credentials ({checks.gist(error)}).") from error
        raise ConnectionError(f"{uri!r} did not answer ({checks.gist(error)}).") from error


def local(place: str, base: str) -> str:
    """Return the path of a local place, relative ones seen from ``base``."""
    return os.path.join(base, place)


def joined(place: str, base: str) -> str:
    """Return a place as seen from ``base``, which may be a URI: only then is it changed.

    >>> joined("a.npy", "s3://bucket/runs"), joined("a.npy", "runs"), joined("/a.npy", "s3://bucket")
    ('s3://bucket/runs/a.npy', 'a.npy', '/a.npy')
    """
    return f"{base}/{place}" if is_uri(base) and not is_uri(place) and not os.path.isabs(place) else place


def matching(place: str, base: str) -> list[str]:
    """Return the places that a pattern matches, as written and in order; a place without pattern is itself."""
    if not glob.has_magic(place) or (not is_uri(place) and os.path.exists(local(place, base))):
        return [place]
    if is_uri(place):
        fs, path = filesystem(place)
        with talking(place):
            found = sorted(fs.unstrip_protocol(match) for match in fs.glob(path))
    else:
        found = sorted(glob.glob(place, root_dir=base or None, recursive=True))
    if not found:
        raise ValueError(f"input {place!r} matches no file.")
    return found


def stamp(place: str, base: str, *, checksum: bool = False) -> dict[str, Any]:
    """Return the size (bytes) of a file and what tells its contents: a stamp (time, etag), or its SHA-256.

    Raises
    ------
    OSError
        If it is not there.
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
    """Yield the path of a local file with the contents of a place: a URI is copied to a temporary folder."""
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

"""Stores for the results of a batch: local folders or URIs. A result is valid only if it has a marker, written last."""

import json
import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from gpuens.batch import places
from gpuens.batch.claims import Claims
from gpuens.io import atomic, paths, writable

OBJECTS = {"s3", "s3a", "gs", "gcs", "az", "abfs", "abfss", "adl"}  # protocols of object stores, which have no folders


def open_store(out: str, *, make: bool = True) -> "Store":
    """Return the store for a local folder or a URI; if ``make`` is true, create the folder if it does not exist."""
    return BucketStore(out, make=make) if places.is_uri(out) else FolderStore(out, make=make)


def marker(store: "Store", name: str) -> dict[str, Any] | None:
    """Read the marker ``name`` and return its contents, or None if the marker is absent or damaged.

    Raises
    ------
    FileExistsError
        For a JSON file that is no marker.
    """
    contents = store.read(name)
    if contents is None:
        return None
    try:
        entries = json.loads(contents)
    except ValueError:
        return None
    if not isinstance(entries, dict) or "fingerprint" not in entries:
        raise FileExistsError(f"{name} exists but is not from a batch; move it away, or name another folder.")
    return entries


def write_marker(store: "Store", name: str, facts: dict[str, Any]) -> None:
    store.write(name, atomic.encoded(facts))


class Lines:
    """A writer that appends lines to a file in a store.

    In a folder, it appends each line at once. Behind a URI, where files cannot grow, it writes all lines at the end.
    """

    def __init__(self, store: "Store", name: str) -> None:
        self._store, self._name = store, name
        self._lines: list[bytes] = []

    def add(self, line: bytes) -> None:
        if isinstance(self._store, FolderStore):
            self._store.append(self._name, line)
        else:
            self._lines.append(line)

    def close(self) -> None:
        if self._lines:
            self._store.write(self._name, (self._store.read(self._name) or b"") + b"".join(self._lines))


class FolderStore:
    """A store in a folder, which is on a local disk or on a disk that several machines share."""

    def __init__(self, path: str, *, make: bool = True) -> None:
        writable.check_folder(path, "out")
        if make:
            os.makedirs(path, exist_ok=True)
        if os.path.exists(path) and not os.access(path, os.W_OK):
            raise PermissionError(f"out {path!r} is a folder that this user may not write to; choose another place.")
        self.path = path
        self.claims: Claims | None = Claims(os.path.join(path, ".gpuens-claims"))

    def names(self) -> set[str]:
        """Return the names of the files that exist in the store."""
        try:
            return set(os.listdir(self.path))
        except FileNotFoundError:
            return set()

    def has(self, name: str) -> bool:
        return os.path.exists(os.path.join(self.path, name))

    def read(self, name: str) -> bytes | None:
        """Return the contents of a file, or None if it does not exist."""
        path = os.path.join(self.path, name)
        try:
            paths.check_readable(path)
            with open(path, "rb") as file:
                return file.read()
        except FileNotFoundError:
            return None

    def write(self, name: str, contents: bytes) -> None:
        with atomic.replacing(os.path.join(self.path, name)) as file:
            file.write(contents)

    def append(self, name: str, contents: bytes) -> None:
        path = os.path.join(self.path, name)
        writable.check_writable(path)
        with writable.refusing(path), open(path, "ab", buffering=0) as file:
            file.write(contents)

    def remove(self, names: Sequence[str]) -> None:
        for name in names:
            Path(os.path.join(self.path, name)).unlink(missing_ok=True)

    @contextmanager
    def place(self, names: Sequence[str]) -> Iterator[str]:
        """Yield the path of a folder where the block writes files; at its end, make these files visible in the store.

        The last of ``names`` is the marker, which becomes visible only after all other files.
        """
        yield self.path  # `atomic.recorded` writes to temporary names, then renames all files together


class BucketStore:
    """A store in a folder behind a URI; if writing a file fails, no incomplete file remains."""

    claims: Claims | None = None  # without claims, runners must divide the jobs by shards

    def __init__(self, uri: str, *, make: bool = True) -> None:
        self.uri = uri.rstrip("/")
        self.fs, self.path = places.filesystem(self.uri)
        if make and uri.split("://")[0] not in OBJECTS:
            with places.talking(self.uri):
                self.fs.makedirs(self.path, exist_ok=True)

    def names(self) -> set[str]:
        with places.talking(self.uri):
            self.fs.invalidate_cache()
            try:
                return {path.rstrip("/").split("/")[-1] for path in self.fs.ls(self.path, detail=False)}
            except FileNotFoundError:  # the folder has not been created yet
                return set()

    def has(self, name: str) -> bool:
        return name in self.names()

    def read(self, name: str) -> bytes | None:
        with places.talking(self.uri):
            try:
                contents: bytes = self.fs.cat_file(f"{self.path}/{name}")
            except FileNotFoundError:
                return None
            return contents

    def write(self, name: str, contents: bytes) -> None:
        with places.talking(self.uri):
            self.fs.pipe_file(f"{self.path}/{name}", contents)

    def remove(self, names: Sequence[str]) -> None:
        with places.talking(self.uri):
            for name in names:
                with suppress(FileNotFoundError):
                    self.fs.rm_file(f"{self.path}/{name}")

    @contextmanager
    def place(self, names: Sequence[str]) -> Iterator[str]:
        with tempfile.TemporaryDirectory(prefix="gpuens-") as folder:
            yield folder
            self.remove(names[-1:])
            with places.talking(self.uri):
                for name in names:
                    self.fs.put_file(os.path.join(folder, name), f"{self.path}/{name}")


Store = FolderStore | BucketStore

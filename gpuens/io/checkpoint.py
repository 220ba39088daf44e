"""Checkpoints: a folder keeps each finished part of long work, so that stopped work can continue.

A part carries a seal: the digest of the work and of its own arrays. A part that is damaged, changed or of other work
is computed again, with a warning.
"""

import hashlib
import json
import os
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from gpuens.io import atomic, parts, paths, writable
from gpuens.io.arrays import Archive
from gpuens.labels.ensemble import Ensemble
from gpuens.runtime import checks
from gpuens.runtime import device as devices

WORK = "work.json"
SEAL = "seal"  # name of the array of a part that holds its digest
BYTES_READ = 2**24  # bytes of an array that a digest reads at once; the array may be mapped from a file
Arrays = dict[str, np.ndarray]


class Checkpoint:
    """A folder with the results of one piece of work: one npz file for each part.

    Parameters
    ----------
    path : str or path
        The folder; it is created if absent.
    work : dict
        Everything that decides the results, such as parameters and a digest of the data, as JSON values.

    Raises
    ------
    ValueError, OSError
        For a folder that holds other work, or other files, or cannot be written to.

    Examples
    --------
    >>> import numpy as np, tempfile
    >>> with tempfile.TemporaryDirectory() as place:
    ...     folders = [Checkpoint(f"{place}/sums", {"seed": 0}) for _ in range(2)]
    ...     found = [one.part("first", lambda: {"sum": np.array(s)}) for one, s in zip(folders, (3, 4))]
    >>> [int(part["sum"]) for part in found]
    [3, 3]
    """

    def __init__(self, path: str | os.PathLike[str], work: dict[str, Any]) -> None:
        if not isinstance(path, (str, os.PathLike)) or not isinstance(os.fspath(path), str):
            raise TypeError(f"resume must be the path of a folder, not {checks.shown(path)}.")
        if not os.fspath(path):
            raise ValueError("resume must name a folder, which an empty text does not.")
        writable.check_folder(path, "resume")
        os.makedirs(path, exist_ok=True)
        self.path = os.fspath(path)
        # in the form in which JSON is read back
        at, work = (os.path.join(self.path, WORK), json.loads(atomic.encoded(work)))
        others = not all(map(parts.is_part, os.listdir(self.path)))  # checked before the file of the work is read
        if not os.path.exists(at):
            if others:
                raise ValueError(f"resume={self.path!r} holds other files; name a new or an empty folder.")
            atomic.create_record(at, work)
        before = _read_work(at)
        if before is None:
            checks.warn(f"resume={self.path!r} has a damaged {WORK}, which is written again, like parts of other work.")
            atomic.write_record(at, work)
            before = work
        if other := [name for name in work if before.get(name) != work[name]]:
            raise ValueError(f"resume={self.path!r} holds other work ({', '.join(other)} differ); name another folder.")
        self._work = json.dumps(work, sort_keys=True)
        self._damaged: set[str] = set()  # names of parts already warned about

    def __contains__(self, name: str) -> bool:
        return self._kept(name) is not None

    def part(self, name: str, find: Callable[[], Arrays]) -> Arrays:
        """Return the arrays of a part, in host memory; if the folder lacks them, call ``find`` and store its result."""
        if (kept := self._kept(name)) is not None:
            return kept
        found = {key: devices.to_host(array) for key, array in find().items()}
        with atomic.replacing(self._at(name)) as file:
            np.savez(file, **found, **{SEAL: np.array(self._seal(found))})  # type: ignore[arg-type]
        return found

    def _at(self, name: str) -> str:
        return os.path.join(self.path, f"{name}.npz")

    def _kept(self, name: str) -> Arrays | None:
        """Return the stored arrays of a part, or None if absent or damaged; warn about a damaged part."""
        path = self._at(name)
        if not os.path.exists(path):
            return None
        try:
            paths.check_readable(path)
            with Archive(path) as archive:
                found = {key: archive.read(key) for key in archive.names}
            if str(found.pop(SEAL)) == self._seal(found):
                return found
        except (MemoryError, OSError):
            raise
        except Exception:  # zip files raise errors of many types
            pass
        if name not in self._damaged:
            self._damaged.add(name)
            checks.warn(f"{path!r} is damaged or belongs to other work; this part is computed again.")
        return None

    def _seal(self, found: Arrays) -> str:
        """Return the digest of this work and of the arrays of a part."""
        parts = (f"{key} {digest(np.atleast_1d(found[key]))}" for key in sorted(found))
        return hashlib.sha256("\n".join([self._work, *parts]).encode()).hexdigest()


def _read_work(at: str) -> dict[str, Any] | None:
    """Return the record of a folder's work, or None for any other file; refuse pipes, which may never end."""
    paths.check_readable(at)
    try:
        with open(at, encoding="utf-8") as file:
            found = json.load(file)
    except ValueError:  # invalid JSON or UTF-8
        return None
    return found if isinstance(found, dict) else None


def found_anew(_: str, find: Callable[[], Arrays]) -> Arrays:
    """Compute a part without storing it, in place of `Checkpoint.part`."""
    return find()


def digest(data: Any) -> str:
    """Return the SHA-256 of features, of an ensemble, or of a dict of ensembles."""
    if isinstance(data, Mapping):
        arrays = [np.array([f"{k} {digest(Ensemble(data[k]))}" for k in sorted(data)])]
    elif isinstance(data, Ensemble):
        arrays = [data.codes, data.offsets]
    else:
        arrays = [data.data, data.indices, data.indptr] if hasattr(data, "tocsr") else [devices.to_host(data)]
    found = hashlib.sha256(str([(array.dtype.str, array.shape) for array in arrays]).encode())
    for array in arrays:
        step = max(1, BYTES_READ * len(array) // max(1, array.nbytes))
        for start in range(0, len(array), step):
            found.update(np.ascontiguousarray(array[start : start + step]).data)
    return found.hexdigest()

"""Checkpoints: a folder stores each finished part of long work, so that the work can continue after a stop.

Each part has a seal, which is the digest of the description of the work and of the arrays of the part. If the seal does
not fit, the part is damaged, was changed, or belongs to other work; then it is computed again, with a warning.
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
SEAL = "seal"  # name of the array that holds the digest of a part, in the npz file of this part
# number of bytes that `digest` reads at a time, because an array may be mapped from a file larger than the memory
BYTES_READ = 2**24
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
        # ``work`` is converted to what JSON returns when read, so that it can be compared with the stored work
        description, work = (os.path.join(self.path, WORK), json.loads(atomic.encoded(work)))
        # whether the folder holds any files except temporary ones
        has_files = not all(map(parts.is_part, os.listdir(self.path)))
        if not os.path.exists(description):
            if has_files:
                raise ValueError(f"resume={self.path!r} holds other files; name a new or an empty folder.")
            atomic.create_record(description, work)
        stored_work = _read_work(description)
        if stored_work is None:
            checks.warn(f"resume={self.path!r} has a damaged {WORK}, which is written again, like parts of other work.")
            atomic.write_record(description, work)
            stored_work = work
        if different := [name for name in work if stored_work.get(name) != work[name]]:
            raise ValueError(
                f"resume={self.path!r} holds other work ({', '.join(different)} differ); name another folder."
            )
        self._work = json.dumps(work, sort_keys=True)
        self._damaged: set[str] = set()  # names of the damaged parts for which a warning was given

    def __contains__(self, name: str) -> bool:
        return self._stored_arrays(name) is not None

    def part(self, name: str, find: Callable[[], Arrays]) -> Arrays:
        """Return the arrays of a part in host memory: the stored arrays, or else the result of ``find``.

        If the folder lacks the part, ``find`` is called and its result is stored.
        """
        if (stored := self._stored_arrays(name)) is not None:
            return stored
        arrays = {key: devices.to_host(array) for key, array in find().items()}
        with atomic.replacing(self._path_of(name)) as file:
            np.savez(file, **arrays, **{SEAL: np.array(self._seal(arrays))})  # type: ignore[arg-type]
        return arrays

    def _path_of(self, name: str) -> str:
        return os.path.join(self.path, f"{name}.npz")

    def _stored_arrays(self, name: str) -> Arrays | None:
        """Return the stored arrays of a part, or None if the part is absent or damaged; warn if it is damaged."""
        path = self._path_of(name)
        if not os.path.exists(path):
            return None
        try:
            paths.check_readable(path)
            with Archive(path) as archive:
                stored = {key: archive.read(key) for key in archive.names}
            if str(stored.pop(SEAL)) == self._seal(stored):
                return stored
        except (MemoryError, OSError):
            raise
        except Exception:  # reading a damaged zip file can raise errors of many types
            pass
        if name not in self._damaged:
            self._damaged.add(name)
            checks.warn(f"{path!r} is damaged or belongs to other work; this part is computed again.")
        return None

    def _seal(self, arrays: Arrays) -> str:
        """Return the digest of the description of this work and of the arrays of a part."""
        parts = (f"{key} {digest(np.atleast_1d(arrays[key]))}" for key in sorted(arrays))
        return hashlib.sha256("\n".join([self._work, *parts]).encode()).hexdigest()


def _read_work(path: str) -> dict[str, Any] | None:
    """Read the description of the work from the file ``path``; return None if the file does not hold a JSON object.

    Raise an error for a pipe, because reading a pipe may never end.
    """
    paths.check_readable(path)
    try:
        with open(path, encoding="utf-8") as file:
            work = json.load(file)
    except ValueError:  # the file is not valid JSON or not valid UTF-8
        return None
    return work if isinstance(work, dict) else None


def found_anew(_: str, find: Callable[[], Arrays]) -> Arrays:
    """Compute a part by ``find`` and return it without storing it; replaces `Checkpoint.part` if there is no folder."""
    return find()


def digest(data: Any) -> str:
    """Return the SHA-256 of features, of an ensemble, or of a dict of ensembles."""
    if isinstance(data, Mapping):
        arrays = [np.array([f"{k} {digest(Ensemble(data[k]))}" for k in sorted(data)])]
    elif isinstance(data, Ensemble):
        arrays = [data.codes, data.offsets]
    else:
        arrays = [data.data, data.indices, data.indptr] if hasattr(data, "tocsr") else [devices.to_host(data)]
    sha = hashlib.sha256(str([(array.dtype.str, array.shape) for array in arrays]).encode())
    for array in arrays:
        step = max(1, BYTES_READ * len(array) // max(1, array.nbytes))
        for start in range(0, len(array), step):
            sha.update(np.ascontiguousarray(array[start : start + step]).data)
    return sha.hexdigest()

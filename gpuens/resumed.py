"""Long work that was stopped goes on: each part of its results is kept in a folder."""

import hashlib
import json
import os
import zipfile
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from gpuens import checks
from gpuens import device as devices
from gpuens.ensemble import Ensemble
from gpuens.io import atomic

WORK = "work.json"
BYTES_READ = 2**24  # at once, of what may be mapped from a file
Arrays = dict[str, np.ndarray]


class Folder:
    """A folder with the results of one work, an npz file for each part.

    Parameters
    ----------
    path : str or path
        It is made where it is not there.
    work : dict
        What decides the results, such as parameters and a digest of the data, for JSON.

    Raises
    ------
    ValueError, OSError
        For a folder that holds other work, or other files, or cannot be written to.

    Examples
    --------
    >>> import numpy as np, tempfile
    >>> with tempfile.TemporaryDirectory() as place:
    ...     found = [Folder(f"{place}/sums", {"seed": 0}).part("first", lambda: {"sum": np.array(s)}) for s in (3, 4)]
    >>> [int(part["sum"]) for part in found]
    [3, 3]
    """

    def __init__(self, path: str | os.PathLike[str], work: dict[str, Any]) -> None:
        if not isinstance(path, (str, os.PathLike)) or not isinstance(os.fspath(path), str):
            raise TypeError(f"resume must be the path of a folder, not {checks.shown(path)}.")
        if not os.fspath(path):
            raise ValueError("resume must name a folder, which an empty text does not.")
        atomic.check_folder(path, "resume")
        os.makedirs(path, exist_ok=True)
        self.path = os.fspath(path)
        at, work = os.path.join(self.path, WORK), json.loads(atomic.encoded(work))  # as it is read
        others = not all(map(atomic.is_part, os.listdir(self.path)))  # before looking for what they are parts of
        if not os.path.exists(at):
            if others:
                raise ValueError(f"resume={self.path!r} holds other files; name a new or an empty folder.")
            atomic.create_record(at, work)
        with open(at, encoding="utf-8") as file:
            before = json.load(file)
        if other := [name for name in work if before.get(name) != work[name]]:
            raise ValueError(f"resume={self.path!r} holds other work ({', '.join(other)} differ); name another folder.")

    def __contains__(self, name: str) -> bool:
        return os.path.exists(self._at(name))

    def _at(self, name: str) -> str:
        return os.path.join(self.path, f"{name}.npz")

    def part(self, name: str, find: Callable[[], Arrays]) -> Arrays:
        """Return the arrays of a part, in host memory: those that are kept, else what ``find`` returns, then kept."""
        path = self._at(name)
        if name in self:
            try:
                with np.load(path) as kept:
                    return dict(kept)
            except (ValueError, EOFError, zipfile.BadZipFile) as error:
                raise ValueError(f"{path!r} is damaged; delete it, and this part is made again.") from error
        found = {key: devices.to_host(array) for key, array in find().items()}
        with atomic.replacing(path) as file:
            np.savez(file, **found)  # type: ignore[arg-type]
        return found


def found_anew(_: str, find: Callable[[], Arrays]) -> Arrays:
    """Return a part of work that keeps none, in place of `Folder.part`."""
    return find()


def digest(data: Any) -> str:
    """Return the SHA-256 of features, of an ensemble, or of a dict of them."""
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

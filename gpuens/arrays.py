"""Array files, npy and npz: what a header claims is checked against the file and the memory before any data is read."""

import math
import os
import zipfile
from typing import IO, Any, NamedTuple

import numpy as np

from gpuens import checks, device


class Header(NamedTuple):
    """What the first bytes of an npy file say."""

    shape: tuple[int, ...]
    dtype: np.dtype
    begin: int  # where the data begins
    n_bytes: int  # of data


def header(file: IO[bytes], what: str) -> Header:
    """Read the header of an npy file; refuse Python objects and records, of which nothing is unpacked.

    Raises
    ------
    ValueError
        In one sentence, or in NumPy's words for what is no header.
    """
    version = np.lib.format.read_magic(file)
    if version not in ((1, 0), (2, 0)):
        raise ValueError(f"npy format {version} is none that holds labels or features.")
    read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, _, dtype = read(file)
    if dtype.hasobject or dtype.names is not None:
        kind = "Python objects" if dtype.hasobject else "records"
        raise ValueError(f"{what} holds {kind}, and labels and features are numbers or strings.")
    return Header(shape, dtype, file.tell(), math.prod(shape) * dtype.itemsize)


def open_npy(path: str | os.PathLike) -> np.ndarray:
    """Return the array of an npy file, mapped and not read."""
    with open(path, "rb") as file:
        found = header(file, "the file")
        there = os.fstat(file.fileno()).st_size - found.begin
    _as_claimed(found, there, "the file")
    return np.lib.format.open_memmap(path, mode="r")


class Archive:
    """The arrays of an npz file, by name; none is read before it is asked for."""

    def __init__(self, path: str | os.PathLike) -> None:
        self._path = os.fspath(path)
        self._zip = zipfile.ZipFile(path)
        found = {info.filename: info for info in self._zip.infolist()}
        self._members = {name.removesuffix(".npy"): info for name, info in found.items() if name.endswith(".npy")}

    def __enter__(self) -> "Archive":
        return self

    def __exit__(self, *_: Any) -> None:
        self._zip.close()

    @property
    def names(self) -> list[str]:
        return list(self._members)

    def header(self, name: str) -> Header:
        """Return the header of an array; refuse one that is encrypted."""
        info = self._members[name]
        if info.flag_bits & 0x1:
            raise ValueError(f"array {name!r} is encrypted; write the file anew, without a password.")
        with self._zip.open(info) as member:
            found = header(member, f"array {name!r}")
        _as_claimed(found, info.file_size - found.begin, f"array {name!r}")
        return found

    def read(self, name: str) -> np.ndarray:
        """Return an array, if it fits the memory."""
        needed = self.header(name).n_bytes
        checks.check_memory(
            needed, device.memory_budget(), f"array {name!r} of {self._path!r}", "write it as npy, which is mapped"
        )
        with self._zip.open(self._members[name]) as member:
            return np.lib.format.read_array(member, allow_pickle=False)


def _as_claimed(found: Header, there: int, what: str) -> None:
    if found.n_bytes != there:
        raise ValueError(
            f"{what} claims {found.shape} of {found.dtype}, {checks.human_bytes(found.n_bytes)}, and holds "
            f"{checks.human_bytes(max(there, 0))}."
        )

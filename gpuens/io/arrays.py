"""Array files, npy and npz: headers are checked against the file size and the memory before data is read."""

import math
import os
import zipfile
from typing import IO, Any, NamedTuple

import numpy as np

from gpuens import checks, device
from gpuens.io.kinds import needs


class Header(NamedTuple):
    """The header of an npy file."""

    shape: tuple[int, ...]
    dtype: np.dtype
    begin: int  # where the data begins
    n_bytes: int  # of data


def header(file: IO[bytes], what: str) -> Header:
    """Read the header of an npy file; refuse Python objects (nothing is unpickled) and records.

    Raises
    ------
    ValueError
        Also by NumPy, for an invalid header.
    """
    version = np.lib.format.read_magic(file)
    if version not in ((1, 0), (2, 0)):
        raise ValueError(f"npy format {version} is not supported; save it anew with numpy.save.")
    read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, _, dtype = read(file)
    if dtype.hasobject or dtype.names is not None:
        kind = "Python objects" if dtype.hasobject else "records"
        raise ValueError(f"{what} holds {kind}, but labels and features are numbers or strings.")
    return Header(shape, dtype, file.tell(), math.prod(shape) * dtype.itemsize)


def open_npy(path: str | os.PathLike[str]) -> np.ndarray:
    """Return the array of an npy file as a memory map."""
    with open(path, "rb") as file:
        found = header(file, "the file")
        there = os.fstat(file.fileno()).st_size - found.begin
    _as_claimed(found, there, "the file")
    return np.lib.format.open_memmap(path, mode="r")


def open_zarr(path: str | os.PathLike[str]) -> Any:
    """Return a zarr array; only its header is read."""
    with needs("zarr", "zarr"):
        import zarr
    return zarr.open_array(path, mode="r")


class Archive:
    """The arrays of an npz file by name, read on demand."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
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
        """Return the header of an array; refuse encrypted ones."""
        info = self._members[name]
        if info.flag_bits & 0x1:
            raise ValueError(f"array {name!r} is encrypted; write the file anew, without a password.")
        with self._zip.open(info) as member:
            found = header(member, f"array {name!r}")
        _as_claimed(found, info.file_size - found.begin, f"array {name!r}")
        return found

    def read(self, name: str) -> np.ndarray:
        """Return an array; refuse one that does not fit the memory."""
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

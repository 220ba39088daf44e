"""Array files (npy, npz, zarr): the header is checked before the data are read, and code in a file is never run."""

import math
import os
import zipfile
from collections.abc import Iterator
from typing import IO, Any, NamedTuple

import numpy as np

from gpuens.io import paths
from gpuens.io.paths import needs
from gpuens.runtime import checks, device

# codecs of zarr that cannot run code from the file: compression, checksums, reordering and texts; codecs that are not
# listed, such as pickle, might run code
OF_NUMBERS = (
    *("blosc", "bz2", "gzip", "lz4", "lzma", "zlib", "zstd", "adler32", "crc32", "crc32c", "fletcher32"),
    *("jenkins_lookup3", "astype", "bitround", "delta", "fixedscaleoffset", "packbits", "quantize", "shuffle"),
)
CODECS = frozenset(
    (*OF_NUMBERS, *(f"numcodecs.{name}" for name in OF_NUMBERS), "vlen-utf8")
    + ("bytes", "endian", "sharding_indexed", "transpose")
)
LAST_CHARACTER = 0x10FFFF  # the largest code point of Unicode
TYPES = ("dtype", "astype", "encode_dtype", "decode_dtype")  # names of the codec settings whose values are dtypes


class Header(NamedTuple):
    """The header of an npy file."""

    shape: tuple[int, ...]
    dtype: np.dtype
    begin: int  # position in the file of the first byte of the data
    n_bytes: int  # number of bytes of the data


def header(file: IO[bytes], owner: str) -> Header:
    """Read the header of an npy file; raise an error if the array holds Python objects or records.

    Python objects are not accepted, because reading them would unpickle them.

    Raises
    ------
    ValueError
        For Python objects and records, and, raised by NumPy, for an invalid header.
    """
    version = np.lib.format.read_magic(file)
    if version not in ((1, 0), (2, 0)):
        raise ValueError(f"npy format {version} is not supported; save it again with numpy.save.")
    read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, _, dtype = read(file)
    if dtype.hasobject or dtype.names is not None:
        kind = "Python objects" if dtype.hasobject else "records"
        raise ValueError(f"{owner} holds {kind}, but labels and features are numbers or strings.")
    return Header(shape, dtype, file.tell(), math.prod(shape) * dtype.itemsize)


def open_npy(path: str | os.PathLike[str]) -> np.memmap:
    """Open the array of an npy file as a memory map."""
    with open(path, "rb") as file:
        npy_header = header(file, "the file")
        n_bytes = os.fstat(file.fileno()).st_size - npy_header.begin
    _as_claimed(npy_header, n_bytes, "the file")
    return np.lib.format.open_memmap(path, mode="r")


def in_native_order(array: np.ndarray) -> np.ndarray:
    """Return an array in the byte order of this machine, which pandas needs."""
    return array.astype(array.dtype.newbyteorder("="), copy=False)


def checked_texts(array: np.ndarray) -> np.ndarray:
    """Return an array; raise an error for texts with numbers that are no characters, on which Python fails later."""
    if array.dtype.kind == "U" and array.nbytes:
        code_points = array.ravel(order="K").view(np.dtype("u4").newbyteorder(array.dtype.byteorder))
        if code_points.max() > LAST_CHARACTER:
            raise ValueError(f"the texts hold the number {code_points.max()}, which is no character.")
    return array


def open_zarr(path: str | os.PathLike[str]) -> Any:
    """Open a zarr array of numbers or texts, and return it; only the metadata of the array are read.

    Raises
    ------
    ValueError
        For codecs that are not known to be safe, and for arrays of other types, before a chunk is read.
    MemoryError
        For chunks beyond the memory.
    """
    with needs("zarr", "zarr"):
        import zarr
    with paths.reading(path):
        array = zarr.open_array(path, mode="r")
        codecs = list(_codecs(array.metadata.to_dict()))
    for codec, settings in codecs:
        types = [settings[name] for name in TYPES if settings.get(name) is not None]
        if codec not in CODECS or any(np.dtype(name).kind not in "biuf" for name in types):
            raise ValueError(
                f"path {os.fspath(path)!r} needs the codec {codec!r}, which might run code; write the array again with "
                "zarr's own codecs."
            )
    if array.dtype.kind not in "biufcmMSUT":
        raise ValueError(
            f"path {os.fspath(path)!r} is an array of {array.dtype}, but labels and features are numbers or strings; "
            "convert it."
        )
    needed = math.prod(array.chunks) * array.dtype.itemsize
    checks.check_memory(needed, device.memory_budget(), f"a chunk of {os.fspath(path)!r}", "write smaller chunks")
    return array


def _codecs(described: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the name and the settings of each codec in the metadata of a zarr array, including nested codecs."""
    for key in ("filters", "compressor", "codecs", "index_codecs"):
        listed = described.get(key) or ()
        for codec in (listed,) if isinstance(listed, dict) else listed:
            settings = codec.get("configuration") or {} if "name" in codec else codec
            yield str(codec.get("name", codec.get("id"))), settings
            yield from _codecs(settings)


class Archive:
    """An open npz file; its arrays are read by name when they are needed."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = os.fspath(path)
        self._zip = zipfile.ZipFile(path)
        members = {info.filename: info for info in self._zip.infolist()}
        self._members = {name.removesuffix(".npy"): info for name, info in members.items() if name.endswith(".npy")}

    def __enter__(self) -> "Archive":
        return self

    def __exit__(self, *_: Any) -> None:
        self._zip.close()

    @property
    def names(self) -> list[str]:
        return list(self._members)

    def header(self, name: str) -> Header:
        """Return the header of the array ``name``; raise an error if this array is encrypted."""
        info = self._members[name]
        if info.flag_bits & 0x1:
            raise ValueError(f"array {name!r} is encrypted; write the file again, without a password.")
        with self._zip.open(info) as member:
            npy_header = header(member, f"array {name!r}")
        _as_claimed(npy_header, info.file_size - npy_header.begin, f"array {name!r}")
        return npy_header

    def read(self, name: str) -> np.ndarray:
        """Read the array ``name`` and return it; raise an error if it does not fit the memory budget."""
        needed = self.header(name).n_bytes
        checks.check_memory(
            needed, device.memory_budget(), f"array {name!r} of {self._path!r}", "write it as npy, which is mapped"
        )
        with self._zip.open(self._members[name]) as member:
            return checked_texts(np.lib.format.read_array(member, allow_pickle=False))


def _as_claimed(header: Header, n_bytes: int, owner: str) -> None:
    if header.n_bytes != n_bytes:
        raise ValueError(
            f"{owner} claims {header.shape} of {header.dtype}, {checks.human_bytes(header.n_bytes)}, but holds "
            f"{checks.human_bytes(max(n_bytes, 0))}."
        )

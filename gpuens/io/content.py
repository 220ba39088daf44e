"""The first bytes of files: the kind of a file whose ending is unknown, and the unpacking of packed text."""

import bz2
import codecs
import gzip
import lzma
import mmap
import os
from collections.abc import Callable
from typing import Any

from gpuens.io import paths
from gpuens.io.paths import INPUTS, OTHER_TEXT, Path_, needs
from gpuens.runtime import checks, device

HEAD_BYTES = 4096  # number of unpacked bytes from which the kind of a file is told
UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


def _open_zst(path: Path_) -> Any:
    with needs("pyarrow", "zst"):
        import pyarrow

    return pyarrow.input_stream(os.fspath(path), compression="zstd")


PACKED: dict[bytes, Callable[[Path_], Any]] = {  # first bytes of packed files → function that opens them
    b"\x1f\x8b": gzip.open,
    b"BZh": bz2.open,
    b"\xfd7zXZ\x00": lzma.open,
    b"\x28\xb5\x2f\xfd": _open_zst,
}
PACKED_ENDINGS = (".gz", ".bz2", ".xz", ".zst")
BINARY = {b"\x93NUMPY": ".npy", b"PAR1": ".parquet", b"ARROW1": ".feather"}  # first bytes → kind
# first bytes of files that hold no table of labels → name of their format, and advice
REFUSED = {
    b"PK\x03\x04": ("a zip archive, as Excel's xlsx files are", "unpack it, or save the sheet as csv"),
    b"\x89HDF": ("an HDF5 file", "save its labels as npy or csv"),
    b"MATLAB": ("a file of MATLAB", "save its labels as npy or csv (scipy.io.loadmat reads it)"),
    b"{": ("JSON", "save its labels as csv"),
    b"[": ("JSON", "save its labels as csv"),
    b"<": ("XML or HTML", "save its labels as csv"),
    b"@": ("ARFF", "save its labels as csv"),
    b"%%MatrixMarket": ("a Matrix Market file", "save its labels as csv"),
    b"RDX": ("a file of R", "write the labels by write.csv"),
    b"X\n": ("a file of R", "write the labels by write.csv"),
    b"FCS": ("an FCS file", "save its labels as csv"),
    b"$FL2": ("a file of SPSS", "save its labels as csv"),
}


def input_kind(path: Any) -> str:
    """Return the kind of an input file: an element of `paths.INPUTS`, or `paths.OTHER_TEXT`.

    The ending decides, and for unknown endings the first bytes.

    Raises
    ------
    TypeError, OSError, ValueError, ImportError
        For paths that are no texts; for unknown endings also for missing files, and files that are no text.
    """
    if (kind := paths.known_kind(path, INPUTS)) is not None:
        return kind
    paths.check_readable(path)
    with paths.reading(path), open_unpacked(path) as file:
        head = file.read(HEAD_BYTES)
    name = os.fspath(path)
    for beginning, binary_kind in BINARY.items():
        if head.startswith(beginning):
            return binary_kind
    for beginning, (format_name, instead) in REFUSED.items():
        if head.startswith(beginning):
            raise ValueError(f"path {name!r} is {format_name}; {instead}.")
    if not head.startswith(UTF_16) and b"\0" in head:
        raise ValueError(
            f"path {name!r} is neither text nor one of the known kinds of files, {', '.join(INPUTS)}; convert it to "
            "one of these kinds."
        )
    return OTHER_TEXT


def without_ending(path: str) -> str:
    """Return a path without the ending that names the kind of the file; ".gz" and the like belong to it."""
    kind = paths.known_kind(path, INPUTS)
    if kind is not None:
        return path[: -len(kind)]
    packed = next((ending for ending in PACKED_ENDINGS if path.lower().endswith(ending)), "")
    return os.path.splitext(path[: len(path) - len(packed)])[0]


def read_text(path: Path_) -> Any:
    """Return the text of a file in UTF-8: bytes if it was unpacked or converted, otherwise a memory map of the file."""
    with paths.reading(path):
        text = _mapped(path)
        if (unpack := _unpacker(text[:8])) is not None:
            text = _unpacked(path, unpack)
        if text[:2] in UTF_16:
            text = text[:].decode("utf-16").encode()
    if not text[: 2**16].strip(b"\xef\xbb\xbf \r\n"):
        raise ValueError(f"path {os.fspath(path)!r} is empty; write the file again.")
    return text


def open_unpacked(path: Path_) -> Any:
    """Open a file, packed or not, for reading its unpacked bytes."""
    with open(path, "rb") as file:
        unpack = _unpacker(file.read(8))
    return open(path, "rb") if unpack is None else unpack(path)


def unpacked_bytes(path: Path_) -> int | None:
    """Return the size of a file's unpacked text, None if the file does not say it.

    The last four bytes of a gzip file hold it modulo 4 GiB.
    """
    n_packed = os.path.getsize(path)
    with open(path, "rb") as file:
        unpack = _unpacker(file.read(8))
        if unpack is None:
            return n_packed
        if unpack is not gzip.open:
            return None
        file.seek(-4, os.SEEK_END)
        return max(int.from_bytes(file.read(4), "little"), n_packed)


def _unpacker(head: bytes) -> Callable[[Path_], Any] | None:
    return next((unpack for beginning, unpack in PACKED.items() if head.startswith(beginning)), None)


def _mapped(path: Path_) -> Any:
    with open(path, "rb") as file:
        empty = os.fstat(file.fileno()).st_size == 0
        return b"" if empty else mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)


def _unpacked(path: Path_, unpack: Callable[[Path_], Any]) -> bytes:
    pieces, size, budget = [], 0, device.memory_budget()
    with unpack(path) as packed:
        while piece := packed.read(2**20):
            pieces.append(piece)
            size += len(piece)
            description = f"the unpacked text of {os.fspath(path)!r} so far"
            checks.check_memory(size, budget, description, "write it as npy or parquet")
    return b"".join(pieces)

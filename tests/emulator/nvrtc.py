"""The compilers that CuPy calls, NVRTC 12 and 13, and the machine code that they make; no GPU is needed.

Both come from PyPI (the extra ``dev``) and lie in folders of their own, so that one process loads both; so does
nvdisasm, which reads what they make.
"""

import ctypes
import importlib.util
import itertools
import re
import struct
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

ARCHITECTURES = ("sm_75", "sm_80", "sm_86", "sm_89", "sm_90", "sm_100", "sm_120")
LIBRARIES = {12: "cuda_nvrtc/lib/libnvrtc.so.12", 13: "cu13/lib/libnvrtc.so.13"}
NVDISASM = "cu13/bin/nvdisasm"
WORD = 16  # bytes of an instruction


class Program(NamedTuple):
    """A compiled source: the compiler's log, and the machine code, which is empty after an error."""

    log: str
    cubin: bytes


class Instruction(NamedTuple):
    address: int  # byte address in the whole disassembled text; targets of branches are such addresses
    opcode: str  # opcode with modifiers, such as LDG.E.U8
    text: str


def why_not() -> str:
    """Return a sentence about missing files, or "" if no file is missing."""
    missing = [part for part in (*LIBRARIES.values(), NVDISASM) if installed(part) is None]
    return f"pip install 'gpuens[dev]' brings {', '.join(missing)}" if missing else ""


def installed(part: str) -> Path | None:
    """Return the path of a file that NVIDIA's wheels have installed."""
    package = importlib.util.find_spec("nvidia")
    folders = package.submodule_search_locations if package else None
    return next((path for folder in folders or () if (path := Path(folder) / part).exists()), None)


@cache
def _library(major: int) -> ctypes.CDLL:
    return ctypes.CDLL(str(installed(LIBRARIES[major])))


def compile(source: str, options: Sequence[str], architecture: str, major: int) -> Program:
    """Compile for an architecture by NVRTC ``major``; ptxas adds the kernels' registers and memory to the log."""
    library, program = _library(major), ctypes.c_void_p()

    def checked(status: int) -> None:
        if status:
            raise RuntimeError(f"NVRTC {major}: error {status}")

    def text(of: str) -> bytes:
        size = ctypes.c_size_t()
        checked(getattr(library, f"nvrtcGet{of}Size")(program, ctypes.byref(size)))
        buffer = ctypes.create_string_buffer(size.value)
        checked(getattr(library, f"nvrtcGet{of}")(program, buffer))
        return buffer.raw

    # Only the log of ptxas has the spilled bytes. The cache is off, because it would skip ptxas.
    given = [*options, f"--gpu-architecture={architecture}", "--ptxas-options=-v", "--no-cache"]
    checked(library.nvrtcCreateProgram(ctypes.byref(program), source.encode(), None, 0, None, None))
    try:
        arguments = (ctypes.c_char_p * len(given))(*map(str.encode, given))
        failed = library.nvrtcCompileProgram(program, len(given), arguments)
        log = text("ProgramLog").decode().rstrip("\0")
        return Program(log, b"" if failed else text("CUBIN"))
    finally:
        checked(library.nvrtcDestroyProgram(ctypes.byref(program)))


def instructions(cubins: Sequence[bytes], architecture: str) -> list[dict[str, list[Instruction]]]:
    """Return {kernel: its instructions} of each cubin. One call reads all cubins, because nvdisasm starts slowly."""
    kernels = [list(_sections(cubin)) for cubin in cubins]
    with tempfile.NamedTemporaryFile(suffix=".bin") as file:
        file.writelines(code for of_cubin in kernels for _, code in of_cubin)
        file.flush()
        command = [str(installed(NVDISASM)), "--binary", architecture.replace("sm_", "SM"), "--no-dataflow", file.name]
        printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    lines = re.finditer(r"/\*([0-9a-f]+)\*/ +((?:@!?\w+ +)?([A-Z][\w.]*)[^;]*);", printed)
    found = (Instruction(int(line[1], 16), line[3], line[2].strip()) for line in lines)
    return [{name: list(itertools.islice(found, len(code) // WORD)) for name, code in of_cubin} for of_cubin in kernels]


def _sections(cubin: bytes) -> Iterator[tuple[str, bytes]]:
    """Yield the name and the code of each kernel of an ELF file, which may be empty.

    All other functions are inlined.
    """
    if not cubin:
        return
    (at,) = struct.unpack_from("<Q", cubin, 0x28)
    size, count, names = struct.unpack_from("<HHH", cubin, 0x3A)
    headers = [struct.unpack_from("<IIQQQQIIQQ", cubin, at + i * size) for i in range(count)]
    strings = headers[names][4]
    for header in headers:
        begin = strings + header[0]
        name = cubin[begin : cubin.index(b"\0", begin)].decode()
        if name.startswith(".text."):
            yield name.removeprefix(".text."), cubin[header[4] : header[4] + header[5]]

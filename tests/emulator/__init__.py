"""A CUDA device without a GPU: kernels are compiled with g++ around ``shim.h`` and run on this processor.

`Module` replaces CuPy's RawModule. A launch takes C-contiguous NumPy arrays and NumPy scalars, and refuses arguments
that do not fit the kernel's C++ signature; a GPU would read their bytes as if they did.

``order`` is the order in which the threads of a block run: "forward", "reversed" (which reverses the blocks, too),
"shuffled" or "shuffled:7", with a seed. A kernel whose results differ between orders lacks a barrier. `in_order` sets
the order for a block of code; `recorded` lists launches.

GPUENS_EMULATOR chooses the build: "plain"; "asan", with AddressSanitizer and UndefinedBehaviorSanitizer; "tsan", with
ThreadSanitizer and a thread of the system for every thread of a block. Sanitizers need a Python started for them: see
`python_under`. They end the process at the first fault. With "none", tests that load a kernel are skipped.

The emulator cannot detect races between blocks, which run one after the other, nor faults in PTX.
"""

import contextlib
import ctypes
import functools
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import unittest
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

MODES = {
    "plain": ["-O2"],
    "asan": ["-O1", "-g", "-fno-omit-frame-pointer", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
    + ["-fsanitize-sections=gpuens_shared"],  # without this option, the section of shared arrays has no red zones
    "tsan": ["-O1", "-g", "-fno-omit-frame-pointer", "-fsanitize=thread", "-pthread"],
}
# No contraction and no fast mathematics, as CuPy tells NVRTC. Kernels may read bytes as words, as CUDA allows.
FLAGS = ["-std=c++17", "-shared", "-fPIC", "-ffp-contract=off", "-fno-strict-aliasing", "-w", "-fmax-errors=10"]

MOST_THREADS = 1024
SHARED = 48 << 10  # default limit of the shared memory of a block in bytes, including static arrays
MOST_SHARED = 227 << 10  # largest limit of shared memory in bytes (max_dynamic_shared_size_bytes)

mode = os.environ.get("GPUENS_EMULATOR", "plain")
order = os.environ.get("GPUENS_EMULATOR_ORDER", "forward")

_lock = threading.RLock()  # only one launch runs at a time, because all launches use the same memory for their threads


class EmulationError(RuntimeError):
    """An error: a kernel does not compile, a launch does not fit its kernel, or a running kernel has a fault."""


# --- text -------------------------------------------------------------------------------------------------------------

SHIM = Path(__file__).with_name("shim.h")
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_BOUNDS = r"(?:__launch_bounds__\s*\(([^()]*)\)\s*)?"
_KERNEL = re.compile(rf'extern\s+"C"\s+__global__\s+{_BOUNDS}void\s+{_BOUNDS}(\w+)\s*\(([^()]*)\)')
_FLOAT = re.compile(r"\bfloat\b")
_FLOAT_LITERAL = re.compile(r"(?<![\w.])(?:\d+\.\d*(?:[eE][+-]?\d+)?|\d+[eE][+-]?\d+)[fF]\b")
_DYNAMIC = re.compile(r"\bextern\s+__shared__\s+(?:__align__\s*\(\d+\)\s*)?([\w\s:]+?)\s*\b(\w+)\s*\[\s*\]\s*;")


def _parameters(source: str) -> dict[str, tuple[str, list[str]]]:
    """Return the launch bounds and the parameters' names of each kernel, {kernel: (bounds, names)}."""
    found = {}
    for first, second, name, parameters in _KERNEL.findall(_COMMENT.sub(" ", source)):
        names = [
            re.sub(r"\[\s*\]", "", part).split()[-1].lstrip("*&") for part in parameters.split(",") if part.strip()
        ]
        found[name] = (first or second, names)
    return found


def _translation_unit(source: str, options: tuple[str, ...], name: str, kernels: dict) -> str:
    # Macros come after the shim, which must not see them. Internal linkage keeps shared arrays out of COMDAT sections.
    text = _FLOAT_LITERAL.sub(r"emulated::Single(\g<0>)", _FLOAT.sub("emulated::Single", _placed(source)))
    parts = ['#line 1 "shim.h"', SHIM.read_text(), *_macros(options)]
    parts += ["namespace {", f'#line 1 "{name}.cu"', text, "}  // namespace", *_tables(kernels), ""]
    return "\n".join(parts)


def _macros(options: tuple[str, ...]) -> list[str]:
    """Return the lines "#define …" for the options "-D…" of a compiler."""
    return [f"#define {option[2:].replace('=', ' ', 1)}" for option in options if option.startswith("-D")]


def stem_of(source: str) -> str | None:
    """If a source is a kernel file of gpuens, return the stem of the file's name; else return None."""
    found = re.search(r'^#line 1 "(\w+)\.cu"', source, flags=re.MULTILINE)
    return found[1] if found else None


def _placed(source: str) -> str:
    """Change a source so that its dynamic shared memory is the emulator's; return the new source."""
    return _DYNAMIC.sub(r"\1* const \2 = (\1*)emulated::dynamic_shared;", source)


def _tables(kernels: dict) -> list[str]:
    """Return the code of two tables of kernels: one for the shim, and one for the driver of tests/gpu_stack."""
    entries = ", ".join(f"emulated::entry<{kernel}>({bounds})" for kernel, (bounds, _) in kernels.items())
    names = ", ".join(f'"{kernel}"' for kernel in kernels)
    return [
        f'extern "C" const emulated::Kernel gpuens_kernels[] = {{{entries}}};',
        f'extern "C" const char* const gpuens_names[] = {{{names}, nullptr}};',
    ]


# --- compiling --------------------------------------------------------------------------------------------------------


@functools.cache
def _compiler() -> str:
    try:
        return subprocess.run(["g++", "--version"], capture_output=True, text=True, check=True).stdout
    except OSError as error:
        raise EmulationError("kernels cannot be emulated without g++; install it.") from error


def cache_directory() -> Path:
    """Return the folder of compiled kernels."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "gpuens" / "emulated"


def _compile(text: str, name: str, more: tuple[str, ...] = ()) -> Path:
    flags = [*MODES[mode], *FLAGS, *more]
    key = hashlib.sha256("\0".join([text, *flags, _compiler()]).encode()).hexdigest()[:24]
    path = cache_directory() / f"{name}-{key}.so"
    if path.exists():
        return path
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, beside = tempfile.mkstemp(dir=path.parent, suffix=".part")
    os.close(handle)
    try:
        environment = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
        command = ["g++", *flags, "-x", "c++", "-", "-o", beside]
        done = subprocess.run(command, input=text, capture_output=True, text=True, env=environment)
        if done.returncode:
            raise EmulationError(f"{name} does not compile:\n{done.stderr}")
        os.replace(beside, path)
    finally:
        Path(beside).unlink(missing_ok=True)
    return path


def _load(path: Path) -> ctypes.CDLL:
    if mode != "plain" and not re.search(rf"lib{mode}\.", os.environ.get("LD_PRELOAD", "")):
        raise EmulationError(f"GPUENS_EMULATOR={mode} needs a Python started for it; see python_under in {__file__}.")
    library = ctypes.CDLL(str(path))
    library.gpuens_signature.restype = ctypes.c_char_p
    library.gpuens_most_threads.restype = ctypes.c_uint
    library.gpuens_static_shared.restype = ctypes.c_size_t
    library.gpuens_carriers.restype = ctypes.c_void_p
    library.gpuens_launch.restype = ctypes.c_char_p
    library.gpuens_launch.argtypes = [ctypes.c_int, *[ctypes.c_void_p] * 2, ctypes.c_size_t, ctypes.c_uint64]
    library.gpuens_launch.argtypes += [ctypes.c_void_p]
    return library


class Module:
    """CUDA source, compiled when its first kernel is requested."""

    # address of the stacks or system threads that carry the threads; shared by all libraries
    _carriers: int | None = None

    def __init__(self, source: str, options: tuple[str, ...], *, name: str) -> None:
        self._source, self._options, self._name = source, tuple(options), name
        self._parameters = _parameters(source)
        self._kernels: dict[str, Kernel] = {}

    def get_function(self, kernel: str) -> "Kernel":
        """Return the kernel of a name; every call with this name returns the same object."""
        with _lock:
            if kernel not in self._parameters:
                raise EmulationError(f'{self._name} has no extern "C" __global__ void {kernel}(…).')
            if not self._kernels:
                if mode == "none":
                    raise unittest.SkipTest("no kernel is emulated under GPUENS_EMULATOR=none.")
                text = _translation_unit(self._source, self._options, self._name, self._parameters)
                library = _load(_compile(text, self._name))
                if Module._carriers is None:
                    Module._carriers = library.gpuens_carriers()
                    if Module._carriers is None:
                        raise EmulationError("there is no room for the stacks of the emulator's threads.")
                for index, (name, (_, names)) in enumerate(self._parameters.items()):
                    self._kernels[name] = Kernel(library, index, name, names, Module._carriers)
            return self._kernels[kernel]


# --- launching --------------------------------------------------------------------------------------------------------


class Launch(NamedTuple):
    """A launch of a kernel: its name and its arguments."""

    kernel: str
    args: tuple


_recorders: list[list[Launch]] = []


@contextlib.contextmanager
def recorded() -> Iterator[list[Launch]]:
    """Yield a list to which every launch on the emulated device is added."""
    launches: list[Launch] = []
    _recorders.append(launches)
    try:
        yield launches
    finally:
        _recorders.remove(launches)


@contextlib.contextmanager
def in_order(name: str) -> Iterator[None]:
    """Within the context, run the threads of each block in the given order."""
    global order
    before, order = order, name
    try:
        yield
    finally:
        order = before


class Kernel:
    """A function to launch: ``kernel(grid, block, args, shared_mem=0)``."""

    def __init__(self, library: ctypes.CDLL, index: int, name: str, parameters: list[str], carriers: int) -> None:
        self.name, self._library, self._index, self._carriers = name, library, index, carriers
        self._parameters = list(zip(parameters, library.gpuens_signature(index).decode().split(), strict=True))
        self._most_threads = library.gpuens_most_threads(index)
        # bytes of the static shared arrays of all kernels of the file; most kernels have none
        self._static = library.gpuens_static_shared()
        self._shared = SHARED - self._static

    @property
    def max_dynamic_shared_size_bytes(self) -> int:
        """The largest dynamic shared memory of a launch in bytes."""
        return self._shared

    @max_dynamic_shared_size_bytes.setter
    def max_dynamic_shared_size_bytes(self, value: int) -> None:
        if not 0 <= value <= MOST_SHARED - self._static:
            raise EmulationError(
                f"{self.name}: a block can have up to {MOST_SHARED} bytes of shared memory, not {value} beside "
                f"{self._static} of static arrays."
            )
        self._shared = int(value)

    def __call__(self, grid: tuple, block: tuple, args: tuple, *, shared_mem: int = 0) -> None:
        """Launch the kernel and wait for it; a fault raises EmulationError, and further launches remain possible."""
        sizes = np.array([*self._sizes(grid, "grid"), *self._sizes(block, "block")], dtype=np.uint32)
        if not 0 <= shared_mem <= self._shared:
            raise EmulationError(
                f"{self.name} asks for {shared_mem} bytes of dynamic shared memory, and its limit is {self._shared} "
                f"beside {self._static} of static arrays; raise max_dynamic_shared_size_bytes."
            )
        if len(args) != len(self._parameters):
            raise EmulationError(f"{self.name} takes {len(self._parameters)} arguments, not {len(args)}.")
        for launches in _recorders:
            launches.append(Launch(self.name, args))
        given, args = args, _guarded(args) if mode == "asan" else args
        slots = np.zeros(max(1, len(args)), dtype=np.uint64)
        for i, ((name, kind), value) in enumerate(zip(self._parameters, args, strict=True)):
            found = self._bytes(f"argument {i + 1} ({name}) of {self.name}", kind, value)
            slots[i : i + 1].view(np.uint8)[: len(found)] = np.frombuffer(found, dtype=np.uint8)
        places = slots.ctypes.data + 8 * np.arange(len(slots), dtype=np.uint64)
        with _lock:
            fault = self._library.gpuens_launch(
                self._index, places.ctypes.data, sizes.ctypes.data, shared_mem, _number(order), self._carriers
            )
        for (_, kind), array, copy in zip(self._parameters, given, args, strict=True):
            if copy is not array and kind[0] == "*":
                array[...] = copy
        if fault:
            raise EmulationError(f"{self.name}: {fault.decode()}")

    def _sizes(self, sizes: tuple, what: str) -> tuple:
        x, y, z = (*sizes, 1, 1, 1)[: max(3, len(sizes))]
        if min(x, y, z) < 1:
            raise EmulationError(f"{self.name} is launched with a {what} of {tuple(sizes)}, which is empty.")
        if what == "block" and (x * y * z > self._most_threads or z > 64):
            raise EmulationError(
                f"{self.name} is launched with blocks of {tuple(sizes)}, over {self._most_threads} threads."
            )
        if what == "grid" and (x >= 1 << 31 or max(y, z) > 65_535):
            raise EmulationError(f"{self.name} is launched with a grid of {tuple(sizes)}; y and z go up to 65535.")
        return x, y, z

    @staticmethod
    def _bytes(what: str, kind: str, value: object) -> bytes:
        """Return an argument as the kernel reads it, or raise an error.

        The ``kind`` "&u1" means const unsigned char*.
        """
        dtype = None if kind[-2:-1] == "V" or "V" in kind else np.dtype(kind.lstrip("*&"))
        if kind[0] in "*&":
            if not isinstance(value, np.ndarray):
                raise EmulationError(f"{what} must be a NumPy array, not {type(value).__name__}.")
            if dtype is not None and value.dtype != dtype:
                raise EmulationError(f"{what} has dtype {value.dtype}, and its pointer's is {dtype}.")
            if not value.flags.c_contiguous:
                raise EmulationError(f"{what} must be C-contiguous, for kernels see no strides.")
            if kind[0] == "*" and not value.flags.writeable:
                raise EmulationError(f"{what} is read-only, and its pointer is not const.")
            return value.ctypes.data.to_bytes(8, sys.byteorder)
        if type(value) is int and dtype == np.int64 and -(1 << 63) <= value < 1 << 63:
            value = np.int64(value)  # CuPy, too, passes a Python integer as eight bytes
        elif type(value) is float and dtype == np.float64:
            value = np.float64(value)
        if not isinstance(value, np.generic) or value.dtype != dtype:
            found = value.dtype if isinstance(value, np.generic) else type(value).__name__
            raise EmulationError(f"{what} must be a NumPy scalar of {dtype}, not {found}.")
        return value.tobytes()


def _guarded(args: tuple) -> list:
    """Return the arguments with copies of arrays, so that AddressSanitizer knows the end even of a part of an array."""
    arrays = [value for value in args if isinstance(value, np.ndarray)]

    def copied(value: object) -> object:
        if not isinstance(value, np.ndarray) or not value.flags.c_contiguous:
            return value
        if sum(np.may_share_memory(value, other) for other in arrays) > 1:
            return value
        skipped = value.ctypes.data % 16  # the copy has the alignment of the original
        copy = np.empty(skipped + value.nbytes, dtype=np.uint8)[skipped:].view(value.dtype).reshape(value.shape)
        copy[...] = value
        copy.flags.writeable = value.flags.writeable
        return copy

    return [copied(value) for value in args]


def _number(order: str) -> int:
    """Return the shim's number of an order."""
    match = re.fullmatch(r"(forward|reversed|shuffled)(?::(\d+))?", order)
    if not match or (match[2] and match[1] != "shuffled"):
        raise EmulationError(f"order must be 'forward', 'reversed', 'shuffled' or 'shuffled:SEED', not {order!r}.")
    return ("forward", "reversed", "shuffled").index(match[1]) + int(match[2] or 0)


# --- sanitizers -------------------------------------------------------------------------------------------------------


def why_not(mode: str) -> str | None:
    """Return the reason why a mode cannot be used on this machine, or None."""
    if shutil.which("g++") is None:
        return "g++ is not installed"
    missing = [path for path in _preloaded(mode) if not Path(path).exists()]
    return f"g++ has no {', '.join(missing)}" if missing else None


def _preloaded(mode: str) -> list[str]:
    # libstdc++ is preloaded, too: the sanitizers look for its __cxa_throw before Python loads it
    names = {"plain": [], "asan": ["libasan.so", "libubsan.so", "libstdc++.so"], "tsan": ["libtsan.so", "libstdc++.so"]}
    return [
        subprocess.run(["g++", f"-print-file-name={name}"], capture_output=True, text=True).stdout.strip()
        for name in names[mode]
    ]


def python_under(mode: str) -> tuple[list[str], dict[str, str]]:
    """Return the command and the environment of a Python in which a mode works."""
    environment = os.environ | {"GPUENS_EMULATOR": mode, "LD_PRELOAD": " ".join(_preloaded(mode))}
    environment |= {
        "OPENBLAS_NUM_THREADS": "1",
        "PYTHONMALLOC": "malloc",
        "ASAN_OPTIONS": "halt_on_error=1:detect_leaks=0",
        "UBSAN_OPTIONS": "halt_on_error=1:print_stacktrace=1",
        "TSAN_OPTIONS": "halt_on_error=1:exitcode=66:ignore_noninstrumented_modules=1",
    }
    # A randomised address space may put other memory at the addresses of ThreadSanitizer's shadow memory.
    prefix = ["setarch", "-R"] if mode == "tsan" and shutil.which("setarch") else []
    return [*prefix, sys.executable], environment

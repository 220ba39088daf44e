"""Primitives and their device versions; the only place that compiles and launches kernels.

A primitive is one small computation on plain arrays (intersections, nearest lists, operator products, …). It has one
signature and up to two versions: the decorated function is the CPU version, and `Primitive.kernel` registers the one
that launches kernels, on a GPU or a stand-in for one (`gpuens.runtime.device.register`). Callers only name the device.

>>> from gpuens.runtime import kernels
>>> @kernels.primitive
... def doubled(values):
...     return values * 2
>>> doubled(21, device="cpu")
42

Sources are ``kernels/*.cu``, one idea per file. Before each are put, as text, ``common/*.h``, which the CPU versions
include, and ``prelude.cuh``: a compiler cache keyed by the source sees all of it. A file's first lines list its macros
(``// variants: CODE = u8 u16 u32; WEIGHT = i64 f64``).
"""

import itertools
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache, partial, update_wrapper
from pathlib import Path
from typing import Any

import numpy as np

from gpuens.runtime import checks
from gpuens.runtime import device as devices

PACKAGE = Path(__file__).resolve().parents[1]
PRELUDE = "prelude.cuh"
SHARED_BYTES = 48 * 1024  # dynamic shared memory of a block in bytes that every GPU grants without opting in
MOST_IN_Y = 65_535  # maximum number of blocks in the second dimension of a grid
# options that CuPy adds after ours; -ftz=true turns subnormal float32 numbers into 0
APPENDED = ("-ftz=true", "--device-as-default-execution-space")
# no contraction of a·b + c: sums are bit-identical to the CPU's
FLAGS = ("--std=c++17", "--fmad=false")

_primitives: dict[str, "Primitive"] = {}


# --- primitives -------------------------------------------------------------------------------------------------------


class Primitive:
    """A function with a CPU and a GPU version; ``device=`` chooses between them."""

    def __init__(self, cpu: Callable[..., Any]) -> None:
        self._cpu = cpu
        self._kernel: Callable[..., Any] | None = None
        update_wrapper(self, cpu)
        _primitives[cpu.__name__] = self

    def kernel(self, version: Callable[..., Any]) -> Callable[..., Any]:
        """Register the GPU version, which takes the same arguments and ``device``."""
        self._kernel = version
        return version

    def __call__(self, *args: Any, device: str = "cpu", **kwargs: Any) -> Any:
        if device == "cpu":
            return self._cpu(*args, **kwargs)
        if self._kernel is None:
            raise ValueError(f"device={device!r} has no version of {self._cpu.__name__!r} yet; use device='cpu'.")
        return self._kernel(*args, device=device, **kwargs)


primitive = Primitive


def primitives() -> dict[str, list[str]]:
    """Return the primitives loaded so far and the devices of each."""
    return {
        name: ["cpu"] if primitive._kernel is None else ["cpu", "cuda", *devices.stand_ins]
        for name, primitive in sorted(_primitives.items())
        if primitive.__module__ != __name__  # leaves out the example above
    }


# --- sources ----------------------------------------------------------------------------------------------------------


@cache
def directory() -> Path:
    """Return the folder of the kernel sources: inside an installed package, or beside the package in a checkout."""
    for folder in (PACKAGE / "_kernels", PACKAGE.parent / "kernels"):
        if (folder / PRELUDE).exists():
            return folder
    raise FileNotFoundError(f"no CUDA sources are beside {PACKAGE}; install gpuens anew.")


@cache
def sources() -> dict[str, str]:
    """Return the kernel sources as {file stem: text}, each text after those of common/ and the prelude."""

    def text(path: Path) -> str:
        return f'#line 1 "{path.name}"\n{path.read_text()}\n'

    before = [*sorted((directory() / "common").glob("*.h")), directory() / PRELUDE]
    shared = "".join(map(text, before))
    return {path.stem: shared + text(path) for path in sorted(directory().glob("*.cu"))}


_KERNEL = re.compile(r'extern\s+"C"\s+__global__\s+void\s+(?:__launch_bounds__\([^)]*\)\s+)?(\w+)\s*\(')


@cache
def functions() -> dict[str, str]:
    """Return the source of each kernel as {kernel name: file stem}."""
    return {name: stem for stem, text in sources().items() for name in _KERNEL.findall(text)}


def variants(stem: str) -> list[dict[str, str]]:
    """Return every combination of a source's macros; one empty combination if it has none."""
    line = re.search(r"^// variants: (.*)$", sources()[stem], flags=re.MULTILINE)
    macros = [part.split("=") for part in line[1].split(";")] if line else []
    choices = itertools.product(*([(name.strip(), value) for value in values.split()] for name, values in macros))
    return [dict(choice) for choice in choices]


def options(macros: dict[str, str]) -> tuple[str, ...]:
    """Return the compiler options for one combination of macros."""
    return (*FLAGS, *(f"-D{name}={value}" for name, value in sorted(macros.items())))


# --- launching --------------------------------------------------------------------------------------------------------

C_NAMES = {
    "uint8": "u8",
    "uint16": "u16",
    "uint32": "u32",
    "uint64": "u64",
    "int32": "i32",
    "int64": "i64",
    "float32": "f32",
    "float64": "f64",
}


@cache
def c_name(dtype: Any) -> str:
    """Return the C type, as the prelude names it, of a NumPy dtype."""
    return C_NAMES[np.dtype(dtype).name]


def launch(
    name: str,
    grid: int | tuple[int, ...],
    block: int | tuple[int, ...],
    args: tuple[Any, ...],
    *,
    device: str,
    shared: int = 0,
    **macros: Any,
) -> None:
    """Launch a kernel on C-contiguous arrays and NumPy scalars; an empty grid does nothing.

    ``shared`` is the dynamic shared memory of a block in bytes, at most `SHARED_BYTES`.
    """
    grid, block = (tuple(map(int, size)) if isinstance(size, tuple) else (int(size),) for size in (grid, block))
    if 0 in grid:
        return
    again = partial(function(name, device, **macros), grid, block, args, shared_mem=int(shared))
    again()
    if (launches := _recorded.get()) is not None:
        launches.append(again)


_recorded: ContextVar[list[Callable[[], None]] | None] = ContextVar("recorded", default=None)


@contextmanager
def recorded() -> Iterator[list[Callable[[], None]]]:
    """Yield a list to which each launch in the with block is added: a function that launches the same kernel again.

    A launch again takes half the host's time. The list keeps the arrays of the launches in memory.
    """
    launches: list[Callable[[], None]] = []
    token = _recorded.set(launches)
    try:
        yield launches
    finally:
        _recorded.reset(token)


def modules() -> list[tuple[str, dict[str, str]]]:
    """Return a pair (kernel name, macros) for every variant of every source; `function` compiles a variant."""
    kernel_of = {stem: kernel for kernel, stem in functions().items()}
    return [(kernel_of[stem], macros) for stem in sources() for macros in variants(stem)]


def function(name: str, device: str, **macros: str) -> Any:
    """Return a kernel compiled for a device: the GPU in use, or a stand-in."""
    return _module(functions()[name], devices.identity(device), tuple(sorted(macros.items())))(name)


@cache
def _module(stem: str, device: str, macros: tuple[Any, ...]) -> Callable[[str], Any]:
    """Compile a source; return a function that maps the name of a kernel to the kernel, made once."""
    text, flags = sources()[stem], options(dict(macros))
    if device in devices.stand_ins:
        return cache(devices.stand_ins[device](text, flags, name=stem).get_function)
    if not devices.keeps_kernels():
        checks.warn(
            "compiled kernels cannot be kept, so every run compiles them again, which takes minutes; let "
            "CUPY_CACHE_DIR name a directory that can be written to."
        )
    return cache(devices.compile_cuda(text, flags).get_function)


def runs(n: int) -> list[slice]:
    """Return slices that cover range(n), each short enough for the second dimension of one launch's grid."""
    return [slice(start, min(n, start + MOST_IN_Y)) for start in range(0, n, MOST_IN_Y)]


def blocks(n: int, block: int, max_blocks: int = 65_535) -> int:
    """Return the number of blocks of ``block`` threads for a grid-stride loop over n items."""
    return min(max_blocks, -(-n // block))

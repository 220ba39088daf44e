"""Real CuPy without a GPU: its dispatch, dtypes, errors, memory pool and launches run on simulated devices.

build.py puts a wheel of CuPy into a folder, beside a runtime, a driver, a cuBLAS and a cuSOLVER that are ours
(cudart.c, libcuda.c, cublas.c, cusolver.c). A Python started with PYTHONPATH set to that folder runs `install` first:
from then on what CuPy would give to NVRTC, its own generated kernels and ours, is compiled by g++ around the emulator's
shim.h. So does every process that it starts: workers of Dask, the command line, bench/gpu.py. `counts` says what was
asked of the device.

Not CuPy's own: Thrust's sorts and cuSOLVER's eigenvectors (NumPy's), cuBLAS (whose float32 is rounded as NVIDIA's may
be, not as it is), and what CUB reduces within a block (include/cub), which takes part where CuPy compiles it.

What a processor can never show, so that only a GPU does:

- races between blocks, which run one after the other here, and the order in which they see memory;
- reads and writes that are not aligned to their size, which end a kernel there and are nothing here;
- CUB's own code, of which CuPy's wheel has sums of whole arrays compiled, and Thrust's: their rounding, their sorts of
  equal keys, their scratch memory;
- cuSOLVER's and cuBLAS's own results: signs and turns of eigenvectors, the rounding of a shape;
- subnormal float32 numbers inside CuPy's own kernels, which ``-ftz=true`` makes 0;
- registers and local memory, limits of resources but for threads and shared memory, and streams that overtake others;
- time.
"""

import ctypes
import importlib.abc
import importlib.machinery
import os
import sys
import sysconfig
import time
from pathlib import Path
from types import ModuleType
from typing import Any

# the counters of each library
COUNTED = {
    "libcuda": ("launches",),
    "cudart": (
        "synchronizations", "to_host", "to_device", "on_device", "to_host_bytes", "to_device_bytes", "on_device_bytes",
        "allocations", "memory_queries",
    ),
}  # fmt: skip


def install() -> None:
    """Prepare this process for the CuPy that lies beside sitecustomize.py."""
    os.environ.setdefault("CUPY_ACCELERATORS", "cub")  # the default on a GPU; an empty value switches CUB off
    # nvcc is never called, but without this name CuPy does not use CUB's block reductions
    os.environ.setdefault("NVCC", "nvcc")
    sys.meta_path.insert(0, _Patches())


class _Patches(importlib.abc.MetaPathFinder):
    """An importer that changes some modules of CuPy when they are imported."""

    def find_spec(self, name: str, path: Any, target: Any = None) -> Any:
        change = {
            "cupy": _before,
            "cupy._core": _cub,
            "cupy.cuda.compiler": _compiler,
            "cupy.cuda.thrust": _thrust,
        }.get(name)
        spec = importlib.machinery.PathFinder.find_spec(name, path) if change else None
        if spec is None or spec.loader is None:
            return None
        loader, execute = spec.loader, spec.loader.exec_module

        def exec_module(module: ModuleType) -> None:
            if change is _before:
                change(module)
            execute(module)
            if change is not _before:
                change(module)

        loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec


def _before(cupy: ModuleType) -> None:
    folder = Path(cupy.__path__[0]).parent
    nvrtc = Path(sysconfig.get_paths()["purelib"]).glob(
        "nvidia/*/lib/libnvrtc.so.*"
    )  # a folder that CuPy 13 does not search
    for library in (*folder.glob("lib*.so.*"), *nvrtc):
        # from now on, the loader finds the library by its name
        found = ctypes.CDLL(str(library), mode=ctypes.RTLD_GLOBAL)
        if library.name.startswith("libcusolver"):
            ctypes.c_void_p.in_dll(found, "gpu_stack_eigh").value = ctypes.cast(_eigh, ctypes.c_void_p).value


def _cub(core: ModuleType) -> None:
    # kernels of CUB's routines are in the wheel as machine code; kernels of its reductions are text
    core.set_routine_accelerators([])


def counts() -> dict[str, int]:
    """Return the requests of this process to the device so far: launches, synchronizations, copies and their bytes."""
    import cupy_backends.cuda.api.runtime as runtime

    libraries = {"libcuda": ctypes.CDLL("libcuda.so.1"), "cudart": ctypes.CDLL(runtime.__file__)}
    return {
        name: ctypes.c_longlong.in_dll(libraries[library], f"gpu_stack_{name}").value
        for library, names in COUNTED.items()
        for name in names
    }


_library_seconds = 0.0  # processor time of NumPy in place of Thrust and cuSOLVER


def busy() -> float:
    """Return the seconds of processor time of this process so far that a GPU would spend, not the host."""
    return ctypes.c_longlong.in_dll(ctypes.CDLL("libcuda.so.1"), "gpu_stack_busy_ns").value / 1e9 + _library_seconds


# --- compiling --------------------------------------------------------------------------------------------------------


def _compiler(compiler: ModuleType) -> None:
    from cupy.cuda import function

    def compile_with_cache(
        source: str, options: tuple, arch: Any, extra: Any = None, backend: str = "nvrtc", cooperative: bool = False,
        name_expressions: Any = None, *args: Any, **kwargs: Any,
    ) -> Any:  # fmt: skip
        instances = tuple(name_expressions or ())
        module = function.Module()
        module.load(f"{_library(source, tuple(options), instances)}\0".encode())
        module._set_mapping({instance: instance for instance in instances})
        return module

    compiler._compile_with_cache_cuda = compile_with_cache


def _library(source: str, options: tuple[str, ...], instances: tuple[str, ...]) -> Path:
    """Compile CUDA source into a library for the stand-in driver.

    ``instances`` names instances of the source's templates.
    """
    import emulator

    kernels = emulator._parameters(source) | {instance: ("", []) for instance in instances}
    if stem := emulator.stem_of(source):
        return emulator._compile(emulator._translation_unit(source, options, stem, kernels), stem)
    found = [option for option in options if option.startswith("-I") and "_cccl" not in option]
    parts = [STANDARD, emulator.SHIM.read_text(), *emulator._macros(options), emulator._placed(source)]
    text = "\n".join([*parts, *emulator._tables(kernels), ""])
    return emulator._compile(text, "cupy", (f"-I{INCLUDE}", *found, *LENIENT))


INCLUDE = Path(__file__).with_name("include")  # headers that CuPy's kernels include, and that only NVRTC has
LENIENT = ("-D__CUDACC_VER_MAJOR__=13", "-D__shared__=static", "-DFORGIVE_RETURNS", "-fpermissive")
STANDARD = """
#include <cuda_fp16.h>

#include <cfloat>
#include <cmath>
#include <cstddef>
#include <initializer_list>
#include <limits>
using std::isfinite; using std::isinf; using std::isnan; using std::signbit;
inline double rsqrt(double x) { return 1 / sqrt(x); }
"""


# --- NumPy's part -----------------------------------------------------------------------------------------------------


def on_device(place: int, dtype: Any, shape: Any) -> Any:
    """Return an array for an address in device memory, which is host memory here."""
    import numpy as np

    dtype = np.dtype(dtype)
    n = int(np.prod(shape))
    if not n:
        return np.empty(shape, dtype)
    return np.frombuffer((ctypes.c_char * (n * dtype.itemsize)).from_address(place), dtype).reshape(shape)


def _of_device(work: Any) -> Any:
    """Return a function whose processor time counts as that of the device."""

    def timed(*args: Any) -> None:
        global _library_seconds
        start = time.thread_time()
        work(*args)
        _library_seconds += time.thread_time() - start

    return timed


@ctypes.CFUNCTYPE(None, ctypes.c_longlong, ctypes.c_void_p, ctypes.c_void_p)
@_of_device
def _eigh(n: int, matrix: int, values: int) -> None:
    """Replace a symmetric matrix by its eigenvectors, column by column. Their signs differ from those of LAPACK."""
    import numpy as np

    a = on_device(matrix, np.float64, (n, n))
    on_device(values, np.float64, (n,))[...], vectors = np.linalg.eigh(a)
    a[...] = -vectors.T


def _thrust(thrust: ModuleType) -> None:
    import numpy as np

    def sort(dtype: Any, data: int, keys: int, shape: Any) -> None:
        values = on_device(data, dtype, tuple(shape))
        values[...] = np.sort(values, axis=-1, kind="stable")

    def argsort(dtype: Any, order: int, data: int, keys: int, shape: Any) -> None:
        values = on_device(data, dtype, tuple(shape))
        on_device(order, np.intp, tuple(shape))[...] = np.argsort(values, axis=-1, kind="stable")

    def lexsort(dtype: Any, order: int, keys: int, k: int, n: int) -> None:  # older versions sort label rows by it
        on_device(order, np.intp, (n,))[...] = np.lexsort(on_device(keys, dtype, (k, n)))

    thrust.sort, thrust.argsort, thrust.lexsort = map(_of_device, (sort, argsort, lexsort))

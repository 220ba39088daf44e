"""CuPy and its GPUs. No other module names cupy."""

import os
import sys
from collections.abc import Callable, Iterator
from functools import cache
from importlib.util import find_spec
from typing import Any

from gpuens.runtime import host, installing

KERNEL_CACHE = "~/.cupy/kernel_cache"  # CuPy's default folder of compiled kernels, if CUPY_CACHE_DIR is not set
# largest length of an axis of an array on a GPU: CuPy passes sizes to CUB as 32-bit integers and ignores CUB's errors
LONGEST = 2**31 - 1


def load_cupy() -> Any:
    """Return CuPy, or refuse an installation without it or without its CUDA libraries."""
    keeps_kernels()
    try:
        import cupy
    except ImportError as error:
        raise ImportError(
            f"labels in GPU memory need CuPy, but CuPy is not installed: {installing.command('cu12')} "
            "(or cu13, for CUDA 13)."
        ) from error
    _refuse_incomplete(cupy)
    return cupy


@cache
def keeps_kernels() -> bool:
    """Return whether CuPy can write its folder of compiled kernels; otherwise tell CuPy to keep them in memory only.

    Without this setting CuPy would raise PermissionError at its import or when it compiles a kernel.
    """
    if "cupy" not in sys.modules and find_spec("cupy") is None:
        return True
    folder = os.path.expanduser(os.environ.get("CUPY_CACHE_DIR") or KERNEL_CACHE)
    if os.path.isabs(folder) and host.writable(folder):  # without a home folder, "~" is not expanded
        return True
    os.environ["CUPY_CACHE_IN_MEMORY"] = "1"
    os.environ["CUPY_CACHE_DIR"] = os.path.dirname(__file__)  # any existing folder; CuPy does not write to it
    return False


@cache
def _refuse_incomplete(cupy: Any) -> None:
    """Refuse a CuPy whose CUDA libraries are missing: it loads them on first use; a driver does not contain them."""
    libraries = {
        "NVRTC": lambda: cupy.cuda.nvrtc.getVersion(),
        "cuBLAS": lambda: cupy.cuda.cublas,
        "cuSOLVER": lambda: cupy.cuda.cusolver,
    }
    missing = [name for name, load in libraries.items() if _fails(load)]
    if missing:
        major = cupy.cuda.runtime.runtimeGetVersion() // 1000
        raise ImportError(
            f"CuPy finds no {' and no '.join(missing)}, which CUDA {major} has and the driver has not: "
            f"{installing.command(f'cu{major}')}."
        )


def _fails(load: Callable[[], Any]) -> bool:
    try:
        load()
    except Exception:  # ImportError, RuntimeError or an error class of cuda.pathfinder
        return True
    return False


def why_no_gpu() -> str | None:
    """Return the reason why no GPU can be used (no CuPy, no driver) as a sentence; None if a GPU can be used."""
    try:
        return None if load_cupy().cuda.runtime.getDeviceCount() > 0 else "the driver shows none."
    except Exception as error:  # no CuPy, or no driver
        return " ".join(str(error).split()).rstrip(".") + "."


def current() -> int:
    """Return the number of the GPU in use."""
    number: int = load_cupy().cuda.runtime.getDevice()
    return number


def each() -> Iterator[int]:
    """Yield the number of each GPU, which is the current one until the next is yielded."""
    cupy = load_cupy()
    for index in range(cupy.cuda.runtime.getDeviceCount()):
        with cupy.cuda.Device(index):
            yield index


def describe() -> list[dict[str, Any]]:
    """Return name and bytes of memory of each GPU that CuPy sees; an empty list without CuPy or a driver."""
    keeps_kernels()
    try:
        import cupy

        properties = map(cupy.cuda.runtime.getDeviceProperties, range(cupy.cuda.runtime.getDeviceCount()))
        return [{"name": device["name"].decode(), "memory": device["totalGlobalMem"]} for device in properties]
    except Exception:  # no CuPy, driver or device
        return []


def as_array(array: Any) -> Any:
    """Return an array in GPU memory as a CuPy array of the current GPU, without a copy."""
    cupy = load_cupy()
    refuse_too_long(array)
    if not isinstance(array, cupy.ndarray):  # asarray would copy a CuPy array to the current GPU
        array = cupy.asarray(array) if hasattr(array, "__cuda_array_interface__") else cupy.from_dlpack(array)
    return on_current(array)


def on_current(array: Any) -> Any:
    """Return a CuPy array, or refuse it if it is not in the memory of the current GPU, where kernels run."""
    home, number = array.device.id, current()
    if home != number:
        raise ValueError(
            f"an array is on GPU {home} while the current GPU is {number}; enter cupy.cuda.Device({home}) first, or "
            "copy the array."
        )
    return array


def refuse_too_long(array: Any) -> None:
    """Refuse arrays that are too long for CuPy's sorts, scans and sums."""
    shape = tuple(getattr(array, "shape", ()))
    if max(shape, default=0) > LONGEST:
        raise ValueError(
            f"an array has shape {shape}, and one GPU works on at most {LONGEST} objects; pass labels in chunks, as a "
            "Dask array, or labels in host memory with device='cpu'."
        )


def compile_cuda(source: str, options: tuple[str, ...]) -> Any:
    """Compile CUDA source for the GPU in use and return the module."""
    return load_cupy().RawModule(code=source, options=options)


def eigh(matrix: Any) -> tuple[Any, Any]:
    """Return the eigenvalues, ascending, and eigenvectors of a symmetric CuPy matrix, or raise LinAlgError."""
    cupy = load_cupy()
    import cupyx

    with cupyx.errstate(linalg="raise"):  # by default CuPy does not report that cuSOLVER failed to converge
        decomposition: tuple[Any, Any] = cupy.linalg.eigh(matrix)
    return decomposition

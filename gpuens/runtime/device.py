"""Devices: their choice, and arrays on them and between them.

"device" says where work is done, never by which method. ``"auto"`` follows the input. Other modules reach threads,
memory budgets and CuPy's functions by this module, too, as ``devices.name``.
"""

import sys
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from importlib import import_module
from types import ModuleType
from typing import Any, TypeAlias

import numpy as np

from gpuens.runtime import gpu, host
from gpuens.runtime.gpu import compile_cuda as compile_cuda
from gpuens.runtime.gpu import eigh as eigh
from gpuens.runtime.gpu import keeps_kernels as keeps_kernels
from gpuens.runtime.gpu import on_current as on_current
from gpuens.runtime.gpu import why_no_gpu as why_no_gpu
from gpuens.runtime.memory import asked_once as asked_once
from gpuens.runtime.memory import held_memory as held_memory
from gpuens.runtime.memory import memory_budget as memory_budget
from gpuens.runtime.memory import scratch as scratch
from gpuens.runtime.memory import within_memory as within_memory
from gpuens.runtime.parallel import call_interruptibly as call_interruptibly
from gpuens.runtime.parallel import library_threads as library_threads
from gpuens.runtime.parallel import over_ranges as over_ranges
from gpuens.runtime.parallel import worth_a_thread as worth_a_thread
from gpuens.runtime.threads import n_threads as n_threads

# Type of an array in the memory of the caller's arrays: NumPy's, or CuPy's or Dask's, which are written as Any because
# type checkers know these packages only where they are installed.
Array: TypeAlias = np.ndarray | Any

DEVICES = ["auto", "cpu", "cuda"]  # values of device=; `register` appends stand-ins for a GPU


# --- arrays -----------------------------------------------------------------------------------------------------------


class Home(str):
    """The memory of the caller's arrays, "cpu" or "cuda", and the library to which results are given back.

    ``library`` is the name of a namespace of the array API, such as "torch"; None stands for NumPy and CuPy.
    """

    library: str | None

    def __new__(cls, kind: str, library: str | None = None) -> "Home":
        home = super().__new__(cls, kind)
        home.library = library
        return home


def home_of(array: Any, name: str = "labels") -> Home:
    """Return the memory and the library of an array; ``name`` is the name of the argument in messages."""
    return home_of_all([array], [name])


def home_of_all(arrays: Sequence[Any], names: Sequence[Any]) -> Home:
    """Return the memory that all arrays share, and their library if that is one; mixing devices is a TypeError."""
    for array, name in zip(arrays, names, strict=True):
        check_readable(array, name)
    kinds, libraries = set(map(kind_of, arrays)), set(map(_library_of, arrays))
    if len(kinds) > 1:
        raise TypeError(
            "labels mix arrays in GPU memory with arrays in host memory; move them all to one device first "
            "(cupy.asarray or cupy.asnumpy)."
        )
    return Home(kinds.pop() if kinds else "cpu", libraries.pop() if len(libraries) == 1 else None)


def _library_of(array: Any) -> str | None:
    if _is_tensor(array):
        return "torch"
    if not hasattr(array, "__array_namespace__") or isinstance(array, np.ndarray) or chunked(array):
        return None
    name: str = array.__array_namespace__().__name__
    return None if name.partition(".")[0] == "cupy" else name


def _is_tensor(array: Any) -> bool:
    kind = getattr(sys.modules.get("torch"), "Tensor", None)  # None also while torch is being imported
    return kind is not None and isinstance(array, kind)


def check_readable(array: Any, name: Any = "an array") -> None:
    """Refuse a tensor of PyTorch that neither NumPy nor CuPy can read; ``name`` is the name of the argument."""
    if not _is_tensor(array):
        return
    if array.device.type not in ("cpu", "cuda"):
        fault, remedy = f"is on the device {array.device.type!r}", "cpu()"
    elif str(array.layout) != "torch.strided":
        fault, remedy = f"has the layout {array.layout}", "to_dense()"
    elif array.requires_grad:
        fault, remedy = "requires gradients, and results have none", "detach()"
    elif (dtype := str(array.dtype).removeprefix("torch.")) not in np.sctypeDict:
        fault, remedy = f"has the type {dtype}, which NumPy lacks", "float()"
    elif array.is_conj() or array.is_neg():
        fault, remedy = "is conjugated or negated only when it is read", "resolve_conj().resolve_neg()"
    else:
        return
    raise TypeError(f"{name}: the tensor {fault}; pass {'tensor' if name == 'an array' else name}.{remedy}.")


def kind_of(array: Any) -> str:
    """Return "cuda" for an array in GPU memory, "cpu" for an array in host memory and for any other object."""
    if type(array) is np.ndarray:
        return "cpu"
    check_readable(array)
    if hasattr(array, "__cuda_array_interface__"):
        return "cuda"
    if hasattr(array, "__dlpack_device__") and not isinstance(array, np.ndarray):
        device_type = int(array.__dlpack_device__()[0])
        return "cuda" if device_type in (2, 13) else "cpu"  # kDLCUDA, kDLCUDAManaged
    return "cpu"


def chunked(array: Any) -> bool:
    """Return whether an array is one of Dask's."""
    return hasattr(array, "__dask_graph__")


def chunk_as_declared(block: Any, name: str, block_info: Any = None) -> Any:
    """Return a chunk of a Dask array, or refuse it if its shape is not the declared one (NaN is an unknown size)."""
    places, (chunk, *columns) = block_info[0]["array-location"], block_info[0]["chunk-location"]
    declared, shape = [stop - start for start, stop in places], getattr(block, "shape", None)
    if shape is not None and len(shape) == len(declared):
        is_declared = ~np.isnan(declared)
        if (np.array(declared)[is_declared] == np.array(shape)[is_declared]).all():
            return block
    start, stop = places[0]
    where = f"chunk {chunk}" if np.isnan(stop) else f"chunk {chunk} (objects {start} … {stop - 1})"
    where += f" of columns {places[1][0]} … {places[1][1] - 1}" if any(columns) else ""
    kind, fault = (TypeError, f"is {type(block).__name__}") if shape is None else (ValueError, f"has shape {shape}")
    raise kind(f"{name}: {where} {fault} where the Dask array says {tuple(declared)}; correct the array or its chunks.")


def native(array: Any) -> Any:
    """Return any array as a NumPy or CuPy array, in the memory where it already is.

    Accepts ``__cuda_array_interface__``, DLPack, nested lists and Dask arrays (it computes them).
    """
    if isinstance(array, np.ndarray):
        return array
    if hasattr(array, "map_blocks") and chunked(array):
        array = array.map_blocks(chunk_as_declared, "array", dtype=array.dtype, meta=array._meta).compute()
    if kind_of(array) == "cuda":
        return gpu.as_array(array)
    check_readable(array)
    try:
        if hasattr(array, "__dlpack__") and not hasattr(array, "__array__"):
            return np.from_dlpack(array)
        return np.asarray(array)
    except (RuntimeError, BufferError) as error:
        reason = str(error).rstrip(".")
        raise TypeError(f"an array of {type(array).__module__} cannot be read ({reason}); copy it to NumPy.") from error


def to_host(array: Any) -> np.ndarray:
    """Return any array that `native` understands as a NumPy array."""
    array = native(array)
    return array if isinstance(array, np.ndarray) else gpu.load_cupy().asnumpy(array)


def floats(*scalars: Any) -> list[float]:
    """Return arrays of one number each, all in one memory, as floats; a GPU is asked once for all of them."""
    if kind_of(scalars[0]) == "cuda":
        return list(map(float, to_host(gpu.load_cupy().stack(scalars)).tolist()))
    return list(map(float, scalars))


def move(array: Any, kind: str) -> Any:
    """Return an array in the memory named by ``kind`` (see `kind_of`); results return to the memory of the labels."""
    if kind != "cuda":
        return to_host(array)
    gpu.refuse_too_long(array)
    return gpu.load_cupy().asarray(array)


def give_back(array: Any, home: str) -> Any:
    """Return a result in the memory and the library of the caller's arrays (`home_of`).

    Texts stay in NumPy arrays, and arrays in chunks stay where they are.
    """
    if chunked(array):
        return array
    moved, library = move(array, home), getattr(home, "library", None)
    if library is None or moved.dtype.kind not in "biufc":
        return moved
    namespace = import_module(library)
    if home == "cuda":
        return namespace.from_dlpack(moved)
    return namespace.asarray(moved if moved.flags.writeable else moved.copy())


stand_ins: dict[str, Callable[..., Any]] = {}


def register(device: str, compiled: Callable[..., Any]) -> None:
    """Add a stand-in for a GPU with NumPy arrays; ``compiled(source, options, name)`` returns a module of kernels."""
    if device not in stand_ins:
        DEVICES.append(device)
    stand_ins[device] = compiled


def namespace(device: str) -> ModuleType:
    """Return the array module of a device: CuPy's for a GPU, else NumPy."""
    module: ModuleType = gpu.load_cupy() if device == "cuda" else np
    return module


def identity(device: str) -> str:
    """Return the target for which kernels are compiled: the device's name, or "cuda:1" for the second GPU."""
    return f"cuda:{gpu.current()}" if device == "cuda" else device


# --- choice -----------------------------------------------------------------------------------------------------------


def resolve(device: str, kind: str = "cpu") -> str:
    """Return the device to work on, "cpu" or "cuda", or refuse the request in one sentence.

    "auto" follows the labels; ``kind`` names their memory (see `kind_of`).
    """
    if not isinstance(device, str) or device not in DEVICES:
        refusal = ValueError if isinstance(device, str) else TypeError
        received = repr(device[:80]) if isinstance(device, str) else type(device).__name__
        raise refusal(f"device must be one of {', '.join(map(repr, DEVICES))}, not {received}.")
    if device == "auto":
        return str(kind)
    if device == "cuda" and (reason := gpu.why_no_gpu()) is not None:
        raise ValueError(f"device='cuda' needs CuPy and a GPU ({reason.rstrip('.')}); use device='auto' or 'cpu'.")
    return device


def units(device: str) -> Iterator[str]:
    """Yield the name of the CPU or of each GPU ("cuda:0", …); a GPU is the current one until the next is yielded."""
    if device != "cuda":
        yield device
        return
    for index in gpu.each():
        yield f"cuda:{index}"


@cache
def describe() -> list[dict[str, Any]]:
    """Return the devices that `gpuens info` prints: the CPU and each GPU visible to CuPy."""
    cpu = {"device": "cpu", "threads": n_threads(), "memory": host.total_memory()}
    return [cpu, *({"device": f"cuda:{index}", **properties} for index, properties in enumerate(gpu.describe()))]

"""Devices: their choice, transfers between them, work in threads and the memory budget.

No other module names cupy. "device" says where work is done, never by which method. ``"auto"`` follows the input.
"""

import os
import re
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import ExitStack, contextmanager
from contextvars import Context, ContextVar, copy_context
from fractions import Fraction
from functools import cache, lru_cache, partial
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import Any, TypeAlias

import numpy as np

from gpuens.runtime import host, installing
from gpuens.runtime.failures import OutOfGPUMemory
from gpuens.runtime.threads import n_threads as n_threads

# Type of an array in the memory of the caller's arrays: NumPy's, or CuPy's or Dask's, which are written as Any because
# type checkers know these packages only where they are installed.
Array: TypeAlias = np.ndarray | Any

DEVICES = ["auto", "cpu", "cuda"]  # values of device=; `register` appends stand-ins for a GPU
KERNEL_CACHE = "~/.cupy/kernel_cache"  # CuPy's default folder of compiled kernels, if CUPY_CACHE_DIR is not set
UNASKED_BYTES = 2**26  # most bytes of host memory that count as free without a look
HAND_OVER = 2**16  # nanoseconds (steps of 1 ns) to wake a thread and to wait for its answer


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
    declared, found = [stop - start for start, stop in places], getattr(block, "shape", None)
    if found is not None and len(found) == len(declared):
        known = ~np.isnan(declared)
        if (np.array(declared)[known] == np.array(found)[known]).all():
            return block
    start, stop = places[0]
    where = f"chunk {chunk}" if np.isnan(stop) else f"chunk {chunk} (objects {start} … {stop - 1})"
    where += f" of columns {places[1][0]} … {places[1][1] - 1}" if any(columns) else ""
    kind, what = (TypeError, f"is {type(block).__name__}") if found is None else (ValueError, f"has shape {found}")
    raise kind(f"{name}: {where} {what} where the Dask array says {tuple(declared)}; correct the array or its chunks.")


def native(array: Any) -> Any:
    """Return any array as a NumPy or CuPy array, in the memory where it already is.

    Accepts ``__cuda_array_interface__``, DLPack, nested lists and Dask arrays (it computes them).
    """
    if isinstance(array, np.ndarray):
        return array
    if hasattr(array, "map_blocks") and chunked(array):
        array = array.map_blocks(chunk_as_declared, "array", dtype=array.dtype, meta=array._meta).compute()
    if kind_of(array) == "cuda":
        cupy = _cupy()
        _refuse_too_long(array)
        if isinstance(array, cupy.ndarray):  # asarray would copy it to the current GPU
            return on_current(array)
        ours = cupy.asarray(array) if hasattr(array, "__cuda_array_interface__") else cupy.from_dlpack(array)
        return on_current(ours)
    check_readable(array)
    try:
        if hasattr(array, "__dlpack__") and not hasattr(array, "__array__"):
            return np.from_dlpack(array)
        return np.asarray(array)
    except (RuntimeError, BufferError) as error:
        reason = str(error).rstrip(".")
        raise TypeError(f"an array of {type(array).__module__} cannot be read ({reason}); copy it to NumPy.") from error


def on_current(array: Any) -> Any:
    """Return a CuPy array, or refuse it if it is not in the memory of the current GPU, where kernels run."""
    home, current = array.device.id, _cupy().cuda.runtime.getDevice()
    if home != current:
        raise ValueError(
            f"an array is on GPU {home} while the current GPU is {current}; enter cupy.cuda.Device({home}) first, or "
            "copy the array."
        )
    return array


def to_host(array: Any) -> np.ndarray:
    """Return any array that `native` understands as a NumPy array."""
    array = native(array)
    return array if isinstance(array, np.ndarray) else _cupy().asnumpy(array)


def floats(*scalars: Any) -> list[float]:
    """Return arrays of one number each, all in one memory, as floats; a GPU is asked once for all of them."""
    if kind_of(scalars[0]) == "cuda":
        return list(map(float, to_host(_cupy().stack(scalars)).tolist()))
    return list(map(float, scalars))


def move(array: Any, kind: str) -> Any:
    """Return an array in the memory named by ``kind`` (see `kind_of`); results return to the memory of the labels."""
    if kind != "cuda":
        return to_host(array)
    _refuse_too_long(array)
    return _cupy().asarray(array)


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
    module: ModuleType = _cupy() if device == "cuda" else np
    return module


def identity(device: str) -> str:
    """Return the target for which kernels are compiled: the device's name, or "cuda:1" for the second GPU."""
    return f"cuda:{_cupy().cuda.runtime.getDevice()}" if device == "cuda" else device


def compile_cuda(source: str, options: tuple[str, ...]) -> Any:
    """Compile CUDA source for the GPU in use and return the module."""
    return _cupy().RawModule(code=source, options=options)


def eigh(matrix: Any) -> tuple[Any, Any]:
    """Return the eigenvalues, ascending, and eigenvectors of a symmetric CuPy matrix, or raise LinAlgError."""
    cupy = _cupy()
    import cupyx

    with cupyx.errstate(linalg="raise"):  # by default CuPy does not report that cuSOLVER failed to converge
        found: tuple[Any, Any] = cupy.linalg.eigh(matrix)
    return found


# largest length of an axis of an array on a GPU: CuPy passes sizes to CUB as 32-bit integers and ignores CUB's errors
LONGEST = 2**31 - 1


def _refuse_too_long(array: Any) -> None:
    """Refuse arrays that are too long for CuPy's sorts, scans and sums."""
    shape = tuple(getattr(array, "shape", ()))
    if max(shape, default=0) > LONGEST:
        raise ValueError(
            f"an array has shape {shape}, and one GPU works on at most {LONGEST} objects; pass labels in chunks, as a "
            "Dask array, or labels in host memory with device='cpu'."
        )


def _cupy() -> Any:
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


# --- choice -----------------------------------------------------------------------------------------------------------


def resolve(device: str, kind: str = "cpu") -> str:
    """Return the device to work on, "cpu" or "cuda", or refuse the request in one sentence.

    "auto" follows the labels; ``kind`` names their memory (see `kind_of`).
    """
    if not isinstance(device, str) or device not in DEVICES:
        refusal = ValueError if isinstance(device, str) else TypeError
        found = repr(device[:80]) if isinstance(device, str) else type(device).__name__
        raise refusal(f"device must be one of {', '.join(map(repr, DEVICES))}, not {found}.")
    if device == "auto":
        return str(kind)
    if device == "cuda" and (reason := why_no_gpu()) is not None:
        raise ValueError(f"device='cuda' needs CuPy and a GPU ({reason.rstrip('.')}); use device='auto' or 'cpu'.")
    return device


def why_no_gpu() -> str | None:
    """Return the reason why no GPU can be used (no CuPy, no driver) as a sentence; None if a GPU can be used."""
    try:
        return None if _cupy().cuda.runtime.getDeviceCount() > 0 else "the driver shows none."
    except Exception as error:  # no CuPy, or no driver
        return " ".join(str(error).split()).rstrip(".") + "."


def units(device: str) -> Iterator[str]:
    """Yield the name of the CPU or of each GPU ("cuda:0", …); a GPU is the current one until the next is yielded."""
    if device != "cuda":
        yield device
        return
    cupy = _cupy()
    for index in range(cupy.cuda.runtime.getDeviceCount()):
        with cupy.cuda.Device(index):
            yield identity(device)


@cache
def describe() -> list[dict[str, Any]]:
    """Return the devices that `gpuens info` prints: the CPU and each GPU visible to CuPy."""
    found: list[dict[str, Any]] = [{"device": "cpu", "threads": n_threads(), "memory": host.total_memory()}]
    keeps_kernels()
    try:
        import cupy

        for index in range(cupy.cuda.runtime.getDeviceCount()):
            properties = cupy.cuda.runtime.getDeviceProperties(index)
            found.append(
                {"device": f"cuda:{index}", "name": properties["name"].decode(), "memory": properties["totalGlobalMem"]}
            )
    except Exception:  # no CuPy, driver or device: there is no GPU to describe
        pass
    return found


# --- threads ----------------------------------------------------------------------------------------------------------


@contextmanager
def library_threads(limit: int | None, user_api: str = "blas") -> Iterator[None]:
    """In the with block, let BLAS (in the whole process) or OpenMP (in the calling thread) use one thread.

    None is no limit. A library that uses several threads adds partial sums in an order that depends on their number.
    """
    if limit is None:
        yield
    elif user_api == "blas":
        _one_blas_thread.enter()
        try:
            yield
        finally:
            _one_blas_thread.leave()
    else:
        with _libraries(len(sys.modules)).limit(limits=limit, user_api=user_api):
            yield


class _OneBlasThread:
    """The limit of BLAS to one thread, which with blocks of several threads of Python share.

    The first to enter sets it, and the last to leave restores the numbers of threads from before.
    """

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.n_blocks = 0
        self.limits = ExitStack()
        self.libraries: Any = None  # the last controller that has limited BLAS

    def enter(self) -> None:
        with self.lock:
            libraries = _libraries(len(sys.modules))
            if libraries is not self.libraries:  # else there is no library that the last limit has not reached
                self.limits.enter_context(libraries.limit(limits=1, user_api="blas"))
                self.libraries = libraries
            self.n_blocks += 1

    def leave(self) -> None:
        with self.lock:
            self.n_blocks -= 1
            if self.n_blocks == 0:
                self.libraries = None
                self.limits.close()

    def unlock(self) -> None:
        """Replace the lock in a forked child, which does not inherit the thread that has locked it."""
        self.lock = threading.Lock()


_one_blas_thread = _OneBlasThread()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_one_blas_thread.unlock)


@lru_cache(maxsize=1)
def _libraries(n_modules: int) -> Any:
    """Return the controller of the loaded libraries, cached by the number of modules: a new search takes some ms."""
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


def over_ranges(work: Callable[[int, int], Any], n: int, *, grain: int = 1) -> list[Any]:
    """Call ``work(start, stop)`` on pieces of range(n) in threads and return the results in order.

    ``work`` must release the GIL (NumPy, SciPy) and write only to its own range; then the result does not depend on the
    number of threads. ``grain`` is the smallest piece worth a thread, see `worth_a_thread`. There are more pieces than
    threads, to balance the load.

    The caller's thread works on pieces too, and waits only for pieces that other threads have begun. If the pieces are
    small, it finishes all of them before another thread wakes up.
    """
    threads = n_threads()
    pieces = 1 if threads == 1 else max(1, min(8 * threads, n // max(1, grain)))
    if pieces == 1:
        return [work(0, n)] if n else []
    bounds = [n * i // pieces for i in range(pieces + 1)]
    results: list[Any] = [None] * pieces
    left = deque(range(pieces))  # two threads never take the same piece, as they could from an iterator without the GIL

    def take() -> None:
        try:
            while True:
                try:
                    i = left.popleft()
                except IndexError:
                    break
                results[i] = work(bounds[i], bounds[i + 1])
        finally:
            left.clear()  # after an error no thread begins another piece

    others: list[Future[Any]] = []
    try:
        for _ in range(min(threads, pieces) - 1):
            # in an empty context: without the GIL a new thread keeps the one that it is started in, and its arrays
            others.append(Context().run(_pool(threads).submit, partial(copy_context().run, take)))
        take()
    finally:  # also after a signal: no thread may write to the caller's arrays after this function has ended
        left.clear()
        begun = [other for other in others if not other.cancel()]
        wait(begun)
        # a cancelled task may stay in the pool's queue for a while, so drop its references to the caller's arrays
        found, results, work = results, [], None  # type: ignore[assignment]
    for other in begun:
        other.result()  # raises the error of that thread, if any
    return found


def call_interruptibly(work: Callable[[], Any]) -> Any:
    """Return ``work()``, one long call of a library, computed in another thread while the main thread answers signals.

    ``work`` must release the GIL. After a signal it goes on until its own end, which the end of the process waits
    for, and its result is dropped.
    """
    if threading.current_thread() is not threading.main_thread():
        return work()  # only the main thread answers signals
    pool = ThreadPoolExecutor(1)  # no daemon thread: OpenBLAS, which ends with the process, may wait for it for ever
    try:
        return pool.submit(copy_context().run, work).result()
    finally:
        pool.shutdown(wait=False)


def worth_a_thread(steps: float) -> int:
    """Return the smallest number of items that is worth a thread; an item (a label, an entry) takes ``steps`` ns."""
    return max(1, int(HAND_OVER / max(1.0, steps)))


@cache
def _pool(threads: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(threads)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_pool.cache_clear)  # a forked child inherits no threads


# --- memory -----------------------------------------------------------------------------------------------------------

_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12, "ki": 2**10, "mi": 2**20, "gi": 2**30, "ti": 2**40}


def memory_budget(device: str = "cpu", needed: int | None = None) -> int:
    """Return the memory budget of a device in bytes: GPUENS_MEMORY ("4GB"), else 80 % of the memory free now.

    On a GPU the unused part of CuPy's memory pool counts as free; see `_room` for other allocators. If only ``needed``
    bytes are compared with the budget, and they are few, they count as free: to ask the system can take longer than to
    use them.
    """
    setting = os.environ.get("GPUENS_MEMORY", "")
    if setting:
        match = re.fullmatch(r"\s*((?=\.?[0-9])[0-9]{0,15}\.?[0-9]{0,15})\s*([kmgt]i?|)b?\s*", setting.lower())
        size = int(Fraction(match[1]) * _UNITS[match[2]]) if match else 0
        if size < 1:
            raise ValueError(f"GPUENS_MEMORY must be a size such as '4GB' or '1.5GiB', not {setting!r}.")
        return size
    if needed is not None and needed <= UNASKED_BYTES and device != "cuda":
        return UNASKED_BYTES
    # numbers of batch processes that share the memory of the host and of the GPU
    of_host, of_gpu = map(int, os.environ.get("GPUENS_SHARES", "1:1").split(":"))
    if device == "cuda":
        return int(0.8 * _available(_cupy()) / of_gpu)
    return int(0.8 * host.available_memory() / of_host)


def held_memory() -> int | None:
    """Return the bytes of GPU memory that CuPy's pools hold, free blocks included, or None if no GPU was used.

    Pools do not return memory to the driver, so this is the largest use so far unless memory ran out.
    """
    if "cupy" not in sys.modules:
        return None
    try:
        held = sum(_cupy().get_default_memory_pool().total_bytes() for _ in units("cuda"))
    except Exception:  # no driver
        return None
    return held or None


# --- memory of a GPU --------------------------------------------------------------------------------------------------

RMM_WITHOUT_POOL = ("CudaMemoryResource", "ManagedMemoryResource", "SystemMemoryResource")

# factor (1, 16, 256, …) by which the bytes of a step are divided after GPU memory ran out
_shrunk = ContextVar("shrunk", default=1)
# results of `_room` for each GPU within `asked_once`, None outside
_rooms: ContextVar[dict[str, Any] | None] = ContextVar("rooms", default=None)


def _available(cupy: Any) -> int:
    """Return the bytes left for CuPy's arrays on the current GPU; during a fit the driver is asked only once."""
    rooms = _rooms.get()
    rooms = {} if rooms is None else rooms
    gpu = cupy.cuda.runtime.getDevice()
    if gpu not in rooms:
        rooms[gpu] = _room(cupy)
    room, used = rooms[gpu]
    left: int = room - used()
    return max(0, left)


def _room(cupy: Any) -> tuple[int, Callable[[], int]]:
    """Return the bytes that are free or held by CuPy's allocator, and a function that returns its bytes in use.

    CuPy's pools know both numbers. RMM knows the size of its pool, and the bytes in use if it keeps statistics; half of
    a pool counts as used if its use is unknown. For any other allocator, such as PyTorch's, all memory that is not free
    counts as its pool. If that is too optimistic, `within_memory` makes the steps smaller. An allocator without a pool
    gives freed memory back to the driver, so the driver is asked each time.
    """
    free, total = cupy.cuda.runtime.memGetInfo()
    allocator = cupy.cuda.get_allocator()
    pool: Any = getattr(allocator, "__self__", None)
    if hasattr(pool, "used_bytes"):
        room = free + pool.total_bytes()
        return min(room, pool.get_limit() or room), pool.used_bytes
    owner = str(getattr(allocator, "__module__", None))
    held, used = _held_by_rmm() if owner.startswith("rmm") else (None, None)
    if owner.startswith("cupy") or held == 0:  # no pool
        return total, lambda: total - cupy.cuda.runtime.memGetInfo()[0]
    if held is None:
        held, used = total - free, None
    return free + held, used or (lambda: held // 2)


def _held_by_rmm() -> tuple[int | None, Callable[[], int] | None]:
    """Return the bytes of RMM's pool (0: no pool) and a function that returns the bytes in use; None: unknown."""
    import rmm

    held = used = None
    resource = rmm.mr.get_current_device_resource()
    while resource is not None:  # an adaptor first, then the resource that it wraps
        if hasattr(resource, "pool_size"):
            held = resource.pool_size()
        if hasattr(resource, "allocation_counts"):
            used = partial(_current_bytes, resource)
        elif hasattr(resource, "get_allocated_bytes"):
            used = resource.get_allocated_bytes
        if type(resource).__name__ in RMM_WITHOUT_POOL and held is None:
            held = 0
        resource = getattr(resource, "upstream_mr", None)
    return held, used


def _current_bytes(statistics: Any) -> int:
    return int(statistics.allocation_counts.current_bytes)


def _out_of_memory(error: Exception) -> bool:
    """Return whether an error means that GPU memory ran out: from CuPy, PyTorch, RMM or CuPy's sorts (bad_alloc)."""
    return type(error).__name__ == "OutOfMemoryError" or (isinstance(error, MemoryError) and "bad_alloc" in str(error))


def scratch(device: str) -> int:
    """Return the bytes of working memory for one step on a GPU; callers choose the size of their pieces by it."""
    return max(2**16, min(2**30, memory_budget(device) // 8) // _shrunk.get())


@contextmanager
def asked_once() -> Iterator[None]:
    """In the with block, ask the driver only once how much memory of a GPU is free."""
    token = _rooms.set({})
    try:
        yield
    finally:
        _rooms.reset(token)


def within_memory(work: Callable[[], Any], what: str, instead: str) -> Any:
    """Return ``work()``; when GPU memory runs out, retry in smaller pieces, then raise one sentence.

    Each attempt asks the driver for the free memory once.
    """
    shrink = _shrunk.get()
    while True:
        token = _shrunk.set(shrink)
        try:
            with asked_once():
                return work()
        except Exception as error:
            if not _out_of_memory(error):
                raise
            cupy = _cupy()
            total = cupy.cuda.runtime.memGetInfo()[1]
            if shrink >= 2**12:
                raise OutOfGPUMemory(f"{what} does not fit the GPU's {total / 1e9:.1f} GB; {instead}.") from error
        finally:
            _shrunk.reset(token)
        cupy.get_default_memory_pool().free_all_blocks()  # not earlier, because the error kept arrays alive
        shrink *= 16

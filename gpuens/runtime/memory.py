"""Memory budgets: bytes that a step may use, of the host or of a GPU, and retries when GPU memory runs out."""

import os
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from fractions import Fraction
from functools import partial
from typing import Any

from gpuens.runtime import gpu, host
from gpuens.runtime.failures import OutOfGPUMemory

UNASKED_BYTES = 2**26  # most bytes of host memory that count as free without a look
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
        return int(0.8 * _available() / of_gpu)
    return int(0.8 * host.available_memory() / of_host)


def held_memory() -> int | None:
    """Return the bytes of GPU memory that CuPy's pools hold, free blocks included, or None if no GPU was used.

    Pools do not return memory to the driver, so this is the largest use so far unless memory ran out.
    """
    if "cupy" not in sys.modules:
        return None
    try:
        n_bytes = sum(gpu.load_cupy().get_default_memory_pool().total_bytes() for _ in gpu.each())
    except Exception:  # no driver
        return None
    return n_bytes or None


RMM_WITHOUT_POOL = ("CudaMemoryResource", "ManagedMemoryResource", "SystemMemoryResource")

# factor (1, 16, 256, …) by which the bytes of a step are divided after GPU memory ran out
_shrunk = ContextVar("shrunk", default=1)
# results of `_room` for each GPU within `asked_once`, None outside
_rooms: ContextVar[dict[int, Any] | None] = ContextVar("rooms", default=None)


def _available() -> int:
    """Return the bytes left for CuPy's arrays on the current GPU; during a fit the driver is asked only once."""
    rooms = _rooms.get()
    rooms = {} if rooms is None else rooms
    number = gpu.current()
    if number not in rooms:
        rooms[number] = _room(gpu.load_cupy())
    room, bytes_in_use = rooms[number]
    left: int = room - bytes_in_use()
    return max(0, left)


def _room(xp: Any) -> tuple[int, Callable[[], int]]:
    """Return the bytes that are free or held by CuPy's allocator, and a function that returns its bytes in use.

    CuPy's pools know both numbers. RMM knows the size of its pool, and the bytes in use if it keeps statistics; half of
    a pool counts as used if its use is unknown. For any other allocator, such as PyTorch's, all memory that is not free
    counts as its pool. If that is too optimistic, `within_memory` makes the steps smaller. An allocator without a pool
    gives freed memory back to the driver, so the driver is asked each time.
    """
    free, total = xp.cuda.runtime.memGetInfo()
    allocator = xp.cuda.get_allocator()
    pool: Any = getattr(allocator, "__self__", None)
    if hasattr(pool, "used_bytes"):
        room = free + pool.total_bytes()
        return min(room, pool.get_limit() or room), pool.used_bytes
    owner = str(getattr(allocator, "__module__", None))
    pool_bytes, bytes_in_use = _rmm_pool() if owner.startswith("rmm") else (None, None)
    if owner.startswith("cupy") or pool_bytes == 0:  # no pool
        return total, lambda: total - xp.cuda.runtime.memGetInfo()[0]
    if pool_bytes is None:
        pool_bytes, bytes_in_use = total - free, None
    return free + pool_bytes, bytes_in_use or (lambda: pool_bytes // 2)


def _rmm_pool() -> tuple[int | None, Callable[[], int] | None]:
    """Return the bytes of RMM's pool (0: no pool) and a function that returns the bytes in use; None: unknown."""
    import rmm

    pool_bytes = bytes_in_use = None
    resource = rmm.mr.get_current_device_resource()
    while resource is not None:  # an adaptor first, then the resource that it wraps
        if hasattr(resource, "pool_size"):
            pool_bytes = resource.pool_size()
        if hasattr(resource, "allocation_counts"):
            bytes_in_use = partial(_current_bytes, resource)
        elif hasattr(resource, "get_allocated_bytes"):
            bytes_in_use = resource.get_allocated_bytes
        if type(resource).__name__ in RMM_WITHOUT_POOL and pool_bytes is None:
            pool_bytes = 0
        resource = getattr(resource, "upstream_mr", None)
    return pool_bytes, bytes_in_use


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


def within_memory(work: Callable[[], Any], subject: str, instead: str) -> Any:
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
            xp = gpu.load_cupy()
            total = xp.cuda.runtime.memGetInfo()[1]
            if shrink >= 2**12:
                raise OutOfGPUMemory(f"{subject} does not fit the GPU's {total / 1e9:.1f} GB; {instead}.") from error
        finally:
            _shrunk.reset(token)
        xp.get_default_memory_pool().free_all_blocks()  # not earlier, because the error kept arrays alive
        shrink *= 16

"""A stand-in for CuPy that counts copies to and from the host and limits memory: device="cuda" without a GPU.

Only this stand-in finds two kinds of faults: unwanted copies (`traffic` counts all copies, and NumPy arrays and lists
are refused wherever CuPy would copy them or fail), and memory that runs out (`reset` sets a limit). Whether CuPy has a
function, and what it computes, is tested with the real CuPy: ``make check-gpu``.

The fixture ``fake_cupy`` puts this module in CuPy's place. A device array hides a NumPy array, and NumPy computes;
kernels run in the tests' emulator. New memory is full of 0xFF, so that reading it before it is written shows. Indices
out of range (CuPy wraps around) and assignments to one place twice (CuPy keeps any of the values) are refused.
"""

import sys
import threading
import time
from contextlib import nullcontext
from types import SimpleNamespace

import numpy as np

__version__ = "13.3.0"

# --- memory and traffic -----------------------------------------------------------------------------------------------

HIDDEN = 1 << 62  # offset that is added to each address: addresses stay unique, but the CPU cannot read from them
UNIT = 512  # CuPy's pool rounds each size up to a multiple of this number of bytes


class OutOfMemoryError(MemoryError):
    def __init__(self, size, total, limit=0):
        super().__init__(
            f"Out of memory allocating {size:,} bytes (allocated so far: {total:,} bytes, "
            f"limit set to: {limit:,} bytes)."
        )


class Memory:
    """Bytes of device arrays: ``used`` now, at ``most`` so far, ``held`` by the pool, and ``total`` of the device."""

    def __init__(self, total):
        self.total, self.used, self.most, self.held = total, 0, 0, 0
        # a reentrant lock, because garbage collection may free arrays while the lock is held
        self.lock = threading.RLock()

    def allocate(self, n):
        with self.lock:
            if self.used + n > self.total:
                raise OutOfMemoryError(n, self.used, self.total)
            self.used += n
            self.most = max(self.most, self.used)
            self.held = max(self.held, self.used)

    def free(self, n):
        with self.lock:
            self.used -= n


class Block:
    """Memory shared by some device arrays, freed with the last of them."""

    def __init__(self, nbytes):
        nbytes = -(-nbytes // UNIT) * UNIT
        memory.allocate(nbytes)
        self.memory, self.nbytes = memory, nbytes

    def __del__(self):
        if hasattr(self, "nbytes"):
            self.memory.free(self.nbytes)


class Copies:
    """The sizes in bytes of all arrays that were copied in one direction, or pickled."""

    def __init__(self):
        self.sizes = []

    @property
    def bytes(self):
        return sum(self.sizes)

    @property
    def largest(self):
        return max(self.sizes, default=0)


traffic = SimpleNamespace(to_device=Copies(), to_host=Copies(), pickled=Copies())


def reset(limit=80 * 10**9, *, held=0, gpus=1, missing=()):
    """Reset all counters; the device now has ``limit`` bytes of memory, and the pool holds ``held`` bytes of them.

    ``gpus`` is the number of GPUs or an error of the driver; ``missing`` names CUDA libraries that are not installed.
    """
    global memory, visible, absent
    memory, visible, absent = Memory(limit), gpus, tuple(missing)
    memory.held = held
    traffic.to_device, traffic.to_host, traffic.pickled = Copies(), Copies(), Copies()


def _count_gpus():
    if isinstance(visible, Exception):
        raise visible
    return visible


def _nvrtc_version():
    if "NVRTC" in absent:
        raise RuntimeError("no such library")
    return 12, 4


reset()


# --- hiding NumPy's arrays --------------------------------------------------------------------------------------------


def _wrap(result, *sources):
    """Return NumPy's results as device arrays; views of ``sources`` (device arrays) share their memory."""
    if isinstance(result, (tuple, list)):
        return tuple(_wrap(item, *sources) for item in result)
    values = np.asarray(result)
    if values.dtype.kind not in "biufc" or values.dtype == np.longdouble:
        raise ValueError(f"Unsupported dtype {values.dtype}")
    shared = [source for source in sources if np.may_share_memory(values, source._hidden)]
    array = object.__new__(ndarray)
    array._hidden = values
    array._block = shared[0]._block if shared else Block(values.nbytes)
    return array


def _unwrap(value):
    """Return the NumPy array of a device array, also within tuples and lists; raise an error for arrays of the host."""
    if isinstance(value, ndarray):
        return value._hidden
    if isinstance(value, (tuple, list)):
        return type(value)(_unwrap(item) for item in value)
    if isinstance(value, np.ndarray):
        raise TypeError(f"Unsupported type {type(value)}")
    return value


def _arrays(values):
    """Return the device arrays among values, also those within tuples and lists."""
    nested = [_arrays(value) if isinstance(value, (tuple, list)) else [value] for value in values]
    return [value for found in nested for value in found if isinstance(value, ndarray)]


def _call(function, *args, out=None, **kwargs):
    """Call a NumPy function on at least one device array; raise an error for lists of anything but device arrays."""
    given = [*args, *kwargs.values()]
    if not _arrays(given) or any(isinstance(value, list) and not _arrays(value) for value in given):
        raise TypeError(f"{function.__name__}: Argument has incorrect type (expected cupy.ndarray)")
    if isinstance(out, tuple):
        (out,) = out
    kwargs = {name: _unwrap(value) for name, value in kwargs.items()}
    if out is None:
        return _wrap(function(*_unwrap(args), **kwargs), *_arrays(args))
    if not isinstance(out, ndarray):
        raise TypeError(f"{function.__name__}: out is no device array")
    function(*_unwrap(args), out=out._hidden, **kwargs)
    return out


# --- arrays -----------------------------------------------------------------------------------------------------------

UFUNCS = """
    add subtract multiply divide divmod floor_divide power negative absolute ceil floor rint sqrt exp invert
    left_shift right_shift bitwise_and bitwise_or minimum maximum isnan isinf isfinite equal not_equal less less_equal
    greater greater_equal matmul
"""
FUNCTIONS = """
    all any argmax argmin argsort argwhere bincount broadcast_to concatenate cumsum flatnonzero max min mean
    median partition repeat searchsorted stack sum take_along_axis unique var where
"""
METHODS = """
    all any argmax argmin argsort astype copy cumsum max mean min ravel repeat reshape std sum transpose var view
"""


class ndarray(np.lib.mixins.NDArrayOperatorsMixin):
    __hash__ = None
    __array_priority__ = 100

    def __init__(self, *args, **kwargs):
        raise TypeError("make device arrays by cupy.empty, cupy.asarray, …")

    dtype = property(lambda self: self._hidden.dtype)
    shape = property(lambda self: self._hidden.shape)
    strides = property(lambda self: self._hidden.strides)
    ndim = property(lambda self: self._hidden.ndim)
    size = property(lambda self: self._hidden.size)
    nbytes = property(lambda self: self._hidden.nbytes)
    itemsize = property(lambda self: self._hidden.itemsize)
    flags = property(lambda self: self._hidden.flags)
    T = property(lambda self: _wrap(self._hidden.T, self))
    device = SimpleNamespace(id=0)

    def __getattr__(self, name):
        if name not in METHODS.split():
            raise AttributeError(f"the stand-in for CuPy's arrays has no {name!r}")
        return lambda *args, **kwargs: _call(getattr(np.ndarray, name), self, *args, **kwargs)

    # exchange of arrays with other libraries and with the host

    def __array__(self, dtype=None, copy=None):
        raise TypeError(
            "Implicit conversion to a NumPy array is not allowed. "
            "Please use `.get()` to construct a NumPy array explicitly."
        )

    @property
    def __cuda_array_interface__(self):
        return {
            "shape": self.shape,
            "typestr": self.dtype.str,
            "strides": None if self.flags.c_contiguous else self.strides,
            "data": (self._hidden.ctypes.data + HIDDEN if self.size else 0, False),
            "version": 3,
        }

    def __reduce__(self):
        traffic.pickled.sizes.append(self.nbytes)
        return array, (self.get(),)

    def __dlpack__(self, *, stream=None):
        return self  # the array itself instead of a capsule; only this module's from_dlpack accepts it

    def __dlpack_device__(self):
        return 2, 0

    def get(self, stream=None, order="C", out=None, blocking=True):
        traffic.to_host.sizes.append(self.nbytes)
        if out is None:
            return np.array(self._hidden, order=order)
        out[...] = self._hidden
        return out

    def tolist(self):
        return self.get().tolist()

    def __bool__(self):
        return bool(self.get())

    def __int__(self):
        return int(self.get())

    def __float__(self):
        return float(self.get())

    def __format__(self, specification):
        return format(self.get(), specification)

    def __repr__(self):
        return repr(self.get())

    def __len__(self):
        return len(self._hidden)

    def __iter__(self):
        return (self[i] for i in range(len(self)))

    # methods that call NumPy's functions

    def __array_ufunc__(self, of, method, *inputs, **kwargs):
        if method != "__call__" or of.__name__ not in UFUNCS.split() or any(map(_of_host, inputs)):
            return NotImplemented
        return _call(of, *inputs, **kwargs)

    def __array_function__(self, func, types, args, kwargs):
        function = getattr(sys.modules[__name__], func.__name__, None)
        return NotImplemented if function is None else function(*args, **kwargs)

    # access to elements

    def __getitem__(self, index):
        return _wrap(self._hidden[_index(index)], self)

    def __setitem__(self, index, value):
        if _of_host(value):
            raise TypeError(f"Unsupported type {type(value)}")
        index = _index(index)
        if getattr(value, "size", 1) > 1 and _chooses(index):
            touched = np.arange(self.size).reshape(self.shape)[index]
            if len(np.unique(touched)) < touched.size:
                raise ValueError("repeated indices in an assignment: CuPy keeps any of the values")
        self._hidden[index] = _unwrap(value)

    def fill(self, value):
        self[...] = value


def _of_host(value):
    """Return whether a value is neither a device array nor a scalar."""
    return not isinstance(value, (ndarray, bool, int, float, complex, np.generic))


def _index(index):
    """Return an index for the hidden NumPy array; raise an error for an index with arrays or lists of the host."""
    for at in index if isinstance(index, tuple) else (index,):
        if not isinstance(at, (ndarray, int, np.integer, slice, type(None), type(...))) or isinstance(at, bool):
            raise TypeError(f"an index in host memory: {type(at)}")
    return _unwrap(index)


def _chooses(index):
    """Return whether an index is, or contains, an integer array."""
    places = index if isinstance(index, tuple) else (index,)
    return any(isinstance(at, np.ndarray) and at.dtype != bool for at in places)


# --- making arrays ----------------------------------------------------------------------------------------------------


def asarray(a, dtype=None, order=None):
    return array(a, dtype, copy=False, order=order)


def array(obj, dtype=None, copy=True, order="K"):
    order = order or "K"
    if isinstance(obj, (tuple, list)) and _arrays(obj):
        obj, copy = _call(np.stack, obj), False
    if hasattr(obj, "__cuda_array_interface__") and not isinstance(obj, ndarray):
        obj = _described(obj)
    if isinstance(obj, ndarray):
        same = not copy and dtype in (None, obj.dtype) and (order != "F" or obj.flags.f_contiguous)
        return obj if same and (order != "C" or obj.flags.c_contiguous) else obj.astype(dtype or obj.dtype, order=order)
    values = np.array(obj, dtype=dtype, order=order)
    result = _wrap(values.astype(values.dtype.newbyteorder("="), copy=False))
    traffic.to_device.sizes.append(values.nbytes)
    return result


def _described(obj):
    """Return the device array that an object of another library describes."""
    interface = obj.__cuda_array_interface__
    address, _ = interface["data"]
    if 0 in interface["shape"]:
        return empty(interface["shape"], interface["typestr"])
    if address < HIDDEN:
        raise ValueError(f"{address:#x} is not in the memory of this device")
    fields = {key: interface.get(key) for key in ("shape", "typestr", "strides")}
    result = object.__new__(ndarray)
    result._hidden = np.asarray(
        SimpleNamespace(__array_interface__={**fields, "data": (address - HIDDEN, False), "version": 3}, owner=obj)
    )
    result._block = getattr(obj, "_block", None)
    return result


def from_dlpack(array):
    return array.__dlpack__(stream=1).view()


def asnumpy(a, order="C"):
    return asarray(a).get(order=order) if hasattr(a, "__cuda_array_interface__") else np.asarray(a, order=order)


def ascontiguousarray(a, dtype=None):
    return array(_device(a), dtype, copy=False, order="C")


def asfortranarray(a, dtype=None):
    return array(_device(a), dtype, copy=False, order="F")


def _device(array):
    if not isinstance(array, ndarray):
        raise TypeError(f"Argument has incorrect type (expected cupy.ndarray, got {type(array)})")
    return array


def empty(shape, dtype=float, order="C"):
    return _unwritten(np.empty(shape, dtype, order=order))


def empty_like(prototype, dtype=None, order="K", *, shape=None):
    return _unwritten(np.empty_like(_device(prototype)._hidden, dtype, order=order, shape=shape))


def _unwritten(values):
    values.ravel(order="K").view(np.uint8)[...] = 1 if values.dtype == bool else 0xFF
    return _wrap(values)


def full(shape, fill_value, dtype=None, order="C"):
    if np.ndim(fill_value) or isinstance(fill_value, ndarray):
        raise TypeError(f"Unsupported type {type(fill_value)}")
    return _wrap(np.full(shape, fill_value, dtype, order=order))


def zeros(shape, dtype=float, order="C"):
    return full(shape, 0, dtype, order)


def ones(shape, dtype=float, order="C"):
    return full(shape, 1, dtype, order)


def full_like(a, fill_value, dtype=None, order="K", *, shape=None):
    result = empty_like(a, dtype, order, shape=shape)
    result.fill(fill_value)
    return result


def zeros_like(a, dtype=None, order="K", *, shape=None):
    return full_like(a, 0, dtype, order, shape=shape)


def arange(*bounds, dtype=None):
    return _wrap(np.arange(*bounds, dtype=dtype))


def __getattr__(name):
    if name in (UFUNCS + FUNCTIONS).split():  # this module has its own definitions for some of these names
        return lambda *args, **kwargs: _call(getattr(np, name), *args, **kwargs)
    raise AttributeError(f"the stand-in for CuPy has no {name!r}")


# --- kernels ----------------------------------------------------------------------------------------------------------


class RawModule:
    def __init__(self, *, code, options=()):
        import emulator

        self._module = emulator.Module(code, options, name=emulator.stem_of(code) or "kernel")

    def get_function(self, name):
        emulated = self._module.get_function(name)

        def launch(grid, block, args, *, shared_mem=0):
            emulated(grid, block, _unwrap(tuple(args)), shared_mem=shared_mem)

        return launch


# --- the device -------------------------------------------------------------------------------------------------------


PROPERTIES = {
    "name": b"stand-in for a GPU",
    "major": 8,
    "minor": 0,
    "multiProcessorCount": 2,
    "l2CacheSize": 2**20,
}


class Event:  # used by bench/gpu.py to measure times
    def record(self):
        self.seconds = time.perf_counter()

    def synchronize(self):
        pass


class Pool:
    def malloc(self, n_bytes):
        raise NotImplementedError("arrays ask for memory by themselves")

    def get_limit(self):
        return 0

    def free_bytes(self):
        return memory.held - memory.used

    def used_bytes(self):
        return memory.used

    def total_bytes(self):
        return memory.held

    def free_all_blocks(self):
        memory.held = memory.used


def get_default_memory_pool():
    return Pool()


cuda = SimpleNamespace(
    Device=nullcontext,
    Event=Event,
    cublas=SimpleNamespace(),
    cusolver=SimpleNamespace(),
    get_allocator=lambda: get_default_memory_pool().malloc,
    get_elapsed_time=lambda start, end: 1000 * (end.seconds - start.seconds),
    nvrtc=SimpleNamespace(getVersion=_nvrtc_version),
    runtime=SimpleNamespace(
        deviceSynchronize=lambda: None,
        deviceGetAttribute=lambda attribute, device: 1_980_000,
        driverGetVersion=lambda: 12040,
        getDevice=lambda: 0,
        getDeviceCount=_count_gpus,
        getDeviceProperties=lambda device: {**PROPERTIES, "totalGlobalMem": memory.total},
        memGetInfo=lambda: (memory.total - memory.held, memory.total),
        runtimeGetVersion=lambda: 12040,
    ),
)

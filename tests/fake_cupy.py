"""A stand-in for CuPy that computes on the CPU and refuses what CuPy refuses: device="cuda" for tests without a GPU.

The fixture ``fake_cupy`` puts this module in CuPy's place. A device array hides a NumPy array; the only ways to it are
`asnumpy`, `ndarray.get` and what CuPy builds on them, and `traffic` counts all of them. Functions have CuPy's
signatures, take device arrays and scalars, and return device arrays, 0-d ones included; what is not listed in
`FUNCTIONS`, `METHODS` and `UFUNCS` does not exist. Kernels run in the tests' emulator.

Where CuPy would quietly do something else than NumPy, or copy from the host, this module refuses: lists and NumPy
arrays as indices, indices out of range (CuPy wraps around), assignments to one place twice (CuPy keeps any of the
values). New memory is full of 0xFF, so that reading it before it is written shows. `reset` sets a limit of memory.
"""

import inspect
import operator
import re
import sys
import threading
import time
from contextlib import nullcontext
from types import SimpleNamespace

import numpy as np

__version__ = "13.3.0"

# --- memory and traffic -----------------------------------------------------------------------------------------------

HIDDEN = 1 << 62  # added to addresses: still unique, and nothing on the CPU can read there
UNIT = 512  # bytes that CuPy's pool rounds up to


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
        self.lock = threading.RLock()  # taken twice where collecting garbage in the middle frees arrays

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
    """Memory that some device arrays share, given back with the last of them."""

    def __init__(self, nbytes):
        nbytes = -(-nbytes // UNIT) * UNIT
        memory.allocate(nbytes)
        self.memory, self.nbytes = memory, nbytes

    def __del__(self):
        if hasattr(self, "nbytes"):
            self.memory.free(self.nbytes)


class Copies:
    """The sizes of all arrays that were copied one way, in bytes."""

    def __init__(self):
        self.sizes = []

    @property
    def bytes(self):
        return sum(self.sizes)

    @property
    def largest(self):
        return max(self.sizes, default=0)


traffic = SimpleNamespace(to_device=Copies(), to_host=Copies())


def reset(limit=80 * 10**9, *, held=0, gpus=1, missing=()):
    """Begin with no arrays, nothing counted and ``limit`` bytes of memory, of which the pool has ``held``.

    ``gpus`` is their number or an error of the driver; ``missing`` names libraries of CUDA that are not there.
    """
    global memory, visible, absent
    memory, visible, absent = Memory(limit), gpus, tuple(missing)
    memory.held = held
    traffic.to_device, traffic.to_host = Copies(), Copies()


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

DTYPES = "?bhilqBHILQefdFD"


def _wrap(result, *sources):
    """Return NumPy's results as device arrays; views of ``sources`` (device arrays) share their memory."""
    if isinstance(result, (tuple, list)):
        kind = list if isinstance(result, list) else tuple
        return kind(_wrap(item, *sources) for item in result)
    if result is None:
        return None
    values = np.asarray(result)
    if values.dtype.char not in DTYPES:
        raise ValueError(f"Unsupported dtype {values.dtype}")
    shared = [source for source in sources if np.may_share_memory(values, source._hidden)]
    array = object.__new__(ndarray)
    array._hidden = values
    array._block = shared[0]._block if shared else Block(values.nbytes)
    return array


def _unwrap(value):
    """Return the NumPy array of a device array, in tuples, lists and dicts too; refuse NumPy's arrays."""
    if isinstance(value, ndarray):
        return value._hidden
    if isinstance(value, (tuple, list)):
        return type(value)(_unwrap(item) for item in value)
    if isinstance(value, dict):
        return {key: _unwrap(item) for key, item in value.items()}
    if isinstance(value, np.ndarray):
        raise TypeError(f"Unsupported type {type(value)}")
    return value


def _arrays(values):
    """Return the device arrays among values, in tuples and lists too."""
    nested = [_arrays(value) if isinstance(value, (tuple, list)) else [value] for value in values]
    return [value for found in nested for value in found if isinstance(value, ndarray)]


def _expect_array(value, function):
    if not isinstance(value, ndarray):
        raise TypeError(f"{function}: Argument has incorrect type (expected cupy.ndarray, got {type(value)})")


def _expect_array_or_scalar(value):
    if not isinstance(value, ndarray) and not _is_scalar(value):
        raise TypeError(f"Unsupported type {type(value)}")


def _is_scalar(value):
    return isinstance(value, (bool, int, float, complex, np.number, np.bool_))


def _delegate(line, home):
    """Return (name, function) for a signature of CuPy's: what NumPy's function of that name does, for device arrays."""
    name, parameters = re.fullmatch(r"(\w+)\((.*)\)", line.strip()).groups()
    signature = inspect.signature(eval(f"lambda {parameters}: None"))
    target = getattr(home, name)
    several = next(iter(signature.parameters)) == "tup"

    def function(*args, **kwargs):
        given = signature.bind(*args, **kwargs)
        for array in given.args[0] if several else given.args[:1]:
            _expect_array(array, name)
        if given.arguments.get("kind") not in (None, "stable"):
            raise ValueError("kind can only be None or 'stable'")
        if "kind" in signature.parameters:
            given.arguments["kind"] = "stable"  # all of CuPy's sorts are
        if given.arguments.get("order", "C") not in ("C", "F", "A") and name != "copy":
            raise NotImplementedError(f"order={given.arguments['order']!r}")
        result = target(*_unwrap(given.args), **_unwrap(given.kwargs))
        out = given.arguments.get("out")
        return _wrap(result, *_arrays(given.args)) if out is None else out

    function.__name__, function.__signature__ = name, signature
    return name, function


# --- element by element -----------------------------------------------------------------------------------------------

UFUNCS = """
    add subtract multiply true_divide floor_divide power negative absolute ceil floor rint sqrt exp invert right_shift
    bitwise_and bitwise_or minimum maximum isnan isinf isfinite equal not_equal less less_equal greater greater_equal
    matmul
"""


class ufunc:
    def __init__(self, name):
        self._of = getattr(np, name)
        self.name = self.__name__ = name
        self.nin, self.nout = self._of.nin, self._of.nout

    def __call__(self, *args, out=None, casting="same_kind", dtype=None):
        if len(args) == self.nin + 1:
            *args, out = args
        for value in args:
            _expect_array_or_scalar(value)
        if out is not None:
            _expect_array(out, self.name)
        result = self._of(*_unwrap(tuple(args)), out=_unwrap(out), casting=casting, dtype=dtype)
        return _wrap(result) if out is None else out


# --- arrays -----------------------------------------------------------------------------------------------------------


class Flags(SimpleNamespace):
    def __getitem__(self, name):
        return getattr(self, name.lower())


class ndarray:
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
    T = property(lambda self: _wrap(self._hidden.T, self))
    device = SimpleNamespace(id=0)

    @property
    def flags(self):
        found = self._hidden.flags
        return Flags(c_contiguous=found.c_contiguous, f_contiguous=found.f_contiguous, owndata=found.owndata)

    # to other libraries and to the host

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
            "descr": self.dtype.descr,
            "strides": None if self.flags.c_contiguous else self.strides,
            "data": (self._hidden.ctypes.data + HIDDEN if self.size else 0, False),
            "stream": 1,
            "version": 3,
        }

    def __dlpack__(self, *, stream=None, max_version=None, dl_device=None, copy=None):
        return Capsule(self)

    def __dlpack_device__(self):
        return 2, 0

    def get(self, stream=None, order="C", out=None, blocking=True):
        if out is not None and (out.dtype != self.dtype or out.shape != self.shape):
            raise TypeError(f"{out.dtype} {out.shape} cannot be obtained from {self.dtype} {self.shape}")
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
        if not self.ndim:
            raise TypeError("iteration over a 0-d array")
        return (self[i] for i in range(len(self)))

    # from NumPy's functions

    def __array_ufunc__(self, of, method, *inputs, **kwargs):
        function = _functions.get(of.__name__)
        if method != "__call__" or function is None:
            return NotImplemented
        if "out" in kwargs:
            (kwargs["out"],) = kwargs["out"]
        return function(*inputs, **kwargs)

    def __array_function__(self, func, types, args, kwargs):
        if not set(types) <= {ndarray, np.ndarray}:
            return NotImplemented
        try:
            function = getattr(sys.modules[__name__], func.__name__)
        except AttributeError:
            return NotImplemented
        return function(*args, **kwargs)

    # elements

    def __getitem__(self, index):
        return _wrap(self._hidden[_index(index)], self)

    def __setitem__(self, index, value):
        _expect_array_or_scalar(value)
        index = _index(index)
        if getattr(value, "size", 1) > 1 and _chooses(index):
            touched = np.arange(self.size).reshape(self.shape)[index]
            if len(np.unique(touched)) < touched.size:
                raise ValueError("repeated indices in an assignment: CuPy keeps any of the values")
        self._hidden[index] = _unwrap(value)

    def fill(self, value):
        self[...] = value

    # dtypes and shapes

    def astype(self, dtype, order="K", casting=None, subok=None, copy=True):
        if casting is not None or subok is not None:
            raise TypeError("casting and subok are not supported yet")
        laid_out = {"C": self.flags.c_contiguous, "F": self.flags.f_contiguous}.get(order, True)
        if not copy and laid_out and self.dtype == np.dtype(dtype):
            return self
        return _wrap(self._hidden.astype(dtype, order=order))

    def view(self, dtype=None, type=None):
        if type is not None:
            raise NotImplementedError("view as another type of array")
        return _wrap(self._hidden.view(self.dtype if dtype is None else dtype), self)

    def reshape(self, *shape, order="C"):
        return _wrap(self._hidden.reshape(*shape, order=order), self)

    def transpose(self, *axes):
        return _wrap(self._hidden.transpose(*axes), self)

    def repeat(self, repeats, axis=None):
        return repeat(self, repeats, axis)


def _index(index):
    """Return an index as NumPy takes it; refuse what CuPy refuses, and what it would bring from the host."""
    places = index if isinstance(index, tuple) else (index,)
    for at in places:
        if isinstance(at, ndarray):
            if at.dtype.kind not in "iub":
                raise IndexError(f"arrays used as indices must be of integer or boolean type. (actual: {at.dtype})")
        elif isinstance(at, (bool, np.bool_)) or not isinstance(at, (int, np.integer, slice, type(None), type(...))):
            raise TypeError(f"an index in host memory: {type(at)}")
    if len([at for at in places if isinstance(at, ndarray) and at.dtype == bool]) > 1:
        raise NotImplementedError("more than one mask in an index")
    return _unwrap(index)


def _chooses(index):
    """Return whether an index of NumPy's names its places one by one."""
    places = index if isinstance(index, tuple) else (index,)
    return any(isinstance(at, np.ndarray) and at.dtype != bool for at in places)


def _operator(name, *, swapped=False, in_place=False):
    def operate(self, other):
        if getattr(other, "__array_ufunc__", ...) is None:
            return NotImplemented
        function = _functions[name]
        if in_place:
            return function(self, other, out=self)
        return function(other, self) if swapped else function(self, other)

    return operate


for _symbol, _name in {
    "add": "add", "sub": "subtract", "mul": "multiply", "truediv": "true_divide", "floordiv": "floor_divide",
    "pow": "power", "rshift": "right_shift", "and": "bitwise_and", "or": "bitwise_or", "matmul": "matmul",
}.items():  # fmt: skip
    setattr(ndarray, f"__{_symbol}__", _operator(_name))
    setattr(ndarray, f"__r{_symbol}__", _operator(_name, swapped=True))
    if _symbol != "matmul":
        setattr(ndarray, f"__i{_symbol}__", _operator(_name, in_place=True))
for _symbol, _name in {
    "eq": "equal", "ne": "not_equal", "lt": "less", "le": "less_equal", "gt": "greater", "ge": "greater_equal",
}.items():  # fmt: skip
    setattr(ndarray, f"__{_symbol}__", _operator(_name))
for _symbol, _name in {"neg": "negative", "abs": "absolute", "invert": "invert"}.items():
    setattr(ndarray, f"__{_symbol}__", lambda self, name=_name: _functions[name](self))


# --- making arrays ----------------------------------------------------------------------------------------------------


def asarray(a, dtype=None, order=None, *, blocking=False):
    return array(a, dtype, copy=False, order=order)


def array(obj, dtype=None, copy=True, order="K", subok=False, ndmin=0, *, blocking=False):
    if subok or ndmin:
        raise NotImplementedError("subok and ndmin")
    order = order or "K"
    if isinstance(obj, (tuple, list)) and _arrays(obj):
        obj, copy = _functions["stack"](obj), False
    if hasattr(obj, "__cuda_array_interface__") and not isinstance(obj, ndarray):
        obj = _described(obj)
    if isinstance(obj, ndarray):
        return obj.astype(obj.dtype if dtype is None else dtype, order=order, copy=copy)
    values = np.array(obj, dtype=dtype, order=order)
    result = _wrap(values.astype(values.dtype.newbyteorder("="), copy=False))
    traffic.to_device.sizes.append(values.nbytes)
    return result


def _described(obj):
    """Return the device array that another library's object describes."""
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


class Capsule:
    """What DLPack hands from one library to another."""

    def __init__(self, array):
        self.array = array


def from_dlpack(array, *, device=None, copy=None):
    if array.__dlpack_device__()[0] != 2:
        raise ValueError("CPU arrays cannot be directly imported to CuPy")
    return array.__dlpack__(stream=1).array.view()


def asnumpy(a, stream=None, order="C", out=None, *, blocking=True):
    if hasattr(a, "__cuda_array_interface__"):
        return asarray(a).get(stream, order, out, blocking)
    return np.asarray(a, order=order)


def ascontiguousarray(a, dtype=None):
    _expect_array(a, "ascontiguousarray")
    return a.astype(dtype or a.dtype, order="C", copy=False)


def asfortranarray(a, dtype=None):
    _expect_array(a, "asfortranarray")
    return a.astype(dtype or a.dtype, order="F", copy=False)


def empty(shape, dtype=float, order="C"):
    return _unwritten(np.empty(shape, dtype, order=order))


def empty_like(prototype, dtype=None, order="K", subok=None, shape=None):
    _expect_array(prototype, "empty_like")
    return _unwritten(np.empty_like(prototype._hidden, dtype, order=order, shape=shape))


def _unwritten(values):
    values.ravel(order="K").view(np.uint8)[...] = 1 if values.dtype == bool else 0xFF
    return _wrap(values)


def full(shape, fill_value, dtype=None, order="C"):
    if not _is_scalar(fill_value):
        raise TypeError(f"Unsupported type {type(fill_value)}")
    return _wrap(np.full(shape, fill_value, dtype, order=order))


def zeros(shape, dtype=float, order="C"):
    return full(shape, 0, dtype, order)


def ones(shape, dtype=float, order="C"):
    return full(shape, 1, dtype, order)


def full_like(a, fill_value, dtype=None, order="K", subok=None, shape=None):
    result = empty_like(a, dtype, order, subok, shape)
    result.fill(fill_value)
    return result


def zeros_like(a, dtype=None, order="K", subok=None, shape=None):
    return full_like(a, 0, dtype, order, subok, shape)


def arange(start, stop=None, step=1, dtype=None):
    return _wrap(np.arange(start, stop, step, dtype) if stop is not None else np.arange(0, start, step, dtype))


# --- functions --------------------------------------------------------------------------------------------------------

# CuPy's, as far as NumPy's of the same name take their arguments in the same order
FUNCTIONS = """
    argsort(a, axis=-1, kind=None)
    argwhere(a)
    broadcast_to(array, shape)
    concatenate(tup, axis=0, out=None, *, dtype=None, casting='same_kind')
    cumsum(a, axis=None, dtype=None, out=None)
    flatnonzero(a)
    searchsorted(a, v, side='left', sorter=None)
    stack(tup, axis=0, out=None, *, dtype=None, casting='same_kind')
    take_along_axis(a, indices, axis)
    where(condition, x=None, y=None)
"""
METHODS = """
    all(self, axis=None, out=None, keepdims=False)
    any(self, axis=None, out=None, keepdims=False)
    argmax(self, axis=None, *, keepdims=False)
    argmin(self, axis=None, *, keepdims=False)
    copy(self, order='C')
    cumsum(self, axis=None, dtype=None, out=None)
    max(self, axis=None, out=None, keepdims=False)
    mean(self, axis=None, dtype=None, out=None, keepdims=False)
    min(self, axis=None, out=None, keepdims=False)
    ravel(self, order='C')
    sum(self, axis=None, dtype=None, out=None, keepdims=False)
    var(self, axis=None, dtype=None, out=None, ddof=0, keepdims=False)
"""


def lexsort(keys):
    _expect_array(keys, "lexsort")  # no tuple
    if keys.ndim > 2:
        raise NotImplementedError("Keys with the rank of three or more is not supported in lexsort")
    return _wrap(np.lexsort(keys._hidden))


def unique(ar, return_index=False, return_inverse=False, return_counts=False, *, equal_nan=True):
    _expect_array(ar, "unique")
    if return_inverse and ar.ndim != 1:
        raise NotImplementedError("the shape of the inverse depends on CuPy's version")
    return _wrap(np.unique(ar._hidden, return_index, return_inverse, return_counts, equal_nan=equal_nan))


def bincount(x, weights=None, minlength=None):
    _expect_array(x, "bincount")
    if x.dtype.kind == "f":
        raise TypeError("x must be int array")
    return _wrap(np.bincount(x._hidden, _unwrap(weights), 0 if minlength is None else operator.index(minlength)))


def repeat(a, repeats, axis=None):
    _expect_array(a, "repeat")
    if isinstance(repeats, ndarray):
        raise ValueError("cupy.ndarray cannot be specified as `repeats` argument.")
    return _wrap(np.repeat(a._hidden, repeats, axis))


_functions = {name: ufunc(name) for name in UFUNCS.split()}
_functions |= dict(_delegate(line, np) for line in FUNCTIONS.strip().splitlines())
for _name, _method in (_delegate(line, np.ndarray) for line in METHODS.strip().splitlines()):
    setattr(ndarray, _name, _method)


def __getattr__(name):
    # not globals: this module has uses of its own for some of the names
    if name in _functions:
        return _functions[name]
    raise AttributeError(f"the stand-in for CuPy has no {name!r}")


# --- kernels ----------------------------------------------------------------------------------------------------------


class RawModule:
    def __init__(self, *, code, options=(), backend="nvrtc"):
        import emulator

        if not isinstance(options, tuple):
            raise TypeError("options must be a tuple of str")
        self._module = emulator.Module(code, options, name=emulator.stem_of(code) or "kernel")

    def get_function(self, name):
        return RawKernel(self._module.get_function(name))


class RawKernel:
    def __init__(self, emulated):
        self._emulated = emulated

    def __call__(self, grid, block, args, *, shared_mem=0):
        for sizes in (grid, block):
            if not isinstance(sizes, tuple):
                raise TypeError(f"grid and block are tuples, not {type(sizes)}")
        for arg in args:
            _expect_array_or_scalar(arg)
        self._emulated(grid, block, _unwrap(tuple(args)), shared_mem=shared_mem)

    @property
    def max_dynamic_shared_size_bytes(self):
        return self._emulated.max_dynamic_shared_size_bytes

    @max_dynamic_shared_size_bytes.setter
    def max_dynamic_shared_size_bytes(self, nbytes):
        self._emulated.max_dynamic_shared_size_bytes = nbytes


# --- the device -------------------------------------------------------------------------------------------------------

PROPERTIES = {
    "name": b"stand-in for a GPU",
    "major": 8,
    "minor": 0,
    "multiProcessorCount": 2,
    "l2CacheSize": 2**20,
}


class Event:
    def record(self, stream=None):
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
        driverGetVersion=lambda: 12040,
        getDevice=lambda: 0,
        getDeviceCount=_count_gpus,
        deviceGetAttribute=lambda attribute, device: 1_980_000,
        getDeviceProperties=lambda device: {**PROPERTIES, "totalGlobalMem": memory.total},
        memGetInfo=lambda: (memory.total - memory.held, memory.total),
        runtimeGetVersion=lambda: 12040,
    ),
)

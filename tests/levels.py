"""All levels of the processor at once: each primitive of the extension runs on every compiled level of x86-64.

Results, arrays that are written and arrays that callbacks get must be equal to the bit. `all_levels` compares in a with
block; GPUENS_ALL_LEVELS=FOLDER in a whole process of tests, which notes each primitive as a file of this folder.
"""

import os
import sys
import threading
from collections.abc import Callable
from contextlib import contextmanager, nullcontext
from pathlib import Path

import numpy as np
from numpy.lib.array_utils import byte_bounds

from gpuens.runtime import native, threads


class _Thread(threading.local):
    in_callback = False


# threads that write to parts of one array must not see each other's parts change; callbacks come during a call
_one_call, _one_callback, _thread = threading.RLock(), threading.RLock(), _Thread()
NOT_COMPARED = ("end_calls", "level", "prepare", "supported")  # functions of the process, without results


class AllLevels:
    """The extension of a level, whose primitives also run on the other levels; AssertionError for other bits."""

    def __init__(self, module):
        known = getattr(module, "modules", [module])  # levels that an outer block compares
        usable = {level: native.module_of(level) for level in native.usable_levels()}
        self.others = {level: other for level, other in usable.items() if other not in known}
        self.module, self.modules = module, [*known, *self.others.values()]
        for other in self.others.values():
            other.prepare(threads.n_threads, threading.main_thread().ident)

    def __getattr__(self, name):
        primitive = getattr(self.module, name)
        if self.others and is_primitive(name, primitive):
            primitive = compared(name, primitive, {level: getattr(other, name) for level, other in self.others.items()})
        setattr(self, name, primitive)
        return primitive


def is_primitive(name, value):
    """Return whether a value of the extension is a function with results, no record or function of the process."""
    return callable(value) and not isinstance(value, type) and name[0] != "_" and name not in NOT_COMPARED


def compared(name, primitive, others):
    """Return a primitive that also runs on copies of its arguments at each of the ``others``, {level: function}."""
    if folder := os.environ.get("GPUENS_ALL_LEVELS"):
        Path(folder).mkdir(parents=True, exist_ok=True)
        Path(folder, name).touch()

    def on_all_levels(*arguments):
        with nullcontext() if _thread.in_callback else _one_call:
            copies = [copied(arguments, {}) for _ in others]
            arguments = [_Callback(each) if callable(each) else each for each in arguments]
            result = primitive(*arguments)
            bits = bits_of([result, *arguments])
            for (level, other), copy in zip(others.items(), copies, strict=True):
                assert bits_of([other(*copy), *copy]) == bits, f"level {level}: {name} of other bits"
            return result

    return on_all_levels


def copied(value, owners):
    """Return a copy of nested tuples of arrays; views of one array share its copy, in ``owners``, {its id: bytes}."""
    if isinstance(value, tuple):
        parts = [copied(each, owners) for each in value]
        return type(value)._make(parts) if hasattr(value, "_make") else tuple(parts)
    if not isinstance(value, np.ndarray):
        return _Callback() if callable(value) else value
    owner = value
    while isinstance(owner.base, np.ndarray):
        owner = owner.base
    if not owner.flags.forc:
        return value.copy(order="K")
    if id(owner) not in owners:
        owners[id(owner)] = owner.ravel(order="K").view(np.uint8).copy()
    first = byte_bounds(value)[0] - byte_bounds(owner)[0]
    return np.ndarray(value.shape, value.dtype, owners[id(owner)], first, value.strides)


class _Callback:
    """A function without result, which records the arrays that it gets; its numbers, of progress, depend on time."""

    def __init__(self, function: Callable = lambda *_: None):
        self.function, self.calls = function, []

    def __call__(self, *arguments):
        with _one_callback:
            self.calls += [bits_of(each) for each in arguments if not isinstance(each, int)]
            _thread.in_callback = True
            self.function(*arguments)
            _thread.in_callback = False


def bits_of(value):
    """Return the types, the shapes and the bytes of arrays in nested tuples and lists, and the text of other values."""
    if isinstance(value, np.ndarray):
        return value.dtype.str, value.shape, value.tobytes()
    if isinstance(value, (tuple, list)):
        return [bits_of(each) for each in value]
    return sorted(value.calls) if isinstance(value, _Callback) else repr(value)  # threads call in any order


def compare_levels():
    """Compare levels from now on, in all modules, also of tests."""
    _replace(native.cpu, AllLevels(native.cpu))


@contextmanager
def all_levels():
    """Compare levels in a with block."""
    before = native.cpu
    compare_levels()
    try:
        yield
    finally:
        _replace(native.cpu, before)


def _replace(old, new):
    for user in list(sys.modules.values()):
        if getattr(user, "__dict__", {}).get("cpu") is old:
            user.cpu = new

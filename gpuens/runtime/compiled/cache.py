"""Compiled functions that are kept for later runs, which load them quickly.

Numba keeps them in the directory NUMBA_CACHE_DIR, else beside the source, else in the user's cache. The cache is a
convenience: unwritable places, a full disk or a truncated file cost time and nothing else. A place that cannot be
written to, as in a container, is read if functions were kept there before.
"""

import glob
import hashlib
import os
import pickle
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache, cached_property
from types import CodeType, FunctionType, ModuleType
from typing import Any

import numba
import numpy as np
from numba.core.caching import CompileResultCacheImpl, FunctionCache, IndexDataCacheFile
from numba.misc.appdirs import AppDirs

from gpuens.runtime import checks, host

BESIDE = os.path.dirname(os.path.dirname(os.path.dirname(__file__)))
USERS = AppDirs(appname="numba", appauthor=False).user_cache_dir  # a relative path without a home
PLAIN = (bool, int, float, complex, str, bytes, tuple, type(None), np.generic)


def _reading(locator: Any) -> Any:
    """Return a version of one of Numba's locators for places that cannot be written to but hold functions."""

    def ensure_cache_path(self: Any) -> None:
        if not _holds(self.get_cache_path()):
            raise OSError

    return type(locator.__name__, (locator,), {"ensure_cache_path": ensure_cache_path})


class _Impl(CompileResultCacheImpl):
    _locator_classes = [  # noqa: RUF012
        either
        for locator in CompileResultCacheImpl._locator_classes
        if os.path.isabs(USERS) or "UserWide" not in locator.__name__  # it would make a directory called ~
        for either in (locator, _reading(locator))
    ]


class Cache(FunctionCache):
    """Numba's cache, tolerant of failures: unreadable entries are compiled again, unwritable ones are not kept."""

    _impl_class = _Impl

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)
        locator = self._impl.locator
        self._cache_file = _Files(
            function, locator.get_cache_path(), self._impl.filename_base, locator.get_source_stamp()
        )

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        try:
            return super().load_overload(sig, target_context)
        except Exception:  # for half a file, pickle may raise anything
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        with suppress(OSError):
            super().save_overload(sig, data)


class _Files(IndexDataCacheFile):
    """A file for each of a function's types, named by them.

    Numba numbers them, by an index that each process reads, adds to and writes. Where several compile at the same time,
    as the first tasks of a batch do, entries would be lost, and one's number could come to stand for another's types.
    Nor does it see that a function which another one calls was changed.
    """

    def __init__(self, function: Any, folder: str, name: str, stamp: Any) -> None:
        super().__init__(folder, name, stamp)
        self._function, self._prefix = function, os.path.join(folder, name)

    @cached_property
    def _made_from(self) -> tuple[Any, ...]:
        return self._version, self._source_stamp, made_from(self._function)

    def _path(self, key: Any) -> str:
        types_and_target = repr(key[:2])  # without its bytecode: a function that was changed takes the same place
        return f"{self._prefix}.{hashlib.sha256(types_and_target.encode()).hexdigest()[:16]}.nbc"

    def save(self, key: Any, data: Any) -> None:
        with self._open_for_write(self._path(key)) as file:
            pickle.dump(self._made_from, file)  # to be read before what other versions wrote
            file.write(self._dump((key, data)))

    def load(self, key: Any) -> Any:
        with open(self._path(key), "rb") as file:
            if pickle.load(file) != self._made_from:
                return None
            kept_as, data = pickle.load(file)
        return data if kept_as == key else None


def made_from(function: Any) -> str:
    """Return a digest of the files of all functions that a compiled one calls, and of the constants that they read."""
    found: dict[str, Any] = {}
    left, seen = [function], set()
    while left:
        one = left.pop()
        if one.__code__ in seen:
            continue
        seen.add(one.__code__)
        found[one.__code__.co_filename] = _content_of(one.__code__.co_filename)
        for name, thing in _named_in(one):
            # the Python function behind a compiled one or an intrinsic
            thing = getattr(thing, "py_func", getattr(thing, "_defn", thing))
            if isinstance(thing, FunctionType) and _home(thing) == _home(function):
                left.append(thing)
            elif isinstance(thing, PLAIN):
                found[f"{one.__module__}.{name}"] = repr(thing)
            elif isinstance(thing, np.ndarray):
                found[f"{one.__module__}.{name}"] = thing.dtype.str, thing.shape, thing.tobytes()
    return hashlib.sha256(repr(sorted(found.items())).encode()).hexdigest()


@cache
def _content_of(file: str) -> str | None:
    with suppress(OSError), open(file, "rb") as source:  # not when it was changed, which images of containers round
        return hashlib.sha256(source.read()).hexdigest()
    return None  # within an archive


def _named_in(function: Any) -> Iterator[tuple[str, Any]]:
    """Yield the objects that a function's names stand for: in its globals, its closure and the modules among them."""
    codes, names = [function.__code__], set()
    for code in codes:
        names |= set(code.co_names)
        codes += [inner for inner in code.co_consts if isinstance(inner, CodeType)]
    for cell, name in zip(function.__closure__ or (), function.__code__.co_freevars, strict=True):
        yield name, cell.cell_contents
    for name in names & function.__globals__.keys():
        thing = function.__globals__[name]
        yield name, thing
        if isinstance(thing, ModuleType) and _home(thing) == _home(function):
            yield from ((f"{name}.{inner}", getattr(thing, inner)) for inner in names if hasattr(thing, inner))


def _home(thing: Any) -> str:
    """Return the package of a function or module."""
    return str(thing.__name__ if isinstance(thing, ModuleType) else thing.__module__).partition(".")[0]


def _places() -> list[str]:
    """Return the places of Numba's cache in its order of search."""
    named = getattr(numba.config, "CACHE_DIR", "")
    return [
        *([named] if named else []),
        os.path.join(BESIDE, "__pycache__"),
        *([USERS] if os.path.isabs(USERS) else []),
    ]


def _holds(folder: str) -> bool:
    return any(glob.iglob(os.path.join(glob.escape(folder), "*.nbc")))


KEEPS = any(map(host.writable, _places())) or any(
    _holds(folder) for place in _places() for folder in (place, *glob.iglob(os.path.join(glob.escape(place), "*/")))
)
if not KEEPS:
    checks.warn(
        "compiled functions cannot be kept, so every run compiles them again: none of "
        f"{', '.join(map(repr, _places()))} can be written to; let NUMBA_CACHE_DIR name a directory that can."
    )

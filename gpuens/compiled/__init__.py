"""Compiled functions and their cache. The only package that names numba.

Numba keeps compiled functions in the directory NUMBA_CACHE_DIR, else beside the source, else in the user's cache, where
later runs load them quickly. The cache is a convenience: unwritable places, a full disk or a truncated file cost time
and nothing else. A place that cannot be written to, as in a container, is read if functions were kept there before.
"""

import glob
import os
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from gpuens import checks, device, host

# what the libraries of compiled functions reserve before any data, measured; LLVM aborts the process without it
ADDRESSES, OF_A_THREAD = 1_000_000_000, 100_000_000
if (_limit := host.address_space()) is not None:
    _needed = ADDRESSES + device.n_threads() * OF_A_THREAD
    if _limit < _needed:
        raise MemoryError(
            f"this process may have {checks.human_bytes(_limit)} of addresses (ulimit -v), but needs "
            f"{checks.human_bytes(_needed)} for {device.n_threads()} threads before any data; raise that limit, or "
            "limit memory by GPUENS_MEMORY instead."
        )

import numba  # noqa: E402
from numba.core import extending, types  # noqa: E402
from numba.core.caching import CompileResultCacheImpl, FunctionCache  # noqa: E402
from numba.misc.appdirs import AppDirs  # noqa: E402

__all__ = ["KEEPS", "extending", "intrinsic", "njit", "types"]

# Releases of Numba that functions are linked with by their inner workings (`linked`); others compile a third longer.
TRIED = (0, 61), (0, 68)
BESIDE = os.path.dirname(os.path.dirname(__file__))
USERS = AppDirs(appname="numba", appauthor=False).user_cache_dir  # a relative path without a home

intrinsic: Any = extending.intrinsic  # what it makes is called with fewer arguments than it is written with


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


class _Cache(FunctionCache):
    """Numba's cache, tolerant of failures: unreadable entries are compiled again, unwritable ones are not kept."""

    _impl_class = _Impl

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        try:
            return super().load_overload(sig, target_context)
        except Exception:  # for half a file, pickle may raise anything
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        try:
            super().save_overload(sig, data)
        except Exception:  # it first reads the index, which may be truncated
            with suppress(OSError):
                self.flush()
                super().save_overload(sig, data)


def njit(*, cache: bool = False, makes_arrays: bool = True, **options: Any) -> Callable[[Callable[..., Any]], Any]:
    """Return Numba's ``njit`` with these options; ``cache`` keeps compiled functions where there is a place.

    A function that neither makes nor returns arrays (``makes_arrays=False``) does not count references to those that it
    is given, and to views of them. To count one up and down takes as long as ten labels are compared in, and longer
    where threads count the same array's.
    """
    options = {**options, "no_cfunc_wrapper": True} | ({} if makes_arrays else {"_nrt": False})

    def compiled(function: Callable[..., Any]) -> Any:
        found = numba.njit(**options)(function)
        if TRIED[0] <= numba.version_info.short <= TRIED[1] and hasattr(found, "overloads"):
            from gpuens.compiled.linked import Function

            found.__class__ = Function
        if cache and KEEPS and hasattr(found, "enable_caching"):  # NUMBA_DISABLE_JIT returns the function itself
            with suppress(RuntimeError):  # no place for this one
                found._cache = _Cache(function)
        return found

    return compiled


def _places() -> list[str]:
    """Return the places of Numba's cache in its order of search."""
    named = getattr(numba.config, "CACHE_DIR", "")
    return [
        *([named] if named else []),
        os.path.join(BESIDE, "__pycache__"),
        *([USERS] if os.path.isabs(USERS) else []),
    ]


def _holds(folder: str) -> bool:
    return any(glob.iglob(os.path.join(glob.escape(folder), "*.nbi")))


KEEPS = any(map(host.writable, _places())) or any(
    _holds(folder) for place in _places() for folder in (place, *glob.iglob(os.path.join(glob.escape(place), "*/")))
)
if not KEEPS:
    checks.warn(
        "compiled functions cannot be kept, so every run compiles them again: none of "
        f"{', '.join(map(repr, _places()))} can be written to; let NUMBA_CACHE_DIR name a directory that can."
    )

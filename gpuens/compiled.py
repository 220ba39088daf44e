"""Compiled functions and their cache. The only module that names numba.

Numba keeps compiled functions in the directory NUMBA_CACHE_DIR, else beside the source, else in the user's cache, where
later runs load them quickly. The cache is a convenience: unwritable places, a full disk or a truncated file cost time
and nothing else.
"""

import os
import tempfile
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numba
from numba.core import extending, types
from numba.core.caching import FunctionCache
from numba.misc.appdirs import AppDirs

from gpuens import checks

__all__ = ["KEEPS", "extending", "intrinsic", "njit", "types"]

intrinsic: Any = extending.intrinsic  # what it makes is called with fewer arguments than it is written with


class _Cache(FunctionCache):
    """Numba's cache, tolerant of failures: unreadable entries are compiled again, unwritable ones are not kept."""

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


def njit(*, cache: bool = False, **options: Any) -> Callable[[Callable], Any]:
    """Return Numba's ``njit`` with these options; ``cache`` keeps compiled functions where there is a place."""

    def compiled(function: Callable) -> Any:
        found = numba.njit(**options)(function)
        if cache and KEEPS and hasattr(found, "enable_caching"):  # NUMBA_DISABLE_JIT returns the function itself
            with suppress(RuntimeError):  # no place for this one
                found._cache = _Cache(function)
        return found

    return compiled


def _places() -> list[str]:
    """Return the places of Numba's cache in its order of search."""
    named = getattr(numba.config, "CACHE_DIR", "")
    users = AppDirs(appname="numba", appauthor=False).user_cache_dir
    # without a home it is a relative path, and Numba would make a directory called ~
    return [
        *([named] if named else []),
        os.path.join(os.path.dirname(__file__), "__pycache__"),
        *([users] if os.path.isabs(users) else []),
    ]


def _writable(folder: str) -> bool:
    try:
        os.makedirs(folder, exist_ok=True)
        tempfile.TemporaryFile(dir=folder).close()
    except OSError:
        return False
    return True


KEEPS = any(map(_writable, _places()))
if not KEEPS:
    checks.warn(
        "compiled functions cannot be kept, so every run compiles them again: none of "
        f"{', '.join(map(repr, _places()))} can be written to; let NUMBA_CACHE_DIR name a directory that can."
    )

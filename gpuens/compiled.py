"""Compiled functions and where they are kept. The only module that names numba.

What Numba has compiled it keeps in the directory NUMBA_CACHE_DIR, else beside the source, else in the user's cache; a
later run loads it in a moment. That is a convenience, so that none of these places may be written to, a disk that is
full or a file that was cut short costs time and nothing else.
"""

import os
import tempfile
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numba
from numba.core.caching import FunctionCache
from numba.misc.appdirs import AppDirs

from gpuens import checks


class _Cache(FunctionCache):
    """Numba's cache, but what cannot be read is compiled again, and what cannot be written is not kept."""

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        try:
            return super().load_overload(sig, target_context)
        except Exception:  # what pickle raises for half a file is anything
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        try:
            super().save_overload(sig, data)
        except Exception:  # it reads the index first, which may be half a file
            with suppress(OSError):
                self.flush()
                super().save_overload(sig, data)


def njit(*, cache: bool = False, **options: Any) -> Callable[[Callable], Any]:
    """Return Numba's ``njit`` with these options; ``cache`` keeps what was compiled where there is a place for it."""

    def compiled(function: Callable) -> Any:
        found = numba.njit(**options)(function)
        if cache and KEEPS and hasattr(found, "enable_caching"):  # NUMBA_DISABLE_JIT leaves the function as it is
            with suppress(RuntimeError):  # no place for this one
                found._cache = _Cache(function)
        return found

    return compiled


def _places() -> list[str]:
    """Return where Numba may keep what it compiles, in the order in which it looks."""
    named = getattr(numba.config, "CACHE_DIR", "")
    users = AppDirs(appname="numba", appauthor=False).user_cache_dir
    # of a user without a home it is a relative path, and Numba would make a directory that is called ~
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
        "what is compiled cannot be kept, so that every run compiles it again: none of "
        f"{', '.join(map(repr, _places()))} can be written to; let NUMBA_CACHE_DIR name a directory that can."
    )

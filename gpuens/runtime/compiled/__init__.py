"""Compiled functions. The only package that names numba."""

from collections.abc import Callable
from contextlib import suppress
from typing import Any

from gpuens.runtime import checks

checks.check_addresses()

import numba  # noqa: E402
from numba.core import extending, types  # noqa: E402

from gpuens.runtime.compiled.cache import KEEPS, Cache  # noqa: E402

__all__ = ["KEEPS", "extending", "intrinsic", "njit", "types"]

# Releases of Numba that functions are linked with by their inner workings (`linked`); others compile a third longer.
TRIED = (0, 61), (0, 68)

intrinsic: Any = extending.intrinsic  # its functions are called with fewer arguments than they are written with


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
            from gpuens.runtime.compiled.linked import Function

            found.__class__ = Function
        if cache and KEEPS and hasattr(found, "enable_caching"):  # NUMBA_DISABLE_JIT returns the function itself
            with suppress(RuntimeError):  # no place for this one
                found._cache = Cache(function)
        return found

    return compiled

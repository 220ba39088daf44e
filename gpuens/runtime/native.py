"""Functions that were compiled when gpuens was built, for the processor that runs: `cpu` has them (kernels/cpu).

The same text is compiled for three levels of x86-64: v2, which all processors have since 2009, v3 (AVX2, since 2013 to
2015) and v4 (AVX-512). A wheel has all of them, a checkout that of its processor (GPUENS_LEVELS in
kernels/CMakeLists.txt). The best one that was built and that this processor has is taken, or the one that GPUENS_CPU
names; results are the same to the bit.
"""

import importlib
import os
import threading
from typing import TYPE_CHECKING, Any

from gpuens.runtime import checks, threads
from gpuens.runtime.installing import CHECKOUT

__all__ = ["cpu"]

LEVELS = ("v2", "v3", "v4")


def _module(level: str) -> Any:
    """Return the module for a level, or None if it was not built or this processor does not run it."""
    try:
        module = importlib.import_module(f"gpuens._native{f'_{level}' * (level > LEVELS[0])}")
    except ModuleNotFoundError:
        return None
    return module if module.supported() else None


def usable_levels() -> list[str]:
    """Return the levels that were built and that this processor has, the best one last.

    Processors other than x86-64 have one level, that of the module without a name of its own: "v2".
    """
    return [level for level in LEVELS if _module(level)]


def _best_module() -> Any:
    """Return the module for the best usable level, or for the one that GPUENS_CPU names."""
    named = os.environ.get("GPUENS_CPU", "")
    for level in (named,) if named else reversed(LEVELS):
        if level in LEVELS and (module := _module(level)):
            return module
    if not (levels := usable_levels()):
        raise ImportError(
            f"gpuens is not compiled for this processor: run 'make native' in {CHECKOUT}, or install it by pip, with a "
            "C++20 compiler."
        )
    raise ValueError(
        f"GPUENS_CPU must be one of {', '.join(levels)}, which this processor has and gpuens was built for, not "
        f"{named!r}."
    )


if TYPE_CHECKING:
    from gpuens import _native as cpu
else:
    checks.check_addresses()  # here too, for modules of gpuens that are imported directly
    cpu = _best_module()
    cpu.prepare(threads.n_threads, threading.main_thread().ident)

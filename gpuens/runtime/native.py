"""Functions that were compiled when gpuens was built, for the processor that runs: `cpu` has them (kernels/cpu).

The same text is compiled for three levels of x86-64: v2, which all processors have since 2009, v3 (AVX2, since 2013 to
2015) and v4 (AVX-512). A wheel has all of them, a checkout that of its processor (GPUENS_LEVELS in
kernels/CMakeLists.txt). The best one that was built and that this processor has is taken, or the one that GPUENS_CPU
names; results are the same to the bit.
"""

import importlib
import os
import platform
import threading
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from gpuens.runtime import checks, threads
from gpuens.runtime.installing import CHECKOUT

__all__ = ["cpu"]

LEVELS = ("v2", "v3", "v4")


def module_of(level: str) -> Any:
    """Return the module for a level, or None if it was not built or this processor does not run it.

    Modules of several levels can be loaded side by side.
    """
    try:
        module = importlib.import_module(_name_of(level))
    except ModuleNotFoundError:
        return None
    return module if module.supported() else None


def _name_of(level: str) -> str:
    return f"gpuens._native{f'_{level}' * (level > LEVELS[0])}"


def usable_levels() -> list[str]:
    """Return the levels that were built and that this processor has, the best one last.

    Processors other than x86-64 have one level, that of the module without a name of its own: "v2".
    """
    return [level for level in LEVELS if module_of(level)]


def describe() -> dict[str, Any]:
    """Return the level in use and the compiled levels; on processors other than x86-64 both name the processor."""
    if level := cpu.level():
        return {"level": level, "compiled": [level for level in LEVELS if find_spec(_name_of(level))]}
    machine = {"aarch64": "arm64"}.get(platform.machine().lower(), platform.machine().lower())
    return {"level": machine, "compiled": [machine]}


def _best_module() -> Any:
    """Return the module for the best usable level, or for the one that GPUENS_CPU names."""
    named = os.environ.get("GPUENS_CPU", "")
    for level in (named,) if named else reversed(LEVELS):
        if level in LEVELS and (module := module_of(level)):
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

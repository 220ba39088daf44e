"""Functions that were compiled when gpuens was built, for the processor that runs: `cpu` has them (kernels/cpu).

The same text is compiled for three levels of x86-64: v2, which all processors have since 2009, v3 (AVX2, since 2013 to
2015) and v4 (AVX-512); a build may leave out later ones (GPUENS_LEVELS in kernels/CMakeLists.txt). The best one that
was built and that this processor has is taken, or the one that GPUENS_CPU names; results are the same to the bit.
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
    """Return the extension that was compiled for a level; several can be loaded side by side."""
    return importlib.import_module(_module_name(level))


def _module_name(level: str) -> str:
    return "gpuens._native" if level == LEVELS[0] else f"gpuens._native_{level}"


def _baseline_module() -> Any:
    """Return the module for the processors that all others include."""
    try:
        return module_of(LEVELS[0])
    except ModuleNotFoundError as error:
        raise ImportError(
            f"gpuens is not compiled: run 'make native' in {CHECKOUT}, or install it by pip, with a C++20 compiler."
        ) from error


def compiled_levels() -> list[str]:
    """Return the levels that were built, the lowest first."""
    return [level for level in LEVELS if find_spec(_module_name(level))]


def usable_levels() -> list[str]:
    """Return the levels that were built and that this processor has, the best one last."""
    baseline = _baseline_module()
    levels = [level for level in compiled_levels() if baseline.supported(level)]
    return levels or [LEVELS[0]]  # the only module on processors other than x86-64


def describe() -> dict[str, Any]:
    """Return the level in use and the compiled levels; on processors other than x86-64 both name the architecture."""
    if not _baseline_module().supported(LEVELS[0]):
        machine = {"aarch64": "arm64"}.get(platform.machine().lower(), platform.machine().lower())
        return {"level": machine, "compiled": [machine]}
    level = next(level for level in LEVELS if _module_name(level) == cpu.__name__)
    return {"level": level, "compiled": compiled_levels()}


def _best_module() -> Any:
    """Return the module for the best usable level, or for the one that GPUENS_CPU names."""
    levels = usable_levels()
    level = os.environ.get("GPUENS_CPU", "") or levels[-1]
    if level not in levels:
        raise ValueError(
            f"GPUENS_CPU must be one of {', '.join(levels)}, which this processor has and gpuens was built for, not "
            f"{level!r}."
        )
    return module_of(level)


if TYPE_CHECKING:
    from gpuens import _native as cpu
else:
    checks.check_addresses()  # here too, for modules of gpuens that are imported directly
    cpu = _best_module()
    cpu.prepare(threads.n_threads, threading.main_thread().ident)

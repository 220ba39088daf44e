"""Functions that were compiled when gpuens was built, for the processor that runs: `cpu` has them (kernels/cpu).

The same text is compiled for three levels of x86-64: v2, which all processors have since 2009, v3 (AVX2, since 2013 to
2015) and v4 (AVX-512). The best one that this processor has is taken, or the one that GPUENS_CPU names; results are the
same to the bit.
"""

import importlib
import os
from typing import TYPE_CHECKING, Any

from gpuens.runtime import checks
from gpuens.runtime import device as devices
from gpuens.runtime.installing import CHECKOUT

__all__ = ["cpu"]

LEVELS = ("v2", "v3", "v4")


def _best() -> Any:
    """Return the module for this processor's best level, or for the one that GPUENS_CPU names."""
    try:
        least = importlib.import_module("gpuens._native")
    except ModuleNotFoundError as error:
        raise ImportError(
            f"gpuens is not compiled: run 'make native' in {CHECKOUT}, or install it by pip, with a C++20 compiler."
        ) from error
    levels = [level for level in LEVELS if least.supported(level)]
    level = os.environ.get("GPUENS_CPU", "") or (levels or ["v2"])[-1]
    if level not in levels and levels:
        raise ValueError(f"GPUENS_CPU must be one of {', '.join(levels)}, which this processor has, not {level!r}.")
    return least if level == "v2" else importlib.import_module(f"gpuens._native_{level}")


if TYPE_CHECKING:
    from gpuens import _native as cpu
else:
    checks.check_addresses()  # here too, for modules of gpuens that are imported directly
    cpu = _best()
    cpu.count_threads_by(devices.n_threads)

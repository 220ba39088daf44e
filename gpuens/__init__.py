"""Consensus clustering for millions of objects.

People have M clusterings of the same N objects and want the one partition that the ensemble supports.
``import gpuens as ge`` is cheap: every name below is loaded when it is first used.

>>> import gpuens as ge
>>> labels = [[0, 0, 1, 1, 1, 2], ["a", "a", "a", "b", "b", "b"], [5, 5, 7, 7, 7, 7]]  # 3 clusterings of 6 objects
>>> ge.consensus(labels, n_clusters=2, method="eac").tolist()
[1, 1, 0, 0, 0, 0]
"""

import atexit
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

# The attribute gpuens.methods must be the function, and not the package of the same name. Only the first import of the
# package sets the attribute to the package, so that the function can replace it afterwards.
from gpuens.methods import consensus as consensus
from gpuens.methods import methods as methods
from gpuens.methods import partitioners as partitioners
from gpuens.methods import register as register
from gpuens.methods import similarities as similarities
from gpuens.runtime.threads import follow_threadpoolctl

__version__ = "0.1.0"

# the module of each public name; the stub is the one list of them
_HOMES: dict[str, str] = {
    name: module
    for line in Path(__file__).with_suffix(".pyi").read_text(encoding="utf-8").splitlines()
    if line.startswith("from ")
    for _, module, *_, name in [line.split()]
}

__all__ = [*sorted(_HOMES), "__version__"]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'gpuens' has no attribute {name!r}")
    import_module("gpuens.runtime.checks").check_addresses()
    home = _HOMES[name]
    value = import_module(f"gpuens.{name}") if home == "gpuens" else getattr(import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)


def _end_calls() -> None:
    """Let the interpreter end without the threads that are in native calls."""
    if "gpuens.runtime.native" in sys.modules:
        import_module("gpuens.runtime.native").cpu.end_calls()  # once a thread that is loading it has done so


# handlers run last in, first out: one that is registered later may still wait for a thread in a native call
atexit.register(_end_calls)

# last, because it may load the extension
follow_threadpoolctl(lambda: import_module("gpuens.runtime.native"))

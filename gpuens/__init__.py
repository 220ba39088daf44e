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
from typing import Any

# The attribute gpuens.methods must be the function, and not the package of the same name. Only the first import of the
# package sets the attribute to the package, so that the function can replace it afterwards.
from gpuens.methods import ESTIMATORS
from gpuens.methods import consensus as consensus
from gpuens.methods import methods as methods
from gpuens.methods import partitioners as partitioners
from gpuens.methods import register as register
from gpuens.methods import similarities as similarities
from gpuens.runtime.threads import follow_threadpoolctl

__version__ = "0.1.0"

# public names and the modules that define them; None means that the name is itself a module
_PUBLIC: dict[str, str | None] = {
    "Answers": "labels.answers",
    "Consensus": "methods.combination",
    "Ensemble": "labels.ensemble",
    "Reduction": "reduction",
    "Rows": "labels.rows",
    "CATree": "reduction",
    "CoreGroups": "reduction",
    "Sample": "reduction",
    **dict.fromkeys(ESTIMATORS, "methods"),
    "align": "contingency.alignment",
    "batch": None,
    "choose_k": "workflows.choose_k",
    "cluster": "workflows.cluster",
    "compare": "workflows.compare",
    "contingency": None,
    "datasets": None,
    "describe": "workflows.describe",
    "distributed": None,
    "evidence": None,
    "generate": None,
    "Graph": "labels.graph",
    "graph_consensus": "workflows.graph_consensus",
    "io": None,
    "load": "methods.model",
    "Model": "methods.model",
    "metrics": None,
    "modes": "workflows.modes",
    "partition": None,
    "plotting": None,
    "reduction": None,
    "sc": None,
    "Spatial": "methods.spatial",
    "similarity": None,
    "threads": "runtime.threads",
}

__all__ = [*sorted([*_PUBLIC, "consensus", "methods", "partitioners", "register", "similarities"]), "__version__"]


def __getattr__(name: str) -> Any:
    if name not in _PUBLIC:
        raise AttributeError(f"module 'gpuens' has no attribute {name!r}")
    import_module("gpuens.runtime.checks").check_addresses()
    home = _PUBLIC[name]
    module = import_module(f"gpuens.{home or name}")
    value = module if home is None else getattr(module, name)
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

"""Former names of modules, which pickles and older programs still use."""

import warnings
from collections.abc import Sequence
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

MOVED = {
    "gpuens.checks": "gpuens.runtime.checks",
    "gpuens.choosing": "gpuens.workflows.choose_k",
    "gpuens.clustering": "gpuens.workflows.cluster",
    "gpuens.comparison": "gpuens.workflows.compare",
    "gpuens.demo": "gpuens.workflows.demo",
    "gpuens.description": "gpuens.workflows.describe",
    "gpuens.device": "gpuens.runtime.device",
    "gpuens.encoding": "gpuens.labels.encoding",
    "gpuens.ensemble": "gpuens.labels.ensemble",
    "gpuens.failures": "gpuens.runtime.failures",
    "gpuens.features": "gpuens.labels.features",
    "gpuens.forecast": "gpuens.methods.forecast",
    "gpuens.incidence": "gpuens.labels.incidence",
    "gpuens.kernels": "gpuens.runtime.kernels",
    "gpuens.object_names": "gpuens.labels.object_names",
    "gpuens.odd_columns": "gpuens.labels.odd_columns",
    "gpuens.options": "gpuens.runtime.options",
    "gpuens.partition.lloyd": "gpuens.kmeans.weighted",
    "gpuens.progress": "gpuens.runtime.progress",
    "gpuens.record": "gpuens.runtime.record",
    "gpuens.registry": "gpuens.runtime.registry",
    "gpuens.resumed": "gpuens.io.checkpoint",
    "gpuens.rows": "gpuens.labels.rows",
    "gpuens.runs": "gpuens.workflows.run",
    "gpuens.similarity.held": "gpuens.similarity.pair_matrix",
    "gpuens.similarity.refined": "gpuens.similarity.refined_paths",
    "gpuens.similarity.represented": "gpuens.similarity.dense_representation",
    "gpuens.soft_ensemble": "gpuens.labels.soft_ensemble",
}


class Former(MetaPathFinder, Loader):
    """An importer for former names of modules, used after all other importers; it makes aliases of current modules."""

    def find_spec(self, name: str, path: Sequence[str] | None = None, target: Any = None) -> ModuleSpec | None:
        """Return the module specification of a former name, or None for any other name."""
        return ModuleSpec(name, self) if name in MOVED else None

    def exec_module(self, module: ModuleType) -> None:
        """Give the module all names of the current module, and warn that the module has a new name."""
        now = MOVED[module.__name__]
        there = import_module(now)
        warnings.warn(f"{module.__name__} is now {now}.", DeprecationWarning, stacklevel=2)
        vars(module).update({name: value for name, value in vars(there).items() if not name.startswith("__")})

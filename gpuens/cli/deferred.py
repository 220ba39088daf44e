"""Modules that are loaded when one of their attributes is first used.

scikit-learn imports them for rare cases. They take half of the 1.5 seconds of a short ``gpuens run``. Only a process of
the command line defers modules.
"""

import sys
from importlib import import_module
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from threading import RLock
from types import ModuleType
from typing import Any

DEFERRED = ("scipy.stats", "pandas")
_loading = RLock()


class Deferred(ModuleType):
    """A stand-in in ``sys.modules``, whose place the module takes when an attribute is asked for."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.__spec__ = ModuleSpec(name, None)

    def __getattr__(self, attribute: str) -> Any:
        with _loading:
            if sys.modules.get(self.__name__) is self:
                del sys.modules[self.__name__]
            return getattr(import_module(self.__name__), attribute)


def defer() -> None:
    """Let each installed module of `DEFERRED` that has not been imported be loaded at its first use."""
    for name in DEFERRED:
        if name not in sys.modules and find_spec(name.partition(".")[0]) is not None:
            sys.modules[name] = Deferred(name)

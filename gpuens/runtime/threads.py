"""The number of CPU threads of a call, decided here alone.

The first of these that is set: the innermost ``with ge.threads(n)``; GPUENS_THREADS; OMP_NUM_THREADS, which joblib sets
in its worker processes; the processors that this process may use. OMP_NUM_THREADS never exceeds the processors, and a
limit of threadpoolctl holds for whatever else is set.
"""

import os
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from copy import copy
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from operator import index
from types import ModuleType
from typing import Any

from gpuens.runtime import host

MOST_THREADS = 9999

_threads: ContextVar[int | None] = ContextVar("threads", default=None)
_limit: int | None = None  # the limit that threadpoolctl has set for the process


@contextmanager
def threads(n: int) -> Iterator[None]:
    """Use at most ``n`` CPU threads in the with block.

    The block's own thread of Python, and tasks that gpuens starts from it, follow the innermost ``threads``. Results do
    not depend on the number of threads.

    Parameters
    ----------
    n : int from 1 to 9999
        It precedes GPUENS_THREADS, OMP_NUM_THREADS and the number of processors.

    Examples
    --------
    >>> import gpuens as ge
    >>> with ge.threads(1):
    ...     ge.consensus([[0, 0, 1], ["a", "a", "b"]], n_clusters=2, method="eac").tolist()
    [0, 0, 1]
    """
    try:
        number = 0 if isinstance(n, bool) else index(n)
    except TypeError:
        number = 0
    if not 1 <= number <= MOST_THREADS:
        raise ValueError(f"n must be a whole number from 1 to {MOST_THREADS}, not {n!r}.")
    token = _threads.set(number)
    try:
        yield
    finally:
        _threads.reset(token)


def n_threads() -> int:
    """Return the number of CPU threads that a call in this thread of Python may use."""
    return _limited(_threads.get() or _n_threads_of_process())


def gil_enabled() -> bool:
    """Return whether Python has a global interpreter lock, as all have before 3.13 and most after."""
    return getattr(sys, "_is_gil_enabled", lambda: True)()


def _limited(number: int) -> int:
    return number if _limit is None else min(_limit, number)


def _n_threads_of_process() -> int:
    """Return the number of threads by the environment, without the limit of threadpoolctl."""
    setting = os.environ.get("GPUENS_THREADS", "")
    if setting:
        if not re.fullmatch("[0-9]{1,4}", setting) or int(setting) < 1:
            raise ValueError(f"GPUENS_THREADS must be a whole number from 1 to {MOST_THREADS}, not {setting!r}.")
        return int(setting)
    # a number for each level of nested parallel regions; OpenMP ignores what is no number, and so do we
    levels, processors = os.environ.get("OMP_NUM_THREADS", ""), host.processors()
    outermost = levels and re.match(r"\s*0*([1-9][0-9]{0,8})\s*(,|$)", levels)
    return min(int(outermost[1]), processors) if outermost else processors


# --- threadpoolctl ----------------------------------------------------------------------------------------------------


def follow_threadpoolctl(load: Callable[[], Any]) -> None:
    """Let limits of threadpoolctl hold for gpuens, without importing threadpoolctl.

    Limits reach libraries that are loaded when a limit begins, so ``load`` loads the extension together with
    threadpoolctl.
    """
    if "threadpoolctl" in sys.modules:
        _register(sys.modules["threadpoolctl"], load)
    else:
        sys.meta_path.insert(0, _Follower(load))


class _Follower(MetaPathFinder):
    """A finder of threadpoolctl whose loader is the usual one, and then registers gpuens."""

    def __init__(self, load: Callable[[], Any]) -> None:
        self.load = load
        self.searches = False

    def find_spec(self, name: str, path: Sequence[str] | None = None, target: Any = None) -> ModuleSpec | None:
        """Return the usual specification of threadpoolctl, None for any other module."""
        if name != "threadpoolctl" or self.searches:
            return None
        self.searches = True
        try:
            spec = find_spec(name)
        finally:
            self.searches = False
        if spec is None or spec.loader is None:
            return spec
        loader = spec.loader

        def exec_module(module: ModuleType) -> None:
            loader.exec_module(module)
            _register(module, self.load)

        spec.loader = copy(loader)  # the loader of a zip file is that of other modules, too
        spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec


def _register(threadpoolctl: ModuleType, load: Callable[[], Any]) -> None:
    """Tell threadpoolctl how to limit the threads of gpuens, and load the extension."""

    class GpuensController(threadpoolctl.LibController):  # type: ignore[name-defined]
        user_api = internal_api = "gpuens"
        filename_prefixes = ("_native",)
        check_symbols = ("gpuens_extension",)  # other packages have files of that name, too

        def get_num_threads(self) -> int:
            return _limited(_n_threads_of_process())  # as a limit holds beyond the with block of a `threads`

        def set_num_threads(self, number: int) -> None:
            global _limit
            _limit = number if number < _n_threads_of_process() else None

        def get_version(self) -> str:
            return str(sys.modules["gpuens"].__version__)

    threadpoolctl.register(GpuensController)
    with suppress(Exception):  # such as GPUENS_CPU of a level that is missing: refused by a sentence at the first use
        load()

"""The clusterings to be made from one set of landmarks, and threads that work on several tasks at once."""

import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, contextmanager
from contextvars import copy_context
from dataclasses import dataclass
from threading import Lock
from typing import Any, ClassVar, TypeAlias, TypeVar

import numpy as np

from gpuens.runtime.device import library_threads, n_threads
from gpuens.runtime.threads import threads as limit_threads

Task = TypeVar("Task")


@dataclass(frozen=True)
class CutOfObjects:
    """The transfer cut of the graph of objects and landmarks."""

    n_clusterings: ClassVar[int] = 1

    rng: np.random.Generator
    n_clusters: int
    max_iter: int  # iterations of k-means of all objects


@dataclass(frozen=True)
class ClustersOfLandmarks:
    """The transfer cut and Genie's clusters of landmarks; every object is in the cluster of its nearest landmark."""

    n_clusterings: ClassVar[int] = 2

    rng: np.random.Generator
    n_clusters: int  # number of clusters of the transfer cut
    tree: tuple[int, float]  # number of clusters and largest Gini index for Genie


LandmarkTask: TypeAlias = CutOfObjects | ClustersOfLandmarks


def threads_for(n_tasks: int, room: int, needed: int) -> int:
    """Return the number of threads that work on tasks at once, if each task needs so many bytes of the room."""
    return max(1, min(n_threads(), n_tasks, room // max(1, needed)))


@contextmanager
def _ignored() -> Iterator[None]:
    """Ignore scikit-learn's warning that there are fewer distinct points than k."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Number of distinct clusters")
        yield


class _Shared:
    """A with block of the whole process: the first thread to enter begins it, and the last to leave ends it."""

    def __init__(self, block: Callable[[], AbstractContextManager[None]]) -> None:
        self.block, self.begun = block, ExitStack()
        self.lock, self.n_threads = Lock(), 0

    @contextmanager
    def __call__(self) -> Iterator[None]:
        with self.lock:
            if self.n_threads == 0:
                self.begun.enter_context(self.block())
            self.n_threads += 1
        try:
            yield
        finally:
            with self.lock:
                self.n_threads -= 1
                if self.n_threads == 0:
                    self.begun.close()


# filters are the process's, but in Python 3.14 and later they can be a context's, as they are without the GIL
_few_points_ignored = _ignored if getattr(sys.flags, "context_aware_warnings", False) else _Shared(_ignored)


def by_threads(work: Callable[[Task], Any], tasks: Sequence[Task], threads: int) -> Iterator[Any]:
    """Yield ``work(task)`` of each task in order; each of several threads works on a task of its own.

    Threads share the processors, and BLAS uses a single thread. When the caller takes no further result, tasks that
    have not begun are cancelled.
    """
    of_a_task = -(-n_threads() // threads)

    def limited(task: Task) -> Any:
        with limit_threads(of_a_task):
            return work(task)

    with library_threads(1), _few_points_ignored():
        context = copy_context()  # with the filter, where filters are a context's
        if threads == 1:
            yield from map(work, tasks)
            return
        pool = ThreadPoolExecutor(threads)
        try:
            yield from pool.map(lambda task: context.copy().run(limited, task), tasks)
        finally:
            pool.shutdown(cancel_futures=True)

"""The clusterings to be made from one set of landmarks, and threads that work on several tasks at once."""

import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import dataclass
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


def by_threads(work: Callable[[Task], Any], tasks: Sequence[Task], threads: int) -> Iterator[Any]:
    """Yield ``work(task)`` of each task in order; each of several threads works on a task of its own.

    Threads share the processors, and BLAS uses a single thread. When the caller takes no further result, tasks that
    have not begun are cancelled.
    """
    context, of_a_task = copy_context(), -(-n_threads() // threads)

    def limited(task: Task) -> Any:
        with limit_threads(of_a_task):
            return work(task)

    # set here and not in the threads, because limits of BLAS and filters of warnings hold for the whole process
    with library_threads(1), warnings.catch_warnings():
        # scikit-learn's warning that there are fewer distinct points than k
        warnings.filterwarnings("ignore", "Number of distinct clusters")
        if threads == 1:
            yield from map(work, tasks)
            return
        pool = ThreadPoolExecutor(threads)
        try:
            yield from pool.map(lambda task: context.copy().run(limited, task), tasks)
        finally:
            pool.shutdown(cancel_futures=True)

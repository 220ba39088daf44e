"""Work in threads of Python, and the threads of libraries."""

import os
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import ExitStack, contextmanager
from contextvars import Context, copy_context
from functools import cache, lru_cache, partial
from typing import Any

from gpuens.runtime.threads import n_threads

WAKE_NS = 2**16  # ns to wake a thread and collect its result


@contextmanager
def library_threads(limit: int | None, user_api: str = "blas") -> Iterator[None]:
    """In the with block, let BLAS (in the whole process) or OpenMP (in the calling thread) use one thread.

    None is no limit. A library that uses several threads adds partial sums in an order that depends on their number.
    """
    if limit is None:
        yield
    elif user_api == "blas":
        _one_blas_thread.enter()
        try:
            yield
        finally:
            _one_blas_thread.leave()
    else:
        with _libraries(len(sys.modules)).limit(limits=limit, user_api=user_api):
            yield


class _OneBlasThread:
    """The limit of BLAS to one thread, which with blocks of several threads of Python share.

    The first to enter sets it, and the last to leave restores the numbers of threads from before.
    """

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.n_blocks = 0
        self.limits = ExitStack()
        self.libraries: Any = None  # the last controller that has limited BLAS

    def enter(self) -> None:
        with self.lock:
            libraries = _libraries(len(sys.modules))
            if libraries is not self.libraries:  # if not equal, BLAS was loaded after the last limit
                self.limits.enter_context(libraries.limit(limits=1, user_api="blas"))
                self.libraries = libraries
            self.n_blocks += 1

    def leave(self) -> None:
        with self.lock:
            self.n_blocks -= 1
            if self.n_blocks == 0:
                self.libraries = None
                self.limits.close()

    def unlock(self) -> None:
        """Replace the lock in a forked child, which does not inherit the thread that has locked it."""
        self.lock = threading.Lock()


_one_blas_thread = _OneBlasThread()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_one_blas_thread.unlock)


@lru_cache(maxsize=1)
def _libraries(n_modules: int) -> Any:
    """Return the controller of the loaded libraries, cached by the number of modules: a new search takes some ms."""
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


def over_ranges(work: Callable[[int, int], Any], n: int, *, grain: int = 1) -> list[Any]:
    """Call ``work(start, stop)`` on pieces of range(n) in threads and return the results in order.

    ``work`` must release the GIL (NumPy, SciPy) and write only to its own range; then the result does not depend on the
    number of threads. ``grain`` is the smallest piece worth a thread, see `worth_a_thread`. There are more pieces than
    threads, to balance the load.

    The caller's thread works on pieces too, and waits only for pieces that other threads have begun. If the pieces are
    small, it finishes all of them before another thread wakes up.
    """
    threads = n_threads()
    pieces = 1 if threads == 1 else max(1, min(8 * threads, n // max(1, grain)))
    if pieces == 1:
        return [work(0, n)] if n else []
    bounds = [n * i // pieces for i in range(pieces + 1)]
    results: list[Any] = [None] * pieces
    # two threads never take the same piece, as they could from an iterator without the GIL
    queue = deque(range(pieces))

    def take() -> None:
        try:
            while True:
                try:
                    i = queue.popleft()
                except IndexError:
                    break
                results[i] = work(bounds[i], bounds[i + 1])
        finally:
            queue.clear()  # after an error no thread begins another piece

    tasks: list[Future[Any]] = []
    try:
        for _ in range(min(threads, pieces) - 1):
            # in an empty context: without the GIL a new thread keeps the one that it is started in, and its arrays
            tasks.append(Context().run(_pool(threads).submit, partial(copy_context().run, take)))
        take()
    finally:  # also after a signal: no thread may write to the caller's arrays after this function has ended
        queue.clear()
        begun = [task for task in tasks if not task.cancel()]
        wait(begun)
        # a cancelled task may stay in the pool's queue for a while, so drop its references to the caller's arrays
        in_order, results, work = results, [], None  # type: ignore[assignment]
    for task in begun:
        task.result()  # raises the error of that thread, if any
    return in_order


def call_interruptibly(work: Callable[[], Any]) -> Any:
    """Return ``work()``, one long call of a library, computed in another thread while the main thread answers signals.

    ``work`` must release the GIL. After a signal it goes on until its own end, which the end of the process waits
    for, and its result is dropped.
    """
    if threading.current_thread() is not threading.main_thread():
        return work()  # only the main thread answers signals
    pool = ThreadPoolExecutor(1)  # no daemon thread: OpenBLAS, which ends with the process, may wait for it for ever
    try:
        return pool.submit(copy_context().run, work).result()
    finally:
        pool.shutdown(wait=False)


def worth_a_thread(steps: float) -> int:
    """Return the smallest number of items that is worth a thread; an item (a label, an entry) takes ``steps`` ns."""
    return max(1, int(WAKE_NS / max(1.0, steps)))


@cache
def _pool(threads: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(threads)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_pool.cache_clear)  # a forked child inherits no threads

"""Work in threads of Python."""

import os
import signal
import threading
import time
import weakref
from types import SimpleNamespace

import numpy as np
import pytest

from gpuens.runtime import parallel


@pytest.mark.parametrize("threads", ["1", "3"])
@pytest.mark.parametrize(("n", "grain"), [(0, 1), (1, 1), (7, 1), (100, 1), (100, 40), (100, 1000)])
def test_pieces_cover_the_range_in_order(threads, n, grain, monkeypatch):
    monkeypatch.setenv("GPUENS_THREADS", threads)
    pieces = parallel.over_ranges(lambda start, stop: list(range(start, stop)), n, grain=grain)
    assert [i for piece in pieces for i in piece] == list(range(n))
    assert len(pieces) <= max(1, n // grain)


@pytest.fixture
def busy(monkeypatch):
    """Keep the two threads of the pool busy during a test."""
    monkeypatch.setenv("GPUENS_THREADS", "2")
    free = threading.Event()
    waiting = [parallel._pool(2).submit(free.wait) for _ in range(2)]
    yield
    free.set()
    assert [one.result() for one in waiting] == [True, True]


def test_what_a_piece_raises_reaches_the_caller_and_no_other_piece_begins(monkeypatch):
    monkeypatch.setenv("GPUENS_THREADS", "2")
    begun = []

    def work(start, stop):
        begun.append(start)
        if start <= 5 < stop or start > 10:
            raise MemoryError("a piece")

    for n, most in ((10, 10), (1000, 2)):
        begun.clear()
        with pytest.raises(MemoryError, match="a piece"):
            parallel.over_ranges(work, n)
        assert len(begun) <= most
    assert parallel.over_ranges(lambda start, stop: stop - start, 4) == [1, 1, 1, 1]


def test_the_caller_does_not_wait_for_threads_that_have_not_begun(busy):
    """The caller's thread works on every piece while all other threads are busy; this includes nested ranges."""
    whose = parallel.over_ranges(lambda start, stop: threading.get_ident(), 10)
    sums = parallel.over_ranges(lambda a, b: sum(parallel.over_ranges(lambda c, d: d - c, b - a)), 100)
    assert (set(whose), sum(sums)) == ({threading.get_ident()}, 100)


def test_nothing_that_was_worked_on_is_held_for_threads_that_have_not_begun(busy):
    array = np.zeros(100)
    there = weakref.ref(array)
    parallel.over_ranges(lambda start, stop, array=array: array[start:stop], 10)
    del array
    assert there() is None


def test_a_signal_between_threads_waits_for_those_that_have_begun(monkeypatch):
    """Threads that have begun write to arrays of the caller, so the caller must wait for them."""
    monkeypatch.setenv("GPUENS_THREADS", "3")
    pool, begun, done = parallel._pool(3), threading.Event(), []

    def submit(take):
        if begun.is_set():
            raise KeyboardInterrupt
        future = pool.submit(take)
        assert begun.wait(60)
        return future

    def work(start, stop):
        begun.set()
        time.sleep(0.1)
        done.append(start)

    monkeypatch.setattr(parallel, "_pool", lambda _: SimpleNamespace(submit=submit))
    with pytest.raises(KeyboardInterrupt):
        parallel.over_ranges(work, 1000)
    assert done == [0]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_a_forked_child_has_threads_of_its_own(monkeypatch):
    monkeypatch.setenv("GPUENS_THREADS", "2")
    assert sum(parallel.over_ranges(lambda start, stop: stop - start, 100)) == 100
    child = os.fork()
    if child == 0:
        signal.alarm(20)  # the alarm ends a child process that would wait for its parent's threads for ever
        os._exit(0 if sum(parallel.over_ranges(lambda start, stop: stop - start, 100)) == 100 else 1)
    assert os.waitpid(child, 0)[1] == 0


def test_results_do_not_depend_on_threads_that_share_the_pool(monkeypatch):
    """Several threads use the pool at the same time; each thread gets the results of its own pieces."""
    from concurrent.futures import ThreadPoolExecutor

    monkeypatch.setenv("GPUENS_THREADS", "2")
    with ThreadPoolExecutor(4) as callers:
        sums = list(callers.map(lambda n: sum(parallel.over_ranges(lambda a, b: b - a, n)), range(200)))
    np.testing.assert_array_equal(sums, range(200))

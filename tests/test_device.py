"""Threads: the pieces of a range, each once and in order; the pool outlives a call, but not a fork."""

import os
import signal

import numpy as np
import pytest
from conftest import refused
from numba import njit

from gpuens import device


@pytest.mark.parametrize("threads", ["1", "3"])
@pytest.mark.parametrize(("n", "grain"), [(0, 1), (1, 1), (7, 1), (100, 1), (100, 40), (100, 1000)])
def test_pieces_cover_the_range_in_order(threads, n, grain, monkeypatch):
    monkeypatch.setenv("GPUENS_THREADS", threads)
    pieces = device.over_ranges(lambda start, stop: list(range(start, stop)), n, grain=grain)
    assert [i for piece in pieces for i in piece] == list(range(n))
    assert len(pieces) <= max(1, n // grain)


def test_what_a_piece_raises_reaches_the_caller(monkeypatch):
    monkeypatch.setenv("GPUENS_THREADS", "2")

    def work(start, stop):
        if start <= 5 < stop:
            raise MemoryError("piece of 5")

    with pytest.raises(MemoryError, match="piece of 5"):
        device.over_ranges(work, 10)
    assert device.over_ranges(lambda start, stop: stop - start, 4) == [1, 1, 1, 1]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_a_forked_child_has_threads_of_its_own(monkeypatch):
    monkeypatch.setenv("GPUENS_THREADS", "2")
    assert sum(device.over_ranges(lambda start, stop: stop - start, 100)) == 100
    child = os.fork()
    if child == 0:
        signal.alarm(20)  # a child that waited for its parent's threads would wait for ever
        os._exit(0 if sum(device.over_ranges(lambda start, stop: stop - start, 100)) == 100 else 1)
    assert os.waitpid(child, 0)[1] == 0


@pytest.mark.parametrize(
    ("text", "size"),
    [("4GB", 4 * 10**9), ("4g", 4 * 10**9), (" 4 G ", 4 * 10**9), ("1GiB", 2**30), ("1.5 kib", 1536), ("2Ti", 2**41)]
    + [(".5GB", 5 * 10**8), ("5.MB", 5 * 10**6), ("1000", 1000), ("12b", 12)],
)
def test_the_memory_budget_is_what_was_set(text, size, monkeypatch):
    monkeypatch.setenv("GPUENS_MEMORY", text)
    assert device.memory_budget() == size


@pytest.mark.parametrize(
    "text", [".", "1.2.3GB", "GB", "-1GB", "1iB", "4 G B", "1e9", "²GB", "0GB", ".1", "9" * 400, "nan"]
)
def test_memory_budgets_that_are_none(text, monkeypatch):
    monkeypatch.setenv("GPUENS_MEMORY", text)
    refused(device.memory_budget, ValueError, "GPUENS_MEMORY", "'1.5GiB'", repr(text))


@pytest.mark.parametrize("text", ["²", "٣", "0", "-1", "1.5", "two", " 2", "9" * 5000])
def test_numbers_of_threads_that_are_none(text, monkeypatch):
    monkeypatch.setenv("GPUENS_THREADS", text)
    refused(device.n_threads, ValueError, "GPUENS_THREADS", "from 1 to 9999")


def test_without_a_setting_the_budget_is_part_of_what_is_free(monkeypatch):
    monkeypatch.delenv("GPUENS_MEMORY", raising=False)
    assert 0 < device.memory_budget() < device.total_memory()


def test_results_do_not_depend_on_threads_that_share_the_pool(monkeypatch):
    """Callers in threads of their own get their own pieces back."""
    from concurrent.futures import ThreadPoolExecutor

    monkeypatch.setenv("GPUENS_THREADS", "2")
    with ThreadPoolExecutor(4) as callers:
        sums = list(callers.map(lambda n: sum(device.over_ranges(lambda a, b: b - a, n)), range(200)))
    np.testing.assert_array_equal(sums, range(200))


@pytest.mark.skipif(os.environ.get("NUMBA_BOUNDSCHECK") != "1", reason="make check-bounds checks indices")
def test_an_index_that_is_out_of_bounds_is_found():
    at = njit(lambda array, i: array[i])
    assert at(np.arange(3), 2) == 2
    with pytest.raises(IndexError):
        at(np.arange(3), 3)

"""Threads, memory budgets, and checks of CuPy before its use."""

import os
import signal
import sys
import threading
import time
import tomllib
import weakref
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from conftest import refused
from packaging.requirements import Requirement

import gpuens as ge
from gpuens.runtime import device, host, installing
from gpuens.runtime.failures import OutOfGPUMemory


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


def test_the_caller_does_not_wait_for_threads_that_have_not_begun(monkeypatch):
    """The caller's thread works on every piece while all other threads are busy; this includes nested ranges."""
    monkeypatch.setenv("GPUENS_THREADS", "2")
    free = threading.Event()
    busy = [device._pool(2).submit(free.wait) for _ in range(2)]
    try:
        whose = device.over_ranges(lambda start, stop: threading.get_ident(), 10)
        sums = device.over_ranges(lambda a, b: sum(device.over_ranges(lambda c, d: d - c, b - a)), 100)
    finally:
        free.set()
    assert (set(whose), sum(sums), [one.result() for one in busy]) == ({threading.get_ident()}, 100, [True, True])


def test_after_an_error_no_other_piece_begins(monkeypatch):
    monkeypatch.setenv("GPUENS_THREADS", "2")
    begun = []

    def work(start, stop):
        begun.append(start)
        raise MemoryError

    with pytest.raises(MemoryError):
        device.over_ranges(work, 1000)
    assert len(begun) <= 2


def test_nothing_that_was_worked_on_is_held_for_threads_that_have_not_begun(monkeypatch):
    monkeypatch.setenv("GPUENS_THREADS", "2")
    free, array = threading.Event(), np.zeros(100)
    there = weakref.ref(array)
    busy = [device._pool(2).submit(free.wait) for _ in range(2)]
    try:
        device.over_ranges(lambda start, stop, array=array: array[start:stop], 10)
        del array
        assert there() is None
    finally:
        free.set()
    assert [one.result() for one in busy] == [True, True]


def test_a_signal_between_threads_waits_for_those_that_have_begun(monkeypatch):
    """Threads that have begun write to arrays of the caller, so the caller must wait for them."""
    monkeypatch.setenv("GPUENS_THREADS", "3")
    pool, begun, done = device._pool(3), threading.Event(), []

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

    monkeypatch.setattr(device, "_pool", lambda _: SimpleNamespace(submit=submit))
    with pytest.raises(KeyboardInterrupt):
        device.over_ranges(work, 1000)
    assert done == [0]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_a_forked_child_has_threads_of_its_own(monkeypatch):
    monkeypatch.setenv("GPUENS_THREADS", "2")
    assert sum(device.over_ranges(lambda start, stop: stop - start, 100)) == 100
    child = os.fork()
    if child == 0:
        signal.alarm(20)  # the alarm ends a child process that would wait for its parent's threads for ever
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
    assert 0 < device.memory_budget() < host.total_memory()


def test_results_do_not_depend_on_threads_that_share_the_pool(monkeypatch):
    """Several threads use the pool at the same time; each thread gets the results of its own pieces."""
    from concurrent.futures import ThreadPoolExecutor

    monkeypatch.setenv("GPUENS_THREADS", "2")
    with ThreadPoolExecutor(4) as callers:
        sums = list(callers.map(lambda n: sum(device.over_ranges(lambda a, b: b - a, n)), range(200)))
    np.testing.assert_array_equal(sums, range(200))


# --- GPUs -------------------------------------------------------------------------------------------------------------


def unavailable(*_):
    raise RuntimeError("a page of text.\nAnother.")


@pytest.mark.parametrize("missing", [["NVRTC"], ["cuBLAS", "cuSOLVER"], ["NVRTC", "cuBLAS"]])
def test_a_cupy_without_libraries_of_cuda_is_refused_before_it_is_used(missing, fake_cupy, monkeypatch):
    fake_cupy.reset(missing=missing)
    for name in {"cuBLAS", "cuSOLVER"} & set(missing):
        monkeypatch.delattr(fake_cupy.cuda, name.lower())
    labels = [[0, 0, 1, 1], [0, 1, 1, 1]]
    said = [*missing, "CUDA 12", installing.command("cu12")]
    refused(lambda: ge.LWEA(2, device="cuda").fit(labels), ValueError, "device='cuda'", *said)
    refused(lambda: ge.LWEA(2).fit([fake_cupy.asarray(np.array(column)) for column in labels]), ImportError, *said)
    assert [name for name in ("NVRTC", "cuBLAS", "cuSOLVER") if name in refused(device._cupy, ImportError)] == missing


def test_libraries_of_cuda_are_looked_for_once(fake_cupy):
    device.namespace("cuda")
    fake_cupy.reset(missing=["NVRTC"])
    assert device.resolve("cuda") == "cuda"


@pytest.mark.parametrize("cuda", ["12", "13"])
def test_extras_bring_the_libraries_of_cuda(cuda):
    about = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())["project"]
    (line,) = about["optional-dependencies"][f"cu{cuda}"]
    found = Requirement(line)
    assert (found.name, found.extras) == (f"cupy-cuda{cuda}x", {"ctk"})
    # CuPy 14.0.1 has no ctk for CUDA 13, and sorts wrongly when memory runs out
    assert not found.specifier.contains("14.0.1")


@pytest.mark.parametrize("labels", [[[0, 1], [0, 1], [1, 0]], [[0, 0, 1], [1, 1, 0]]], ids=["matrix", "columns"])
def test_arrays_that_cupy_could_not_sort_are_refused(labels, fake_cupy, sizes):
    given = labels if len(labels) == 2 else np.array(labels)
    on_gpu = [fake_cupy.asarray(np.array(c)) for c in labels] if len(labels) == 2 else fake_cupy.asarray(given)
    sizes("runtime.device", LONGEST=2)
    refused(lambda: ge.LWEA(2).fit(on_gpu), ValueError, "one GPU works on at most 2 objects", "Dask array")
    refused(lambda: ge.LWEA(2, device="cuda").fit(given), ValueError, "one GPU works on at most 2 objects")


# --- memory of a GPU --------------------------------------------------------------------------------------------------


@pytest.fixture
def gpu(fake_cupy, monkeypatch):
    """Return a function that sets the module of CuPy's allocator, on a GPU with 1,000 of 10,000 bytes free."""
    monkeypatch.delenv("GPUENS_MEMORY", raising=False)
    fake_cupy.reset(10_000, held=9000)

    def owned_by(module):
        def theirs(n_bytes): ...

        theirs.__module__ = module
        monkeypatch.setattr(fake_cupy.cuda, "get_allocator", lambda: theirs)

    return owned_by


def test_half_of_what_an_unknown_allocator_may_hold_counts_as_free(gpu):
    gpu("thinc.util")
    assert device.memory_budget("cuda") == int(0.8 * (1000 + 4500))


@pytest.mark.parametrize("owner", ["cupy.cuda.memory", "rmm.allocators.cupy"])
def test_without_a_pool_what_the_driver_has_free_is_free_at_any_time(owner, gpu, fake_cupy, monkeypatch):
    class CudaMemoryResource: ...

    adapted = SimpleNamespace(upstream_mr=CudaMemoryResource(), get_allocated_bytes=lambda: 2000)
    stand_in = SimpleNamespace(mr=SimpleNamespace(get_current_device_resource=lambda: adapted))
    monkeypatch.setitem(sys.modules, "rmm", stand_in)
    gpu(owner)

    def work():
        budgets = [device.memory_budget("cuda")]
        fake_cupy.memory.held = 9500
        return [*budgets, device.memory_budget("cuda")]

    assert device.within_memory(work, "it", "take less") == [800, 400]


def test_a_limit_of_cupys_pool_is_kept(fake_cupy, monkeypatch):
    monkeypatch.delenv("GPUENS_MEMORY", raising=False)
    monkeypatch.setattr(fake_cupy.Pool, "get_limit", lambda self: 5120)
    taken = fake_cupy.zeros(1000, dtype=np.uint8)
    assert device.memory_budget("cuda") == int(0.8 * (5120 - 1024))
    del taken


@pytest.mark.parametrize(
    ("adaptors", "free"),
    [
        ([], 1000 + 4500),  # no adaptor reports its memory
        ([{"get_allocated_bytes": lambda: 2000}], 1000 + 4500),  # an adaptor with statistics, but without a pool
        ([{"pool_size": lambda: 8000}], 1000 + 4000),
        ([{"get_allocated_bytes": lambda: 2000}, {"pool_size": lambda: 8000}], 7000),
        ([{}, {"allocation_counts": SimpleNamespace(current_bytes=3000)}, {"pool_size": lambda: 8000}], 6000),
    ],
)
def test_what_rmms_pool_does_not_use_is_free(adaptors, free, gpu, monkeypatch):
    gpu("rmm.allocators.cupy")
    resource = None
    for has in reversed(adaptors):
        resource = SimpleNamespace(upstream_mr=resource, **has)
    stand_in = SimpleNamespace(mr=SimpleNamespace(get_current_device_resource=lambda: resource))
    monkeypatch.setitem(sys.modules, "rmm", stand_in)
    assert device.memory_budget("cuda") == int(0.8 * free)


def test_the_driver_is_asked_once_while_a_fit_lasts(fake_cupy, monkeypatch):
    monkeypatch.delenv("GPUENS_MEMORY", raising=False)
    asked = []
    monkeypatch.setattr(fake_cupy.cuda.runtime, "memGetInfo", lambda: asked.append(1) or (10_000, 10_000))

    def work():
        assert device.memory_budget("cuda") == 8000
        kept = fake_cupy.zeros(512, dtype=np.uint8)
        assert device.memory_budget("cuda") == int(0.8 * (10_000 - 512))
        return len(kept)

    assert device.within_memory(work, "it", "take less") == 512
    assert len(asked) == 1
    device.memory_budget("cuda")
    device.memory_budget("cuda")
    assert len(asked) == 3


def test_memory_errors_of_other_allocators_are_retried_in_smaller_pieces(fake_cupy):
    told = "std::bad_alloc: out_of_memory: RMM failure at:pool_memory_resource.hpp:196: Maximum pool size exceeded"
    tried = []

    def work():
        tried.append(device._shrunk.get())
        raise MemoryError(told)

    text = refused(lambda: device.within_memory(work, "it", "take less"), OutOfGPUMemory, "it does not fit the GPU's")
    assert "RMM" not in text
    assert tried == [1, 16, 256, 4096]
    tried.clear()
    # after an error message of gpuens itself, the work is not tried again
    told = "it needs 3 GB and 2 GB may be used; take less."
    refused(lambda: device.within_memory(work, "it", "take less"), MemoryError, told)
    assert tried == [1]

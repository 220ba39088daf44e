"""Memory budgets of the host and of a GPU."""

import sys
from types import SimpleNamespace

import numpy as np
import pytest
from conftest import refused

from gpuens.runtime import host, memory
from gpuens.runtime.failures import OutOfGPUMemory


@pytest.mark.parametrize(
    ("text", "size"),
    [("4GB", 4 * 10**9), ("4g", 4 * 10**9), (" 4 G ", 4 * 10**9), ("1GiB", 2**30), ("1.5 kib", 1536), ("2Ti", 2**41)]
    + [(".5GB", 5 * 10**8), ("5.MB", 5 * 10**6), ("1000", 1000), ("12b", 12)],
)
def test_the_memory_budget_is_what_was_set(text, size, monkeypatch):
    monkeypatch.setenv("GPUENS_MEMORY", text)
    assert memory.memory_budget() == size


@pytest.mark.parametrize(
    "text", [".", "1.2.3GB", "GB", "-1GB", "1iB", "4 G B", "1e9", "²GB", "0GB", ".1", "9" * 400, "nan"]
)
def test_memory_budgets_that_are_none(text, monkeypatch):
    monkeypatch.setenv("GPUENS_MEMORY", text)
    refused(memory.memory_budget, ValueError, "GPUENS_MEMORY", "'1.5GiB'", repr(text))


def test_without_a_setting_the_budget_is_part_of_what_is_free(monkeypatch):
    monkeypatch.delenv("GPUENS_MEMORY", raising=False)
    assert 0 < memory.memory_budget() < host.total_memory()


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
    assert memory.memory_budget("cuda") == int(0.8 * (1000 + 4500))


@pytest.mark.parametrize("owner", ["cupy.cuda.memory", "rmm.allocators.cupy"])
def test_without_a_pool_what_the_driver_has_free_is_free_at_any_time(owner, gpu, fake_cupy, monkeypatch):
    class CudaMemoryResource: ...

    adapted = SimpleNamespace(upstream_mr=CudaMemoryResource(), get_allocated_bytes=lambda: 2000)
    stand_in = SimpleNamespace(mr=SimpleNamespace(get_current_device_resource=lambda: adapted))
    monkeypatch.setitem(sys.modules, "rmm", stand_in)
    gpu(owner)

    def work():
        budgets = [memory.memory_budget("cuda")]
        fake_cupy.memory.held = 9500
        return [*budgets, memory.memory_budget("cuda")]

    assert memory.within_memory(work, "it", "take less") == [800, 400]


def test_a_limit_of_cupys_pool_is_kept(fake_cupy, monkeypatch):
    monkeypatch.delenv("GPUENS_MEMORY", raising=False)
    monkeypatch.setattr(fake_cupy.Pool, "get_limit", lambda self: 5120)
    taken = fake_cupy.zeros(1000, dtype=np.uint8)
    assert memory.memory_budget("cuda") == int(0.8 * (5120 - 1024))
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
    assert memory.memory_budget("cuda") == int(0.8 * free)


def test_the_driver_is_asked_once_while_a_fit_lasts(fake_cupy, monkeypatch):
    monkeypatch.delenv("GPUENS_MEMORY", raising=False)
    asked = []
    monkeypatch.setattr(fake_cupy.cuda.runtime, "memGetInfo", lambda: asked.append(1) or (10_000, 10_000))

    def work():
        assert memory.memory_budget("cuda") == 8000
        kept = fake_cupy.zeros(512, dtype=np.uint8)
        assert memory.memory_budget("cuda") == int(0.8 * (10_000 - 512))
        return len(kept)

    assert memory.within_memory(work, "it", "take less") == 512
    assert len(asked) == 1
    memory.memory_budget("cuda")
    memory.memory_budget("cuda")
    assert len(asked) == 3


def test_memory_errors_of_other_allocators_are_retried_in_smaller_pieces(fake_cupy):
    told = "std::bad_alloc: out_of_memory: RMM failure at:pool_memory_resource.hpp:196: Maximum pool size exceeded"
    tried = []

    def work():
        tried.append(memory._shrunk.get())
        raise MemoryError(told)

    text = refused(lambda: memory.within_memory(work, "it", "take less"), OutOfGPUMemory, "it does not fit the GPU's")
    assert "RMM" not in text
    assert tried == [1, 16, 256, 4096]
    tried.clear()
    # after an error message of gpuens itself, the work is not tried again
    told = "it needs 3 GB and 2 GB may be used; take less."
    refused(lambda: memory.within_memory(work, "it", "take less"), MemoryError, told)
    assert tried == [1]

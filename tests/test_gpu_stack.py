"""On real CuPy and a stand-in for a GPU (make check-gpu): the stand-in itself, and what it is asked for."""

import os
import subprocess
import sys

import numpy as np
import pytest

gpu_stack = pytest.importorskip("gpu_stack") if "gpu_stack" in sys.modules else None
pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(gpu_stack is None, reason="counts what a stand-in for a GPU is asked for: make check-gpu"),
]


@pytest.fixture
def asked():
    """Return a function that calls another and returns what that asked of the device."""

    def count(work):
        before = gpu_stack.counts()
        work()
        return {name: value - before[name] for name, value in gpu_stack.counts().items()}

    return count


# --- the stand-in -----------------------------------------------------------------------------------------------------


def test_everything_is_counted(asked):
    import cupy as cp

    host = np.arange(1000.0)
    on_device = cp.asarray(host)
    doubled = on_device + on_device  # compiled before anything is counted
    cp.asarray(host)  # the pool has memory for the next
    nothing = dict.fromkeys(gpu_stack.counts(), 0)
    assert asked(lambda: cp.asarray(host)) == nothing | {"to_device": 1, "to_device_bytes": 8000}
    assert asked(lambda: np.add(on_device, on_device, out=doubled))["launches"] == 1
    found = asked(doubled.get)
    assert (found["to_host"], found["to_host_bytes"], found["synchronizations"], found["launches"]) == (1, 8000, 1, 0)
    np.testing.assert_array_equal(doubled.get(), 2 * host)


def test_a_launch_that_no_device_takes_is_refused(capfd):
    import cupy as cp

    kernel = cp.RawKernel('extern "C" __global__ void nothing(int* out) { *out = 1; }', "nothing")
    out = cp.zeros(1, dtype=np.int32)
    kernel((1,), (1,), (out,))
    assert int(out[0]) == 1
    for grid, block, shared in (((1, 65_536), (1,), 0), ((1,), (1025,), 0), ((1,), (1,), 49 * 1024)):
        with pytest.raises(cp.cuda.driver.CUDADriverError):
            kernel(grid, block, (out,), shared_mem=shared)
        assert "nothing cannot have a grid of" in capfd.readouterr().err
    kernel.max_dynamic_shared_size_bytes = 49 * 1024
    kernel((1,), (1,), (out,), shared_mem=49 * 1024)


def elsewhere(program, **environment):
    """Run a program in a Python of its own, with another device."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def test_memory_ends():
    program = """
import cupy as cp
a = cp.empty(600_000, dtype="u1")
try:
    cp.empty(600_000, dtype="u1")
except cp.cuda.memory.OutOfMemoryError:
    print(*cp.cuda.runtime.memGetInfo())
"""
    free, total = map(int, elsewhere(program, GPU_STACK_MEMORY="1000000"))
    assert (total, free) == (1_000_000, 1_000_000 - 600_064)


def test_devices():
    program = """
import cupy as cp
with cp.cuda.Device(1):
    a = cp.arange(3)
print(a.device.id, cp.cuda.runtime.getDeviceCount(), cp.cuda.runtime.pointerGetAttributes(a.data.ptr).device)
"""
    assert elsewhere(program, GPU_STACK_DEVICES="2") == ["1", "2", "1"]

"""The measured device: its description, a clock for its work, and its ceilings (largest rates)."""

import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from typing import Any

import common
import numpy as np

from gpuens.runtime import device as devices
from gpuens.runtime import kernels

CLOCK_RATE = 13  # number of CUDA's attribute cudaDevAttrClockRate; the attribute's value is in kHz


def describe(device: str, quick: bool) -> common.Record:
    """Return the facts that measurements on a GPU depend on."""
    if device != "cuda":
        return {"name": "none: kernels are executed on the CPU, and times mean nothing"}
    devices.resolve(device)
    xp = devices.namespace(device)
    runtime = xp.cuda.runtime
    found = runtime.getDeviceProperties(runtime.getDevice())
    return {
        "name": found["name"].decode(),
        "memory": found["totalGlobalMem"],
        "multiprocessors": found["multiProcessorCount"],
        "gigahertz": runtime.deviceGetAttribute(CLOCK_RATE, runtime.getDevice()) / 1e6,
        "l2": found["l2CacheSize"],
        "compute_capability": f"{found['major']}.{found['minor']}",
        "driver": driver(),
        "driver_cuda": cuda_version(runtime.driverGetVersion()),
        "cuda": cuda_version(runtime.runtimeGetVersion()),
        "cupy": xp.__version__,
    }


def cuda_version(number: int) -> str:
    return f"{number // 1000}.{number % 1000 // 10}"


def driver() -> str | None:
    command = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
    with suppress(OSError, subprocess.SubprocessError, IndexError):
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()[0].strip()
    return None


def tiny(device: str, quick: bool) -> bool:
    """Return whether inputs are tiny. They are tiny if kernels run on the CPU, except in parity checks."""
    return quick or device != "cuda"


def synchronize(device: str) -> None:
    if device == "cuda":
        devices.namespace(device).cuda.runtime.deviceSynchronize()


class Marks:
    """Points in the time of the device: CUDA's events, or clock times if kernels run on the CPU."""

    def __init__(self, device: str) -> None:
        self.cuda = devices.namespace(device).cuda if device == "cuda" else None

    def mark(self) -> Any:
        if self.cuda is None:
            return time.perf_counter()
        event = self.cuda.Event()
        event.record()
        return event

    def seconds(self, start: Any, stop: Any) -> float:
        if self.cuda is None:
            return stop - start
        stop.synchronize()
        return self.cuda.get_elapsed_time(start, stop) / 1000

    def median(self, call: Callable[[], Any], repeats: int) -> float:
        """Return the median seconds of a call, measured after a first call that warms up."""
        call()
        pairs = []
        for _ in range(repeats):
            start = self.mark()
            call()
            pairs.append((start, self.mark()))
        return statistics.median(self.seconds(*pair) for pair in pairs)


@cache
def compiled(source: str, device: str) -> Any:
    """Compile kernels that are not part of the library for the device; return the module."""
    if device == "cuda":
        return devices.compile_cuda(source, kernels.FLAGS)
    return devices.stand_ins[device](source, kernels.FLAGS, name="bench")


def add_emulator() -> None:
    """Add the tests' stand-in for a GPU to the devices."""
    sys.path.append(str(common.HERE.parent / "tests"))
    import emulator

    devices.register("emulated", emulator.Module)


# --- ceilings ---------------------------------------------------------------------------------------------------------

# Comparisons of a label with labels in registers: no search for equal labels can be faster. Each label is read once
# from shared memory for KEPT comparisons, and each comparison ends in an addition.
COMPARE_LABELS = """
#define KEPT 16
#define THREADS 256

extern "C" __global__ void compare_labels(const unsigned char* labels, unsigned* out, int n_rounds) {
    __shared__ unsigned row[THREADS];
    unsigned mine[KEPT], matches[KEPT];
    row[threadIdx.x] = labels[threadIdx.x];
    for (int i = 0; i < KEPT; ++i) {
        mine[i] = labels[(threadIdx.x + 7 * i + blockIdx.x) % THREADS];
        matches[i] = 0;
    }
    __syncthreads();
    for (int round = 0; round < n_rounds; ++round) {
        unsigned label = row[round & (THREADS - 1)];
#pragma unroll
        for (int i = 0; i < KEPT; ++i) matches[i] += mine[i] == label;
    }
    unsigned sum = 0;
    for (int i = 0; i < KEPT; ++i) sum += matches[i];
    out[blockIdx.x * THREADS + threadIdx.x] = sum;
}
"""
KEPT, THREADS = 16, 256


def copy_rate(device: str, quick: bool) -> common.Record:
    """Copy arrays that are larger than all caches; return the bytes read and written per second."""
    xp, n = devices.namespace(device), 2**18 if tiny(device, quick) else 2**31
    source, target = xp.zeros(n, dtype=np.uint8), xp.zeros(n, dtype=np.uint8)

    def copied() -> None:
        target[...] = source

    seconds = Marks(device).median(copied, 3 if quick else 20)
    return {"bytes": 2 * n, "seconds": seconds, "rate": 2 * n / seconds}


def compare_rate(device: str, quick: bool) -> common.Record:
    """Return the comparisons per second of a kernel; check its result."""
    xp = devices.namespace(device)
    n_blocks, n_rounds = 2, 300
    if not tiny(device, quick):
        n_blocks, n_rounds = 16 * describe(device, quick)["multiprocessors"], 100_000
    kernel = compiled(COMPARE_LABELS, device).get_function("compare_labels")
    labels = np.random.default_rng(0).integers(64, size=THREADS).astype(np.uint8)
    out = xp.zeros(n_blocks * THREADS, dtype=np.uint32)
    args = xp.asarray(labels), out, np.int32(n_rounds)

    seconds = Marks(device).median(lambda: kernel((n_blocks,), (THREADS,), args), 3 if quick else 10)
    seen = np.bincount(labels[np.arange(n_rounds) % THREADS], minlength=64)
    places = (np.arange(THREADS)[None, :, None] + 7 * np.arange(KEPT) + np.arange(n_blocks)[:, None, None]) % THREADS
    expected = seen[labels[places]].sum(axis=2).ravel()
    if not np.array_equal(devices.to_host(out), expected):
        raise ValueError("the kernel counts other matches than NumPy")
    n = n_blocks * THREADS * KEPT * n_rounds
    return {"comparisons": n, "seconds": seconds, "rate": n / seconds}

"""The device that is measured: what figures of it depend on, its clock, and a compiler for kernels made for them."""

import statistics
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from typing import Any

import common

from gpuens import device as devices
from gpuens import kernels


def describe(device: str, quick: bool) -> common.Record:
    """Return what figures of a GPU depend on."""
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
    """Return whether inputs are tiny: they always are where kernels are executed on the CPU, but those of parity."""
    return quick or device != "cuda"


def synchronize(device: str) -> None:
    if device == "cuda":
        devices.namespace(device).cuda.runtime.deviceSynchronize()


class Marks:
    """Points in the device's time: CUDA's events, or the clock where kernels run on the CPU."""

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
        """Return the median seconds of a call, after one that warms up."""
        call()
        pairs = []
        for _ in range(repeats):
            start = self.mark()
            call()
            pairs.append((start, self.mark()))
        return statistics.median(self.seconds(*pair) for pair in pairs)


@cache
def compiled(source: str, device: str) -> Any:
    """Return kernels that the library does not have, as a module for the device."""
    if device == "cuda":
        return devices.compile_cuda(source, kernels.FLAGS)
    return kernels.emulator().Module(source, kernels.FLAGS, name="bench")

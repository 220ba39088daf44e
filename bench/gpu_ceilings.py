"""What the machine can do: bytes a second of a copy on the device, label comparisons a second in registers."""

from typing import TYPE_CHECKING

import common
import numpy as np
from gpu_device import Marks, compiled, describe, tiny

from gpuens import device as devices

if TYPE_CHECKING:
    from gpu import Bench

# A label compared with labels in registers: what a search for equal labels cannot go beyond. Each label comes from
# shared memory once for KEPT comparisons, and every comparison ends in an addition.
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


def ceilings(bench: "Bench") -> None:
    for task in ("copy_rate", "compare_rate"):
        found = bench.do(task, task.replace("_", " "), least=5.0, **bench.place)
        bench.add("ceilings", [{"what": task, **found}])


def copy_rate(device: str, quick: bool) -> common.Record:
    """Return bytes a second, read and written, of a copy of arrays that no cache holds."""
    xp, n = devices.namespace(device), 2**18 if tiny(device, quick) else 2**31
    source, target = xp.zeros(n, dtype=np.uint8), xp.zeros(n, dtype=np.uint8)

    def copied() -> None:
        target[...] = source

    seconds = Marks(device).median(copied, 3 if quick else 20)
    return {"bytes": 2 * n, "seconds": seconds, "rate": 2 * n / seconds}


def compare_rate(device: str, quick: bool) -> common.Record:
    """Return comparisons a second, of a kernel whose result is checked."""
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

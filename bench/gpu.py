"""The benchmark of a GPU in one command: correct results, distance from the device's limits, and run times.

    python bench/gpu.py [--labels FILE.npy ...] [--data DIR] [--only PART ...] [--output FILE.json]
    python bench/gpu.py --device emulated --quick

headline    what people ask for first: LWEA of Covertype's base clusterings × 20 and × 100, and whether its heights are
            those of the CPU; HBGF of 10 M × 20; from Covertype's features to a consensus
parity      tests/kernels/test_gpu_parity.py: every primitive, kernel and estimator against the CPU, primitive by
            primitive inside real runs, in processes side by side; the exit status says whether all of it held
ceilings    what the machine can do: bytes a second of a copy on the device, label comparisons a second in registers
kernels     every kernel on inputs of real size, launch by launch: bytes and operations counted (`COUNTS` in
            gpu_launches.py), time by the device's own events, share of the ceiling that binds
end-to-end  other estimators from labels on the device to the labels of all objects, first and later calls, memory,
            where the time goes; after those of an ensemble the CPU on the same labels, if it takes less than a minute

It needs a CUDA device, CuPy and no network. Base clusterings of Covertype come from --labels (.npy, objects by
clusterings), its features from the covtype.npz of --data (or GPUENS_DATA), else both from a synthetic mixture of
Covertype's size. A run takes --limit minutes at most (8), of which the headline has two and a half, and parity two:
what does not fit is left out and said to be, the least important last. Results are written after every case, and those
in the output file are kept if they are of the same GPU and the same commit: the same command again goes on with what
was left out. `--device emulated` executes the kernels on the CPU: parity there is as good as anywhere, times mean
nothing. --quick takes tiny inputs, everything in one process, and writes nothing unless told where.
"""

import argparse
import itertools
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import common
import gpu_tables
import parts
import report
from gpu_device import add_emulator, compare_rate, copy_rate, describe
from gpu_end_to_end import end_to_end, headline
from gpu_kernels import TIMED, time_kernels
from parts import Job, Part

sys.path += [str(common.HERE.parent / folder) for folder in ("tests", "tests/kernels")]

PACKAGES = ("gpuens", "numpy", "scipy", "scikit-learn")
ENDING = 10.0  # seconds of the time limit reserved for writing results after the last measurement
HEADLINE = 150.0  # seconds for the headline figures
PARITY = 120.0  # seconds for all parity checks
STOPPED = 20.0  # no comparison begins in these last seconds, because a killed process leaves no result
SHARED = {"GPUENS_THREADS": "2", "OPENBLAS_NUM_THREADS": "1"}  # the environment of processes that run at the same time


def main(arguments: Sequence[str] | None = None) -> int:
    options = parse(arguments)
    device = {}
    if options.only != []:  # writing only the page needs no device
        device = Bench(options).do(describe, most=120.0, least=float("-inf"))()
        if "failed" in device:
            sys.exit(f"The device {options.device!r} cannot be used: {device['failed']}")
        device.pop("process_seconds", None)
    page = report.Page("gpu", gpu_tables)
    with tempfile.TemporaryDirectory() as scratch:
        options.scratch, options.made = Path(scratch), {}
        results = parts.run(
            options.name, options, parts_of(options), page.markdown, packages=PACKAGES, setting={"device": device},
            said=what_is_missing,
        )  # fmt: skip
    checked = results["parts"].get("parity", {"rows": {}})["rows"]
    return 0 if all(row.get("held", "skipped" in row) for row in gpu_tables.flat(checked)) else 1


def what_is_missing(row: common.Record) -> str:
    """Return the reason why a row, or the description of the device, is missing or failed."""
    result = row["device"] if isinstance(row.get("device"), dict) else row
    return result.get("skipped") or result.get("failed", "")


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = parts.parser(__doc__, PARTS, quick="tiny inputs, everything in one process")
    parser.add_argument("--labels", nargs="+", type=Path, default=[], metavar="FILE", help="label matrices (.npy)")
    parser.add_argument("--data", type=Path, help="directory that holds covtype.npz (GPUENS_DATA)")
    parser.add_argument("--device", choices=("cuda", "emulated"), default="cuda", help="where kernels run (cuda)")
    parser.add_argument("--limit", type=float, default=8.0, metavar="MINUTES", help="of the whole run (8)")
    options = parser.parse_args(arguments)
    options.data = options.data or os.environ.get("GPUENS_DATA")
    if options.data is not None and not Path(options.data, "covtype.npz").exists():
        options.data = None
    options.deadline = time.monotonic() + 60 * options.limit - ENDING
    options.name = "gpu" if options.device == "cuda" else "gpu_emulated"
    if options.device == "emulated":
        add_emulator()
    return options


class Bench:
    """A runner that starts a process for every case and watches the time limit."""

    def __init__(self, options: argparse.Namespace, seconds: float = float("inf")) -> None:
        self.options = options
        self.deadline = min(options.deadline, time.monotonic() + seconds)
        self.place = {"device": options.device, "quick": options.quick}

    def do(self, task: Callable, *, most: float = 120.0, least: float = 5.0, **given: Any) -> Callable:
        """Return a function that runs a task on the device if ``least`` seconds or more are left.

        A process of its own: what goes wrong on a GPU takes everything after it in the same process along.
        """
        return partial(self._do, task, most, least, {**self.place, **given})

    def check(self, group: str, sizes: list[int], dtype: str) -> Callable:
        """Return a function that makes as many parity checks as the time allows."""

        def checked() -> common.Record:
            given = {"group": group, "sizes": sizes, "dtype": dtype, "environment": SHARED}
            allowance = self.deadline - time.monotonic() - STOPPED
            return self.do(check_parity, most=PARITY, least=STOPPED, allowance=allowance, **given)()

        return checked

    def _do(self, task: Callable, most: float, least: float, given: common.Record) -> common.Record:
        left = self.deadline - time.monotonic()
        if left < least:
            return {"skipped": f"left out: {max(left, 0.0):.0f} s of the limit were left"}
        if not self.options.quick:
            return common.in_child(task, limit=most if least < 0 else min(most, left), **given)
        given.pop("environment", None)
        try:
            return task(**given)
        except Exception as error:
            return {"failed": f"{type(error).__name__}: {(str(error).strip().splitlines() or ['no message'])[0]}"}


# --- the parts --------------------------------------------------------------------------------------------------------


def parity(options: argparse.Namespace, rows: common.Record) -> Iterator[Job]:
    """Yield the checks by group, dtype of codes and sizes: uint8 codes before wider codes, few objects before many."""
    from test_gpu_parity import CHECKS, DTYPES, SIZES

    bench = Bench(options, PARITY)
    few = SIZES["emulated" if options.quick or options.device != "cuda" else "cuda"]
    large_sizes = [n for n in few if n > 1000]
    few = [n for n in few if n <= 1000]
    for dtypes in (DTYPES[:1], DTYPES[1:]):
        for sizes in filter(None, (few, large_sizes)):
            for dtype, group in itertools.product(dtypes, CHECKS):
                yield f"{group}, {dtype}, {' '.join(map(str, sizes))} objects", bench.check(group, sizes, dtype)


def check_parity(group: str, sizes: list[int], dtype: str, allowance: float, device: str, quick: bool) -> common.Record:
    from test_gpu_parity import check

    return check([group], sizes, device, dtypes=[dtype], allowance=allowance)


def ceilings(options: argparse.Namespace, rows: common.Record) -> Iterator[Job]:
    return ((task.__name__, Bench(options).do(task)) for task in (copy_rate, compare_rate))


def kernel_times(options: argparse.Namespace, rows: common.Record) -> Iterator[Job]:
    return ((case, Bench(options).do(time_kernels, least=8.0, case=case)) for case in TIMED)


def side_by_side(options: argparse.Namespace) -> int:
    """Return the number of parity processes to run at the same time.

    On the CPU, a comparison uses one or two threads.
    """
    return 1 if options.quick else max(1, min(12, 3 * (os.cpu_count() or 1) // 4))


def parts_of(options: argparse.Namespace) -> dict[str, Part]:
    return PARTS | {"parity": Part(parity, side_by_side(options))}


PARTS = {
    "headline": Part(lambda options, rows: headline(options, Bench(options, HEADLINE).do)),
    "parity": Part(parity),
    "ceilings": Part(ceilings),
    "kernels": Part(kernel_times),
    "end-to-end": Part(lambda options, rows: end_to_end(options, Bench(options).do)),
}

if __name__ == "__main__":
    sys.exit(main())

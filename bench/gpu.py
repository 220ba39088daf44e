"""Everything about a GPU in one command: is it right, how near to the machine's limits is it, how long does it take.

    python bench/gpu.py [--labels FILE.npy ...] [--only parity ceilings kernels end-to-end] [--output FILE.json]
    python bench/gpu.py --device emulated --quick

parity      tests/test_gpu_parity.py: every primitive, kernel and estimator against the CPU, primitive by primitive
            inside real runs; the exit status says whether all of it held
ceilings    what the machine can do: bytes a second of a copy on the device, label comparisons a second in registers
kernels     every kernel on inputs of real size, launch by launch: bytes and operations counted (`COUNTS` in
            gpu_launches.py), time by the device's own events, share of the ceiling that binds
end-to-end  estimators from labels on the device to the labels of all objects, first and later calls, memory, where the
            time goes; and the CPU on the same labels, as far as it takes less than a minute

It needs a CUDA device, CuPy and no network. Labels come from --labels (.npy, objects by clusterings), else from a
synthetic mixture of Covertype's size. A run takes --limit minutes at most (8): what does not fit into them is left out
and said to be. Results are written after every case, and those in the output file are kept if they are of the same GPU
and the same commit. `--device emulated` executes the kernels on the CPU: parity there is as good as anywhere, times
mean nothing. --quick takes tiny inputs, everything in one process, and writes nothing unless told where.
"""

import argparse
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
from gpu_device import compare_rate, copy_rate, describe
from gpu_end_to_end import end_to_end
from gpu_kernels import TIMED, time_kernels
from parts import Job, Part

sys.path.append(str(common.HERE.parent / "tests"))

PACKAGES = ("gpuens", "numpy", "scipy", "numba", "scikit-learn")
ALLOWANCE = 75.0  # seconds for a group of checks


def main(arguments: Sequence[str] | None = None) -> int:
    options = parse(arguments)
    device = Bench(options).do(describe, most=120.0, least=float("-inf"))()
    if "failed" in device:
        sys.exit(f"The device {options.device!r} cannot be used: {device['failed']}")
    device.pop("process_seconds", None)
    page = report.Page("gpu", gpu_tables)
    with tempfile.TemporaryDirectory() as scratch:
        options.scratch = Path(scratch)
        found = parts.run(
            options.name, options, PARTS, page.markdown, packages=PACKAGES, setting={"device": device},
            said=lambda row: row.get("skipped", ""),
        )  # fmt: skip
    checked = found["parts"].get("parity", {"rows": {}})["rows"]
    return 0 if all(row.get("held", "skipped" in row) for row in gpu_tables.flat(checked)) else 1


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = parts.parser(__doc__, PARTS, quick="tiny inputs, everything in one process")
    parser.add_argument("--labels", nargs="+", type=Path, default=[], metavar="FILE", help="label matrices (.npy)")
    parser.add_argument("--device", choices=("cuda", "emulated"), default="cuda", help="where kernels run (cuda)")
    parser.add_argument("--limit", type=float, default=8.0, metavar="MINUTES", help="of the whole run (8)")
    options = parser.parse_args(arguments)
    options.deadline = time.monotonic() + 60 * options.limit
    options.name = "gpu" if options.device == "cuda" else "gpu_emulated"
    return options


class Bench:
    """The time that is left, and a process for every case."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.place = {"device": options.device, "quick": options.quick}

    def do(self, task: Callable, *, most: float = 120.0, least: float = 5.0, **given: Any) -> Callable:
        """Return what does a task on the device: what it found, why it failed, or that ``least`` seconds were not left.

        A process of its own: what goes wrong on a GPU takes everything after it in the same process along.
        """
        return partial(self._do, task, most, least, {**self.place, **given})

    def _do(self, task: Callable, most: float, least: float, given: common.Record) -> common.Record:
        left = self.options.deadline - time.monotonic()
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
    from test_gpu_parity import CHECKS, SIZES

    small = SIZES["emulated"] if options.quick else [n for n in SIZES["cuda"] if n <= 1000]
    large = [n for n in SIZES["cuda"] if n > 1000]
    for sizes in [small] if options.quick or options.device != "cuda" else [small, large]:
        for group in CHECKS:
            key = f"{group}, {' '.join(map(str, sizes))} objects"
            yield key, Bench(options).do(check_parity, groups=[group], sizes=sizes)


def check_parity(groups: list[str], sizes: list[int], device: str, quick: bool) -> common.Record:
    from test_gpu_parity import check

    return check(groups, sizes, device, allowance=ALLOWANCE)


def ceilings(options: argparse.Namespace, rows: common.Record) -> Iterator[Job]:
    return ((task.__name__, Bench(options).do(task)) for task in (copy_rate, compare_rate))


def kernel_times(options: argparse.Namespace, rows: common.Record) -> Iterator[Job]:
    return ((case, Bench(options).do(time_kernels, least=8.0, case=case)) for case in TIMED)


PARTS = {
    "parity": Part(parity),
    "ceilings": Part(ceilings),
    "kernels": Part(kernel_times),
    "end-to-end": Part(lambda options, rows: end_to_end(options, Bench(options).do)),
}

if __name__ == "__main__":
    sys.exit(main())

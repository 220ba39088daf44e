"""Everything about a GPU in one command: is it right, how near to the machine's limits is it, how long does it take.

    python bench/gpu.py [--labels FILE.npy ...] [--only parity ceilings kernels end-to-end] [--output FILE.json]
    python bench/gpu.py --device emulated --quick

parity      every primitive, kernel and estimator against the CPU: primitive by primitive inside real runs, where both
            versions get the same arguments, and the results of whole runs; the exit status says whether all of it held
ceilings    what the machine can do: bytes a second of a copy on the device, label comparisons a second in registers
kernels     every kernel on inputs of real size, launch by launch: bytes and operations counted (`COUNTS` in
            gpu_launches.py), time by the device's own events, share of the ceiling that binds
end-to-end  estimators from labels on the device to the labels of all objects, first and later calls, memory, where the
            time goes; and the CPU on the same labels, as far as it takes less than a minute

It needs a CUDA device, CuPy and no network. Labels come from --labels (.npy, objects by clusterings), else from a
synthetic mixture of Covertype's size. A run takes --limit minutes at most (8): what does not fit into them is left out
and said to be. Results are written after every case, and those in the output file are kept if they are of the same GPU
and the same commit, so that --only adds to them. `--device emulated` executes the kernels on the CPU: parity there is
as good as anywhere, times mean nothing. --quick takes tiny inputs and writes nothing unless told where.
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import common
from gpu_ceilings import ceilings, compare_rate, copy_rate
from gpu_device import describe
from gpu_end_to_end import end_to_end, fit, make
from gpu_kernels import kernel_times, time_kernels
from gpu_outcomes import holds, in_a_line, problem, say
from gpu_parity import check, parity
from gpu_tables import markdown

PACKAGES = ("gpuens", "numpy", "scipy", "numba", "scikit-learn")
ALWAYS = float("inf")


def main(arguments: Sequence[str] | None = None) -> int:
    options = parse(arguments)
    with tempfile.TemporaryDirectory() as scratch:
        bench = Bench(options, Path(scratch))
        bench.begin()
        for part in options.only:
            say(f"\n{part}")
            PARTS[part](bench)
        bench.save()
    print(markdown(bench.record))
    if options.output:
        say(f"\nWritten to {options.output} and {options.output.with_suffix('.md').name}.")
    return 0 if all(holds(row) for row in bench.record["parts"].get("parity", [])) else 1


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    parser.add_argument("--labels", nargs="+", type=Path, default=[], metavar="FILE", help="label matrices (.npy)")
    parser.add_argument("--only", nargs="+", choices=PARTS, metavar="PART", default=list(PARTS), help="which parts")
    parser.add_argument("--device", choices=("cuda", "emulated"), default="cuda", help="where kernels run (cuda)")
    parser.add_argument("--quick", action="store_true", help="tiny inputs, everything in one process")
    parser.add_argument("--limit", type=float, default=8.0, metavar="MINUTES", help="of the whole run (8)")
    parser.add_argument("--output", type=Path, help="JSON; Markdown goes beside it (bench/results, unless --quick)")
    options = parser.parse_args(arguments)
    options.only = [part for part in PARTS if part in options.only]
    if options.output is None and not options.quick:
        options.output = common.RESULTS / ("gpu.json" if options.device == "cuda" else "gpu_emulated.json")
    return options


class Bench:
    """The record, the time that is left, and a process for every case."""

    def __init__(self, options: argparse.Namespace, scratch: Path) -> None:
        self.options = options
        self.scratch = scratch
        self.deadline = time.monotonic() + 60 * options.limit
        self.record: common.Record = {"parts": {}}

    def begin(self) -> None:
        device = self.do("describe", "the device", least=-ALWAYS, **self.place)
        if "failed" in device:
            sys.exit(f"The device {self.options.device!r} cannot be used: {device['failed']}")
        device.pop("process_seconds", None)
        what = {
            "bench": "gpu",
            "quick": self.options.quick,
            "device": device,
            **common.about(PACKAGES),
        }
        self.record = common.begin(self.options.output, what)
        self.record.setdefault("parts", {})
        self.record["parts"] |= {part: [] for part in self.options.only}

    def do(self, task: str, what: str, *, most: float = 120.0, least: float = 0.0, **given: Any) -> common.Record:
        """Return what a task found, why it failed, or that fewer than ``least`` seconds were left for it.

        A process of its own: what goes wrong on a GPU takes everything after it in the same process along.
        """
        left = self.deadline - time.monotonic()
        if left < least:
            found: common.Record = {"skipped": f"left out: {max(left, 0.0):.0f} s of the limit were left"}
        elif self.options.quick:
            try:
                found = TASKS[task](**given)
            except Exception as error:
                found = {"failed": in_a_line(error)}
        else:
            found = common.in_child(__file__, task, limit=most if least < 0 else min(most, left), **given)
        say(f"    {what}: {problem(found) or 'done'}")
        return found

    def add(self, part: str, rows: list[common.Record]) -> None:
        self.record["parts"][part] += rows
        self.save()

    def save(self) -> None:
        common.save(self.options.output, self.record, markdown(self.record))

    @property
    def place(self) -> dict[str, Any]:
        return {"device": self.options.device, "quick": self.options.quick}


PARTS: dict[str, Callable[[Bench], None]] = {
    "parity": parity,
    "ceilings": ceilings,
    "kernels": kernel_times,
    "end-to-end": end_to_end,
}
TASKS: dict[str, Callable[..., common.Record]] = {
    "describe": describe,
    "check": check,
    "copy_rate": copy_rate,
    "compare_rate": compare_rate,
    "time_kernels": time_kernels,
    "make": make,
    "fit": fit,
}

if __name__ == "__main__":
    common.serve(TASKS)
    sys.exit(main())

"""The first run after an installation, in processes that find no cache, and the fits that follow in one process.

    python bench/start.py [--before CHECKOUT] [--labels FILE.npy ...]
    python bench/start.py --quick

CHECKOUT is a directory with an older version of the repository, compiled if it has an extension; its processes take
turns with ours, on the same Python. Each process starts with empty cache directories. The seconds of a fit alone are
those of later fits in one process, from a matrix of labels to labels; LWEA is also fitted to each FILE. The labels of n
objects have 20 clusterings with k in 10 … 40, 5-25 % of random labels in each and 3 % missing; random labels are all
random.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import common
import numpy as np
import parts
import report
from parts import Job, Part

RUNS = 3  # processes of which the median counts; of those that take longer than SHORT, one
SHORT = 10.0  # seconds
PACKAGES = ("gpuens", "numpy", "scipy", "scikit-learn")


class Start(NamedTuple):
    n_objects: int  # 0: only the import
    arguments: tuple[str, ...] = ()
    goal: float = 0.0  # seconds of the whole process, or of what comes beside the fit
    beside_fit: bool = False


STARTS = {
    "import gpuens": Start(0, goal=0.12),
    "run of 2,000": Start(2000, (), 1.0),
    "run of 100,000": Start(100_000, (), 1.0, beside_fit=True),
    "run of 1,000,000, HBGF": Start(1_000_000, ("--method", "hbgf"), 1.5),
}
QUICK = ("import gpuens", "run of 2,000")


class Fit(NamedTuple):
    n_objects: int
    method: str
    goal: float | None = None  # seconds
    random: bool = False


FITS = {
    "LWEA, 200": Fit(200, "lwea", 0.0005),
    "LWEA, 1,000": Fit(1000, "lwea", 0.004),
    "LWEA, 100,000": Fit(100_000, "lwea", 2.5),
    "EAC, 30,000 random": Fit(30_000, "eac", 0.6, random=True),
    "HBGF, 1,000,000": Fit(1_000_000, "hbgf", 0.5),
    "LWGP, 1,000,000": Fit(1_000_000, "lwgp", 0.5),
    "OC-H, 20,000": Fit(20_000, "oc-h"),
    "CrC-C, 20,000": Fit(20_000, "crc-c"),
}
QUICK_FITS = ("LWEA, 200", "LWEA, 1,000")


def main() -> None:
    parser = parts.parser(__doc__, PARTS, quick="the import, the smallest run and the smallest fits")
    parser.add_argument("--labels", type=Path, nargs="*", default=[], metavar="FILE", help="label matrices (.npy)")
    parser.add_argument("--before", type=Path, metavar="CHECKOUT", help="an older version, measured in turns")
    options = parser.parse_args()
    page = report.Page("start", sys.modules[__name__])
    parts.run(
        "start", options, PARTS, page.markdown, packages=PACKAGES,
        setting={"before": common.commit(options.before) if options.before else None},
    )  # fmt: skip


def of_starts(options: argparse.Namespace, rows: common.Record) -> Iterator[Job]:
    for name in QUICK if options.quick else STARTS:
        yield name, partial(of_start, STARTS[name], options.before, options.seed)


def of_start(start: Start, before: Path | None, seed: int) -> common.Record:
    """Return the median seconds, CPU seconds and peak memory of fresh processes of each version."""
    checkouts = common.checkouts(before)
    runs: dict[str, list[common.Record]] = {version: [] for version in checkouts}
    with tempfile.TemporaryDirectory() as scratch:
        words = ["-c", "import gpuens"]
        if start.n_objects:
            np.save(labels := Path(scratch, "labels.npy"), labels_of(start.n_objects, seed))
            words = [
                "-m",
                "gpuens",
                "run",
                labels,
                "-k",
                "10",
                *start.arguments,
                "-o",
                Path(scratch, "found.npy"),
                "--quiet",
            ]
        for _ in range(RUNS):
            for version, checkout in checkouts.items():
                if not runs[version] or runs[version][0]["seconds"] < SHORT:
                    runs[version].append(process(words, checkout, scratch))
    row: common.Record = {
        version: sorted(of_version, key=lambda run: run["seconds"])[len(of_version) // 2]
        for version, of_version in runs.items()
    }
    took = row["now"]["seconds"]
    if start.beside_fit:
        fit = common.in_child(fitted, n_objects=start.n_objects, seed=seed)
        row["fit"] = fit["seconds"]
        took -= row["fit"]
    return row | {"goal": start.goal, "met": took <= start.goal, "took": took}


def process(words: list[Any], checkout: Path, scratch: str) -> common.Record:
    """Return seconds, CPU seconds and peak memory of a Python process that imports a checkout and finds no cache."""
    caches = tempfile.mkdtemp(dir=scratch)
    environment = os.environ | {"PYTHONPATH": str(checkout), "NUMBA_CACHE_DIR": caches, "XDG_CACHE_HOME": caches}
    start = time.perf_counter()
    child = subprocess.Popen([sys.executable, *map(str, words)], cwd=scratch, env=environment)
    _, status, usage = os.wait4(child.pid, 0)
    seconds = time.perf_counter() - start
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        raise RuntimeError(f"{' '.join(map(str, words))} in {checkout} ended with {child.returncode}")
    return {"seconds": seconds, "cpu": usage.ru_utime + usage.ru_stime, "peak": usage.ru_maxrss * 1024}


def fitted(n_objects: int, seed: int) -> common.Record:
    """Return the seconds of a second fit of the default method."""
    return later_fits(labels_of(n_objects, seed), "lwgp")


def of_fits(options: argparse.Namespace, rows: common.Record) -> Iterator[Job]:
    for name in QUICK_FITS if options.quick else FITS:
        yield name, partial(of_fit, FITS[name].goal, options.before, measured_fit, name=name, seed=options.seed)
    for file in options.labels:
        yield f"LWEA, {file.stem}", partial(of_fit, None, options.before, measured_file, file=str(file.resolve()))


def of_fit(goal: float | None, before: Path | None, task: Callable[..., common.Record], **given: Any) -> common.Record:
    """Return the result of a task in a new process of each version, and the ratio of their seconds."""
    row: common.Record = {"goal": goal}
    for version, checkout in common.checkouts(before).items():
        row[version] = common.in_child(task, environment={"PYTHONPATH": checkout}, **given)
    seconds = [row[version].get("seconds") for version in ("before", "now") if version in row]
    return row | {"ratio": seconds[0] / seconds[1] if len(seconds) == 2 and all(seconds) else None}


def measured_fit(name: str, seed: int) -> common.Record:
    n_objects, method, _, random = FITS[name]
    return later_fits(labels_of(n_objects, seed, random), method)


def measured_file(file: str) -> common.Record:
    return later_fits(np.load(file), "lwea")


def later_fits(labels: np.ndarray, method: str) -> common.Record:
    """Return the median seconds of 2 to 50 fits after a first one, from labels to labels, of about two seconds."""
    import gpuens as ge

    took: list[float] = []
    while len(took) < 3 or (sum(took[1:]) < 2.0 and len(took) < 51):
        start = time.perf_counter()
        ge.consensus(labels, 10, method=method)
        took.append(time.perf_counter() - start)
    return {"first": took[0], "seconds": float(np.median(took[1:])), "peak": common.peak_memory()}


def labels_of(
    n_objects: int, seed: int, random: bool = False, n_clusterings: int = 20, largest: int = 40
) -> np.ndarray:
    rng = np.random.default_rng(seed)
    truth = rng.integers(10, size=n_objects)
    columns = []
    for _ in range(n_clusterings):
        k = 10 * int(rng.integers(1, largest // 10 + 1))
        column = truth + 10 * rng.integers(k // 10, size=n_objects)
        strays = rng.random(n_objects) < (1.0 if random else rng.uniform(0.05, 0.25))
        column[strays] = rng.integers(k, size=int(strays.sum()))
        column[rng.random(n_objects) < 0.03] = -1
        columns.append(column)
    return np.column_stack(columns)


# --- the page ---------------------------------------------------------------------------------------------------------


def starts(rows: common.Record) -> Iterator[report.Found]:
    for name, row in rows.items():
        yield "goal", {
            "name": name, "took": row["took"], "goal": row["goal"], "met": "" if row["met"] else " **missed**:",
            "beside": f" beside the {row['fit']:.2f} s of its fit" if "fit" in row else "",
        }  # fmt: skip


def fits(rows: common.Record) -> Iterator[report.Found]:
    for name, row in rows.items():
        if row["goal"] is not None and "failed" not in row["now"]:
            met = "" if row["now"]["seconds"] <= row["goal"] else " **missed**:"
            yield "fit", {"name": name, "met": met, "took": row["now"]["seconds"], "goal": row["goal"]}


def part_values(name: str, rows: common.Record, record: common.Record) -> common.Record:
    return {"lists": {"version": common.versions_of(rows)}}


PARTS = {"starts": Part(of_starts), "fits": Part(of_fits)}

if __name__ == "__main__":
    main()

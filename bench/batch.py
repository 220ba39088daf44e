"""Measurements of batches: the files after runs that were killed, and the cost of a job without its fit.

    python bench/batch.py [--only trials overhead] [--trials 100] [--seed 0] [--output FILE]
    python bench/batch.py --quick

trials    a batch of 30 jobs whose whole process group is killed (SIGKILL) at random moments, one to three times, and
          started again until it is done; then files, labels and markers are compared with those of an undisturbed run
overhead  1,000 jobs of 100 objects, and the same fits in a loop

Twenty minutes on two idle cores; what was measured is kept, so that a run that was stopped goes on.
"""

import argparse
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import common
import numpy as np
import parts
import report
from parts import Job, Part

KILLS = 3
SPENT = ("seconds", "peak_memory_bytes", "gpu_bytes")
MANY = {
    "defaults": {"seed": 0},
    "matrix": {
        "input": ["0.npy", "1.npy"],
        "method": ["eac", "lwea", "lwgp", "hbgf", "cgc"],
        "n_clusters": [2, 3, 4],
    },
}


def main() -> None:
    parser = parts.parser(__doc__, ("trials", "overhead"), quick="two trials, 20 jobs")
    parser.add_argument("--trials", type=int, default=100)
    options = parser.parse_args()
    options.trials = 2 if options.quick else options.trials
    parts.run(
        "batch",
        options,
        {"trials": Part(trials), "overhead": Part(overhead)},
        report.Page("batch", sys.modules[__name__]).markdown,
        packages=("gpuens", "numpy"),
        setting={"kills": KILLS},
        said=lambda row: ", ".join(f"{name} {value}" for name, value in row.items() if name != "load"),
    )


# --- trials -----------------------------------------------------------------------------------------------------------


def trials(options: argparse.Namespace, rows: common.Record) -> Iterator[Job]:
    for first in range(1, options.trials + 1, 10):
        last = min(first + 9, options.trials)
        yield f"{first}-{last}", partial(some_trials, range(first, last + 1), options.seed)


def some_trials(numbers: range, seed: int) -> common.Record:
    """Return the number of trials whose files differ from the files of an undisturbed run, and the number of kills."""
    counts = {"trials": len(numbers), "kills": 0, "differ": 0, "strays": 0, "twice": 0, "load": common.load()}
    with tempfile.TemporaryDirectory() as folder:
        write_labels(folder, 2, 300)
        Path(folder, "many.json").write_text(json.dumps(MANY))
        start = time.perf_counter()
        subprocess.run(command(folder, "whole", 1), check=True)
        lasts = time.perf_counter() - start
        for number in numbers:
            rng = random.Random(1000 * seed + number)
            out = f"out{number}"
            kills = 0
            while not kills:  # the batch may end before the first moment to kill it
                shutil.rmtree(Path(folder, out), ignore_errors=True)
                again = command(folder, out, 1 + number % 2)
                kills = sum(killed(again, rng.uniform(0, lasts)) for _ in range(KILLS))
            counts["kills"] += kills
            subprocess.run(command(folder, out, 1), check=True)
            ours, expected = (contents(Path(folder, name)) for name in (out, "whole"))
            counts["differ"] += any(ours.get(name) != expected[name] for name in expected)
            counts["strays"] += len(ours.keys() - expected.keys())
            counts["twice"] += extra_results(Path(folder, out, "events.jsonl"))
    return counts


def command(folder: str, out: str, jobs: int) -> list[str]:
    where = [f"{folder}/many.json", "--out", f"{folder}/{out}", "--jobs", str(jobs), "--quiet"]
    return [sys.executable, "-m", "gpuens", "batch", *where]


def killed(words: list[str], after: float) -> bool:
    """Start a batch.

    Kill the batch and its processes after some seconds; return whether the batch was still running.
    """
    child = subprocess.Popen(words, start_new_session=True)
    try:
        child.wait(after)
    except subprocess.TimeoutExpired:
        os.killpg(child.pid, signal.SIGKILL)
        child.wait()
        return True
    return False


def contents(folder: Path) -> dict[str, Any]:
    """Return names and contents of all files: of markers without seconds and memory; of the two logs only the names."""
    files: dict[str, Any] = {}
    for path in folder.iterdir():
        if path.suffix == ".json":
            files[path.name] = {k: v for k, v in json.loads(path.read_text()).items() if k not in SPENT}
        else:
            files[path.name] = path.read_bytes() if path.suffix == ".npy" else None
    return files


def extra_results(events: Path) -> int:
    """Return the number of results that batches reported more than once."""
    log = [json.loads(line) for line in events.read_text().splitlines() if line.startswith("{") and line.endswith("}")]
    jobs = [event["job"] for event in log if event["event"] == "done"]
    return len(jobs) - len(set(jobs))


def write_labels(folder: str, n_files: int, n_objects: int) -> None:
    rng = np.random.default_rng(0)
    for i in range(n_files):
        truth = rng.integers(0, 4, n_objects)
        strays = rng.random((n_objects, 8)) < 0.2
        np.save(f"{folder}/{i}.npy", np.where(strays, rng.integers(0, 4, strays.shape), truth[:, None]))


# --- overhead ---------------------------------------------------------------------------------------------------------


def overhead(options: argparse.Namespace, rows: common.Record) -> Iterator[Job]:
    for n_jobs in (20,) if options.quick else (1000,):
        yield f"{n_jobs:,} jobs", partial(common.in_child, tiny_jobs, n_jobs=n_jobs)


def tiny_jobs(n_jobs: int) -> common.Record:
    """Return the seconds of a batch of tiny jobs, and those of the same fits in a loop. A first job is not counted."""
    import gpuens as ge

    with tempfile.TemporaryDirectory() as folder:
        write_labels(folder, n_jobs + 1, 100)
        jobs = [{"id": f"job{i}", "input": f"{folder}/{i}.npy", "n_clusters": 4} for i in range(n_jobs + 1)]
        ge.batch.run(jobs[:1], f"{folder}/out")
        _, batch, cpu = common.timed(lambda: ge.batch.run(jobs[1:], f"{folder}/out"))
        _, again, _ = common.timed(lambda: ge.batch.run(jobs[1:], f"{folder}/out"))
        _, loop, _ = common.timed(lambda: [ge.LWEA(4).fit(np.load(job["input"])) for job in jobs[1:]])
    extra = {"each": 1000 * (batch - loop) / n_jobs, "each_again": 1000 * again / n_jobs}
    return {"batch": batch, "cpu": cpu, "again": again, "loop": loop, **extra, "load": common.load()}


if __name__ == "__main__":
    main()

"""What a batch would do: its jobs, the bytes that they read, and the seconds that they may take."""

import math
import statistics
import time
from collections import defaultdict

from gpuens import checks
from gpuens.batch import places
from gpuens.batch.job import Job
from gpuens.batch.runner import Runner


def foreseen(runner: Runner) -> str:
    """Return a line for each job, and one for all; nothing is written.

    The seconds of a job are foreseen per byte of its input: those of done jobs of the same method and kind of file, or
    else those of the smallest such input, by the model of the method (`gpuens.forecast`). From that input on they
    are taken to grow with its size, which is too little for linkages of noisy labels.
    """
    sizes = {job.id: _size(job, runner.base) for job in runner.own}
    done = [job for job in runner.own if runner.is_done(job)]
    rates = _rates_of_done(runner, done, sizes)
    lines, seconds = [f"{job.id}: done" for job in done], 0.0
    settled = {job.id for job in done}
    left = [job for job in runner.own if job.id not in settled]
    for job in sorted(left, key=lambda job: sizes[job.id]):  # each kind by its smallest input first
        if not sizes[job.id]:
            lines.append(f"{job.id}: {job.input} is not there, or empty")
            continue
        if _kind(job) not in rates:
            rates[_kind(job)] = _seconds_of_sample(job, runner.base) / sizes[job.id]
        expected = rates[_kind(job)] * sizes[job.id]
        seconds += expected
        lines.append(f"{job.id}: {checks.human_bytes(sizes[job.id])}, {_about(expected)}")
    of = "" if runner.shard is None else f" in shard {runner.shard}"
    size = checks.human_bytes(sum(sizes[job.id] for job in left))
    lines.append(f"{len(runner.own)} jobs{of}, {len(left)} to do: {size} of input, {_about(seconds)}")
    return "\n".join(lines)


def _kind(job: Job) -> tuple[str, str]:
    return job.method, job.input.rsplit(".", 1)[-1].lower()


def _size(job: Job, base: str) -> int:
    try:
        return int(places.stamp(job.input, base)["size"])
    except OSError:
        return 0


def _about(seconds: float) -> str:
    return "nobody knows how long" if math.isnan(seconds) else f"about {seconds:.1f} s"


def _rates_of_done(runner: Runner, done: list[Job], sizes: dict[str, int]) -> dict[tuple[str, str], float]:
    """Return the median seconds per byte of the jobs that are done, by method and kind of file."""
    found = defaultdict(list)
    for job in done:
        if sizes[job.id]:
            found[_kind(job)].append(runner.markers[job.id]["seconds"]["total"] / sizes[job.id])
    return {kind: statistics.median(rates) for kind, rates in found.items()}


def _seconds_of_sample(job: Job, base: str) -> float:
    """Return the seconds that a job may take, by reading its input and the model of its method; nan if that fails."""
    from gpuens import forecast, io

    try:
        with places.at_hand(job.input, base) as path:
            started = time.perf_counter()
            labels = io.read_label_file(path, **job.reading).ensemble
            read = time.perf_counter() - started
        return read + forecast.foresee(job.estimator(), labels).seconds
    except Exception:  # the job itself will say why
        return math.nan

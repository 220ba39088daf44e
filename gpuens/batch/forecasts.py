"""The plan of a batch: its jobs, the bytes and estimated seconds of each job, and the jobs that would fail."""

import math
import statistics
import time
from collections import defaultdict
from typing import Any

from gpuens.batch import places
from gpuens.batch.job import FORMS, Job
from gpuens.batch.runner import Runner
from gpuens.io import paths
from gpuens.runtime import checks, failures


def foreseen(runner: Runner) -> str:
    """Return the plan as text, with one line for each job and one line for all jobs; write no file.

    The time of a job is estimated from the seconds per byte of finished jobs with the same method and kind of file. If
    there are none, the cost model of the method (`gpuens.workflows.forecast`) estimates the time of the job with the
    smallest input, and the time of other jobs is assumed to be proportional to their input. This estimate is too low
    for linkages of noisy labels. The headers of inputs are read, except for URIs, where the whole file would be copied.
    """
    sizes = {job.id: _size(job, runner.base) for job in runner.own}
    done = [job for job in runner.own if runner.is_done(job)]
    rates = _rates_of_done(runner, done, sizes)
    lines, seconds = [f"{job.id}: done" for job in done], []
    settled = {job.id for job in done}
    left = [job for job in runner.own if job.id not in settled]
    refusals = _refusals(left, runner.base)
    # the job with the smallest input comes first, because the rate of the other jobs is estimated from it
    for job in sorted(left, key=lambda job: sizes[job.id]):
        if (why := refusals[job.input, str(job.reading)]) is not None:
            lines.append(f"{job.id}: would fail: {why}")
            continue
        if _kind(job) not in rates:
            rates[_kind(job)] = _seconds_of_sample(job, runner.base) / max(1, sizes[job.id])
        seconds.append(rates[_kind(job)] * sizes[job.id])
        about = "" if math.isnan(seconds[-1]) else f", {_about(seconds[-1])}"
        lines.append(f"{job.id}: {checks.human_bytes(sizes[job.id])}{about}")
    of = "" if runner.shard is None else f" in shard {runner.shard}"
    parts = [f"{checks.human_bytes(sum(sizes[job.id] for job in left))} of input", *_in_all(seconds)]
    if failing := len(left) - len(seconds):
        parts.append(f"{failing} would fail")
    lines.append(f"{len(runner.own)} jobs{of}, {len(left)} to do: {', '.join(parts)}")
    return "\n".join(lines)


def _in_all(seconds: list[float]) -> list[str]:
    """Return texts about the time of all jobs: the sum of the known seconds, and the number of jobs of unknown time."""
    known = [each for each in seconds if not math.isnan(each)]
    unknown = len(seconds) - len(known)
    words = [_about(sum(known))] if known or not unknown else []
    if unknown:
        of = f" for {unknown} of them" if known else ""
        words.append(f"seconds unknown{of} until the first job is done")
    return words


def _refusals(jobs: list[Job], base: str) -> dict[tuple[str, str], str | None]:
    """Return a dict {(input, reading options): reason why the input cannot be read, or None if it can be read}."""
    found: dict[tuple[str, str], str | None] = {}
    for job in jobs:
        key = job.input, str(job.reading)
        if key not in found:
            try:
                if places.is_uri(job.input):
                    places.stamp(job.input, base)
                else:
                    _open(places.local(job.input, base), job.reading)
                found[key] = None
            except Exception as error:
                found[key] = failures.describe(error)
    return found


def _open(path: str, reading: dict[str, Any]) -> None:
    """Read the header of a label file, but not its labels, and check that the columns to read exist."""
    from gpuens.io.arrays import open_zarr
    from gpuens.io.columns import choose_columns
    from gpuens.io.content import input_kind
    from gpuens.io.opening import open_file

    kind = input_kind(path)
    if any(reading.get(form) for form in FORMS):  # the columns of the file are not the clusterings
        return paths.check_readable(path)
    if kind == ".zarr":  # `open_file` would read the labels of a zarr array
        paths.check_readable(path, folder=True)
        shape = open_zarr(path).shape
        checks.check_label_shape(shape, columns_are_clusterings=True)
        names: list[Any] = list(range(math.prod(shape[1:])))
    else:
        how: dict[str, Any] = {name: reading.get(name) for name in ("sep", "header", "missing", "no_missing")}
        names = open_file(path, kind, reading.get("key"), **how).names
    choose_columns(names, *(reading.get(name) for name in ("columns", "exclude", "id_column")))


def _kind(job: Job) -> tuple[str, str]:
    return job.method, job.input.rsplit(".", 1)[-1].lower()


def _size(job: Job, base: str) -> int:
    try:
        return int(places.stamp(job.input, base)["size"])
    except OSError:
        return 0


def _about(seconds: float) -> str:
    return f"about {seconds:.1f} s"


def _rates_of_done(runner: Runner, done: list[Job], sizes: dict[str, int]) -> dict[tuple[str, str], float]:
    """Return a dict {(method, kind of file): median of the seconds per byte over the finished jobs}."""
    found = defaultdict(list)
    for job in done:
        if sizes[job.id]:
            found[_kind(job)].append(runner.markers[job.id]["seconds"]["total"] / sizes[job.id])
    return {kind: statistics.median(rates) for kind, rates in found.items()}


def _seconds_of_sample(job: Job, base: str) -> float:
    """Read the input of a job and return the estimated seconds of the job by the cost model of its method.

    Return NaN if the input cannot be read.
    """
    from gpuens import io
    from gpuens.workflows import forecast

    try:
        with places.at_hand(job.input, base) as path:
            started = time.perf_counter()
            labels = io.read_label_file(path, **job.reading).ensemble
            read = time.perf_counter() - started
        return read + forecast.foresee(job.estimator(), labels).seconds
    except Exception:  # the error is not reported here, because the job will report it when it runs
        return math.nan

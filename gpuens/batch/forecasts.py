"""The plan of a batch: its jobs, the input and the peak memory of each job, and the jobs that would fail."""

from typing import Any

from gpuens.batch import places
from gpuens.batch.job import Job
from gpuens.batch.runner import Runner
from gpuens.io.columns import TextOptions, choose_columns
from gpuens.io.content import input_kind
from gpuens.io.opening import open_file
from gpuens.io.shapes import OTHER_FORMS, label_shape
from gpuens.labels.shape import LabelShape
from gpuens.methods.forecast import foresee
from gpuens.runtime import checks, failures


def plan(runner: Runner) -> str:
    """Return the plan as text, with one line for each job and one line for all jobs; write no file.

    The headers of inputs are read, except for URIs, where the whole file would be copied, and for inputs in chunks,
    whose memory the chunks decide.
    """
    lines, sizes, memories, n_failing = [], [], [], 0
    for job in runner.jobs_of_shard:
        if runner.is_done(job):
            lines.append(f"{job.id}: done")
            continue
        size = _size(job, runner.base)
        sizes.append(size)
        try:
            memory = _memory(job, runner.base)
        except Exception as error:
            lines.append(f"{job.id}: would fail: {failures.describe(error)}")
            n_failing += 1
            continue
        memories.append(memory or 0)
        forecast = "" if memory is None else f", {checks.human_bytes(memory)} of memory"
        lines.append(f"{job.id}: {checks.human_bytes(size)} of input{forecast}")
    in_shard = "" if runner.shard is None else f" in shard {runner.shard}"
    parts = [f"{checks.human_bytes(sum(sizes))} of input"]
    if largest := max(memories, default=0):
        parts.append(f"at most {checks.human_bytes(largest)} of memory for a job")
    if n_failing:
        parts.append(f"{n_failing:,} would fail")
    lines.append(
        f"{checks.counted(len(runner.jobs_of_shard), 'job')}{in_shard}, {len(sizes):,} to do: {', '.join(parts)}"
    )
    return "\n".join(lines)


def _memory(job: Job, base: str) -> int | None:
    """Return the forecast peak memory of a job, or None if it is unknown; raise an error if the job would fail."""
    if places.is_uri(job.input) or job.neighbors:
        for place in (job.input, *job.beside().values()):
            places.stamp(place, base)
        return None
    path = places.local(job.input, base)
    shape = _shape(path, job.reading)
    if shape is None or job.chunks is not None:
        return None
    job.consensus(path, job.labels_name, {}).refuse_beyond_memory()
    return foresee(job.estimator(), shape, features=job.features is not None).memory


def _shape(path: str, reading: dict[str, Any]) -> LabelShape | None:
    """Return the shape of a label file, None if unknown; check its header, and that the columns to read exist."""
    shape = label_shape(path, **reading)
    if shape is None and not any(reading.get(form) for form in OTHER_FORMS):  # else the columns are not the clusterings
        text = TextOptions(*(reading.get(name) for name in TextOptions._fields))
        names = open_file(path, input_kind(path), reading.get("key"), text).names
        choose_columns(names, *(reading.get(name) for name in ("columns", "exclude", "id_column")))
    return shape


def _size(job: Job, base: str) -> int:
    try:
        return int(places.stamp(job.input, base)["size"])
    except OSError:
        return 0

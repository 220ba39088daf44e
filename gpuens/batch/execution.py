"""The execution of one job: fetch its input, find the consensus, and write the labels, the page and the marker."""

import os
from collections.abc import Callable
from contextlib import ExitStack
from functools import cache
from typing import Any, NamedTuple
from warnings import catch_warnings, simplefilter

from gpuens import report
from gpuens.batch import places
from gpuens.batch.job import Job
from gpuens.batch.stores import Store, write_marker
from gpuens.cli.file_consensus import FileConsensus
from gpuens.io import atomic
from gpuens.runtime import checks, failures, record
from gpuens.runtime import device as devices

Warnings = Callable[[], list[str]]  # function that returns the warnings so far
Tell = Callable[..., None]  # function that is called with the name of an event and its facts


class Result(NamedTuple):
    """The result of a job: the contents of its marker, and its exit code, which is 0 for success."""

    marker: dict[str, Any]
    code: int = 0


def carry_out(job: Job, store: Store, base: str, fingerprint: str | None, tell: Tell) -> Result:
    """Run a job and return its result; write the marker of the job only if the job succeeds."""
    record.forget_peak_memory()

    def tell_stage(stage: str, seconds: float) -> None:
        peaks = {"host_bytes": record.peak_memory(), "gpu_bytes": devices.held_memory()}
        tell("stage", job=job.id, stage=stage, seconds=seconds, **peaks)

    clock = record.Clock(tell_stage)
    with checks.recorded() as sentences, catch_warnings(record=True) as foreign:
        simplefilter("always", UserWarning)  # methods of other packages warn, too

        def all_warnings() -> list[str]:
            messages = (str(warning.message) for warning in foreign if issubclass(warning.category, UserWarning))
            return list(sentences | dict.fromkeys(" ".join(message.split()) for message in messages))

        try:
            result = Result(_result(job, store, base, fingerprint, clock, all_warnings))
        except Exception as error:
            result = failed(job, fingerprint, error, warnings=all_warnings(), **clock.spent())
    for sentence in result.marker["warnings"]:
        tell("warning", job=job.id, message=sentence)
    return result


def failed(job: Job, fingerprint: str | None, error: Exception, **spent: Any) -> Result:
    """Return the result of a job that ended with an error."""
    code = failures.exit_code(error)
    why = {
        "error": failures.describe(error).replace(" (--debug shows where)", ""),
        "exit_code": code,
        "stage": failures.stage_of(error),
    }
    return Result({**about(job, "failed", fingerprint), **why, **spent}, code)


def about(job: Job, status: str, fingerprint: str | None) -> dict[str, Any]:
    """Return the entries that every marker contains, whether the job has succeeded or failed."""
    return {"id": job.id, "status": status, "fingerprint": fingerprint, "job": job.facts()}


def _result(
    job: Job,
    store: Store,
    base: str,
    fingerprint: str | None,
    clock: record.Clock,
    all_warnings: Warnings,
) -> dict[str, Any]:
    with ExitStack() as copies:
        with clock.phase("fetch") if places.is_uri(job.input) else failures.stage("read"):
            labels = copies.enter_context(places.at_hand(job.input, base))
            files = job.beside().items()
            beside = {name: copies.enter_context(places.at_hand(place, base)) for name, place in files}
        with store.place([job.labels_name, job.marker_name]) as folder:
            output, marker = os.path.join(folder, job.labels_name), os.path.join(folder, job.marker_name)
            with atomic.recorded(output, at=marker) as entries:
                consensus = job.consensus(labels, output, beside)
                with failures.stage("start"):
                    device = devices.resolve(consensus.estimator.device)
                result = consensus.find(clock)
                if consensus.output.has_more:
                    result = consensus.complete(result, clock)
                facts = {**consensus.facts(result), "input": job.input, "device": device}
                facts |= {"features": job.features} if job.features else {}
                facts |= {"graph": facts["graph"] | {"from": job.neighbors}} if job.neighbors else {}
                entries |= {**about(job, "ok", fingerprint), **_surroundings(), **facts, "output": job.labels_name}
                entries |= {"warnings": all_warnings(), **clock.spent(), "gpu_bytes": devices.held_memory()}
        if job.report:
            facts |= {"warnings": all_warnings()}
            entries |= _page(job, store, consensus, facts, result.ids, clock)
            entries |= {"warnings": all_warnings(), **clock.spent()}
            write_marker(store, job.marker_name, entries)
    return entries


@cache
def _surroundings() -> dict[str, Any]:
    """Return the versions of packages and the platform; cache them, because to find them may take longer than a fit."""
    return record.surroundings()


def _page(
    job: Job, store: Store, consensus: FileConsensus, facts: dict[str, Any], ids: Any, clock: record.Clock
) -> dict[str, Any]:
    """Write the report page of a job; return the entries of the marker that name the page, or say why it is missing."""
    try:
        with clock.phase("report"):
            store.write(job.page_name, report.render_fit(f"Consensus of {job.id}", consensus.estimator, facts, ids))
    except Exception as error:  # the job has succeeded, because its labels are valid without a page
        why = f"{job.page_name} could not be made (use --force to run the job again): {failures.describe(error)}"
        checks.warn(why)
        return {"report": None, "error": why}
    return {"report": job.page_name}

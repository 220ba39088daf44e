"""Batches: many consensus runs, the jobs, which a file called manifest lists; a stopped batch can continue.

The last file that a job writes is its marker ``ID.json``. The marker says whether the job is done, and contains a
fingerprint of the input, of the parameters and of the minor version of gpuens. If a call is repeated, it runs only the
jobs that are not done.
"""

import contextlib
import os

from gpuens.batch import shards, stores
from gpuens.batch.events import Events
from gpuens.batch.execution import carry_out
from gpuens.batch.forecasts import plan
from gpuens.batch.manifest import Manifest, load, schema
from gpuens.batch.processes import Worker
from gpuens.batch.runner import SUMMARY, Outcome, Runner, refuse_meetings
from gpuens.runtime import checks, progress

__all__ = ["Outcome", "forecast", "load", "run", "schema"]


def run(
    manifest: Manifest,
    out: str | os.PathLike[str],
    *,
    jobs: int = 1,
    shard: str | None = None,
    of: int | None = None,
    force: bool = False,
    keep_going: bool = False,
    checksum: bool = False,
    report: bool = False,
    device: str = "auto",
    heartbeat: str | None = None,
    log: str | None = None,
) -> Outcome:
    """Run the jobs of a manifest that are not done.

    Parameters
    ----------
    manifest : str, path, mapping or list
        A .yaml, .json, .jsonl or .csv file or URI, or the contents of such a file: see `schema`. Paths in a file are
        relative to its folder.
    out : str or path
        A folder, created if missing, or a URI. Each job writes ``ID.labels.npy`` (in the job's format, by default that
        of the input), with ``report`` also ``ID.html``, and last ``ID.json``. The run appends to ``events.jsonl`` and
        writes ``summary.csv``. An h5ad output holds only labels, because each copy of the cells' expression is large.
        Runners that share a folder share the jobs; behind a URI they need shards.
    jobs : int
        The number of jobs at once. Each runs in its own process, with an equal share of threads and memory, and its own
        GPU if there are several. 1: run in this process.
    shard : str, optional
        "2/8": every eighth job, beginning with the second; "auto": the shard that SLURM, Kubernetes, AWS Batch, Cloud
        Run or Google Batch assigns.
    of : int, optional
        The number of shards, if the scheduler does not provide it (Kubernetes).
    force : bool
        Run all jobs again.
    keep_going : bool
        Continue after a failure. In any case, a job whose failure may be temporary is tried three times.
    checksum : bool
        Compare inputs by their contents instead of their size and time.
    report : bool
        Write a page with pictures for each job that does not set this itself.
    device : {"auto", "cpu", "cuda"}
        The device of jobs that name none; "auto" is the CPU, because labels come from files.
    heartbeat : str, optional
        A file that is written every 5 seconds, for liveness probes.
    log : {"text", "json"}, optional
        The format of the lines on stderr, one for each stage; None: no lines.

    Returns
    -------
    Outcome
        ``jobs``: a dict for each job of the manifest, with its status "done", "failed" or "pending"; the numbers
        ``done``, ``already`` (done before) and ``failed``; and the ``exit_code`` of ``gpuens batch``.

    Raises
    ------
    OSError, ValueError, TypeError, ImportError
        For bad manifests and arguments, unwritable places and missing packages, before any work.

    Examples
    --------
    >>> import gpuens as ge, numpy as np, pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.save(f"{folder}/labels.npy", [[0, 0], [0, 0], [1, 1], [1, 0], [1, 1]])
    ...     jobs = [{"id": "a", "input": f"{folder}/labels.npy", "n_clusters": 2}]
    ...     first = ge.batch.run(jobs, f"{folder}/out")
    ...     again = ge.batch.run(jobs, f"{folder}/out")
    ...     sorted(path.name for path in pathlib.Path(folder, "out").iterdir())
    ['a.json', 'a.labels.npy', 'events.jsonl', 'summary.csv']
    >>> (first.done, first.exit_code), (again.done, again.already)
    ((1, 0), (0, 1))
    """
    n_jobs = checks.check_integer(jobs, "jobs", minimum=1, maximum=1024)
    if log is not None:
        checks.check_choice(log, "log", ("text", "json"))
    part = shards.shard(shard, of)
    all_jobs, base = load(manifest, report=report, device=device)
    suffix = "" if part is None else f".{part.index + 1}-of-{part.count}"
    events_name = f"events{suffix}.jsonl"
    refuse_meetings(all_jobs, base, manifest, os.fspath(out), events_name)
    store = stores.open_store(os.fspath(out))
    lines = stores.Lines(store, events_name)
    events = Events(log, lines.add, heartbeat)
    runner = Runner(all_jobs, base, store, events, shard=part, force=force, keep_going=keep_going, checksum=checksum)
    runner.refuse_foreign()

    def end(event: str) -> Outcome:
        outcome = runner.outcome()
        store.write(SUMMARY, runner.summary(outcome))
        events(event, done=outcome.done, already=outcome.already, failed=outcome.failed)
        return outcome

    try:
        with events.beating(), progress.silent():
            events("begin", jobs=len(all_jobs), shard=None if part is None else str(part))
            try:
                if n_jobs == 1:
                    runner.run(lambda job, fingerprint, tell: carry_out(job, store, base, fingerprint, tell))
                else:
                    runner.run_in([Worker(i, n_jobs, os.fspath(out), base) for i in range(n_jobs)])
            except BaseException:
                with contextlib.suppress(Exception):  # an error in `end` must not hide the error that ended the batch
                    end("interrupted")
                raise
            outcome = end("end")
    finally:
        lines.close()
        if store.claims is not None:
            store.claims.close()
    return outcome


def forecast(
    manifest: Manifest,
    out: str | os.PathLike[str],
    *,
    shard: str | None = None,
    of: int | None = None,
    force: bool = False,
    checksum: bool = False,
    report: bool = False,
    device: str = "auto",
) -> str:
    """Return the jobs that `run` would run as a text, with the input and the forecast peak memory of each job.

    Parameters and errors are those of `run`. Nothing is written. The headers of inputs are read, except behind URIs, so
    that inputs that `run` would refuse are found.
    """
    jobs, base = load(manifest, report=report, device=device)
    store = stores.open_store(os.fspath(out), make=False)
    events = Events(None, lambda line: None)
    runner = Runner(jobs, base, store, events, shard=shards.shard(shard, of), force=force, checksum=checksum)
    return plan(runner)


def __dir__() -> list[str]:
    return sorted(__all__)

"""Batches: many consensus runs from one manifest, resumed where they were stopped.

A job is done when its marker ``ID.json`` is there and says so: it is written last, and holds a fingerprint of the
input, the parameters and gpuens's minor version. The same call again does what is left.
"""

import contextlib
import os

from gpuens.batch.manifest import Manifest, load, schema
from gpuens.batch.runner import SUMMARY, Outcome, refuse_meetings

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
    """Do the jobs of a manifest that have not been done.

    Parameters
    ----------
    manifest : str, path, mapping or list
        A .yaml, .json, .jsonl or .csv file or URI, or what such a file holds: see `schema`. Paths in a file are
        relative to its folder.
    out : str or path
        A folder, made if missing, or a URI. Each job writes ``ID.labels.npy`` (of its format, else that of the input),
        with ``report`` ``ID.html``, and last ``ID.json``; the run adds to ``events.jsonl`` and writes ``summary.csv``.
        An h5ad file holds the labels alone, not the cells' expression over again for each job. Runners that share a
        folder share the jobs; behind a URI they need shards.
    jobs : int
        The number of jobs at once, each in a process of its own with its share of threads and memory; where there are
        several GPUs, each process has one. 1: in this process.
    shard : str, optional
        "2/8": every eighth job from the second on; "auto": what SLURM, Kubernetes, AWS Batch, Cloud Run or Google Batch
        say.
    of : int, optional
        The number of shards where the scheduler does not tell (Kubernetes).
    force : bool
        Do all jobs again.
    keep_going : bool
        Go on after a failure. A failure that may be gone at the next try is tried three times in any case.
    checksum : bool
        Tell inputs by their contents instead of their size and time.
    report : bool
        Write a page with pictures for all jobs that do not say.
    device : {"auto", "cpu", "cuda"}
        Where jobs work that do not say; "auto" is the CPU, as labels come from files.
    heartbeat : str, optional
        A file that is written every five seconds, for liveness probes.
    log : {"text", "json"}, optional
        A line for each stage on stderr.

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
    from gpuens.batch import shards, stores
    from gpuens.batch.events import Events
    from gpuens.batch.execution import carry_out
    from gpuens.batch.processes import Worker
    from gpuens.batch.runner import Runner
    from gpuens.runtime import checks, progress

    n_jobs = checks.check_integer(jobs, "jobs", minimum=1, maximum=1024)
    if log is not None:
        checks.check_choice(log, "log", ("text", "json"))
    part = shards.shard(shard, of)
    wanted, base = load(manifest, report=report, device=device)
    suffix = "" if part is None else f".{part.index + 1}-of-{part.count}"
    events_name = f"events{suffix}.jsonl"
    refuse_meetings(wanted, base, manifest, os.fspath(out), events_name)
    store = stores.store(os.fspath(out))
    kept = stores.Kept(store, events_name)
    events = Events(log, kept.add, heartbeat)
    runner = Runner(wanted, base, store, events, shard=part, force=force, keep_going=keep_going, checksum=checksum)
    runner.refuse_foreign()

    def ended(how: str) -> Outcome:
        outcome = runner.outcome()
        store.write(SUMMARY, runner.summary(outcome))
        events(how, done=outcome.done, already=outcome.already, failed=outcome.failed)
        return outcome

    try:
        with events.beating(), progress.silent():
            events("begin", jobs=len(wanted), shard=None if part is None else str(part))
            try:
                if n_jobs == 1:
                    runner.run(lambda job, fingerprint, tell: carry_out(job, store, base, fingerprint, tell))
                else:
                    runner.run_in([Worker(i, n_jobs, os.fspath(out), base) for i in range(n_jobs)])
            except BaseException:
                with contextlib.suppress(Exception):  # the reason of the end says more
                    ended("interrupted")
                raise
            outcome = ended("end")
    finally:
        kept.close()
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
    """Return the plan of `run` as text: each job with its bytes and about how many seconds it takes.

    Parameters and errors are those of `run`. Nothing is written. Inputs are opened as far as their headers, so that
    what would be refused is found, unless they are behind URIs.
    """
    from gpuens.batch import shards, stores
    from gpuens.batch.events import Events
    from gpuens.batch.forecasts import foreseen
    from gpuens.batch.runner import Runner

    jobs, base = load(manifest, report=report, device=device)
    store = stores.store(os.fspath(out), make=False)
    events = Events(None, lambda line: None)
    runner = Runner(jobs, base, store, events, shard=shards.shard(shard, of), force=force, checksum=checksum)
    return foreseen(runner)


def __dir__() -> list[str]:
    return sorted(__all__)

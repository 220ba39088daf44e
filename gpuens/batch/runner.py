"""The runner of a batch: it claims jobs that are not done, runs them, repeats failed jobs, and writes a summary."""

import csv
import io
import json
import os
import threading
from collections import defaultdict, deque
from collections.abc import Callable
from contextlib import suppress
from typing import Any, NamedTuple

from gpuens.batch import execution, places
from gpuens.batch.events import Events
from gpuens.batch.execution import Result
from gpuens.batch.job import Job
from gpuens.batch.processes import Worker
from gpuens.batch.shards import Shard
from gpuens.batch.stores import Store, marker, write_marker
from gpuens.io.formulas import escaped
from gpuens.io.outputs import HEAD_BYTES, PAGE_MARK
from gpuens.runtime import failures

TRIES = 3  # maximum number of tries of a job whose failures may be temporary
PAUSE = 2.0  # seconds to wait before the second try of a job; before each further try, the time is doubled
WATCH = 0.5  # seconds between two checks of the jobs that other runners have claimed

SUMMARY = "summary.csv"
COLUMNS = (
    "id",
    "status",
    "input",
    "method",
    "n_clusters",
    "n_objects",
    "n_clusterings",
    "seconds",
    "host_bytes",
    "gpu_bytes",
    "output",
    "sha256",
    "error",
)

CarryOut = Callable[[Job, str | None, Callable[..., None]], Result]


class Outcome(NamedTuple):
    """The outcome of a batch: a row with the entries `COLUMNS` for each job, numbers of jobs, and the exit code."""

    jobs: list[dict[str, Any]]
    done: int  # number of jobs that this run has finished
    already: int  # number of jobs that earlier runs or other runners have finished
    failed: int
    exit_code: int


class Runner:
    """The runner of the jobs of a manifest; it runs a batch once."""

    def __init__(
        self,
        jobs: list[Job],
        base: str,
        store: Store,
        events: Events,
        *,
        shard: Shard | None = None,
        force: bool = False,
        keep_going: bool = False,
        checksum: bool = False,
    ) -> None:
        self.jobs, self.base, self.store, self.events = jobs, base, store, events
        self.shard, self.force, self.keep_going, self.checksum = shard, force, keep_going, checksum
        self.jobs_of_shard = jobs if shard is None else jobs[shard.index :: shard.count]
        self._todo = deque(self.jobs_of_shard)
        self._claimed_elsewhere: deque[Job] = deque()  # jobs that other runners have claimed
        self.markers: dict[str, dict[str, Any]] = {}  # id of a done or failed job → contents of its marker
        self._codes: list[int] = []  # exit codes of failed jobs
        self._done = self._already = 0
        self._stamps: dict[str, dict[str, Any]] = {}
        self._stamping: defaultdict[str, threading.Lock] = defaultdict(threading.Lock)
        self._there = store.names()
        again = self.jobs_of_shard if force and store.claims is not None else []
        self._before = {job.id: store.read(job.marker_name) for job in again}
        self._lock = threading.Lock()
        self._end = threading.Event()  # event that is set when no further job may begin
        self._stopped = False  # whether the jobs that are running must be rolled back

    def run(self, carry_out: CarryOut) -> None:
        """Run jobs by ``carry_out`` until no job is left or a failure ends the batch."""
        while (job := self._next()) is not None:
            try:
                self._settle(job, carry_out)
            finally:
                if self.store.claims is not None:
                    self.store.claims.release(job.id)

    def run_in(self, workers: list[Worker]) -> None:
        """Run jobs in several worker processes; a thread for each process sends jobs to it."""
        errors: list[BaseException] = []

        def drive(worker: Worker) -> None:
            try:
                self.run(worker.carry_out)
            except BaseException as error:
                errors.append(error)
                self._end.set()
            finally:
                worker.close()

        threads = [threading.Thread(target=drive, args=(worker,), daemon=True) for worker in workers]
        try:
            for thread in threads:
                thread.start()
            for thread in threads:
                while thread.is_alive():
                    thread.join(0.2)  # the wait is short, because signals are handled only between two joins
        except BaseException:
            self._stopped = True
            self._end.set()
            for worker in workers:
                worker.stop()
            for thread in threads:
                thread.join()
            raise
        if errors:
            raise errors[0]

    def outcome(self) -> Outcome:
        """Return the outcome of this run, including the jobs that earlier runs have finished."""
        self._there = self.store.names()
        codes = set(self._codes)
        if failures.TEMPORARY in codes:
            code = failures.TEMPORARY
        elif codes and self._done + self._already == 0:
            code = max(codes) if failures.REFUSED in codes else min(codes)
        else:
            code = failures.SOME_FAILED if codes else 0
        return Outcome([self._row(job) for job in self.jobs], self._done, self._already, len(self._codes), code)

    def refuse_foreign(self) -> None:
        """Raise an error if a summary, marker or page would replace a file that is not from a batch."""
        for job in self.jobs_of_shard:
            if job.marker_name in self._there:
                marker(self.store, job.marker_name)
            page = self.store.read(job.page_name) if job.report and job.page_name in self._there else None
            if page is not None and PAGE_MARK not in page[:HEAD_BYTES]:
                raise FileExistsError(f"out has a {job.page_name} that is not from a batch; move it away.")
        summary = self.store.read(SUMMARY) if SUMMARY in self._there else None
        if summary is not None and not summary.startswith(",".join(COLUMNS).encode()):
            raise FileExistsError(
                f"out has a {SUMMARY} that is not from a batch; move it away, or name another folder."
            )

    @staticmethod
    def summary(outcome: Outcome) -> bytes:
        """Return the contents of ``summary.csv``; texts that look like spreadsheet formulas are escaped."""
        text = io.StringIO()
        writer = csv.DictWriter(text, COLUMNS, lineterminator="\n")
        writer.writeheader()
        for job in outcome.jobs:
            writer.writerow({name: escaped(fact) if isinstance(fact, str) else fact for name, fact in job.items()})
        return text.getvalue().encode(errors="replace")

    def _row(self, job: Job) -> dict[str, Any]:
        entries = self.markers.get(job.id)
        if entries is None:  # another runner, shard or run may have finished the job
            with suppress(FileExistsError):  # a file of another shard that is not a marker may have this name
                entries = marker(self.store, job.marker_name) if job.marker_name in self._there else None
            entries = entries or {}
            # a marker of a different job with the same id is ignored
            if entries.get("job") != json.loads(json.dumps(job.facts(), default=str)):
                entries = {}
        facts = {
            "n_clusters": job.n_clusters,
            **entries,
            "id": job.id,
            "input": job.input,
            "method": job.method,
            "status": {"ok": "done", "failed": "failed"}.get(str(entries.get("status")), "pending"),
            "seconds": entries.get("seconds", {}).get("total"),
            "host_bytes": entries.get("peak_memory_bytes"),
        }
        return {name: facts.get(name) for name in COLUMNS}

    # --- choosing the next job ----------------------------------------------------------------------------------------

    def _next(self) -> Job | None:
        """Claim and return a job that is not done; return None if there is none.

        Wait for the jobs that other runners have claimed.
        """
        while not self._end.is_set():
            with self._lock:
                if not self._todo and not self._claimed_elsewhere:
                    return None
                job = self._todo.popleft() if self._todo else None
                if job is None:
                    self._todo, self._claimed_elsewhere = self._claimed_elsewhere, deque()
            if job is None:
                self._end.wait(WATCH)
            elif self._claim(job):
                return job
        return None

    def _claim(self, job: Job) -> bool:
        """Claim a job for this runner; return False if the job is done or another runner has claimed it."""
        if self.is_done(job):
            return False
        claims = self.store.claims
        if claims is None:
            return True
        if not claims.take(job.id):
            self._claimed_elsewhere.append(job)
            return False
        if self.is_done(job, anew=True):  # another runner has finished the job meanwhile
            claims.release(job.id)
            return False
        return True

    def is_done(self, job: Job, *, anew: bool = False) -> bool:
        """Return whether the files of a job exist and its marker has the current fingerprint of the job.

        If ``anew`` is true, look also for files that were written after this run began.
        """
        if not anew and (self.force or job.marker_name not in self._there):
            return False
        if self.force and self.store.read(job.marker_name) == self._before[job.id]:
            return False  # if ``force`` is true, a result from before this run does not count
        entries = marker(self.store, job.marker_name)
        if entries is None or entries.get("status") != "ok":
            return False
        if not all(
            self.store.has(name) if anew else name in self._there
            for name in (job.labels_name, *written_by(job, entries))
        ):
            return False
        if job.report and "report" not in entries:  # an earlier run stopped before it drew the page
            return False
        try:
            if entries.get("fingerprint") != self._fingerprint(job):
                return False
        except OSError:  # the input is missing; the job will report this when it runs
            return False
        with self._lock:
            self.markers[job.id] = entries
            self._already += 1
        return True

    def _fingerprint(self, job: Job) -> str:
        stamps = {}
        for place in (job.input, *job.beside().values()):
            with self._stamping[place]:  # only one thread computes the checksum of a file
                if place not in self._stamps:
                    self._stamps[place] = places.stamp(place, self.base, checksum=self.checksum)
            stamps[place] = self._stamps[place]
        return job.fingerprint(stamps)

    # --- running a job until it is done or has failed -----------------------------------------------------------------

    def _settle(self, job: Job, carry_out: CarryOut) -> None:
        # names of files that an earlier run wrote for this job, such as labels in another format
        before = written_by(job, marker(self.store, job.marker_name))
        for attempt in range(1, TRIES + 1):
            result = self._try(job, carry_out, attempt)
            if result.code != failures.TEMPORARY or attempt == TRIES or self._end.is_set():
                break
            pause = PAUSE * 2 ** (attempt - 1)
            self.events("retry", job=job.id, error=result.marker["error"], in_seconds=pause)
            if self._end.wait(pause):
                break
        if self._stopped and result.code:
            return
        self.markers[job.id] = result.marker
        if not result.code:
            self.store.remove(sorted(before - written_by(job, result.marker)))
            self._done += 1
            self.events("done", job=job.id, seconds=result.marker["seconds"]["total"])
            return
        self._codes.append(result.code)
        # if the input is missing, the result of an earlier run remains valid, and its files are kept
        if result.marker["fingerprint"] is not None or job.marker_name not in self._there:
            write_marker(self.store, job.marker_name, result.marker)
            self.store.remove(sorted(before))
        self.events("failed", job=job.id, error=result.marker["error"], exit_code=result.code)
        if not self.keep_going:
            self._end.set()

    def _try(self, job: Job, carry_out: CarryOut, attempt: int) -> Result:
        """Run a job once, and return its result, which may be a failure."""
        try:
            with failures.stage("read"):
                fingerprint = self._fingerprint(job)
        except Exception as error:
            return execution.failed(job, None, error)
        self.events("start", job=job.id, **({"attempt": attempt} if attempt > 1 else {}))
        return carry_out(job, fingerprint, self.events)


def written_by(job: Job, entries: dict[str, Any] | None) -> set[str]:
    """Return the names of the labels and the page that a job has written according to the ``entries`` of its marker."""
    names = [(entries or {}).get(name) for name in ("output", "report")]
    return {name for name in job.all_outputs() if name in names}  # names of other files in a marker are ignored


def refuse_meetings(jobs: list[Job], base: str, manifest: Any, out: str, events_name: str) -> None:
    """Raise an error if the folder ``out`` is inside an input, or a result would replace an input or the manifest."""
    if places.is_uri(out):
        return
    folder = os.path.realpath(out)
    names = {SUMMARY, events_name}
    for job in jobs:
        names |= {job.labels_name, job.marker_name, *[job.page_name] * job.report}
    inputs = {place for job in jobs for place in (job.input, *job.beside().values())}
    files = [places.local(place, base) for place in inputs if not places.is_uri(place)]
    files += [os.fspath(manifest)] if isinstance(manifest, (str, os.PathLike)) else []
    for path in files:
        place = os.path.realpath(path)
        if folder == place or folder.startswith(place + os.sep):
            raise ValueError(f"out {out!r} is inside the input {path!r}; name another folder.")
        if os.path.dirname(place) == folder and os.path.basename(place) in names:
            raise ValueError(f"out {out!r} holds {path!r}, which a result would replace; name another folder.")

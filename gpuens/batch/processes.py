"""Worker processes of a batch, one job at a time each; a process that dies is a failure of its job, and replaced."""

import contextlib
import json
import os
import signal
import subprocess
import sys
from typing import Any

from gpuens import device, failures
from gpuens.batch import execution
from gpuens.batch.execution import Result, Tell
from gpuens.batch.job import Job


class Worker:
    """A process that carries out jobs; ``index`` of ``count`` shares threads and memory, and has a GPU of its own."""

    def __init__(self, index: int, count: int, out: str, base: str) -> None:
        self._environment = _environment(index, count)
        self._first = {"out": out, "base": base}
        self._process: subprocess.Popen | None = None

    def carry_out(self, job: Job, fingerprint: str | None, tell: Tell) -> Result:
        """Do a job like `execution.carry_out`."""
        try:
            self._say({"job": {"id": job.id, **job.facts()}, "fingerprint": fingerprint})
            while (said := self._heard()) is not None:
                if "event" in said:
                    tell(said["event"], **said["facts"])
                else:
                    return Result(said["marker"], said["code"])
        except BrokenPipeError:
            pass
        return self._lost(job, fingerprint)

    def stop(self) -> None:
        """End the process: it rolls back its job."""
        if self._process is not None and self._process.poll() is None:
            self._process.terminate()
        self._end()

    def close(self) -> None:
        """End the process when it is idle."""
        self._end()

    def _end(self) -> int | None:
        """Wait for the end of the process, which comes when its stdin is closed; return its exit code."""
        process, self._process = self._process, None
        if process is None:
            return None
        with contextlib.suppress(BrokenPipeError):
            process.communicate()
        return process.returncode

    def _lost(self, job: Job, fingerprint: str | None) -> Result:
        """Return the failure of the job that the process was doing when it died."""
        code = self._end() or 0
        how = f"killed by {signal.Signals(-code).name}" if code < 0 else f"gone with exit code {code}"
        error = f"the process that did it was {how}; with SIGKILL most likely for want of memory: take fewer --jobs."
        marker = execution.about(job, "failed", fingerprint)
        return Result({**marker, "error": error, "exit_code": failures.TEMPORARY, "stage": None}, failures.TEMPORARY)

    def _say(self, facts: dict[str, Any]) -> None:
        if self._process is None:
            command = [sys.executable, "-m", "gpuens.batch.worker"]
            self._process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=self._environment
            )
            self._write(self._first)
            self._heard()
        self._write(facts)

    def _write(self, facts: dict[str, Any]) -> None:
        assert self._process is not None
        assert self._process.stdin is not None
        print(json.dumps(facts, default=str), file=self._process.stdin, flush=True)

    def _heard(self) -> dict[str, Any] | None:
        """Return what the process says next, None at its end."""
        assert self._process is not None
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        return json.loads(line) if line.endswith("\n") else None


def _environment(index: int, count: int) -> dict[str, str]:
    """Return the variables of a process: its share of threads and memory, and its GPU."""
    threads = max(1, device.n_threads() // count)
    found = {**os.environ, "GPUENS_THREADS": str(threads), "GPUENS_PROGRESS": "0"}
    found.setdefault("OMP_NUM_THREADS", str(threads))
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    gpus = visible.split(",") if visible else [str(i) for i in range(len(device.describe()) - 1)]
    if len(gpus) > 1:
        found["CUDA_VISIBLE_DEVICES"] = gpus[index % len(gpus)]
    if "GPUENS_MEMORY" in os.environ or len(gpus) < 2:
        found["GPUENS_MEMORY"] = str(device.memory_budget() // count)
    return found

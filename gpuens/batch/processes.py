"""Worker processes of a batch, each with one job at a time; if a process dies, its job fails, and it is replaced."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
from typing import Any

from gpuens.batch import execution
from gpuens.batch.execution import Result, Tell
from gpuens.batch.job import Job
from gpuens.runtime import device, failures


class Worker:
    """A process that runs jobs: number ``index`` of ``count``, with its share of threads and memory and its own GPU."""

    def __init__(self, index: int, count: int, out: str, base: str) -> None:
        self._environment = _environment(index, count)
        self._first = {"out": out, "base": base}
        self._process: subprocess.Popen[str] | None = None
        self._ready = self._stopped = False
        self._lock = threading.Lock()

    def carry_out(self, job: Job, fingerprint: str | None, tell: Tell) -> Result:
        """Run a job in the process, as `execution.carry_out` does."""
        try:
            if self._started():
                self._write({"job": {"id": job.id, **job.facts()}, "fingerprint": fingerprint})
                while (said := self._heard()) is not None:
                    if "event" in said:
                        tell(said["event"], **said["facts"])
                    else:
                        return Result(said["marker"], said["code"])
        except (BrokenPipeError, ValueError):  # the process has died or was stopped
            pass
        return self._lost(job, fingerprint)

    def stop(self) -> None:
        """Make the process roll back its job and end; the thread that drives it then notices."""
        with self._lock:
            self._stopped = True
            self._close_stdin()

    def close(self) -> int | None:
        """Close the stdin of the process, wait for its end, and return its exit code."""
        with self._lock:
            process = self._process
            self._close_stdin()
        if process is None:
            return None
        code = process.wait()
        assert process.stdout is not None
        process.stdout.close()
        self._process, self._ready = None, False
        return code

    def _close_stdin(self) -> None:
        if self._process is not None and self._process.stdin is not None:
            with contextlib.suppress(BrokenPipeError):
                self._process.stdin.close()

    def _started(self) -> bool:
        """Start the process unless it runs; return whether it is ready."""
        with self._lock:
            if self._process is None and not self._stopped:
                command = [sys.executable, "-m", "gpuens.batch.worker"]
                self._process = subprocess.Popen(
                    command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=self._environment
                )
                self._write(self._first)
        if self._process is not None and not self._ready:
            self._ready = self._heard() is not None
        return self._ready

    def _lost(self, job: Job, fingerprint: str | None) -> Result:
        """Return the failure of a job whose process died or could not start."""
        was_ready = self._ready
        code = self.close() or 0
        if code < 0:
            name = signal.Signals(-code).name if -code in set(signal.Signals) else f"signal {-code}"
            why = "most likely for lack of memory; run fewer jobs at once" if name == "SIGKILL" else "see its output"
            error = f"the process of this job was killed by {name}, {why}."
        elif was_ready:
            error = f"the process of this job ended with exit code {code}; see its output."
        else:
            error = f"the process of this job could not start (exit code {code}); see its output."
        exit_code = failures.TEMPORARY if was_ready else 1
        marker = execution.about(job, "failed", fingerprint)
        return Result({**marker, "error": error, "exit_code": exit_code, "stage": None}, exit_code)

    def _write(self, facts: dict[str, Any]) -> None:
        assert self._process is not None
        assert self._process.stdin is not None
        print(json.dumps(facts, default=str), file=self._process.stdin, flush=True)

    def _heard(self) -> dict[str, Any] | None:
        """Return the next message of the process, or None at its end."""
        assert self._process is not None
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        return json.loads(line) if line.endswith("\n") else None


def _environment(index: int, count: int) -> dict[str, str]:
    """Return the environment variables of a process: its share of threads and memory, and its GPU."""
    threads = max(1, device.n_threads() // count)
    found = {**os.environ, "GPUENS_THREADS": str(threads), "GPUENS_PROGRESS": "0"}
    found.setdefault("OMP_NUM_THREADS", str(threads))
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    gpus = visible.split(",") if visible else [str(i) for i in range(len(device.describe()) - 1)]
    if len(gpus) > 1:
        found["CUDA_VISIBLE_DEVICES"] = gpus[index % len(gpus)]
    if "GPUENS_MEMORY" in os.environ:
        found["GPUENS_MEMORY"] = str(device.memory_budget() // count)
    else:  # shares of the free memory: on the host, and on this process's GPU
        found["GPUENS_SHARES"] = f"{count}:{-(-count // max(1, len(gpus)))}"
    return found

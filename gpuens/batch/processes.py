"""Worker processes of a batch; each runs one job at a time. If a process dies, its job fails and a new one starts."""

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
    """The worker process number ``index`` of ``count`` processes, with a share of the threads and memory, and a GPU."""

    def __init__(self, index: int, count: int, out: str, base: str) -> None:
        self._environment = _environment(index, count)
        self._first = {"out": out, "base": base}
        self._process: subprocess.Popen[str] | None = None
        self._ready = self._stopped = False
        self._lock = threading.Lock()

    def carry_out(self, job: Job, fingerprint: str | None, tell: Tell) -> Result:
        """Run a job in the worker process, and return its result as `execution.carry_out` does."""
        try:
            if self._started():
                self._write({"job": {"id": job.id, **job.facts()}, "fingerprint": fingerprint})
                while (message := self._next_message()) is not None:
                    if "event" in message:
                        tell(message["event"], **message["facts"])
                    else:
                        return Result(message["marker"], message["code"])
        except (BrokenPipeError, ValueError):  # the worker process has died or was stopped
            pass
        return self._lost(job, fingerprint)

    def stop(self) -> None:
        """Tell the worker process to roll back its job and to end; its thread notices this and ends too."""
        with self._lock:
            self._stopped = True
            self._close_stdin()

    def close(self) -> int | None:
        """Close the stdin of the worker process, wait until the process ends, and return its exit code."""
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
        """Start the worker process unless it is running; return whether the process is ready for jobs."""
        with self._lock:
            if self._process is None and not self._stopped:
                command = [sys.executable, "-m", "gpuens.batch.worker"]
                self._process = subprocess.Popen(
                    command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=self._environment
                )
                self._write(self._first)
        if self._process is not None and not self._ready:
            self._ready = self._next_message() is not None
        return self._ready

    def _lost(self, job: Job, fingerprint: str | None) -> Result:
        """Return the result of a job that failed because its worker process died or could not start."""
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

    def _next_message(self) -> dict[str, Any] | None:
        """Return the next message from the worker process, or None if the process has ended."""
        assert self._process is not None
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        return json.loads(line) if line.endswith("\n") else None


def _environment(index: int, count: int) -> dict[str, str]:
    """Return the environment variables of a worker process, which set its share of threads and memory, and its GPU."""
    threads = max(1, device.n_threads() // count)
    environment = {**os.environ, "GPUENS_THREADS": str(threads), "GPUENS_PROGRESS": "0"}
    environment.setdefault("OMP_NUM_THREADS", str(threads))
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    gpus = visible.split(",") if visible else [str(i) for i in range(len(device.describe()) - 1)]
    if len(gpus) > 1:
        environment["CUDA_VISIBLE_DEVICES"] = gpus[index % len(gpus)]
    if "GPUENS_MEMORY" in os.environ:
        environment["GPUENS_MEMORY"] = str(device.memory_budget() // count)
    else:  # numbers of processes that share the memory of the host, and the memory of the GPU of this process
        environment["GPUENS_SHARES"] = f"{count}:{-(-count // max(1, len(gpus)))}"
    return environment

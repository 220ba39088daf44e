"""A worker process of a batch: it reads jobs as JSON lines from stdin, runs them, and writes results to stdout.

When stdin ends, the process stops, because the runner needs no more jobs from it or has died.
"""

import _thread
import contextlib
import json
import os
import queue
import signal
import sys
import threading
from typing import IO, Any

from gpuens.batch import execution, stores
from gpuens.batch.job import Job
from gpuens.runtime import failures

STOPS = ("SIGTERM", "SIGHUP")


def main() -> int:
    # this process ignores Ctrl-C, because the runner also receives Ctrl-C and then stops this process cleanly
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for number in _stops():
        signal.signal(number, _stop)
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # all output to stdout, except that of `_Server`, goes to stderr
    try:
        with contextlib.suppress(BrokenPipeError):  # writing to stdout fails if the runner has died
            _Server(sys.stdin, out).serve()
    except KeyboardInterrupt as error:
        return failures.exit_code(error)
    return 0


def _stops() -> list[signal.Signals]:
    return [signal.Signals[name] for name in STOPS if hasattr(signal, name)]


def _stop(number: int, frame: Any) -> None:
    """Stop and roll back the current job at the first signal, and ignore further signals.

    Both the process group and the runner may send a signal.
    """
    for other_number in _stops():
        signal.signal(other_number, signal.SIG_IGN)
    raise failures.Stopped(signal.Signals(number))


class _Server:
    """A server that runs the jobs in ``lines``; a thread reads the lines, so that it notices their end during a job."""

    def __init__(self, lines: IO[str], out: IO[str]) -> None:
        self._lines: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self._out = out
        self._over = threading.Event()
        self._busy = False
        threading.Thread(target=self._read_lines, args=(lines,), daemon=True).start()

    def serve(self) -> None:
        first = self._next()
        if first is None:
            return
        store = stores.open_store(first["out"])
        self._say(ready=True)
        while (task := self._next()) is not None:
            result = execution.carry_out(
                Job(**task["job"]),
                store,
                first["base"],
                task["fingerprint"],
                lambda event, **facts: self._say(event=event, facts=facts),
            )
            self._busy = False
            self._say(marker=result.marker, code=result.code)

    def _next(self) -> dict[str, Any] | None:
        """Return the contents of the next JSON line, or None if there are no more lines."""
        line = self._lines.get()
        self._busy = True
        return None if line is None or self._over.is_set() else json.loads(line)

    def _read_lines(self, lines: IO[str]) -> None:
        for line in lines:
            self._lines.put(line)
        self._over.set()
        self._lines.put(None)
        if self._busy:
            _thread.interrupt_main(signal.SIGTERM)

    def _say(self, **facts: Any) -> None:
        print(json.dumps(facts, default=str), file=self._out, flush=True)


if __name__ == "__main__":
    sys.exit(main())

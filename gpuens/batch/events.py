"""Events of a running batch: they are printed to stderr and written to ``events.jsonl`` and to a heartbeat file."""

import contextlib
import json
import os
import sys
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from gpuens.io import writable
from gpuens.runtime import checks

BEAT = 5.0  # seconds between two heartbeats


class Events:
    """The recorder of events of a batch, such as "start", "retry" or "done"; an event has a job and further facts.

    ``log`` is "text", "json" or None; ``keep`` is called with each line for ``events.jsonl``.
    """

    def __init__(self, log: str | None, keep: Any, heartbeat: str | None = None) -> None:
        self.log, self._keep, self.heartbeat = log, keep, heartbeat
        self._lock = threading.Lock()
        self._latest: dict[str, Any] = {}

    def __call__(self, event: str, **facts: Any) -> None:
        entry = {"time": _now(), "event": event, **facts}
        line = json.dumps(entry, ensure_ascii=False, default=str)
        with self._lock:
            self._keep(f"{line}\n".encode(errors="replace"))
            if self.log == "json":
                _print(line)
            elif self.log == "text":
                _print(_text(entry))
            self._latest = entry
            self._beat()

    @contextlib.contextmanager
    def beating(self) -> Iterator[None]:
        """Write the heartbeat file every `BEAT` seconds while the block runs."""
        if self.heartbeat is None:
            yield
            return
        end = threading.Event()
        writable.check_writable(self.heartbeat, "heartbeat")
        self._beat()

        def beat() -> None:
            while not end.wait(BEAT):
                with self._lock:
                    self._beat()

        threading.Thread(target=beat, name="gpuens-heartbeat", daemon=True).start()
        try:
            yield
        finally:
            end.set()

    def _beat(self) -> None:
        if self.heartbeat is not None:
            facts = {"time": _now(), "pid": os.getpid(), "last": self._latest}
            beside = f"{self.heartbeat}.part"
            with contextlib.suppress(OSError):  # a failed heartbeat must not stop the batch
                with open(beside, "w") as file:
                    file.write(json.dumps(facts, default=str) + "\n")
                os.replace(beside, self.heartbeat)


def _text(entry: dict[str, Any]) -> str:
    """Return an event as one line of text for people to read."""
    facts = dict(entry)
    clock_time, event, job = facts.pop("time")[11:19], facts.pop("event"), facts.pop("job", None)
    for name in ("host_bytes", "gpu_bytes"):
        if facts.get(name) is not None:
            facts[name] = checks.human_bytes(facts[name])
    if "stage" in facts and event == "stage":
        event = facts.pop("stage")
    details = ", ".join(
        str(value).removesuffix(".") if name in ("error", "message") else f"{name.replace('_', ' ')} {value}"
        for name, value in facts.items()
        if value is not None
    )
    return f"{clock_time} {f'{job}: ' if job else ''}{event}{f' ({details})' if details else ''}"


def _print(line: str) -> None:
    if sys.stderr is not None:
        with contextlib.suppress(OSError):
            print(line, file=sys.stderr, flush=True)


def _now() -> str:
    return datetime.fromtimestamp(time.time(), UTC).isoformat(timespec="milliseconds")

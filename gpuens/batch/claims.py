"""Claims: files that assign each job to one runner, so that runners that share a folder do not run the same job.

A claim is a file ID.N that only one runner can create; this runner is its owner. The owner touches the file regularly.
If the owner has died, another runner creates ID.N+1 and so takes over the job. After a runner has claimed a job, it
checks again that the job is not done.
"""

import contextlib
import json
import os
import platform
import re
import secrets
import threading
import time
from pathlib import Path
from typing import Any

from gpuens.runtime import host

BEAT = 10.0  # seconds between two touches of a claim by its owner
STALE = 60.0  # seconds without a touch after which a claim of a runner on another machine is invalid
# seconds without a touch after which a claim that does not name its owner is invalid, because the owner has died while
# it created the claim
UNREADABLE = 5.0


class Claims:
    """The claims of all runners in a folder; the folder exists only while it contains claims."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self._token = secrets.token_hex(8)
        self._mine: dict[str, str] = {}  # id of a job → path of the claim of this runner
        self._creating: str | None = None  # path of the claim that is being created; a signal may leave it incomplete
        # path of a claim → time of its last touch, and time at which this runner first saw this touch
        self._seen: dict[str, tuple[int, float]] = {}
        self._end: threading.Event | None = None  # event that ends the thread which touches the claims of this runner

    def take(self, job: str) -> bool:
        """Claim a job for this runner; return False if another runner has claimed it."""
        claims = self._claims_on(job)
        if claims and not self._is_invalid(claims[-1]):
            return False
        following = 1 + _claim_number(claims[-1]) if claims else 0
        self._creating = path = os.path.join(self.folder, f"{job}.{following}")
        while True:
            try:
                descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666)
                break
            except FileExistsError:
                self._creating = None
                return False
            except FileNotFoundError:  # another runner has just removed the empty folder
                os.makedirs(self.folder, exist_ok=True)
        with open(descriptor, "w") as file:
            json.dump({**_owner(), "token": self._token}, file)
        rivals = [claim for claim in self._claims_on(job) if claim != path]
        # this runner gives way if another runner has meanwhile created a claim with another number
        if not all(map(self._is_invalid, rivals)):
            Path(path).unlink(missing_ok=True)
            return False
        for rival in rivals:
            Path(rival).unlink(missing_ok=True)
        self._mine[job] = path
        if self._end is None:
            self._start_beating()
        return True

    def release(self, job: str) -> None:
        """Remove the claim of this runner on a job."""
        path = self._mine.pop(job, None)
        if path is not None:
            Path(path).unlink(missing_ok=True)

    def close(self) -> None:
        """Remove the claims of this runner and the claims of dead runners; remove the folder if it is then empty."""
        if self._end is not None:
            self._end.set()
            self._end = None
        for job in list(self._mine):
            self.release(job)
        if self._creating is not None and _read_owner(self._creating).get("token", self._token) == self._token:
            Path(self._creating).unlink(missing_ok=True)
        with contextlib.suppress(OSError):
            for entry in os.scandir(self.folder):
                if self._is_invalid(entry.path):
                    Path(entry.path).unlink(missing_ok=True)
            os.rmdir(self.folder)

    def _claims_on(self, job: str) -> list[str]:
        """Return the paths of all claims on a job in the order of their numbers; only the last claim is valid."""
        with contextlib.suppress(FileNotFoundError):
            names = [name for name in os.listdir(self.folder) if re.fullmatch(rf"{re.escape(job)}\.\d+", name)]
            return sorted((os.path.join(self.folder, name) for name in names), key=_claim_number)
        return []

    def _is_invalid(self, path: str) -> bool:
        """Return whether a claim is invalid, because its owner has died or has not touched it for too long."""
        try:
            touched = os.stat(path).st_mtime_ns
        except FileNotFoundError:  # the owner has just removed the claim
            return True
        owner = _read_owner(path)
        if owner.get("system") == host.system_name():
            return not _lives(owner)
        if self._seen.get(path, (None,))[0] != touched:
            self._seen[path] = (touched, time.monotonic())
        return time.monotonic() - self._seen[path][1] > (STALE if owner else UNREADABLE)

    def _start_beating(self) -> None:
        self._end = end = threading.Event()

        def beat() -> None:
            while not end.wait(BEAT):
                for path in list(self._mine.values()):
                    with contextlib.suppress(OSError):
                        os.utime(path)

        threading.Thread(target=beat, name="gpuens-claims", daemon=True).start()


def _owner() -> dict[str, Any]:
    import psutil

    process = psutil.Process()
    return {"system": host.system_name(), "host": platform.node(), "pid": process.pid, "started": process.create_time()}


def _read_owner(path: str) -> dict[str, Any]:
    """Read the owner of a claim from its file; return {} if the file does not name an owner."""
    try:
        with open(path) as file:
            owner: dict[str, Any] = json.load(file)
    except (OSError, ValueError):
        return {}
    return owner if isinstance(owner, dict) else {}


def _lives(owner: dict[str, Any]) -> bool:
    """Return whether the process of an owner still runs on this system.

    The start time is compared, because another process may have the same number now.
    """
    import psutil

    try:
        process = psutil.Process(owner["pid"])
        return bool(abs(process.create_time() - owner["started"]) < 1 and process.status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False
    except psutil.AccessDenied:
        return True


def _claim_number(path: str) -> int:
    return int(path.rsplit(".", 1)[1])

"""Versions, machine, seconds and memory of a run, for the records of the command line and of the benchmarks.

Packages are not imported to find their versions.
"""

import contextlib
import os
import platform
import re
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

from gpuens import __version__
from gpuens.runtime import failures

START, BETWEEN = "start", "other"  # names of the time before the first phase and of the time between phases
FOR_DEVELOPERS = ("build", "check", "dev", "docs", "kernels", "suite", "test")  # extras
TIES = "decided by the order of the clusterings and of their label values, not by that of the objects"


class Clock:
    """A clock for the seconds of each phase of a command.

    With the seconds of the start (imports included) and those between phases, they add up to the total. The seconds of
    a phase inside another phase count for the inner one only.
    """

    def __init__(self, report: Callable[[str, float], Any] = lambda name, seconds: None) -> None:
        """Start the clock; call ``report(name, seconds)`` at the end of each phase."""
        self._since = time.perf_counter()
        self._seconds: dict[str, float] = {START: 0.0}
        self._current = [START]  # the outermost first
        self._report = report

    @contextlib.contextmanager
    def phase(self, name: str, doing: str | None = None) -> Iterator[None]:
        """Measure this block as a phase; ``doing`` describes its work, as in `failures.stage`."""
        self._count()
        self._current.append(name)
        try:
            with failures.stage(name, doing):
                yield
        finally:
            self._count()
            self._current.pop()
            self._current[0] = BETWEEN
        self._report(name, round(self._seconds[name], 3))

    def _count(self) -> None:
        """Add the seconds since the last count to the current phase."""
        now = time.perf_counter()
        name = self._current[-1]
        self._seconds[name] = self._seconds.get(name, 0.0) + now - self._since
        self._since = now

    def spent(self) -> dict[str, Any]:
        """Return the seconds and the peak memory for a record."""
        return {"seconds": self.seconds_so_far(), "peak_memory_bytes": peak_memory()}

    def seconds_so_far(self) -> dict[str, float]:
        """Return the seconds of each phase and their total."""
        self._count()
        so_far = dict(self._seconds)
        so_far[BETWEEN] = so_far.pop(BETWEEN, 0.0)  # comes last
        phases = {name: round(seconds, 3) for name, seconds in so_far.items()}
        return {**phases, "total": round(sum(phases.values()), 3)}


def date_and_time() -> str:
    """Return the present date and time with the time zone, to the minute."""
    return datetime.now().astimezone().strftime("%Y-%m-%d %H:%M %Z")


def peak_memory() -> int | None:
    """Return the largest resident size of this process so far in bytes, None if the system does not report it."""
    status = Path("/proc/self/status")
    if status.exists():  # better than ru_maxrss, which includes the parent's size when it started this process
        line = re.search(r"VmHWM:\s*(\d+) kB", status.read_text())
        if line:
            return 1024 * int(line[1])
    try:
        import resource
    except ImportError:  # Windows
        return None
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else 1024 * peak


def processor_seconds() -> float:
    """Return the CPU seconds so far of this process and of the finished processes that it started."""
    children = os.times()
    return time.process_time() + children.children_user + children.children_system


def resident_memory() -> int:
    """Return the resident size of this process in bytes."""
    import psutil

    return int(psutil.Process().memory_info().rss)


def forget_peak_memory() -> None:
    """Reset the maximum that `peak_memory` returns, where the system supports it."""
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


def surroundings() -> dict[str, Any]:
    """Return the versions of gpuens, Python, the system and the packages that gpuens requires."""
    needed = [name for name, extra in _requirements() if extra is None or name.startswith("cupy")]
    return {
        "gpuens": __version__,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "versions": {name: version for name, version in versions(needed).items() if version},
    }


def machine() -> dict[str, Any]:
    """Return the processor, the threads and memory (bytes) that gpuens uses, and the system."""
    from gpuens.runtime import device, host

    cpuinfo = Path("/proc/cpuinfo")
    model = re.search(r"model name\s*: (.*)", cpuinfo.read_text()) if cpuinfo.exists() else None
    return {
        "processor": model[1].strip() if model else platform.processor(),
        "threads": device.n_threads(),
        "memory": host.total_memory(),
        "system": f"{platform.system()} {platform.machine()}",
    }


def versions(packages: Iterable[str]) -> dict[str, str | None]:
    """Return the version of each package, None if it is not installed; for gpuens the version of the running code.

    >>> import gpuens as ge
    >>> from gpuens.runtime.record import versions
    >>> versions(["gpuens", "nothing-of-that-name"]) == {"gpuens": ge.__version__, "nothing-of-that-name": None}
    True
    """
    return {name: __version__ if name == "gpuens" else _version(name) for name in packages}


def _version(package: str) -> str | None:
    from importlib import metadata

    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def extras() -> dict[str, dict[str, str | None]]:
    """Return the packages of each optional extra for users and their versions, None if not installed."""
    states: dict[str, dict[str, str | None]] = {}
    for name, extra in _requirements():
        if extra not in (None, *FOR_DEVELOPERS) and name != "gpuens":
            states.setdefault(str(extra), {})[name] = _version(name)
    return states


def _requirements() -> list[tuple[str, str | None]]:
    """Return the packages that gpuens requires, each with its extra or None."""
    from importlib import metadata

    try:
        lines = metadata.requires("gpuens") or []
    except metadata.PackageNotFoundError:  # a checkout that was not installed
        return []
    requirements = []
    for line in lines:
        name = re.match(r"[\w.-]+", line)
        extra = re.search(r"extra\s*==\s*['\"]([\w.-]+)['\"]", line)
        if name:
            requirements.append((name[0], extra[1] if extra else None))
    return requirements

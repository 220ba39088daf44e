"""Resources of the machine that this process may use: memory, processors and folders.

A container, a batch system or `ulimit` may allow less than the machine has.
"""

import math
import os
import platform
import re
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path

CONTROLLED = Path("/proc/self/cgroup")
GROUPS = Path("/sys/fs/cgroup")

# files of a control group, versions 2 and 1: memory limit, memory in use, and the name of its reclaimable part
MEMORY = (
    ("memory.max", "memory.current", "inactive_file"),
    ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
)


@cache
def system_name() -> str:
    """Return a name of this system that changes when the machine restarts and differs between containers.

    Two processes in systems of the same name never have the same process number at the same time.
    """
    names = [platform.node()]
    with suppress(OSError), open("/proc/sys/kernel/random/boot_id") as file:
        names.append(file.read().strip())
    with suppress(OSError):
        names.append(os.readlink("/proc/self/ns/pid"))
    return " ".join(names)


def total_memory() -> int:
    """Return the total memory in bytes: the machine's, or the limit of a control group if that is smaller."""
    import psutil

    return min([int(psutil.virtual_memory().total), *(limit for limit, _, _, _ in _limited())])


def available_memory() -> int:
    """Return the bytes that are free now, below the limits of control groups and of the address space (`ulimit -v`)."""
    import psutil

    free = [int(psutil.virtual_memory().available)]
    for limit, group, usage, spare in _limited():
        given_up = re.search(rf"^{spare} (\d+)$", _read_text(group / "memory.stat"), re.MULTILINE)
        free.append(limit - _read_number(group / usage, 0) + (int(given_up[1]) if given_up else 0))
    if (limit_of_addresses := address_space()) is not None:
        free.append(limit_of_addresses - int(psutil.Process().memory_info().vms))
    return max(0, min(free))


def address_space() -> int | None:
    """Return the limit of this process's address space in bytes, None without one."""
    try:
        import resource
    except ImportError:  # Windows
        return None
    limit: int = resource.getrlimit(resource.RLIMIT_AS)[0]
    return None if limit == resource.RLIM_INFINITY else limit


def processors() -> int:
    """Return the number of processors that this process may use at the same time."""
    count = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(count, _quota() or count)


def writable(folder: str) -> bool:
    """Return whether files can be written in a folder; create the folder if it is missing."""
    try:
        os.makedirs(folder, exist_ok=True)
        tempfile.TemporaryFile(dir=folder).close()
    except OSError:
        return False
    return True


@cache
def _limited() -> list[tuple[int, Path, str, str]]:
    """Return the control groups that limit memory: the limit in bytes, the group, and its files as in `MEMORY`."""
    return [
        (limit, group, usage, spare)
        for group in _groups("memory")
        for maximum, usage, spare in MEMORY
        if (limit := _read_number(group / maximum, 2**62)) < 2**60  # in version 1 a huge number means "no limit"
    ]


@cache
def _quota() -> int | None:
    """Return the number of processors that control groups allow, rounded up, or None without a limit."""
    shares = []
    for group in _groups("cpu"):
        limit, period = (_read_text(group / "cpu.max").split() or ["max", "0"])[:2]  # version 2
        if limit == "max":
            limit, period = (
                _read_text(group / "cpu.cfs_quota_us").strip(),
                _read_text(group / "cpu.cfs_period_us").strip(),
            )
        if limit.isdigit() and period.isdigit() and int(period):
            shares.append(int(limit) / int(period))
    return max(1, math.ceil(min(shares))) if shares else None


def _groups(controller: str) -> Iterator[Path]:
    """Yield the folders of this process's control groups for a controller ("memory", "cpu"), the innermost first."""
    for line in _read_text(CONTROLLED).splitlines():
        _, controllers, path = line.split(":", 2)
        if controllers == "" or controller in controllers.split(","):  # version 2 has one tree for all
            root = GROUPS / controller if controllers else GROUPS
            group = root / path.lstrip("/")
            yield from (group, *(parent for parent in group.parents if parent.is_relative_to(root)))


def _read_number(path: Path, otherwise: int) -> int:
    text = _read_text(path).strip()
    return int(text) if text.isdigit() else otherwise


def _read_text(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""

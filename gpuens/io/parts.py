"""Parts: temporary files, ``.gpuens-<system>-<random>.part``, in the folder where the complete file will be.

The process that writes a part holds a lock on it, and the system releases the lock when the process ends. If a later
run writes to the folder, it removes parts without a lock, because the process that wrote them was killed. Some file
systems do not show the locks of other hosts, so that a part of another system is removed only an hour after its last
change; a part of this system is removed at once.
"""

import hashlib
import os
import secrets
import shutil
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import IO

from gpuens.runtime.host import system_name

try:
    import fcntl
except ImportError:  # Windows has no fcntl; it needs no locks, because open files cannot be removed there
    fcntl = None  # type: ignore[assignment]

# minimum number of seconds since the last change of a part of another system before it may be removed
UNTOUCHED_SECONDS = 3600


@contextmanager
def new_part(folder: str) -> Iterator[tuple[IO[bytes], str]]:
    """Make a part in a folder; yield the open file and its path; at the end, remove the part unless it was renamed."""
    _remove_leftovers(folder)
    while True:
        beside = os.path.join(folder, f"{_prefix_of_parts()}{secrets.token_hex(8)}.part")
        with ExitStack() as stack:
            stack.callback(Path(beside).unlink, missing_ok=True)
            # the caller closes the file to rename it; otherwise `_discard` closes it
            file = open(beside, "xb")  # noqa: SIM115
            stack.callback(_discard, file)
            if fcntl is not None:
                # the lock is on a second descriptor, so that it remains when the file is closed to be renamed
                lock = os.dup(file.fileno())
                stack.callback(os.close, lock)
                _lock(lock)
            if os.path.exists(beside):  # another process may have removed the part before it was locked
                yield file, beside
                return


def _discard(file: IO[bytes]) -> None:
    """Close a file whose contents are no longer needed; ignore errors, such as a full disk when buffers are written."""
    with suppress(OSError):
        file.close()


def _remove_leftovers(folder: str) -> None:
    """Remove the parts in a folder that no process has locked; those of other systems an hour after their last change.

    Between the creation of a part and its lock, another process may remove it; its owner then makes a new one.
    """
    # listing the files fails in a folder where the user may write, but which the user may not read
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if not is_part(entry.name):
                continue
            with suppress(OSError):
                untouched = time.time() - entry.stat(follow_symlinks=False).st_mtime
                if untouched < UNTOUCHED_SECONDS and not entry.name.startswith(_prefix_of_parts()):
                    continue
                with open(entry.path, "r+b") as file:
                    if _lock(file.fileno(), wait=False):
                        for left in folders_of(entry.path):
                            shutil.rmtree(left, ignore_errors=True)
                        os.unlink(entry.path)


def _prefix_of_parts() -> str:
    """Return the beginning of the names of the parts of this system."""
    return f".gpuens-{hashlib.sha256(system_name().encode()).hexdigest()[:12]}-"


def is_part(name: str) -> bool:
    """Return whether a file name is the temporary name of a part."""
    return name.startswith(".gpuens-") and name.endswith(".part")


def _lock(descriptor: int, *, wait: bool = True) -> bool:
    """Lock an open file; return False if another process holds the lock or the system does not support these locks."""
    if fcntl is None:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except OSError:
        return False
    return True


def folders_of(part: str) -> tuple[str, str]:
    """Return two temporary names: of the new folder of a part, and of the old folder that the new folder replaces."""
    return f"{part}.new", f"{part}.old"

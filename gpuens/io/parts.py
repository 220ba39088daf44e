"""Parts: files in progress under temporary names, ``.gpuens-<random>.part``, in the folder of the final name.

The writer of a part holds a lock, which the system releases when the process ends. So the next run that writes to the
folder tells the leftovers of a killed run from files in progress, and removes them. Not every file system shows the
locks of other hosts: a part is left alone for an hour after its last byte.
"""

import os
import secrets
import shutil
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import IO

try:
    import fcntl
except ImportError:  # Windows, where open files cannot be removed
    fcntl = None  # type: ignore[assignment]

UNTOUCHED_SECONDS = 3600  # age of the last byte of a leftover


@contextmanager
def new_part(folder: str) -> Iterator[tuple[IO[bytes], str]]:
    """Yield a new file in a folder and its path; it is removed at the end of the block unless renamed."""
    _remove_leftovers(folder)
    while True:
        beside = os.path.join(folder, f".gpuens-{secrets.token_hex(8)}.part")
        with ExitStack() as held:
            held.callback(Path(beside).unlink, missing_ok=True)
            file = open(beside, "xb")  # noqa: SIM115 - closed below, or before it is renamed
            held.callback(_discard, file)
            if fcntl is not None:
                lock = os.dup(file.fileno())  # outlives the file, which is closed before it is renamed
                held.callback(os.close, lock)
                _lock(lock)
            if os.path.exists(beside):  # not removed as a leftover before it was locked
                yield file, beside
                return


def _discard(file: IO[bytes]) -> None:
    """Close a file whose contents do not matter: what it still holds back may not fit the disk."""
    with suppress(OSError):
        file.close()


def _remove_leftovers(folder: str) -> None:
    """Remove parts that nobody locks and nobody has written to for an hour."""
    with suppress(OSError), os.scandir(folder) as entries:  # a writable folder need not be listable
        for entry in entries:
            if not is_part(entry.name):
                continue
            with suppress(OSError):
                if time.time() - entry.stat(follow_symlinks=False).st_mtime < UNTOUCHED_SECONDS:
                    continue
                with open(entry.path, "r+b") as file:
                    if _lock(file.fileno(), wait=False):
                        for left in folders_of(entry.path):
                            shutil.rmtree(left, ignore_errors=True)
                        os.unlink(entry.path)


def is_part(name: str) -> bool:
    """Return whether a file of this name is one that is being written, or was when its writer died."""
    return name.startswith(".gpuens-") and name.endswith(".part")


def _lock(descriptor: int, *, wait: bool = True) -> bool:
    """Lock an open file; return False if another process holds the lock or the system has no such locks."""
    if fcntl is None:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except OSError:
        return False
    return True


def folders_of(part: str) -> tuple[str, str]:
    """Return the temporary names of a part's new folder and of the folder it replaces."""
    return f"{part}.new", f"{part}.old"

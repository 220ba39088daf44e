"""Failures as the user sees them: one sentence, and an exit code that tells whether another attempt may succeed."""

import contextlib
import errno
import signal
import tempfile
from collections.abc import Iterator

from gpuens.runtime import progress

USAGE, REFUSED, SOME_FAILED, TEMPORARY = 2, 3, 4, 75

WORDS = (ValueError, TypeError, ImportError)  # refusals: another attempt with the same arguments and data fails again
PLACES = (FileNotFoundError, NotADirectoryError, IsADirectoryError, FileExistsError, PermissionError)
LASTING = {
    errno.EROFS,
    errno.EFBIG,
    errno.ELOOP,
    errno.ENAMETOOLONG,
    errno.EINVAL,
}  # errno values for which Python has no class of errors
FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
DRIVER = {"CUDARuntimeError", "CUDADriverError"}  # names of CuPy's error classes


class Temporary(Exception):
    """An error that may not occur at the next attempt, perhaps on another machine."""


class OutOfGPUMemory(MemoryError, Temporary):
    """Work that does not fit the free memory of a GPU, even in small steps."""


class LostWorkers(MemoryError, Temporary):
    """Worker processes that died."""


class LostProcess(RuntimeError, Temporary):
    """A process for a part of the work that crashed, gave no result or took too long."""


OF_ONE_METHOD = (ValueError, MemoryError, ImportError, LostProcess)  # errors of one method; another method may succeed


class Stopped(KeyboardInterrupt):
    """A signal that ends the process, handled like Ctrl-C."""


def signal_of(error: KeyboardInterrupt) -> signal.Signals:
    return error.args[0] if isinstance(error, Stopped) else signal.SIGINT


@contextlib.contextmanager
def stage(name: str, doing: str | None = None) -> Iterator[None]:
    """Store the name of a stage on errors raised in this block; of nested blocks the inner one counts.

    ``doing`` describes the work for `gpuens.runtime.progress.telling`; by default it is the name.
    """
    try:
        with progress.doing(doing or name):
            yield
    except BaseException as error:
        if stage_of(error) is None:
            error.stage = name  # type: ignore[attr-defined]
        raise


def stage_of(error: BaseException) -> str | None:
    """Return the stage at which an error happened, None if it happened outside all stages."""
    return getattr(error, "stage", None)


def exit_code(error: BaseException) -> int:
    """Return the exit code of a command that an error ended.

    2 for a command that is refused before any work, and for missing packages; 3 for refused input, places and budgets;
    75 for failures that may not happen again: GPU memory, storage, connections, workers; 128 + its number for a
    signal; 1 for any other error.

    >>> from gpuens.runtime.failures import exit_code
    >>> exit_code(ValueError("mistyped.")), exit_code(MemoryError("too much.")), exit_code(ConnectionError("gone."))
    (2, 3, 75)
    """
    if isinstance(error, KeyboardInterrupt):
        return 128 + signal_of(error)
    if isinstance(error, Temporary) or type(error).__name__ in DRIVER:
        return TEMPORARY
    if isinstance(error, WORDS):
        return USAGE if stage_of(error) is None or isinstance(error, ImportError) else REFUSED
    if isinstance(error, (MemoryError, *PLACES)):
        return REFUSED
    if isinstance(error, OSError):
        return REFUSED if _errno_of(error) in LASTING else TEMPORARY
    return 1


def _errno_of(error: BaseException | None) -> int | None:
    """Return the errno of an error or of the error that caused it, None without any."""
    while error is not None:
        number = getattr(error, "errno", None)
        if number is not None:
            return int(number)
        error = error.__cause__
    return None


def describe(error: BaseException) -> str:
    """Return the message of an error on one line, with the type of an unexpected error."""
    text = " ".join(str(error).split())
    if isinstance(error, KeyboardInterrupt):
        number = signal_of(error)
        how = "interrupted" if number == signal.SIGINT else f"stopped by {number.name}"
        return f"{how}; no half-written file is left."
    if isinstance(error, OSError) and error.strerror and error.filename is not None:
        return f"{error.filename}: {error.strerror}."
    if isinstance(error, OSError) and error.errno in FULL:  # no room for standard output or for a library's own file
        return (
            f"the output, or a temporary file in {tempfile.gettempdir()!r}, cannot be written ({error.strerror}); make "
            "room, or choose other places (TMPDIR=…)."
        )
    if isinstance(error, MemoryError):
        return text or "out of memory; take fewer objects or clusterings, or a machine with more."
    if isinstance(error, (*WORDS, OSError, Temporary)) and text:
        return text
    return f"{type(error).__name__}: {text or 'no details'} (--debug shows where)."

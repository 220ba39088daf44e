"""Signals, and errors and warnings as one line each on stderr."""

import contextlib
import os
import signal
import sys
import warnings
from collections.abc import Iterator
from typing import Any

REFUSED = (ValueError, TypeError, ImportError, FileNotFoundError, IsADirectoryError, NotADirectoryError)


class Failed(Exception):
    """Work that failed; the message says how in one sentence."""


class _Stopped(KeyboardInterrupt):
    """A signal that ends the process, handled like Ctrl-C."""


def signal_of(error: KeyboardInterrupt) -> signal.Signals:
    return error.args[0] if isinstance(error, _Stopped) else signal.SIGINT


@contextlib.contextmanager
def clean_stops() -> Iterator[None]:
    """Turn the first SIGINT, SIGTERM or SIGHUP into an exception, so that the work cleans up; a second one kills.

    Signals that are ignored (nohup, shells with background work) stay ignored.
    """
    ours = [
        number
        for number in signal.Signals
        if number.name in ("SIGINT", "SIGTERM", "SIGHUP")
        and signal.getsignal(number) in (signal.SIG_DFL, signal.default_int_handler)
    ]

    def restore() -> None:
        for number in ours:
            signal.signal(number, signal.SIG_DFL)

    def stop(number: int, frame: Any) -> None:
        restore()
        raise _Stopped(signal.Signals(number))

    for number in ours:
        signal.signal(number, stop)
    try:
        yield
    finally:
        restore()


def print_error(sentence: str) -> None:
    if sys.stderr is not None:
        with contextlib.suppress(OSError):  # a terminal that has been closed
            print(f"gpuens: {sentence}", file=sys.stderr, flush=True)


def describe_error(error: BaseException) -> str:
    """Return the message of an error on one line, with its type if it was not foreseen."""
    text = " ".join(str(error).split())
    if isinstance(error, KeyboardInterrupt):
        number = signal_of(error)
        how = "interrupted" if number == signal.SIGINT else f"stopped by {number.name}"
        return f"{how}; no half-written file is left."
    if isinstance(error, OSError) and error.strerror and error.filename is not None:
        return f"{error.filename}: {error.strerror}."
    if isinstance(error, MemoryError):
        return text or "out of memory; take fewer objects or clusterings, or a machine with more."
    if isinstance(error, (*REFUSED, OSError, Failed)) and text:
        return text
    return f"{type(error).__name__}: {text or 'no details'} (--debug shows where)."


@contextlib.contextmanager
def one_line_warnings() -> Iterator[None]:
    """Show each warning once, as one line without the source line that Python adds."""
    shown = set()

    def show(message: Warning | str, *_: Any, **__: Any) -> None:
        text = " ".join(str(message).split())
        if text not in shown:
            shown.add(text)
            print_error(f"warning: {text}")

    with warnings.catch_warnings():
        warnings.simplefilter("always", UserWarning)  # what gpuens says on purpose
        warnings.showwarning = show
        yield


@contextlib.contextmanager
def progress_bars(allowed: bool) -> Iterator[None]:
    """Show progress bars where the terminal can, or none."""
    before = os.environ.get("GPUENS_PROGRESS")
    if not allowed:
        os.environ["GPUENS_PROGRESS"] = "0"
    try:
        yield
    finally:
        if not allowed:
            del os.environ["GPUENS_PROGRESS"]
            if before is not None:
                os.environ["GPUENS_PROGRESS"] = before

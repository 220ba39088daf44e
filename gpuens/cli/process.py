"""How the command line lives with its process: signals, and one line each on stderr for what goes wrong."""

import contextlib
import os
import signal
import sys
import warnings
from collections.abc import Iterator
from typing import Any

REFUSED = (ValueError, TypeError, ImportError, FileNotFoundError, IsADirectoryError, NotADirectoryError)


class _Stopped(KeyboardInterrupt):
    """A signal that told the process to end: everything on the way out treats it as Ctrl-C."""


def signal_of(error: KeyboardInterrupt) -> signal.Signals:
    return error.args[0] if isinstance(error, _Stopped) else signal.SIGINT


@contextlib.contextmanager
def orderly_stops() -> Iterator[None]:
    """Let the signals that end a process end its work first, once: the second one ends the process where it is.

    Signals that are ignored, as nohup and shells arrange it for work in the background, stay so.
    """
    ours = [
        number
        for number in signal.Signals
        if number.name in ("SIGINT", "SIGTERM", "SIGHUP")
        and signal.getsignal(number) in (signal.SIG_DFL, signal.default_int_handler)
    ]

    def let_go() -> None:
        for number in ours:
            signal.signal(number, signal.SIG_DFL)

    def stop(number: int, frame: Any) -> None:
        let_go()
        raise _Stopped(signal.Signals(number))

    for number in ours:
        signal.signal(number, stop)
    try:
        yield
    finally:
        let_go()


def complain(sentence: str) -> None:
    if sys.stderr is not None:
        with contextlib.suppress(OSError):  # a terminal that has been closed
            print(f"gpuens: {sentence}", file=sys.stderr, flush=True)


def sentence(error: BaseException) -> str:
    """Return what went wrong, on one line; errors that nobody foresaw say what they are."""
    text = " ".join(str(error).split())
    if isinstance(error, KeyboardInterrupt):
        number = signal_of(error)
        how = "interrupted" if number == signal.SIGINT else f"stopped by {number.name}"
        return f"{how}; no half-written file is left."
    if isinstance(error, OSError) and error.strerror and error.filename is not None:
        return f"{error.filename}: {error.strerror}."
    if isinstance(error, MemoryError):
        return text or "out of memory; take fewer objects or clusterings, or a machine with more."
    if isinstance(error, (*REFUSED, OSError)) and text:
        return text
    return f"{type(error).__name__}: {text or 'no more is known'} (--debug shows where)."


@contextlib.contextmanager
def one_line_warnings() -> Iterator[None]:
    """Show each warning once, as one line without the source line that Python adds."""
    shown = set()

    def show(message: Warning | str, *_: Any, **__: Any) -> None:
        text = " ".join(str(message).split())
        if text not in shown:
            shown.add(text)
            complain(f"warning: {text}")

    with warnings.catch_warnings():
        warnings.simplefilter("always", UserWarning)  # what gpuens says on purpose
        warnings.showwarning = show
        yield


@contextlib.contextmanager
def progress_bars(allowed: bool) -> Iterator[None]:
    """Leave progress bars to the terminal, or show none."""
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

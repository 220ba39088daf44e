"""What a process of the command line does otherwise: signals, collections of garbage, one-line warnings on stderr."""

import contextlib
import gc
import os
import signal
import sys
import warnings
from collections.abc import Iterator
from typing import Any

from gpuens.runtime import failures


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
        raise failures.Stopped(signal.Signals(number))

    for number in ours:
        signal.signal(number, stop)
    try:
        yield
    finally:
        restore()


def replace_closed_streams() -> None:
    """Open the null device in place of standard streams that the caller has closed.

    Else the next file that is opened gets their number, and what a library prints is written into it.
    """
    while (descriptor := os.open(os.devnull, os.O_RDWR)) <= 2:
        os.set_inheritable(descriptor, True)
    os.close(descriptor)
    for name in ("stdin", "stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "r" if name == "stdin" else "w"))  # noqa: SIM115


@contextlib.contextmanager
def few_collections() -> Iterator[None]:
    """Collect garbage seldom, and not at the end of the process.

    Libraries make a million objects when they are loaded, which live as long as the process: to go through them again
    and again takes .7 of 3.2 seconds of a consensus of a million objects, most of it after the last line.
    """
    thresholds = gc.get_threshold()
    gc.set_threshold(20_000, 10, 10)
    try:
        yield
    finally:
        gc.set_threshold(*thresholds)
        gc.freeze()


def print_error(sentence: str) -> None:
    if sys.stderr is not None:
        with contextlib.suppress(OSError):  # a terminal that has been closed
            print(f"gpuens: {sentence}", file=sys.stderr, flush=True)


@contextlib.contextmanager
def one_line_warnings() -> Iterator[list[str]]:
    """Show each warning once, as one line without the source line that Python adds; they are added to a list."""
    shown: list[str] = []

    def show(message: Warning | str, *_: Any, **__: Any) -> None:
        text = " ".join(str(message).split())
        if text not in shown:
            shown.append(text)
            print_error(f"warning: {text}")

    with warnings.catch_warnings():
        warnings.simplefilter("always", UserWarning)  # warnings that gpuens gives on purpose
        warnings.showwarning = show
        yield shown

"""Settings of a command-line process: signals, garbage collection, one-line warnings on stderr."""

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
    """Turn the first SIGINT, SIGTERM or SIGHUP into an exception, so that work cleans up; a second signal kills.

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
    """Open the null device in place of closed standard streams.

    Otherwise the next opened file gets the number of a standard stream, and a library's output is written into that
    file.
    """
    while (descriptor := os.open(os.devnull, os.O_RDWR)) <= 2:
        os.set_inheritable(descriptor, True)
    os.close(descriptor)
    for name in ("stdin", "stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "r" if name == "stdin" else "w"))  # noqa: SIM115


@contextlib.contextmanager
def few_collections() -> Iterator[None]:
    """Collect garbage rarely, and never at the end of the process.

    Loaded libraries hold a million Python objects for the whole life of the process. Repeated passes over these objects
    take 0.7 of 3.2 seconds of a consensus of a million rows, mostly after the last line of output.
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
        with contextlib.suppress(OSError):  # the terminal may be closed
            print(f"gpuens: {sentence}", file=sys.stderr, flush=True)


@contextlib.contextmanager
def one_line_warnings() -> Iterator[list[str]]:
    """Show each warning once, as one line without a source line; yield the list of the warnings."""
    shown: list[str] = []

    def show(message: Warning | str, *_: Any, **__: Any) -> None:
        text = " ".join(str(message).split())
        if text not in shown:
            shown.append(text)
            print_error(f"warning: {text}")

    with warnings.catch_warnings():
        warnings.simplefilter("always", UserWarning)  # gpuens' own warnings are UserWarnings
        warnings.showwarning = show
        yield shown

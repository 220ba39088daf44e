"""A command-line process: its signals, its garbage collection, JSON on stdout, and warnings of one line on stderr."""

import contextlib
import gc
import json
import os
import signal
import sys
import warnings
from collections.abc import Iterator
from typing import Any

from gpuens.runtime import failures


@contextlib.contextmanager
def clean_stops() -> Iterator[None]:
    """Raise an exception at the first SIGINT, SIGTERM or SIGHUP, so that work is cleaned up; a second signal kills.

    If a signal was ignored before, it remains ignored; nohup, for example, ignores SIGHUP.
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
    """Open the null device as each standard stream (stdin, stdout, stderr) that is closed.

    Otherwise, the next file that is opened gets the descriptor of a standard stream, so that the output of a library
    would be written into this file.
    """
    while (descriptor := os.open(os.devnull, os.O_RDWR)) <= 2:
        os.set_inheritable(descriptor, True)
    os.close(descriptor)
    for name in ("stdin", "stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "r" if name == "stdin" else "w"))  # noqa: SIM115


@contextlib.contextmanager
def few_collections() -> Iterator[None]:
    """Collect garbage rarely in this block, and never at the end of the process.

    The loaded libraries create a million Python objects that exist until the process ends. If garbage is collected as
    usual, the repeated passes over these objects take 0.7 of the 3.2 seconds of a consensus of a million rows.
    """
    thresholds = gc.get_threshold()
    gc.set_threshold(20_000, 10, 10)
    try:
        yield
    finally:
        gc.set_threshold(*thresholds)
        gc.freeze()


def print_json(facts: Any) -> None:
    print(json.dumps(facts, indent=2, ensure_ascii=False, allow_nan=False, default=str))


def print_error(sentence: str) -> None:
    if sys.stderr is not None:
        with contextlib.suppress(OSError):  # writing fails if the terminal is closed
            print(f"gpuens: {sentence}", file=sys.stderr, flush=True)


@contextlib.contextmanager
def one_line_warnings() -> Iterator[list[str]]:
    """Print each different warning once, as one line on stderr; yield the list of the warnings printed so far."""
    printed: list[str] = []

    def show(message: Warning | str, *_: Any, **__: Any) -> None:
        text = " ".join(str(message).split())
        if text not in printed:
            printed.append(text)
            print_error(f"warning: {text}")

    with warnings.catch_warnings():
        warnings.simplefilter("always", UserWarning)  # the warnings of gpuens are UserWarnings
        warnings.showwarning = show
        yield printed

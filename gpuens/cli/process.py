"""Signals, and warnings as one line each on stderr."""

import contextlib
import signal
import sys
import warnings
from collections.abc import Iterator
from typing import Any

from gpuens import failures


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


def print_error(sentence: str) -> None:
    if sys.stderr is not None:
        with contextlib.suppress(OSError):  # a terminal that has been closed
            print(f"gpuens: {sentence}", file=sys.stderr, flush=True)


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

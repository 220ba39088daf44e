"""A limit of the time of a block, kept by a timer of the system."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from gpuens.runtime.failures import Temporary

REPEAT_SECONDS = 1.0  # time to the next interruption, in case a library has swallowed the first


class OutOfTime(Temporary):
    """The end of a block that took longer than its limit."""


@contextmanager
def time_limit(seconds: float | None) -> Iterator[None]:
    """Interrupt the block with `OutOfTime` when it has taken ``seconds``; None is no limit.

    Python and gpuens's own kernels are interrupted within a moment, a call of another library when it returns. Outside
    of the main thread, and on systems without timers, there is no limit.
    """
    if seconds is None or threading.current_thread() is not threading.main_thread() or not hasattr(signal, "setitimer"):
        yield
        return

    def interrupt(number: int, frame: FrameType | None) -> None:
        raise OutOfTime(f"took more than {seconds:g} s.")

    before = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, seconds, REPEAT_SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)

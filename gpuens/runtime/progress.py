"""Progress of long work: bars on a terminal or on request, and lines of the command line where there is no bar."""

import contextlib
import functools
import os
import sys
import threading
import time
from collections.abc import Iterable, Iterator
from contextvars import ContextVar
from operator import length_hint
from typing import Any

SLOW_SECONDS = 2.0  # work that takes longer than this gets a line
LOOK_SECONDS = 0.2  # interval at which the thread looks for slow work
AGAIN_SECONDS = 60.0  # interval between two lines of a log about the same work


def bar(
    items: Iterable[Any] | int | None = None,
    description: str = "",
    *,
    total: int | None = None,
    show: bool | str = "auto",
) -> Any:
    """Return a progress bar to iterate over, or to count up in a ``with`` block.

    Parameters
    ----------
    items : iterable or int, optional
        The items to iterate over, or their number.
    description : str
        The work, in a word or two.
    total : int, optional
        The number of items, if ``items`` does not tell.
    show : {"auto", True, False}
        "auto" shows the bar when stderr is a terminal; GPUENS_PROGRESS=0 or 1 overrides that.

    Returns
    -------
    bar
        tqdm's bar on stderr, or a silent one: iterable, a context manager, with ``update(n)``.

    Examples
    --------
    >>> [m for m in bar(range(3), "clusterings", show=False)]
    [0, 1, 2]
    >>> with bar(100, "objects", show=False) as b:
    ...     b.update(60)
    ...     b.update(40)
    """
    if isinstance(items, int):
        items, total = None, items
    if not _shown(show):
        return _Nothing(items, description if show == "auto" else "", total)
    if _teller is not None:
        _teller.hush()
    return _bar()(items, desc=description or None, total=total, file=sys.stderr, leave=False, dynamic_ncols=True)


@functools.cache
def _bar() -> type:
    from tqdm import tqdm

    class Bar(tqdm):
        """A bar that a signal may interrupt in its constructor: closing it then is safe.

        Closing and the first frame both read the time of the start.
        """

        def __new__(cls, *args: Any, **kwargs: Any) -> "Bar":
            bar: Bar = super().__new__(cls, *args, **kwargs)
            bar.disable, bar.pos = True, 0
            bar.start_t = bar.last_print_t = time.time()
            return bar

    return Bar


_silent: ContextVar[bool] = ContextVar("silent", default=False)


@contextlib.contextmanager
def silent() -> Iterator[None]:
    """Show no bars in this block, whatever GPUENS_PROGRESS says."""
    token = _silent.set(True)
    try:
        yield
    finally:
        _silent.reset(token)


def _shown(show: bool | str) -> bool:
    if isinstance(show, bool):
        return show
    if not isinstance(show, str) or show != "auto":
        received = repr(show[:80]) if isinstance(show, str) else type(show).__name__
        raise ValueError(f"progress must be 'auto', True or False, not {received}.")
    setting = _setting()
    if setting not in ("", "0", "1"):
        raise ValueError(f"GPUENS_PROGRESS must be 0 or 1, not {setting!r}.")
    return setting == "1" if setting else _on_terminal()


def _on_terminal() -> bool:
    # stderr is None under pythonw
    return sys.stderr is not None and sys.stderr.isatty()


def _setting() -> str:
    return "0" if _silent.get() else os.environ.get("GPUENS_PROGRESS", "")


class _Nothing:
    """A bar that shows nothing; a line may name its work instead."""

    def __init__(self, items: Iterable[Any] | None, description: str, total: float | None) -> None:
        self._items = items
        self._work = _begin(description) if description else None
        if self._work is not None:
            self._work.total = length_hint(items) if total is None and items is not None else total

    def __iter__(self) -> Iterator[Any]:
        try:
            for item in () if self._items is None else self._items:
                yield item
                self.update()
        finally:
            self.close()

    def __enter__(self) -> "_Nothing":
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def update(self, n: float = 1) -> None:
        if self._work is not None:
            self._work.done += n

    def close(self) -> None:
        _end(self._work)


# --- lines ------------------------------------------------------------------------------------------------------------


class _Work:
    """Current work, and whether a line about it was printed."""

    def __init__(self, subject: str) -> None:
        self.subject, self.told, self.since = subject, False, time.monotonic()
        self.done: float = 0.0
        self.total: float | None = None

    def __str__(self) -> str:
        return f"{self.subject}, {self.done / self.total:.0%}" if self.total and self.done else self.subject


class _ProgressThread:
    """A thread that names on stderr work of more than `SLOW_SECONDS`: once, and in a log every `AGAIN_SECONDS`."""

    def __init__(self) -> None:
        self.works = [_Work("loading")]  # the outermost first; it ends when any other begins
        self._said: set[str] = set()
        self._last = time.monotonic()
        self._over = threading.Event()
        threading.Thread(target=self._watch, name="gpuens-progress", daemon=True).start()

    def end_loading(self) -> None:
        if self.works and self.works[0].subject == "loading":
            self.works.clear()

    def hush(self) -> None:
        """Print no line about the current work, because a bar shows it."""
        for work in self.works:
            work.told = True

    def stop(self) -> None:
        self._over.set()

    def _watch(self) -> None:
        while not self._over.wait(LOOK_SECONDS):
            works = list(self.works)
            while works and time.monotonic() - works[-1].since < SLOW_SECONDS:
                works.pop()
            if line := ": ".join(work.subject for work in works if not work.told):
                self._say(line)
            for work in works:
                work.told = True
            if works and time.monotonic() - self._last >= AGAIN_SECONDS and _setting() != "1" and not _on_terminal():
                minutes = (time.monotonic() - works[0].since) / 60
                self._say(f"{': '.join(map(str, works))}, {minutes:.0f} min so far")

    def _say(self, line: str) -> None:
        if line not in self._said and sys.stderr is not None:
            self._said.add(line)
            self._last = time.monotonic()
            with contextlib.suppress(OSError, ValueError):  # a stream that has been closed
                print(f"gpuens: {line} …", file=sys.stderr, flush=True)


_teller: _ProgressThread | None = None  # set by the command line only; the library prints no lines


@contextlib.contextmanager
def telling() -> Iterator[None]:
    """Name on stderr the slow work of this block that shows no bar, unless GPUENS_PROGRESS=0."""
    global _teller
    before = _teller
    _teller = None if _setting() == "0" else _ProgressThread()
    try:
        yield
    finally:
        if _teller is not None:
            _teller.stop()
        _teller = before


@contextlib.contextmanager
def doing(subject: str) -> Iterator[None]:
    """Name the work of this block, for `telling`."""
    work = _begin(subject)
    try:
        yield
    finally:
        _end(work)


def _begin(subject: str) -> _Work | None:
    if _teller is None:
        return None
    _teller.end_loading()
    if _setting() == "0":  # inside a `silent` block
        return None
    work = _Work(subject)
    _teller.works.append(work)
    return work


def _end(work: _Work | None) -> None:
    if _teller is not None and work is not None and work in _teller.works:
        _teller.works.remove(work)

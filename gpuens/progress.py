"""Progress bars for long work: shown on a terminal or on request."""

import contextlib
import functools
import os
import sys
from collections.abc import Iterable, Iterator
from typing import Any


def bar(
    over: Iterable[Any] | int | None = None,
    description: str = "",
    *,
    total: int | None = None,
    show: bool | str = "auto",
) -> Any:
    """Return a progress bar to iterate over, or to count up in a ``with`` block.

    Parameters
    ----------
    over : iterable or int, optional
        The items to iterate over, or their number.
    description : str
        The work, in a word or two.
    total : int, optional
        The number of items, if ``over`` does not tell.
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
    if isinstance(over, int):
        over, total = None, over
    if not _shown(show):
        return _Nothing(over)
    return _bar()(over, desc=description or None, total=total, file=sys.stderr, leave=False, dynamic_ncols=True)


@functools.cache
def _bar() -> type:
    from tqdm import tqdm

    class Bar(tqdm):
        # a signal can end its making; the bar is closed all the same, which reads these
        disable, pos, start_t, last_print_t = True, 0, 0.0, 0.0

    return Bar


@contextlib.contextmanager
def silent() -> Iterator[None]:
    """Show no bars in this block."""
    before = os.environ.get("GPUENS_PROGRESS")
    os.environ["GPUENS_PROGRESS"] = "0"
    try:
        yield
    finally:
        del os.environ["GPUENS_PROGRESS"]
        if before is not None:
            os.environ["GPUENS_PROGRESS"] = before


def _shown(show: bool | str) -> bool:
    if isinstance(show, bool):
        return show
    if not isinstance(show, str) or show != "auto":
        from gpuens import checks  # which imports NumPy

        raise ValueError(f"progress must be 'auto', True or False, not {checks.shown(show)}.")
    setting = os.environ.get("GPUENS_PROGRESS", "")
    if setting not in ("", "0", "1"):
        raise ValueError(f"GPUENS_PROGRESS must be 0 or 1, not {setting!r}.")
    # stderr is None under pythonw
    return setting == "1" if setting else sys.stderr is not None and sys.stderr.isatty()


class _Nothing:
    """A bar that shows nothing."""

    def __init__(self, over: Iterable[Any] | None) -> None:
        self._over = over

    def __iter__(self) -> Iterator[Any]:
        return iter(() if self._over is None else self._over)

    def __enter__(self) -> "_Nothing":
        return self

    def __exit__(self, *exception: object) -> None:
        pass

    def update(self, n: float = 1) -> None:
        pass

    def close(self) -> None:
        pass

"""Kinds of search for the nearest regions on the CPU: all give the same lists (kernels/cpu/linkage/searches.h)."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import NamedTuple

from gpuens.runtime.native import cpu


class Costs(NamedTuple):
    """The predicted cost of each kind of search."""

    tiles: float
    rows: float
    histograms: float


_only: ContextVar[int | None] = ContextVar("only", default=None)


@contextmanager
def only(kind: str) -> Iterator[None]:
    """Use only one kind of search (a field of `Costs`) in the with block."""
    token = _only.set(Costs._fields.index(kind))
    try:
        yield
    finally:
        _only.reset(token)


def only_kind() -> int | None:
    """Return the number of the kind of search to use, None if the cheapest is."""
    return _only.get()


class Extent(NamedTuple):
    """Sizes of the active regions.

    They are the labels of regions of few rows, the entries of regions of many rows, and the entries of all regions. The
    number of clusters of all clusterings is with them.
    """

    labels: int
    of_many: int
    entries: int
    clusters: int


def costs(n_queries: int, asked: int, extent: Extent, left: float, rows_in_tiles: int) -> Costs:
    """Return the predicted cost of each kind of search for ``n_queries`` regions with ``asked`` entries in total.

    ``left`` is the share of a query's comparisons that are needed despite bounds.
    """
    return Costs(*cpu.costs(n_queries, asked, extent, left, rows_in_tiles))

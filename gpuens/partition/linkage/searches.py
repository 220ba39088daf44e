"""Choice of the cheapest search for the nearest regions on the CPU; all of them list the same regions.

- Tiles of rows (`tile_regions`), one query after the other: cheapest where bounds exclude most tiles, and for few
  queries. Tiles are of an earlier round, and laid out anew once that would have saved more than it costs.
- Rows (`row_regions`), 64 queries at once: cheapest where bounds exclude little and most regions are of few rows.
- Histograms (`regions`), 16 queries at once: cheapest where bounds exclude little and regions are of many rows.

Costs are predicted from what is counted, never from the clock, so that every run does the same. Where little is
searched for, histograms alone do it: the others begin once they would have saved what it takes to load their code,
which an installation's first run compiles for seconds.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import NamedTuple

import numpy as np

from gpuens.partition.linkage import row_regions
from gpuens.partition.linkage.nearest import NearestIndex, Shortlists
from gpuens.partition.linkage.regions import BoundingWeights, Regions, search
from gpuens.partition.linkage.row_regions import Members
from gpuens.partition.linkage.tile_regions import MOST, Tiles
from gpuens.runtime.lanes import FLOAT_LANES, LANES

# costs; the unit is the comparison of an entry of a query with a label of a tile's row
LAYING = 40.0  # layout of one label in tiles
LOADING = 1e8  # loading of the code of a search by tiles or by rows, once per process
ROW = 12.0  # comparison of a label of a row with 64 queries
ENTRY = 8.0  # comparison of an entry of a histogram with 16 queries
CEILING = 16.0  # update of a ceiling by an entry of a histogram
QUERY = 5e4  # exact scores per query by histograms, beyond those by rows and tiles
LARGE = 4.0  # comparison of an entry of a region of many rows with a query, in a search by rows
TOGETHER = 4.0  # tiles that any of 16 queries wants, over those that one query wants


class Costs(NamedTuple):
    """Cost of each search."""

    tiles: float
    rows: float
    histograms: float


_only: ContextVar[str | None] = ContextVar("only", default=None)


@contextmanager
def only(kind: str) -> Iterator[None]:
    """Make all searches of one kind, a field of `Costs`, so that its code is loaded or compiled."""
    token = _only.set(kind)
    try:
        yield
    finally:
        _only.reset(token)


class Extent(NamedTuple):
    """Size of the active regions: labels of those of few rows, entries of those of many, entries in all."""

    labels: int
    of_many: int
    entries: int


def costs(n_queries: int, asked: int, extent: Extent, left: float, rows_in_tiles: int) -> Costs:
    """Return the cost of each search for ``n_queries`` regions with ``asked`` entries in all.

    ``left`` is the share of comparisons that bounds leave of one query's.
    """
    of_some = min(1.0, TOGETHER * left)
    return Costs(
        left * asked * rows_in_tiles,
        -(-n_queries // LANES) * ROW * extent.labels + n_queries * LARGE * extent.of_many,
        n_queries * QUERY + (CEILING + ENTRY * of_some * -(-n_queries // FLOAT_LANES)) * extent.entries,
    )


class Searches:
    """Searches for the nearest of all active regions, with the state kept between them.

    ``left`` is the share of comparisons that bounds left in the last one. Rows are compared, and tiles laid out, once
    other searches have cost as much more as it takes to begin; tiles are laid out anew once searches in those of
    earlier regions have taken as many more comparisons.
    """

    def __init__(
        self, index: NearestIndex, members: Members, weights: np.ndarray, bounding: BoundingWeights, whole: bool,
        left: float,
    ) -> None:  # fmt: skip
        self.index, self.members = index, members
        self.weights, self.bounding, self.whole = weights, bounding, whole
        self.n_clusterings: int = index.rows.shape[1]
        self.left = left
        self.tiles: Tiles | None = None
        self.missed = 0.0  # work that tiles of the present regions would have saved
        self.missed_by_rows = 0.0  # work that comparing rows would have saved

    def search(
        self, queries: np.ndarray, active: np.ndarray, n_entries: int, into: np.ndarray, regions: Regions,
        lists: Shortlists,
    ) -> int:  # fmt: skip
        """List the nearest of all ``active`` regions for each of ``queries`` anew; return the number of comparisons.

        Active regions have ``n_entries`` in all, and ``into`` leads from each region to that which it is part of now.
        """
        asked = int(regions.length[queries].sum())
        choice = self._choice(len(queries), asked, active, n_entries, regions)
        if self._pays(choice, active):
            self.tiles = Tiles(active, self.members, self.index, regions, self.bounding)
            self.missed = 0.0
            choice = choice._replace(tiles=0.0)
        if self.tiles is not None and choice.tiles <= min(choice.rows, choice.histograms):
            compared = self.tiles.search(queries, into, regions, self.weights, lists)
            self.left = min(1.0, compared / max(1, asked * self.tiles.n_rows))
            return compared
        if choice.rows < choice.histograms:
            return row_regions.search_rows(queries, active, self.members, self.index, regions, self.weights, lists)
        total = np.zeros(1, dtype=np.uint64)
        given = active, regions, self.weights, self.bounding, self.n_clusterings, self.whole
        search(queries, *given, lists, total, device="cpu")
        compared = int(total[0])
        self.left = min(self.left, compared / max(1, len(queries) * n_entries))
        return compared

    def _choice(self, n_queries: int, asked: int, active: np.ndarray, n_entries: int, regions: Regions) -> Costs:
        """Return the cost of each search, infinite for those excluded from the choice."""
        if (kind := _only.get()) is not None:
            choice = Costs(*(0.0 if field == kind else np.inf for field in Costs._fields))
        else:
            choice = self._costs(n_queries, asked, active, n_entries, regions)
        if self.n_clusterings > MOST:
            choice = choice._replace(tiles=np.inf)
        self.missed_by_rows += max(0.0, choice.histograms - choice.rows)
        return choice if self.missed_by_rows >= LOADING else choice._replace(rows=np.inf)

    def _pays(self, choice: Costs, active: np.ndarray) -> bool:
        """Add up the savings of tiles of the present regions; return whether these reach the cost of their layout.

        That is since tiles were laid out last.
        """
        anew, without = choice.tiles, min(choice.rows, choice.histograms)
        if self.tiles is None:
            n_rows, begin = float(self.members.n_rows[active].sum()), LOADING
        else:
            left = len(active) / self.tiles.n_parts
            n_rows, anew, without = left * self.tiles.n_rows, left * anew, min(anew, without)
            begin = 0.0
        self.missed += max(0.0, without - anew)
        return anew < without and self.missed > LAYING * n_rows * self.n_clusterings + begin

    def _costs(self, n_queries: int, asked: int, active: np.ndarray, n_entries: int, regions: Regions) -> Costs:
        if self.tiles is not None:  # exact costs are not needed if tiles are cheaper than regions of one row each
            least = Extent(len(active) * self.n_clusterings, 0, n_entries)
            choice = costs(n_queries, asked, least, self.left, self.tiles.n_rows)
            if choice.tiles <= min(choice.rows, choice.histograms):
                return choice
        n_rows = self.members.n_rows[active]
        few = n_rows <= LANES
        n_few = int(n_rows[few].sum())
        extent = Extent(n_few * self.n_clusterings, int(regions.length[active[~few]].sum()), n_entries)
        return costs(n_queries, asked, extent, self.left, n_few if self.tiles is None else self.tiles.n_rows)
